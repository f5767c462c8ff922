//! What the kernel says about itself that may explain noise.

use std::fs;
use std::path::Path;

use measure::Machine;
use processes::Hierarchy;
use serde::{Deserialize, Serialize};

use crate::work::affinity;

/// Longest file that is read; those of the kernel are short.
const LONGEST: usize = 64 << 10;

/// Facts of a machine that move latencies. What the kernel does not tell is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Name and release.
    pub kernel: String,
    /// The model of the processor.
    pub cpu_model: String,
    /// Processors' worth that this process may use, by affinity and quota.
    pub cpus: u32,
    /// Which processors the thread that asked may use, such as `0-2,5`.
    pub affinity: Option<String>,
    /// Mean of processes that run or wait to, over 1, 5 and 15 minutes.
    pub load: Option<Load>,
    /// How long something waited for a processor.
    pub pressure: Option<Pressure>,
    /// Processors that the scheduler leaves alone; empty: none.
    pub isolated: Option<String>,
    /// Whether two threads of the machine share a core.
    pub smt: Option<bool>,
    /// How clock rates are chosen, such as `performance`; `None`: not by this kernel.
    pub governor: Option<String>,
    /// What the clock is read from, such as `tsc`.
    pub clocksource: Option<String>,
    /// When memory is given in large pages: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// How the kernel chooses when this process runs, with its priority if it has one:
    /// `other`, `batch`, `idle`, `fifo 50`, `rr 50`, `deadline` (sched(7)).
    #[serde(default)]
    pub scheduling: Option<String>,
    /// Microseconds of each second that real-time threads may take; -1: all.
    pub rt_runtime_us: Option<i64>,
    /// What the control group of this process allows.
    pub limits: Limits,
}

/// Load averages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Over a minute.
    pub m1: f64,
    /// Over five.
    pub m5: f64,
    /// Over fifteen.
    pub m15: f64,
}

/// Share of the time in which something waited, 0 to 1 (the kernel's PSI, `some`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// Over ten seconds.
    pub s10: f64,
    /// Over a minute.
    pub s60: f64,
}

/// Limits of a control group: the tightest of it and of those above it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Processors' worth of time in each period.
    pub cpus: Option<f64>,
    /// Bytes of memory.
    pub memory: Option<u64>,
}

impl Facts {
    /// Reads them below a folder, which is `/` but for tests.
    pub fn read(root: &Path) -> Self {
        let machine = Machine::detect();
        let text = |path: &str| text(root, path);
        let cpu0 = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
        let clock = "sys/devices/system/clocksource/clocksource0/current_clocksource";
        Self {
            kernel: machine.kernel,
            cpu_model: machine.cpu_model,
            cpus: machine.cores,
            affinity: rustix::thread::sched_getaffinity(None)
                .ok()
                .map(|allowed| affinity::show(&allowed)),
            load: text("proc/loadavg").and_then(|text| Load::parse(&text)),
            pressure: text("proc/pressure/cpu").and_then(|text| Pressure::parse(&text)),
            isolated: text("sys/devices/system/cpu/isolated"),
            smt: text("sys/devices/system/cpu/smt/active").map(|text| text == "1"),
            governor: text(cpu0),
            clocksource: text(clock),
            huge_pages: text("sys/kernel/mm/transparent_hugepage/enabled")
                .and_then(|text| chosen(&text)),
            scheduling: text("proc/self/stat").and_then(|text| scheduling(&text)),
            rt_runtime_us: text("proc/sys/kernel/sched_rt_runtime_us")
                .and_then(|text| text.parse().ok()),
            limits: Limits::read(root),
        }
    }

