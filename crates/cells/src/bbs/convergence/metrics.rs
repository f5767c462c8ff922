//! What passes did, for people and dashboards.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use diego::models::actual_lrp::Presence;
use telemetry::prometheus::{Kind, Page};

use crate::bbs::model::convergence::Action;
use crate::bbs::model::slot::Phase;
use crate::bbs::state::Counts;
use crate::mutex::lock;

/// What all passes since the start did.
#[derive(Debug, Default)]
pub(crate) struct Passes(Mutex<Sums>);

#[derive(Debug, Default, Clone)]
struct Sums {
    passes: u64,
    time: Duration,
    judged: u64,
    done: BTreeMap<Action, usize>,
    last: Pass,
}

/// What one pass did.
#[derive(Debug, Default, Clone)]
pub(super) struct Pass {
    pub(super) time: Duration,
    /// Records looked at.
    pub(super) judged: usize,
    /// Records that are looked at again without being touched.
    pub(super) watched: usize,
    /// Cells present.
    pub(super) cells: usize,
    /// Cells with suspect instances.
    pub(super) suspect_cells: usize,
    pub(super) done: BTreeMap<Action, usize>,
}

impl Passes {
    pub(super) fn add(&self, pass: Pass) {
        let mut sums = lock(&self.0);
        sums.passes += 1;
        sums.time += pass.time;
        sums.judged += pass.judged as u64;
        for (action, count) in &pass.done {
            *sums.done.entry(*action).or_default() += count;
        }
        sums.last = pass;
    }

    /// Writes everything that convergence knows, with the numbers of records.
    pub(crate) fn write(&self, page: &mut Page, counts: &Counts) {
        let sums = lock(&self.0).clone();
        page.counter("bbs_convergence_passes_total", "Passes.", sums.passes)
            .counter(
                "bbs_convergence_seconds_sum",
                "Time spent on passes.",
                sums.time.as_secs_f64(),
            )
            .counter(
                "bbs_convergence_judged_total",
                "Records looked at in passes.",
                sums.judged,
            )
            .gauge(
                "bbs_convergence_last_seconds",
                "Time that the newest pass took.",
                sums.last.time.as_secs_f64(),
            )
            .gauge(
                "bbs_convergence_last_judged",
                "Records that the newest pass looked at.",
                sums.last.judged,
            )
            .gauge(
                "bbs_convergence_watched",
                "Records that will be looked at again without being touched.",
                sums.last.watched,
            )
            .gauge(
                "bbs_cells",
                "Cells present in the last pass.",
                sums.last.cells,
            )
            .gauge(
                "bbs_suspect_cells",
                "Cells with suspect instances in the last pass.",
                sums.last.suspect_cells,
            )
            .family(
                Kind::Counter,
                "bbs_convergence_actions_total",
                "What passes did.",
                "action",
                sums.done
                    .iter()
                    .map(|(action, count)| (name(*action), *count)),
            );
        let states = ["invalid", "pending", "running", "completed", "resolving"];
        page.family(
            Kind::Gauge,
            "bbs_tasks_in_state",
            "Tasks by their state.",
            "state",
            states.into_iter().zip(counts.tasks).skip(1),
        );
        for (metric, help, presence) in [
            (
                "bbs_lrps",
                "Ordinary instances by their state.",
                Presence::Ordinary,
            ),
            (
                "bbs_suspect_lrps",
                "Instances on cells that were lost, by their state.",
                Presence::Suspect,
            ),
            (
                "bbs_evacuating_lrps",
                "Instances that are evacuated, by their state.",
                Presence::Evacuating,
            ),
        ] {
            let of = |(phase, name): (Phase, &'static str)| (name, counts.rows(presence, phase));
            page.family(Kind::Gauge, metric, help, "state", Phase::ALL.map(of));
        }
        page.gauge("bbs_lrps_desired", "Instances desired.", counts.desired)
            .gauge(
                "bbs_lrps_routable",
                "Instances of which a copy runs and is routable; each counts once.",
                counts.routable,
            )
            .gauge(
                "bbs_crashing_desired_lrps",
                "Processes of which instances wait after a crash.",
                counts.crashing(),
            );
    }
}

/// The name of an action in metrics and logs.
pub(super) fn name(action: Action) -> &'static str {
    match action {
        Action::RemoveEvacuating => "remove-evacuating",
        Action::RemoveSuspect => "remove-suspect",
        Action::Promote => "promote-suspect",
        Action::Create => "create-missing",
        Action::Place => "place-stale",
        Action::Restart => "restart-crashed",
        Action::Suspect => "suspect",
        Action::Unclaim => "unclaim",
        Action::Update => "update",
        Action::Remove => "remove",
        Action::Stop => "stop-surplus",
        Action::PlaceTask => "kick-task",
        Action::FailUnstarted => "fail-unstarted-task",
        Action::FailLost => "fail-lost-task",
        Action::Unresolve => "offer-result-again",
        Action::CallBack => "send-result-again",
        Action::Forget => "forget-task",
    }
}
