//! Services, by systemd.

use super::ASKED;
use crate::agent::disk::Disk;
use crate::agent::system::{Service, SystemError};

impl Disk {
    pub(super) fn service_of_systemd(&self, name: &str) -> Result<Service, SystemError> {
        const DOING: &str = "looking up the service";
        self.here(DOING, name, "services are managed")?;
        // So does systemd itself find out whether it runs.
        if !self.site.kernel.join("run/systemd/system").is_dir() {
            let problem = "this machine is not run by systemd, and this agent knows no other \
                           manager of services";
            return Err(SystemError::new(DOING, name, problem));
        }
        let asked = [
            "systemctl",
            "show",
            "--property=LoadState,ActiveState,UnitFileState",
            "--",
            name,
        ]
        .map(str::to_owned);
        let ended = self.run((DOING, name), &asked, "", ASKED)?;
        if !ended.status.success() {
            return Err(SystemError::new(DOING, name, ended.describe()));
        }
        let text = ended.text();
        let property = |name: &str| {
            let mut pairs = text.lines().filter_map(|line| line.split_once('='));
            let found = pairs.find(|(key, _)| *key == name);
            found.map(|(_, value)| value.to_owned()).unwrap_or_default()
        };
        let mut service = Service {
            loaded: property("LoadState"),
            active: property("ActiveState"),
            at_boot: property("UnitFileState"),
        };
        if service.at_boot == "generated" {
            // A script of System V: its links are looked up.
            let asked = ["systemctl", "is-enabled", "--", name].map(str::to_owned);
            let ended = self.run((DOING, name), &asked, "", ASKED)?;
            let enabled = ended.status.success();
            service.at_boot = if enabled { "enabled" } else { "disabled" }.into();
        }
        Ok(service)
    }
}
