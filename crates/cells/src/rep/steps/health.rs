//! Whether a container is healthy, and may be routed to.

use std::time::Duration;

use diego::models::{self, Action, CheckDefinition};
use net::Shutdown;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use super::performing::{Ends, codependently, together};
use super::{Failure, Leaves, LogContext, Outcome, Performing, Ready, Sign, Steps, go_duration};

/// Source of what is told about declared checks that name none.
const SOURCE: &str = "HEALTH";
/// Longest answer that is waited for, where the check does not say.
const WITHIN: Duration = Duration::from_secs(1);
/// Bounds of times that a check names itself.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Most checks of one kind of a container.
const CHECKS_MAX: usize = 64;

/// A declared check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rep) struct Check {
    /// The container's port.
    pub(in crate::rep) port: u16,
    /// Path of the request that must be answered with 200; `None`: to connect is enough.
    pub(in crate::rep) path: Option<String>,
    /// Longest time for it.
    pub(in crate::rep) within: Duration,
    /// Between two checks of a healthy container; `None`: as often as all.
    pub(in crate::rep) every: Option<Duration>,
}

/// Checks that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rep) struct CheckGroup {
    pub(in crate::rep) checks: Vec<Check>,
    /// Source of what is told about them.
    source: String,
}

/// How a container is known to be healthy.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::rep) enum Health<'a> {
    /// It is while it runs.
    Unchecked,
    /// By declared checks.
    Asked(CheckGroup),
    /// By an action that must succeed.
    Monitored(&'a Action),
}

impl CheckGroup {
    /// Declared checks; those that no container could pass, as they name no port, are left
    /// out. `None` without any.
    pub(super) fn of(definition: &CheckDefinition, checks: &[models::Check]) -> Option<Self> {
        let source = match definition.log_source.as_str() {
            "" => SOURCE,
            source => source,
        };
        let time = |ms: u64| (ms > 0).then(|| Duration::from_millis(ms).clamp(SHORTEST, LONGEST));
        let port = |port: u32| u16::try_from(port).ok().filter(|port| *port > 0);
        let check = |check: &models::Check| match (&check.http_check, &check.tcp_check) {
            (Some(http), _) => Some(Check {
                port: port(http.port)?,
                path: Some(match http.path.as_str() {
                    "" => "/".to_owned(),
                    path => path.to_owned(),
                }),
                within: time(http.request_timeout_ms).unwrap_or(WITHIN),
                every: time(http.interval_ms),
            }),
            (None, Some(tcp)) => Some(Check {
                port: port(tcp.port)?,
                path: None,
                within: time(tcp.connect_timeout_ms).unwrap_or(WITHIN),
                every: time(tcp.interval_ms),
            }),
            (None, None) => None,
        };
        (!checks.is_empty()).then(|| Self {
            checks: checks.iter().filter_map(check).collect(),
            source: source.to_owned(),
        })
    }

    /// Fails when there are more checks than one container may have.
    pub(super) fn bounded(&self) -> Outcome {
        match self.checks.len() {
            0..=CHECKS_MAX => Ok(()),
            found => Err(Failure::plain(format!(
                "the container has {found} checks, but may have {CHECKS_MAX}"
            ))),
        }
    }
}

