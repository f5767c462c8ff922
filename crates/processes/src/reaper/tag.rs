//! A tag in the environment by which every process of a run is found again.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

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
        Self::variable_of(&[self])
    }

    /// The same for a child that several tags are to find.
    pub fn variable_of(tags: &[&Self]) -> (String, String) {
        let outer = std::env::var(VARIABLE).ok();
        let outer = outer.as_deref().filter(|outer| !outer.is_empty());
        let own = tags.iter().map(|tag| tag.0.as_str());
        let all: Vec<&str> = outer.into_iter().chain(own).collect();
        (VARIABLE.to_owned(), all.join(","))
    }

    /// Processes that carry it now, without our own. Those that have ended but were
    /// not collected yet have no environment any more and are not listed.
    #[cfg(test)]
    pub(super) fn carriers(&self) -> Vec<u32> {
        let mut carriers = Vec::new();
        each_other(&HashSet::from([self.0.as_bytes()]), |pid| {
            carriers.push(pid);
        });
        carriers
    }

    /// Kills every carrier, those that appear meanwhile as well. Returns the ones that the last of
    /// a bounded number of rounds (about two seconds) still found.
    pub fn sweep(&self) -> Vec<u32> {
        Self::sweep_all([self])
    }

    /// [`sweep`](Self::sweep) for several tags at the cost of one: a look at every process of
    /// the machine.
    pub fn sweep_all<'a>(tags: impl IntoIterator<Item = &'a Self>) -> Vec<u32> {
        let tags: HashSet<&[u8]> = tags.into_iter().map(|tag| tag.0.as_bytes()).collect();
        let mut carriers = Vec::new();
        for _ in 0..ROUNDS {
            carriers.clear();
            // At once, so that it has little time to start another one.
            let all_seen = each_other(&tags, |pid| {
                let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
                carriers.push(pid);
            });
            if carriers.is_empty() && all_seen {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        carriers
    }
}

/// Looks for processes that carry one of these tags, but for our own; whether those are all.
fn each_other(tags: &HashSet<&[u8]>, mut found: impl FnMut(u32)) -> bool {
    let holds = |environ: &[u8]| carried(environ).any(|tag| tags.contains(tag));
    measure::each_carrier(holds, |pid| {
        if pid != std::process::id() {
            found(pid);
        }
    })
}

/// The tags in an environment block (`NAME=value`, each ended by a zero byte).
pub(super) fn carried(environ: &[u8]) -> impl Iterator<Item = &[u8]> {
    environ
        .split(|byte| *byte == 0)
        .filter_map(|variable| {
            variable
                .strip_prefix(VARIABLE.as_bytes())?
                .strip_prefix(b"=")
        })
        .flat_map(|value| value.split(|byte| *byte == b','))
}

impl fmt::Display for RunTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
