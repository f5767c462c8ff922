//! What steps took, a row each.

use super::Failure;
use super::server::{Mark, Server, Used};

impl Server {
    /// Bytes of memory, now and at most.
    pub(super) fn resident(&self) -> Result<(f64, f64), Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = |name: &str| {
            let found = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = found.and_then(|rest| rest.split_whitespace().nth(1)?.parse::<f64>().ok());
            kib.unwrap_or(f64::NAN) * 1024.0
        };
        Ok((line("VmRSS"), line("VmHWM")))
    }
}

impl Mark {
    pub(super) fn told(
        self,
        server: &Server,
        what: &str,
        units: usize,
        unit: &str,
    ) -> Result<(), Failure> {
        self.used(server)?.told(server, what, units as u64, unit)
    }
}

impl Used {
    pub(super) fn told(
        &self,
        server: &Server,
        what: &str,
        units: u64,
        unit: &str,
    ) -> Result<(), Failure> {
        let each = (self.cpu + self.database) / units as f64;
        let each = match each {
            each if each < 1e-3 => format!("{:.2} µs", each * 1e6),
            each => format!("{:.2} ms", each * 1e3),
        };
        let (resident, most) = server.resident()?;
        println!(
            "{:<42}{:>9.2}{:>10.2}{:>10.2}{each:>12}{:>9.0}{:>9.0}",
            format!("{units} {what}, by {unit}"),
            self.wall,
            self.cpu,
            self.database,
            resident / 1e6,
            most / 1e6,
        );
        Ok(())
    }
}