    /// What of this makes latencies noisy.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let cpus = f64::from(self.cpus.max(1));
        if let Some(load) = self.load.filter(|load| load.m1 > 0.5 * cpus) {
            warnings.push(format!(
                "{} processes run or wait to run on {} processors (load average): others take part in what is measured.",
                load.m1, self.cpus
            ));
        }
        if let Some(pressure) = self.pressure.filter(|pressure| pressure.s10 > 0.05) {
            warnings.push(format!(
                "Something waited for a processor in {} of the last ten seconds.",
                units::show_share(pressure.s10)
            ));
        }
        if let Some(governor) = self.governor.as_ref().filter(|one| *one != "performance") {
            warnings.push(format!(
                "Clock rates are chosen by `{governor}`: short work runs slower after a pause. Set the governor `performance`."
            ));
        }
        if let Some(source) = self.clocksource.as_ref().filter(|one| *one != "tsc") {
            warnings.push(format!(
                "The clock is read from `{source}`, which may take a call into the kernel or hypervisor each time; `tsc` does not."
            ));
        }
        let realtime = self.scheduling.as_deref().unwrap_or_default();
        let realtime = ["fifo", "rr"].iter().any(|one| realtime.starts_with(one));
        if let Some(runtime) = self.rt_runtime_us.filter(|time| realtime && *time >= 0) {
            warnings.push(format!(
                "This process has real-time priority, but real-time threads stand still once they have run for {runtime} µs of a period: busy ones lose more than they gain. Start it without, or write -1 to /proc/sys/kernel/sched_rt_runtime_us."
            ));
        }
        if let Some(limit) = self.limits.cpus {
            warnings.push(format!(
                "A control group gives {} of processor time: when it is used up everything stands still until its period ends.",
                units::show_cores(limit)
            ));
        }
        warnings
    }
}

/// A file without its last line's end; `None` if it cannot be read.
fn text(root: &Path, path: &str) -> Option<String> {
    let text = fs::read_to_string(root.join(path)).ok()?;
    (text.len() <= LONGEST).then(|| text.trim().to_owned())
}

/// Policy and priority of a process, by its `stat` (proc(5): `rt_priority` is the 40th field,
/// `policy` the 41st; the second is a name in parentheses that may hold anything).
fn scheduling(stat: &str) -> Option<String> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(37);
    let (priority, policy) = (fields.next()?, fields.next()?);
    Some(match policy {
        "0" => "other".to_owned(),
        "1" => format!("fifo {priority}"),
        "2" => format!("rr {priority}"),
        "3" => "batch".to_owned(),
        "5" => "idle".to_owned(),
        "6" => "deadline".to_owned(),
        _ => return None,
    })
}

/// The word in brackets of `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word.to_owned())
}

impl Load {
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_ascii_whitespace().map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Self {
            m1: next()?,
            m5: next()?,
            m15: next()?,
        })
    }
}

impl Pressure {
    fn parse(text: &str) -> Option<Self> {
        let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
        let of = |name: &str| -> Option<f64> {
            let mut pairs = some.split_ascii_whitespace();
            let percent = pairs.find_map(|pair| pair.strip_prefix(name))?;
            percent.parse::<f64>().ok().map(|percent| percent / 100.0)
        };
        Some(Self {
            s10: of("avg10=")?,
            s60: of("avg60=")?,
        })
    }
}

impl Limits {
    /// Reads them below a folder, which is `/` but for tests.
    pub(crate) fn read(root: &Path) -> Self {
        let mut limits = Self::default();
        let hierarchies = ["cpu", "memory"].map(|controller| Hierarchy::of(root, controller));
        for folder in hierarchies.iter().flatten().flat_map(Hierarchy::folders) {
            limits.tighten(&folder);
        }
        limits
    }

    /// Takes the limits of one group, version 2 or 1.
    fn tighten(&mut self, group: &Path) {
        let text = |name: &str| text(group, name);
        let quota = text("cpu.max").or_else(|| {
            let quota = text("cpu.cfs_quota_us")?;
            Some(format!("{quota} {}", text("cpu.cfs_period_us")?))
        });
        let cpus = quota.and_then(|text| {
            let (quota, period) = text.split_once(' ')?;
            // `max` and -1 are no limit.
            let quota: u32 = quota.parse().ok()?;
            let period: u32 = period.parse().ok().filter(|period| *period > 0)?;
            Some(f64::from(quota) / f64::from(period))
        });
        let memory = text("memory.max").or_else(|| text("memory.limit_in_bytes"));
        // Version 1 says "no limit" by a number near the largest.
        let memory = memory
            .and_then(|text| text.parse::<u64>().ok())
            .filter(|bytes| *bytes < 1 << 60);
        self.cpus = tighter(self.cpus, cpus, f64::min);
        self.memory = tighter(self.memory, memory, u64::min);
    }
}

fn tighter<T>(one: Option<T>, other: Option<T>, least: fn(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(least(one, other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests;
