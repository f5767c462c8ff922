//! How much of the machine goes to processes that are none of ours, and to other machines: a witness apart from
//! what the instrument itself says of its disturbances.

use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::{SysconfVar, sysconf};

/// Processor time so far, of everybody, of other machines, and of this process with the children that have ended.
pub(crate) struct Watch {
    since: Instant,
    all_s: f64,
    stolen_s: f64,
    own_s: f64,
}

/// What others took while a truth was planted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strangers {
    /// Processors, with those that the hypervisor gave to other machines.
    pub(crate) cores: f64,
    /// The share of this machine's processors that the hypervisor gave to other machines.
    pub(crate) stolen_share: f64,
}

impl Strangers {
    /// From so many processors on, work of strangers can hide what limits a server.
    const HIDES_CORES: f64 = 0.3;
    /// From half of what the instrument bears while it measures; a planting is longer than its load.
    const HIDES_SHARE: f64 = 0.01;

    /// Whether they may have disturbed what was planted.
    pub(crate) fn may_hide(self) -> bool {
        self.cores >= Self::HIDES_CORES || self.stolen_share >= Self::HIDES_SHARE
    }
}

impl Watch {
    pub(crate) fn start() -> Self {
        Self {
            since: Instant::now(),
            all_s: machine_s(&[USER, NICE, SYSTEM, IRQ, SOFTIRQ, STEAL]),
            stolen_s: machine_s(&[STEAL]),
            own_s: own_s(),
        }
    }

    pub(crate) fn strangers(&self) -> Strangers {
        let now = Self::start();
        let length_s = (now.since - self.since).as_secs_f64();
        let processors = sysconf(SysconfVar::_NPROCESSORS_ONLN).ok().flatten();
        let strangers_s = (now.all_s - self.all_s) - (now.own_s - self.own_s);
        Strangers {
            cores: (strangers_s / length_s).max(0.0),
            stolen_share: (now.stolen_s - self.stolen_s)
                / (length_s * processors.unwrap_or(1) as f64),
        }
    }
}

// Columns of /proc/stat, proc_stat(5).
const USER: usize = 0;
const NICE: usize = 1;
const SYSTEM: usize = 2;
const IRQ: usize = 5;
const SOFTIRQ: usize = 6;
const STEAL: usize = 7;

/// Processor time of the machine so far, in these columns of /proc/stat's first line.
fn machine_s(columns: &[usize]) -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").expect("the machine's times");
    let first = stat.lines().next().expect("a line");
    let ticks: Vec<f64> = first
        .split_whitespace()
        .skip(1)
        .filter_map(|text| text.parse().ok())
        .collect();
    let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    columns.iter().filter_map(|at| ticks.get(*at)).sum::<f64>() / per_second as f64
}

fn own_s() -> f64 {
    [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN]
        .into_iter()
        .filter_map(|who| getrusage(who).ok())
        .map(|usage| (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6)
        .sum()
}
