//! All that a container does.

use std::time::Duration;

use diego::models::{Action, DesiredLrp};
use net::Shutdown;

use super::performing::{Ends, codependently, is_asked};
use super::{CheckGroup, Failure, Health, Leaves, LogContext, Outcome, Ready, Sign, Steps};

/// What a container is to do.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::rep) struct Plan<'a> {
    /// Before everything else, to its end.
    pub(in crate::rep) setup: Option<&'a Action>,
    /// What it is for.
    pub(in crate::rep) action: Option<&'a Action>,
    /// Beside the action: the first that ends ends the container.
    pub(in crate::rep) sidecars: Vec<&'a Action>,
    /// When it counts as running, and goes on doing so.
    pub(in crate::rep) health: Health<'a>,
    /// When it is routed to; `None`: while it runs.
    pub(in crate::rep) readiness: Option<CheckGroup>,
    /// Longest time until it is healthy; 0: for ever.
    pub(in crate::rep) start_within: Duration,
}

impl<'a> Plan<'a> {
    /// Of an instance.
    pub(in crate::rep) fn of(desired: &'a DesiredLrp) -> Self {
        let definition = desired.check_definition.as_ref();
        let health = match (definition, &desired.monitor) {
            (Some(definition), _) => CheckGroup::of(definition, &definition.checks)
                .map_or(Health::Unchecked, Health::Asked),
            (None, Some(monitor)) => Health::Monitored(monitor),
            (None, None) => Health::Unchecked,
        };
        let readiness = definition.and_then(|it| CheckGroup::of(it, &it.readiness_checks));
        let start_within = match desired.start_timeout_ms {
            1.. => Duration::from_millis(desired.start_timeout_ms.unsigned_abs()),
            _ => Duration::from_secs(desired.deprecated_start_timeout_s.into()),
        };
        Self {
            setup: desired.setup.as_ref(),
            action: desired.action.as_ref(),
            sidecars: desired
                .sidecars
                .iter()
                .filter_map(|car| car.action.as_ref())
                .collect(),
            health,
            readiness: readiness.filter(|asked| !asked.checks.is_empty()),
            start_within,
        }
    }

    /// Of a task.
    pub(in crate::rep) fn task(action: Option<&'a Action>) -> Self {
        Self {
            setup: None,
            action,
            sidecars: Vec::new(),
            health: Health::Unchecked,
            readiness: None,
            start_within: Duration::ZERO,
        }
    }
}

impl<L: Leaves> Steps<'_, L> {
    /// Performs all of it, to the end of the container.
    pub(in crate::rep) async fn contain(
        &self,
        plan: &Plan<'_>,
        source: &str,
        signs: &(dyn Fn(Sign) + Send + Sync),
        mut stop: Shutdown,
    ) -> Outcome {
        let log_context = LogContext::new(source);
        if let Health::Asked(asked) = &plan.health {
            asked.bounded()?;
        }
        if let Some(asked) = &plan.readiness {
            asked.bounded()?;
            signs(Sign::Routable(false));
        }
        if let Some(setup) = plan.setup {
            let ready = Ready::ignored();
            self.perform(setup, log_context.clone(), ready, stop.clone(), 0)
                .await?;
            if is_asked(&mut stop).await {
                return Ok(());
            }
        }
        let Some(action) = plan.action else {
            return Err(Failure::plain("container cannot have empty action"));
        };
        let running = Ready::new(|| signs(Sign::Running));
        let checked = plan.health != Health::Unchecked;
        if !checked && plan.sidecars.is_empty() && plan.readiness.is_none() {
            return self.perform(action, log_context, running, stop, 0).await;
        }
        let ends = Ends {
            end_fails: false,
            with_first: !plan.sidecars.is_empty(),
        };
        codependently(stop, ends, |stop| {
            let programs = [action].into_iter().chain(plan.sidecars.iter().copied());
            let count = 1
                + plan.sidecars.len()
                + usize::from(checked)
                + usize::from(plan.readiness.is_some());
            let mut readies = running.split(count);
            let mut ready = || readies.pop().unwrap_or_else(Ready::ignored);
            let mut steps: Vec<_> = programs
                .map(|action| self.perform(action, log_context.clone(), ready(), stop.clone(), 0))
                .collect();
            if checked {
                let (health, within) = (&plan.health, plan.start_within);
                let log_context = log_context.clone();
                steps.push(self.healthy(health, within, log_context, ready(), stop.clone()));
            }
            if let Some(asked) = &plan.readiness {
                steps.push(self.routable(asked, signs, ready(), stop.clone()));
            }
            steps
        })
        .await
    }
}
