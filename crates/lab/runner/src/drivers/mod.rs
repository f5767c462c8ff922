//! Drivers: who makes entities, over a system's wire, and counts their states. Each is a
//! program of its own.

mod program;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::time::Duration;

use lab_experiment::plan::{self, DriverKind};

use crate::alarm::Alarm;
use crate::processes::{Addresses, Children, Launch, Output};

use program::{Greeting, Limits, PROTOCOL, TlsFiles};

pub(crate) use program::Program;

/// Longest wait for the answer of a built-in driver to its greeting.
const BUILTIN_HELLO: Duration = Duration::from_secs(60);

/// How many entities are in which state, by kind and state. A state that cannot be
/// counted at the moment is absent: unknown is not 0.
pub(crate) type Counts = BTreeMap<(String, String), u64>;

/// What became of a make: every request was answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MakeOutcome {
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
    /// What was said, and how often; further texts are counted in `refused` alone.
    pub(crate) errors: BTreeMap<String, u64>,
}

/// "3,998 accepted, 2 refused: 2 times insufficient resources".
impl fmt::Display for MakeOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} accepted", self.accepted)?;
        if self.refused > 0 {
            write!(f, ", {} refused", self.refused)?;
        }
        for (number, (text, count)) in self.errors.iter().enumerate() {
            let lead = if number == 0 { ": " } else { "; " };
            write!(f, "{lead}{count} times {text}")?;
        }
        let told = self.errors.values().copied().fold(0, u64::saturating_add);
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

/// What opening a driver needs to know.
pub(crate) struct Opening<'a> {
    pub(crate) children: &'a Children,
    pub(crate) addresses: &'a Addresses,
    pub(crate) alarm: &'a Alarm,
    /// The binary whose sub-commands are the built-in drivers.
    pub(crate) own_binary: &'a OsStr,
    pub(crate) seed: u64,
    /// Most requests that any make of the plan has under way.
    pub(crate) in_flight: u32,
    /// File of its standard error.
    pub(crate) log: std::path::PathBuf,
}

/// Starts a driver and greets it.
pub(crate) async fn open(
    driver: &plan::Driver,
    opening: Opening<'_>,
) -> Result<Program, DriverError> {
    let fail = |cause: &dyn ToString| DriverError::new(&driver.name, cause.to_string());
    let addresses = opening.addresses;
    let remote = driver.remote.as_ref();
    let talk_to = match (remote, &driver.talk_to) {
        (Some(remote), _) => Some(addresses.render(&remote.address)),
        (None, Some(system)) => Some(format!("http://127.0.0.1:{}", addresses.port(system, 0))),
        (None, None) => None,
    };
    let words: Vec<OsString> = match &driver.kind {
        DriverKind::Builtin { command, .. } => {
            let words = command.iter().map(Into::into);
            std::iter::once(opening.own_binary.to_owned())
                .chain(words)
                .collect()
        }
        DriverKind::Program(words) => {
            let words = words.iter();
            words.map(|word| addresses.render(word).into()).collect()
        }
    };
    let mut words = words.into_iter();
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
    let tls = remote.and_then(|remote| remote.tls.as_ref());
    let greeting = Greeting {
        protocol: PROTOCOL,
        seed: opening.seed,
        talk_to,
        in_flight: opening.in_flight,
        tls: tls.map(|files| TlsFiles {
            certificate: addresses.render(&files.certificate),
            key: addresses.render(&files.key),
            authority: addresses.render(&files.authority),
        }),
        reach_at: remote.and_then(|remote| remote.reach_at),
    };
    let limits = match &driver.kind {
        // It waits for what it talks to by itself, and says why that is in vain.
        DriverKind::Builtin { .. } => Limits {
            hello: BUILTIN_HELLO,
            ..Limits::default()
        },
        DriverKind::Program(_) => Limits::default(),
    };
    Program::open(driver, child, greeting, limits, opening.alarm.clone()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_with_their_texts() {
        let mut made = MakeOutcome {
            accepted: 1,
            refused: 2,
            errors: BTreeMap::from([("full".to_owned(), 2)]),
        };
        assert_eq!(made.to_string(), "1 accepted, 2 refused: 2 times full");
        made.refused = 13;
        assert!(made.to_string().ends_with("; 11 for further reasons"));
    }
}
