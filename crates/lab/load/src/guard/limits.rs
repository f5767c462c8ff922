//! What differs from the guard's defaults, in words.

use units::{show_seconds, show_share};

use crate::workload::{GuardLimits, Pace, Workload};

/// Every limit that is not the default one, and a tick that the limit for late sends
/// had to be widened by.
pub(super) fn changed(workload: &Workload) -> Vec<String> {
    let (own, usual) = (&workload.guard, GuardLimits::default());
    let mut changed = Vec::new();
    let mut differ = |what: &str, own: f64, usual: f64, show: fn(f64) -> String| {
        if own != usual {
            changed.push(format!("{what} {} (usually {})", show(own), show(usual)));
        }
    };
    differ(
        "a send is late after",
        own.late_after.as_secs_f64(),
        usual.late_after.as_secs_f64(),
        show_seconds,
    );
    for (what, own, usual) in [
        ("late sends up to", own.late_share, usual.late_share),
        (
            "processor of a thread up to",
            own.thread_cpu,
            usual.thread_cpu,
        ),
        (
            "sent of the plan at least",
            own.sent_share,
            usual.sent_share,
        ),
        (
            "waiting for a connection up to",
            own.waited_share,
            usual.waited_share,
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
