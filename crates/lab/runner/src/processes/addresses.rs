//! What references in a plan stand for once ports are allotted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lab_experiment::plan::{Reference, System, Template};

use super::ports::{PortError, Ports};

/// Ports of all copies of all systems, and the folder for work files.
#[derive(Debug, Clone)]
pub(crate) struct Addresses {
    work: PathBuf,
    ports: BTreeMap<String, Vec<u16>>,
}

impl Addresses {
    /// Allots a port to every copy of every system.
    pub(crate) fn allot(
        systems: &[System],
        work: &Path,
        ports: &mut Ports,
    ) -> Result<Self, PortError> {
        let mut allotted = BTreeMap::new();
        for system in systems {
            let copies = (0..system.count)
                .map(|_| ports.allot())
                .collect::<Result<Vec<u16>, PortError>>()?;
            allotted.insert(system.name.clone(), copies);
        }
        Ok(Self {
            work: work.to_owned(),
            ports: allotted,
        })
    }

    /// Port of a copy of a system; 0 when there is no such copy.
    pub(crate) fn port(&self, system: &str, index: u32) -> u16 {
        self.ports
            .get(system)
            .and_then(|ports| ports.get(index as usize))
            .copied()
            .unwrap_or(0)
    }

    /// The text of a template that belongs to a copy of a system.
    pub(crate) fn render_for(&self, template: &Template, system: &str, index: u32) -> String {
        let port = self.port(system, index);
        template.render(|reference| match reference {
            Reference::OwnPort => port.to_string(),
            Reference::OwnAddr => loopback(port),
            Reference::Index => index.to_string(),
            other => self.resolve(other),
        })
    }

    /// The text of a template that belongs to no system: a step's command, a driver.
    pub(crate) fn render(&self, template: &Template) -> String {
        template.render(|reference| self.resolve(reference))
    }

    /// What a reference stands for that belongs to no system of its own.
    pub(crate) fn resolve(&self, reference: &Reference) -> String {
        match reference {
            Reference::Work => self.work.display().to_string(),
            Reference::Port(system) => self.port(system, 0).to_string(),
            Reference::Addr(system) => loopback(self.port(system, 0)),
            // The checker allows these in systems only.
            Reference::OwnPort | Reference::OwnAddr | Reference::Index => String::new(),
        }
    }
}

/// Address and port on loopback.
pub(crate) fn loopback(port: u16) -> String {
    format!("127.0.0.1:{port}")
}
