//! What the machine does to the generator meanwhile.

use std::fs;
use std::path::{Path, PathBuf};

use lab_load::recording::MachineNoise;
use measure::CpuTimes;
use processes::Hierarchy;

/// Counters of the machine when they were looked at last. What the system does not
/// tell counts as nothing.
pub(super) struct Machine {
    times: CpuTimes,
    throttled: u64,
    /// Where the kernel counts how often the quota of this process's cgroup stopped it.
    cpu_stat: Option<PathBuf>,
}

impl Machine {
    /// The counters as they are now.
    pub(super) fn now() -> Self {
        let own = Hierarchy::of(Path::new("/"), "cpu").and_then(|cpu| cpu.folders().next());
        let cpu_stat = own.map(|folder| folder.join("cpu.stat"));
        Self {
            times: CpuTimes::now(),
            throttled: cpu_stat.as_ref().map_or(0, throttled_of),
            cpu_stat,
        }
    }

    /// What happened since this was called last.
    pub(super) fn since_last(&mut self) -> MachineNoise {
        let before = std::mem::replace(&mut self.times, CpuTimes::now());
        let throttled = self.cpu_stat.as_ref().map_or(0, throttled_of);
        let throttled_before = std::mem::replace(&mut self.throttled, throttled);
        MachineNoise {
            steal: self.times.share_stolen_since(&before),
            throttled: throttled.saturating_sub(throttled_before),
        }
    }
}

fn throttled_of(path: &PathBuf) -> u64 {
    throttled(&fs::read_to_string(path).unwrap_or_default())
}

fn throttled(cpu_stat: &str) -> u64 {
    let found = cpu_stat.lines().find_map(|line| {
        let number = line.strip_prefix("nr_throttled ")?;
        number.trim().parse().ok()
    });
    found.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_how_often_a_quota_stopped_the_group() {
        let stat = "usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 7\n";
        assert_eq!(throttled(stat), 4);
        assert_eq!(throttled("usage_usec 5\n"), 0);
    }

    #[test]
    fn nothing_is_stolen_in_no_time() {
        let mut machine = Machine::now();
        let noise = machine.since_last();
        assert!((0.0..=1.0).contains(&noise.steal));
    }
}
