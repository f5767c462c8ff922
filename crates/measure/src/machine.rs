//! The machine that a run is made on.

use std::fs;

use crate::proc_text::{cpu_model, memory_bytes};

/// What must be equal for two runs to be comparable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Processors that this process may use, by affinity and cgroup quota.
    pub cores: u32,
    /// Model of the processor; `unknown` when the kernel does not say.
    pub cpu_model: String,
    /// Memory in bytes; 0 when the kernel does not say.
    pub memory_bytes: u64,
    /// Name and release of the kernel.
    pub kernel: String,
}

impl Machine {
    /// Asks the running system. What it does not tell is left unknown: a missing
    /// line in `/proc` is no reason to refuse a run.
    pub fn detect() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Self {
            cores: u32::try_from(cores).unwrap_or(u32::MAX),
            cpu_model: cpu_model(&read("/proc/cpuinfo"))
                .unwrap_or("unknown")
                .to_owned(),
            memory_bytes: memory_bytes(&read("/proc/meminfo")).unwrap_or(0),
            kernel: format!(
                "{} {}",
                read("/proc/sys/kernel/ostype").trim(),
                read("/proc/sys/kernel/osrelease").trim()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let machine = Machine::detect();
        assert!(machine.cores >= 1);
        assert!(machine.memory_bytes > 1 << 20, "{machine:?}");
        assert!(machine.kernel.starts_with("Linux "), "{machine:?}");
    }
}
