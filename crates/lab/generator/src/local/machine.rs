//! What the machine does to the generator meanwhile.

use std::fs;
use std::path::PathBuf;

use lab_load::recording::MachineNoise;

/// Counters of the machine when they were looked at last. What the system does not
/// tell counts as nothing.
pub(super) struct Machine {
    times: Times,
    throttled: u64,
    cpu_stat: Option<PathBuf>,
}

/// Processor time of the whole machine, in the kernel's ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Times {
    all: u64,
    stolen: u64,
}

impl Machine {
    /// The counters as they are now.
    pub(super) fn now() -> Self {
        let cpu_stat = cpu_stat_of(&read("/proc/self/cgroup"));
        Self {
            times: times(&read("/proc/stat")),
            throttled: cpu_stat.as_ref().map_or(0, throttled_of),
            cpu_stat,
        }
    }

    /// What happened since this was called last.
    pub(super) fn since_last(&mut self) -> MachineNoise {
        let before = std::mem::replace(&mut self.times, times(&read("/proc/stat")));
        let throttled = self.cpu_stat.as_ref().map_or(0, throttled_of);
        let throttled_before = std::mem::replace(&mut self.throttled, throttled);
        let all = self.times.all.saturating_sub(before.all);
        let stolen = self.times.stolen.saturating_sub(before.stolen);
        MachineNoise {
            steal: match all {
                0 => 0.0,
                all => stolen as f64 / all as f64,
            },
            throttled: throttled.saturating_sub(throttled_before),
        }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq and
/// steal; what follows is counted in user and nice already.
fn times(stat: &str) -> Times {
    let line = stat.lines().next().unwrap_or_default();
    let numbers = line.split_ascii_whitespace().skip(1).take(8);
    let numbers: Vec<u64> = numbers.map_while(|number| number.parse().ok()).collect();
    Times {
        all: numbers.iter().sum(),
        stolen: numbers.get(7).copied().unwrap_or(0),
    }
}

/// Where the kernel counts how often the quota of this process's cgroup stopped it, in
/// either version of cgroups.
fn cpu_stat_of(cgroup: &str) -> Option<PathBuf> {
    let candidates = cgroup.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let roots: &[&str] = match controllers {
            "" => &["/sys/fs/cgroup"],
            list if list.split(',').any(|one| one == "cpu") => {
                &["/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu"]
            }
            _ => return None,
        };
        // Inside a container the path is the host's, and the root is the own group.
        let inside = [path, "/"].into_iter();
        let places = inside.flat_map(move |path| roots.iter().map(move |root| (root, path)));
        Some(places.map(|(root, path)| PathBuf::from(format!("{root}{path}/cpu.stat"))))
    });
    candidates.flatten().find(|path| path.exists())
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
    fn reads_the_time_that_was_stolen() {
        let stat = "cpu  10 0 20 60 0 1 2 7 5 0\ncpu0 1 2 3 4\n";
        let expected = Times {
            all: 100,
            stolen: 7,
        };
        assert_eq!(times(stat), expected);
        assert_eq!(times(""), Times::default());
    }

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
