//! What references in a plan stand for once ports are allotted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lab_experiment::plan::{Connection, Form, Plan, Reference, Template};

use super::ports::{PortError, Ports};

/// Ports of all copies of all systems, and the folder for work files.
#[derive(Debug, Clone)]
pub(crate) struct Addresses {
    work: PathBuf,
    /// For each copy its own port, then its further ones.
    ports: BTreeMap<String, Vec<Vec<u16>>>,
    /// Names of the further ports.
    further: BTreeMap<String, Vec<String>>,
    /// Ports of the proxies that stand in for a system, by who connects.
    proxies: BTreeMap<Connection, u16>,
}

impl Addresses {
    /// Allots a port to every copy of every system, and to the proxy of every connection
    /// that a fault disturbs.
    pub(crate) fn allot(plan: &Plan, work: &Path, ports: &mut Ports) -> Result<Self, PortError> {
        let systems = &plan.systems;
        let mut allotted = BTreeMap::new();
        for system in systems {
            let copies = (0..system.count)
                .map(|_| (0..=system.ports.len()).map(|_| ports.allot()).collect())
                .collect::<Result<Vec<Vec<u16>>, PortError>>()?;
            allotted.insert(system.name.clone(), copies);
        }
        let further = systems.iter();
        let further = further.map(|system| (system.name.clone(), system.ports.clone()));
        let disturbed = plan.disturbed().into_iter();
        let proxies = disturbed.map(|connection| Ok((connection, ports.allot()?)));
        Ok(Self {
            proxies: proxies.collect::<Result<_, PortError>>()?,
            work: work.to_owned(),
            ports: allotted,
            further: further.collect(),
        })
    }

    /// Port of a copy of a system; 0 when there is no such copy.
    pub(crate) fn port(&self, system: &str, index: u32) -> u16 {
        self.ports(system, index).first().copied().unwrap_or(0)
    }

    /// Where the own file system of a copy of a system is mounted, if it has one.
    pub(crate) fn disk(&self, system: &str, index: u32) -> PathBuf {
        self.work.join("disks").join(format!("{system}.{index}"))
    }

    /// Every port of a copy of a system; none when there is no such copy.
    pub(crate) fn ports(&self, system: &str, index: u32) -> &[u16] {
        self.ports
            .get(system)
            .and_then(|copies| copies.get(index as usize))
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// A further port of a copy, as it is written; the checker knows its name.
    fn further(&self, form: Form, system: &str, index: u32, name: &str) -> String {
        let names = self.further.get(system).map(Vec::as_slice);
        let place = names.and_then(|names| names.iter().position(|known| known == name));
        let ports = self.ports(system, index);
        let port = place.and_then(|place| ports.get(place + 1));
        written(form, port.copied().unwrap_or(0))
    }

    /// The text of a template that belongs to a copy of a system.
    pub(crate) fn render_for(&self, template: &Template, system: &str, index: u32) -> String {
        template.render(|reference| {
            let own = self.own(reference, system, index);
            own.unwrap_or_else(|| self.resolve_from(system, reference))
        })
    }

    /// What a reference stands for that is asked of a copy of a system, from outside: no proxy
    /// stands between.
    pub(crate) fn resolve_of(&self, reference: &Reference, system: &str, index: u32) -> String {
        let own = self.own(reference, system, index);
        own.unwrap_or_else(|| self.resolve(reference))
    }

    /// What a reference to a copy's own matters stands for; `None`: it is to something else.
    fn own(&self, reference: &Reference, system: &str, index: u32) -> Option<String> {
        Some(match reference {
            Reference::OwnPort => self.port(system, index).to_string(),
            Reference::OwnAddr => loopback(self.port(system, index)),
            Reference::Index => index.to_string(),
            Reference::OwnDisk => self.disk(system, index).display().to_string(),
            Reference::OwnFurther(form, name) => self.further(*form, system, index, name),
            _ => return None,
        })
    }

    /// What stands for every copy of a system, one after the other; `other` resolves what is
    /// not a copy's own.
    fn every_copy(
        &self,
        (system, separator, piece): (&str, &str, &Template),
        other: &dyn Fn(&Reference) -> String,
    ) -> String {
        let copies = self.ports.get(system).map_or(0, Vec::len);
        let pieces = (0..).take(copies).map(|index| {
            piece.render(|reference| {
                let own = self.own(reference, system, index);
                own.unwrap_or_else(|| other(reference))
            })
        });
        pieces.collect::<Vec<_>>().join(separator)
    }

    /// The proxies: between whom each stands, its port, and that of the system behind it.
    pub(crate) fn proxies(&self) -> impl Iterator<Item = (&Connection, u16, u16)> {
        let proxies = self.proxies.iter();
        proxies.map(|(connection, port)| (connection, *port, self.port(&connection.to, 0)))
    }

    /// What a reference of a system or a load stands for: where a proxy stands between the
    /// two, the proxy.
    pub(crate) fn resolve_from(&self, from: &str, reference: &Reference) -> String {
        let proxy = |to: &String| {
            let connection = Connection {
                from: from.to_owned(),
                to: to.clone(),
            };
            self.proxies.get(&connection)
        };
        match reference {
            Reference::Port(to) if let Some(port) = proxy(to) => port.to_string(),
            Reference::Addr(to) if let Some(port) = proxy(to) => loopback(*port),
            Reference::All {
                system,
                separator,
                piece,
            } => self.every_copy((system, separator, piece), &|other| {
                self.resolve_from(from, other)
            }),
            other => self.resolve(other),
        }
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
            Reference::Further(form, system, name) => self.further(*form, system, 0, name),
            Reference::Copy {
                system,
                index,
                form,
                port: Some(name),
            } => self.further(*form, system, *index, name),
            Reference::Copy {
                system,
                index,
                form,
                port: None,
            } => written(*form, self.port(system, *index)),
            Reference::All {
                system,
                separator,
                piece,
            } => self.every_copy((system, separator, piece), &|other| self.resolve(other)),
            // The checker allows these in systems, and in steps, only.
            Reference::Kept(_)
            | Reference::OwnPort
            | Reference::OwnAddr
            | Reference::OwnDisk
            | Reference::OwnFurther(..)
            | Reference::Index => String::new(),
        }
    }
}

fn written(form: Form, port: u16) -> String {
    match form {
        Form::Port => port.to_string(),
        Form::Addr => loopback(port),
    }
}

/// Address and port on loopback.
pub(crate) fn loopback(port: u16) -> String {
    format!("127.0.0.1:{port}")
}
