//! What a load is asked to send, in the generator's words.

use lab_experiment::plan::{Load, LoadModel, Schedule, Search, Traffic};
use lab_load::arrivals::{Arrivals, Shape};
use lab_load::knee::Settle;
use lab_load::{Length, Model, Segment, Slo, Workload};

use super::{Loads, Measured};
use crate::steps::StepError;

/// Holds of this many times the usual length are made where few requests could tell
/// too little.
const LONGEST: u32 = 12;
/// Confirming holds have this many times the usual length.
const CONFIRM: u32 = 3;
/// A rest has at most this many times the length of a hold.
const REST: u32 = 2;
/// Holds beyond the knee that a fit needs.
const OVERLOAD: u32 = 4;

impl Loads<'_> {
    /// Numbers of the steps that a probe runs in.
    pub(super) fn period(&self, load: &Load) -> std::ops::Range<usize> {
        let names: Vec<String> = self
            .plan
            .steps
            .iter()
            .map(|step| step.name.clone())
            .collect();
        let Some(period) = &load.probe else {
            return 0..0;
        };
        let own = period.steps(&names);
        let first = own
            .first()
            .and_then(|first| names.iter().position(|name| name == first));
        let first = first.unwrap_or(0);
        first..first + own.len()
    }

    /// When requests are due.
    pub(super) fn segment(
        &self,
        load: &Load,
        traffic: &Traffic,
        length: Length,
    ) -> Result<Segment, StepError> {
        let model = match (&load.model, traffic) {
            (LoadModel::Closed { think, .. }, _) => Model::Closed { think: *think },
            (LoadModel::Open { .. }, Traffic::Arrivals(arrivals)) => Model::Open(arrivals.clone()),
            (LoadModel::Open { process, .. }, Traffic::ShareOfKnee { share, search }) => {
                Model::Open(Arrivals::Rate {
                    process: *process,
                    shape: Shape::Constant(self.share_of_knee(*share, search)?),
                })
            }
            (LoadModel::Open { arrivals, .. }, Traffic::Own) => match arrivals {
                Some(Schedule::Arrivals(arrivals)) => Model::Open(arrivals.clone()),
                Some(Schedule::Trace(_)) | None => {
                    let trace = self.files.trace(&load.name).cloned();
                    Model::Open(trace.ok_or_else(|| {
                        format!("load {} has no rate; give it a `rate`", load.name)
                    })?)
                }
            },
        };
        Ok(Segment {
            model,
            length,
            first: 0,
        })
    }

    /// A step that asks for it has been skipped where there is none.
    pub(super) fn share_of_knee(&self, share: f64, search: &str) -> Result<f64, String> {
        let state = self.state.borrow();
        let found = Measured(&state.outcomes).search(Some(search));
        let capacity = found.and_then(|summary| summary.capacity.as_ref());
        let rate = capacity.and_then(|capacity| capacity.share(share));
        rate.ok_or_else(|| format!("the search of {search:?} confirmed no rate"))
    }

    /// What the search of a step is told.
    pub(super) fn settings(
        &self,
        load: &Load,
        search: &Search,
    ) -> Result<lab_load::knee::Search, String> {
        let LoadModel::Open { process, .. } = &load.model else {
            return Err(format!(
                "load {} is a closed loop and has no rate",
                load.name
            ));
        };
        let slo = Slo::parse(&search.good).map_err(|error| error.to_string())?;
        let each = search.each;
        let mut settings = lab_load::knee::Search {
            process: *process,
            from: search.from,
            grow: search.grow,
            most: search.most,
            each,
            longest: each * LONGEST,
            settle: search.settle.map_or(Settle::Auto, Settle::Lead),
            precision: search.precision,
            confirm: each * CONFIRM,
            drain: each * REST,
            overload: if search.usl { OVERLOAD } else { 0 },
            seed: self.plan.seed,
            ..lab_load::knee::Search::new(slo)
        };
        if let Some(at_most) = search.at_most {
            settings.within = at_most;
            settings.longest = settings.longest.min(at_most / 4).max(each);
            settings.confirm = settings.confirm.min(at_most / 4).max(each);
        }
        settings.check().map_err(|error| error.to_string())?;
        Ok(settings)
    }

    pub(super) fn workload(&self, load: &Load) -> Result<Workload, String> {
        let failed = |cause: &dyn ToString| format!("load {}: {}", load.name, cause.to_string());
        let files = self.files.of(load, self.addresses);
        let files = files.map_err(|error| failed(&error))?;
        load.workload(self.plan.seed, files, &|reference| {
            self.addresses.resolve_from(&load.name, reference)
        })
        .map_err(|error| failed(&error))
    }
}
