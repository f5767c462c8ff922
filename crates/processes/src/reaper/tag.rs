//! A tag in the environment by which every process of a run is found again.

use std::fmt;
use std::time::Duration;

use measure::Environment;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The environment variable that holds the tag.
const VARIABLE: &str = "HEADROOM_RUN";

/// Rounds of a sweep. Each kills what the one before left or what was forked
/// meanwhile; the bound is there for processes that cannot be killed.
const ROUNDS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// Identity of one run on this machine, unlike that of any other run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTag(String);

impl RunTag {
    /// The tag of a run that this process makes.
    pub fn new(run_id: &str, started_unix_ns: i64) -> Self {
        let safe: String = run_id
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        Self(format!("{safe}.{}.{started_unix_ns}", std::process::id()))
    }

    /// A tag as written by [`fmt::Display`]; `None`: the text is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let valid = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        (text.len() > 2 && text.chars().all(valid)).then(|| Self(text.to_owned()))
    }

    /// The variable for the environment of children, and its value. A run inside a run
    /// keeps the tag of the outer one, so that the outer one still finds everything.
    pub fn variable(&self) -> (String, String) {
        let value = match std::env::var(VARIABLE) {
            Ok(outer) if !outer.is_empty() => format!("{outer},{}", self.0),
            _ => self.0.clone(),
        };
        (VARIABLE.to_owned(), value)
    }

    /// Does an environment block (`NAME=value`, each ended by a zero byte) carry it?
    pub(super) fn is_in(&self, environ: &[u8]) -> bool {
        environ
            .split(|byte| *byte == 0)
            .filter_map(|variable| {
                variable
                    .strip_prefix(VARIABLE.as_bytes())?
                    .strip_prefix(b"=")
            })
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|tag| tag == self.0.as_bytes())
    }

    /// Processes that carry it now, without our own. Those that have ended but were
    /// not collected yet have no environment any more and are not listed.
    #[cfg(test)]
    pub(super) fn carriers(&self) -> Vec<u32> {
        self.look().carriers
    }

    fn look(&self) -> Look {
        let mut look = Look::default();
        for pid in measure::pids().filter(|pid| *pid != std::process::id()) {
            match measure::environment(pid) {
                Environment::Known(environ) if self.is_in(&environ) => look.carriers.push(pid),
                Environment::Known(_) | Environment::Nobody => {}
                Environment::NotYet => look.undecided = true,
            }
        }
        look
    }

    /// Kills every carrier, those that appear meanwhile as well. Returns the ones
    /// that are still there after a bounded number of rounds (about two seconds).
    pub fn sweep(&self) -> Vec<u32> {
        for _ in 0..ROUNDS {
            let Look {
                carriers,
                undecided,
            } = self.look();
            if carriers.is_empty() && !undecided {
                return carriers;
            }
            for pid in carriers {
                let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
            }
            std::thread::sleep(PAUSE);
        }
        self.look().carriers
    }
}

/// What a look at all processes has found.
#[derive(Debug, Default)]
struct Look {
    carriers: Vec<u32>,
    /// One was between two programs, when nobody can see what it carries.
    undecided: bool,
}

impl fmt::Display for RunTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
