//! How much of the machine processes take that are none of ours.

use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::{SysconfVar, sysconf};

/// Processor time so far, of everybody and of this process with the children that have ended.
pub(crate) struct Watch {
    since: Instant,
    all_s: f64,
    own_s: f64,
}

impl Watch {
    pub(crate) fn start() -> Self {
        Self {
            since: Instant::now(),
            all_s: all_s(),
            own_s: own_s(),
        }
    }

    /// Processors that strangers used since; what was stolen from the machine counts too.
    pub(crate) fn strangers_cores(&self) -> f64 {
        let length_s = self.since.elapsed().as_secs_f64();
        let own_s = own_s() - self.own_s;
        ((all_s() - self.all_s - own_s) / length_s).max(0.0)
    }
}

/// Of the first line of /proc/stat: user, nice, system, irq, softirq and steal.
fn all_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").expect("the machine's times");
    let first = stat.lines().next().expect("a line");
    let ticks: Vec<f64> = first
        .split_whitespace()
        .skip(1)
        .filter_map(|text| text.parse().ok())
        .collect();
    let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    [0, 1, 2, 5, 6, 7]
        .iter()
        .filter_map(|at| ticks.get(*at))
        .sum::<f64>()
        / per_second as f64
}

fn own_s() -> f64 {
    [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN]
        .into_iter()
        .filter_map(|who| getrusage(who).ok())
        .map(|usage| (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6)
        .sum()
}
