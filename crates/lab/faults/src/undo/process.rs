//! A process that is known again.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process: its number alone may come to mean another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: i32,
    /// When it started, in clock ticks since boot: field 22 of `/proc/PID/stat`.
    pub start_ticks: u64,
}

impl ProcessId {
    /// The process that has this number now; `None`: there is none, or it has ended and is not
    /// collected.
    pub fn of(pid: i32) -> Option<Self> {
        if pid <= 0 {
            return None;
        }
        // A command's name is cut to 15 bytes, also within a character.
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let (state, start_ticks) = read(&String::from_utf8_lossy(&stat))?;
        (!matches!(state, 'Z' | 'X')).then_some(Self { pid, start_ticks })
    }

    /// This process.
    pub fn own() -> Option<Self> {
        Self::of(std::process::id().cast_signed())
    }

    /// Whether it is still there.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }
}

/// State and start time in `/proc/PID/stat`. The command may hold spaces and parentheses: it
/// ends at the last one.
fn read(stat: &str) -> Option<(char, u64)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    // The state is field 3.
    Some((state, fields.nth(22 - 4)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_number_and_start() {
        let own = ProcessId::own().unwrap();
        assert!(own.is_alive());
        let later = ProcessId {
            start_ticks: own.start_ticks + 1,
            ..own
        };
        assert!(!later.is_alive());
        assert_eq!((ProcessId::of(0), ProcessId::of(-1)), (None, None));
    }

    #[test]
    fn a_name_that_is_no_text_hides_no_process() {
        let known = std::thread::spawn(|| {
            std::fs::write("/proc/thread-self/comm", b"cut \xc3").unwrap();
            let thread = ProcessId::of(nix::unistd::gettid().as_raw());
            thread.is_some_and(ProcessId::is_alive)
        });
        assert!(known.join().unwrap());
    }

    #[test]
    fn names_of_commands_do_not_confuse() {
        let rest = "T 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(read(&format!("7 (a) R (b) {rest}")), Some(('T', 4711)));
        assert_eq!(read("7 (sh) S 1 2"), None);
        assert_eq!(read(""), None);
    }
}
