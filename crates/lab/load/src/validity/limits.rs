//! What differs from the usual limits, in words.

use units::{show_seconds, show_share};

use crate::workload::{GuardLimits, Pace, Workload};

/// Every limit that is not the default one, and what a tick makes of the schedule.
pub(super) fn changed(workload: &Workload) -> Vec<String> {
    let (own, usual) = (&workload.guard, GuardLimits::default());
    let mut changed = Vec::new();
    let mut differ = |what: &str, own: f64, usual: f64, show: fn(f64) -> String| {
        if own != usual {
            changed.push(format!("{what} {} (usually {})", show(own), show(usual)));
        }
    };
    differ(
        "the generator may add",
        own.late_after.as_secs_f64(),
        usual.late_after.as_secs_f64(),
        show_seconds,
    );
    for (what, own, usual) in [
        (
            "sent of the plan at least",
            own.sent_share,
            usual.sent_share,
        ),
        ("steal up to", own.steal_share, usual.steal_share),
        (
            "in flight against rate times latency within",
            own.little,
            usual.little,
        ),
    ] {
        differ(what, own, usual, show_share);
    }
    if let Pace::Tick(tick) = workload.pace {
        let tick = show_seconds(tick.as_secs_f64());
        changed.push(format!(
            "sends may be {tick} later than planned: requests of a tick go together"
        ));
    }
    changed
}