impl<L: Leaves> Steps<'_, L> {
    /// Goes on while the container is healthy; `ready` once it has become so. It must within
    /// `start_within`, unless that is 0.
    pub(super) fn healthy<'s>(
        &'s self,
        health: &'s Health<'s>,
        start_within: Duration,
        log_context: LogContext,
        ready: Ready<'s>,
        stop: Shutdown,
    ) -> Performing<'s> {
        Box::pin(async move {
            let source = log_context.source.as_str();
            let checks = match health {
                Health::Asked(asked) => asked.source.as_str(),
                Health::Monitored(_) | Health::Unchecked => source,
            };
            self.write_log(source, "Starting health monitoring of container");
            let began = Instant::now();
            let limit = (!start_within.is_zero()).then(|| began + start_within.min(LONGEST));
            let starts = match health {
                Health::Unchecked => Ok(()),
                Health::Asked(asked) => {
                    let all = asked.checks.iter().map(|check| {
                        Box::pin(self.becomes(check, limit, start_within)) as Performing<'s>
                    });
                    unless(stop.clone(), together(all.collect())).await
                }
                Health::Monitored(action) => {
                    self.monitor_until_it_succeeds(action, limit, &log_context, stop.clone())
                        .await
                }
            };
            if super::performing::is_asked(&mut stop.clone()).await {
                return Err(Failure::cancelled());
            }
            if let Err(failure) = starts {
                let (after, text) = (go_duration(began.elapsed()), failure.text());
                self.write_log(checks, text);
                let told = format!("Failed after {after}: startup health check never passed.");
                self.write_log(source, &told);
                let text = format!("Instance never healthy after {after}: {text}");
                return Err(Failure::worded(text));
            }
            self.write_log(source, "Container became healthy");
            ready.signal();
            let goes_on = match health {
                Health::Asked(asked) if !asked.checks.is_empty() => {
                    let prefix = "Liveness check unsuccessful";
                    unless(stop.clone(), self.all_stay(asked, prefix)).await
                }
                Health::Monitored(action) => {
                    self.monitor_while_it_succeeds(action, &log_context, stop.clone())
                        .await
                }
                Health::Asked(_) | Health::Unchecked => {
                    unless(stop.clone(), std::future::pending()).await
                }
            };
            if super::performing::is_asked(&mut stop.clone()).await {
                return Err(Failure::cancelled());
            }
            let text = goes_on.err().map(|failure| failure.text().to_owned());
            let text = text.unwrap_or_default();
            self.write_log(checks, &text);
            self.write_log(source, "Container became unhealthy");
            Err(Failure::worded(format!(
                "Instance became unhealthy: {text}"
            )))
        })
    }

    /// Tells whether the container may be routed to, whenever that changes.
    pub(super) fn routable<'s>(
        &'s self,
        asked: &'s CheckGroup,
        signs: &'s (dyn Fn(Sign) + Send + Sync),
        ready: Ready<'s>,
        stop: Shutdown,
    ) -> Performing<'s> {
        let follow = async move {
            let source = asked.source.as_str();
            self.write_log(source, "Starting readiness health monitoring of container");
            ready.signal();
            loop {
                let all = asked.checks.iter().map(|check| {
                    Box::pin(async move {
                        while self.leaves.run_check(check).await.is_err() {
                            sleep(self.monitoring.unhealthy).await;
                        }
                        Ok(())
                    }) as Performing<'s>
                });
                together(all.collect()).await?;
                signs(Sign::Routable(true));
                let passed = "Container passed the readiness health check. Container marked ready and added to route pool.";
                self.write_log(source, passed);
                // Its failure is what is waited for.
                let _ = self.all_stay(asked, "Readiness check unsuccessful").await;
                signs(Sign::Routable(false));
                let failed = "Container failed the readiness health check. Container marked not ready and removed from route pool.";
                self.write_log(source, failed);
            }
        };
        Box::pin(unless(stop, follow))
    }

    /// Asks until the check passes, or until `limit`.
    async fn becomes(&self, check: &Check, limit: Option<Instant>, within: Duration) -> Outcome {
        let over = async {
            match limit {
                Some(limit) => sleep_until(limit).await,
                None => std::future::pending().await,
            }
        };
        let mut over = std::pin::pin!(over);
        let mut ticks = interval(self.monitoring.unhealthy);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        ticks.tick().await;
        let mut said = String::from("no check has ended yet");
        let mut attempts = 0;
        loop {
            attempts += 1;
            tokio::select! {
                biased;
                answer = self.leaves.run_check(check) => match answer {
                    Ok(()) => return Ok(()),
                    Err(why) => said = why,
                },
                () = &mut over => break,
            }
            tokio::select! {
                biased;
                () = &mut over => break,
                _ = ticks.tick() => {}
            }
        }
        let within = go_duration(within);
        Err(Failure::worded(format!(
            "Timed out after {within} ({attempts} attempts) waiting for startup check to succeed: {said}"
        )))
    }

    /// Asks for as long as all checks pass.
    async fn all_stay(&self, asked: &CheckGroup, prefix: &str) -> Outcome {
        let ends = Ends {
            end_fails: false,
            with_first: true,
        };
        // Nobody asks them to stop but the first of them that fails.
        let (_never, stop) = net::shutdown();
        codependently(stop, ends, |stop| {
            let each = asked.checks.iter().map(|check| {
                Box::pin(unless(stop.clone(), async move {
                    loop {
                        if let Err(why) = self.leaves.run_check(check).await {
                            return Err(Failure::worded(format!("{prefix}: {why}")));
                        }
                        sleep(check.every.unwrap_or(self.monitoring.healthy)).await;
                    }
                })) as Performing<'_>
            });
            each.collect()
        })
        .await
    }

    async fn monitor_until_it_succeeds(
        &self,
        action: &Action,
        limit: Option<Instant>,
        log_context: &LogContext,
        mut stop: Shutdown,
    ) -> Outcome {
        loop {
            tokio::select! {
                () = sleep(self.monitoring.unhealthy) => {}
                () = stop.requested() => return Err(Failure::cancelled()),
            }
            let outcome = self.monitor(action, log_context, stop.clone()).await;
            if outcome.is_ok() || limit.is_some_and(|limit| Instant::now() > limit) {
                return outcome;
            }
        }
    }

    async fn monitor_while_it_succeeds(
        &self,
        action: &Action,
        log_context: &LogContext,
        mut stop: Shutdown,
    ) -> Outcome {
        loop {
            tokio::select! {
                () = sleep(self.monitoring.healthy) => {}
                () = stop.requested() => return Err(Failure::cancelled()),
            }
            self.monitor(action, log_context, stop.clone()).await?;
        }
    }

    /// Performs the monitor once, when there is a place for it.
    async fn monitor(
        &self,
        action: &Action,
        log_context: &LogContext,
        mut stop: Shutdown,
    ) -> Outcome {
        let _worker = tokio::select! {
            worker = self.monitoring.pool.worker(std::time::Instant::now()) => worker,
            () = stop.requested() => return Err(Failure::cancelled()),
        };
        let log_context = LogContext {
            checks: true,
            ..log_context.clone()
        };
        self.perform(action, log_context, Ready::ignored(), stop, 0)
            .await
    }
}

/// What `step` comes to, unless it is asked to stop before.
async fn unless(mut stop: Shutdown, step: impl Future<Output = Outcome>) -> Outcome {
    tokio::select! {
        biased;
        () = stop.requested() => Err(Failure::cancelled()),
        outcome = step => outcome,
    }
}
