//! Drivers: who makes entities, over a system's wire, and counts their states.

mod cells;
mod pace;
mod program;

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::pin::Pin;

use lab_experiment::plan::{self, DriverKind, Make};

use crate::alarm::Alarm;
use crate::processes::{Addresses, Children, Launch, Output};

use cells::Cells;
use program::{Limits, Program};

/// How many entities are in which state, by kind and state. A state that cannot be
/// counted at the moment is absent: unknown is not 0.
pub(crate) type Counts = BTreeMap<(String, String), u64>;

/// Different texts of refusals that are kept of one make.
const TEXTS: usize = 10;

/// What became of a make: every request was answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
    /// What was said, and how often; further texts are counted in `refused` alone.
    pub(crate) errors: BTreeMap<String, u64>,
}

impl Made {
    pub(crate) fn accept(&mut self) {
        self.accepted += 1;
    }

    pub(crate) fn refuse(&mut self, text: String) {
        self.refused += 1;
        if let Some(count) = self.errors.get_mut(&text) {
            *count += 1;
        } else if self.errors.len() < TEXTS {
            self.errors.insert(text, 1);
        }
    }
}

/// "3,998 accepted, 2 refused: 2 times insufficient resources".
impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} accepted", self.accepted)?;
        if self.refused > 0 {
            write!(f, ", {} refused", self.refused)?;
        }
        for (number, (text, count)) in self.errors.iter().enumerate() {
            let lead = if number == 0 { ": " } else { "; " };
            write!(f, "{lead}{count} times {text}")?;
        }
        let told: u64 = self.errors.values().sum();
        if self.refused > told {
            write!(f, "; {} for further reasons", self.refused - told)?;
        }
        Ok(())
    }
}

/// A driver cannot do its work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("driver {name}: {cause}")]
pub struct DriverError {
    /// Name of the driver.
    pub name: String,
    /// What went wrong and what to do.
    pub cause: String,
}

impl DriverError {
    pub(crate) fn new(name: &str, cause: impl ToString) -> Self {
        Self {
            name: name.to_owned(),
            cause: cause.to_string(),
        }
    }
}

/// An answer that comes later.
pub(crate) type Later<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Makes entities of a system, over its wire, and counts their states.
pub(crate) trait Driver {
    /// Brings entities about; returns when every request was answered.
    fn make<'a>(&'a self, make: &'a Make) -> Later<'a, Result<Made, DriverError>>;

    /// Adds what is counted now.
    fn counts(&self, into: &mut Counts);

    /// Ends it.
    fn close(self: Box<Self>) -> Later<'static, ()>;
}

/// What opening a driver needs to know.
pub(crate) struct Opening<'a> {
    pub(crate) children: &'a Children,
    pub(crate) addresses: &'a Addresses,
    pub(crate) alarm: &'a Alarm,
    pub(crate) seed: u64,
    /// Most requests that any make of the plan has under way.
    pub(crate) in_flight: u32,
    /// File of a driver program's standard error.
    pub(crate) log: std::path::PathBuf,
}

/// Connects a built-in driver, or starts a driver program and greets it.
pub(crate) async fn open(
    driver: &plan::Driver,
    opening: Opening<'_>,
) -> Result<Box<dyn Driver>, DriverError> {
    let fail = |cause: &dyn ToString| DriverError::new(&driver.name, cause.to_string());
    let addresses = opening.addresses;
    let talk_to = match (&driver.remote, &driver.talk_to) {
        (Some(remote), _) => Some(addresses.render(&remote.address)),
        (None, Some(system)) => Some(format!("http://127.0.0.1:{}", addresses.port(system, 0))),
        (None, None) => None,
    };
    match &driver.kind {
        DriverKind::Builtin(kind) if kind == "cells" => {
            let bbs = talk_to
                .ok_or_else(|| fail(&"it needs `talk_to`, the name of the system that is a BBS"))?;
            let remote = driver.remote.as_ref();
            let tls = remote.and_then(|remote| remote.tls.as_ref());
            let connection = cells::Connection {
                bbs,
                tls: tls.map(|files| net::tls::Files {
                    certificate: addresses.render(&files.certificate).into(),
                    key: addresses.render(&files.key).into(),
                    authority: addresses.render(&files.authority).into(),
                }),
                reach_at: remote
                    .and_then(|remote| remote.reach_at)
                    .unwrap_or(Ipv4Addr::LOCALHOST.into()),
                in_flight: opening.in_flight,
            };
            let cells = Cells::connect(driver, connection, opening.seed, opening.alarm).await?;
            Ok(Box::new(cells))
        }
        DriverKind::Builtin(kind) => Err(fail(&format!(
            "this version has no driver of kind {kind:?}; it has \"cells\""
        ))),
        DriverKind::Program(words) => {
            let mut words = words.iter().map(|word| addresses.render(word).into());
            let launch = Launch {
                name: format!("driver-{}", driver.name),
                program: words.next().ok_or_else(|| fail(&"its command is empty"))?,
                args: words.collect(),
                env: Vec::new(),
                cpus: None,
                cgroup: None,
                stdout: Output::Pipes,
                stderr: opening.log,
            };
            let child = opening
                .children
                .start(launch)
                .map_err(|error| fail(&error))?;
            let greeting = program::Greeting {
                seed: opening.seed,
                talk_to,
            };
            let alarm = opening.alarm.clone();
            let program = Program::open(driver, child, greeting, Limits::default(), alarm).await?;
            Ok(Box::new(program))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_with_their_texts_within_bounds() {
        let mut made = Made::default();
        made.accept();
        made.refuse("full".into());
        made.refuse("full".into());
        assert_eq!(made.to_string(), "1 accepted, 2 refused: 2 times full");
        (0..20).for_each(|n| made.refuse(format!("text {n:02}")));
        assert_eq!((made.errors.len(), made.refused), (10, 22));
        assert!(
            made.to_string().ends_with("; 11 for further reasons"),
            "{made}"
        );
    }
}
