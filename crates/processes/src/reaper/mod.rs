//! The process that removes what is left when this one is killed.

mod link;
mod owned;
mod tag;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::ExitCode;

use nix::sys::signal::{SigSet, Signal};

pub use link::{Reaper, ReaperError};
use owned::OwnedProcess;
pub use tag::RunTag;

/// Longest line that the reaper reads. Paths on Linux have at most 4,096 bytes.
const LINE_BYTES: u64 = 8192;
/// What the reaper says once it can be relied on.
const READY: &str = "ready";

/// The reaper's whole life: reads from standard input what it is to remove, and removes it
/// unless the last word was `done`. For the hidden sub-command `reaper`.
///
/// The lines are `group N` and `gone N` (a process group), `tag ID`, `limits PID` (control
/// groups, networks and file systems that this process made), `folder PATH` and `done`.
pub fn reaper_main() -> ExitCode {
    // What a terminal or a service manager sends to whoever started the reaper must not
    // end it: it goes when its pipe does.
    let mut ignored = SigSet::empty();
    ignored.add(Signal::SIGINT);
    ignored.add(Signal::SIGTERM);
    ignored.add(Signal::SIGHUP);
    let _ = ignored.thread_block();
    let _ = nix::unistd::setsid();
    let mut out = io::stdout();
    if writeln!(out, "{READY}").and_then(|()| out.flush()).is_err() {
        return ExitCode::FAILURE;
    }
    match watch(io::stdin().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(left) => {
            log_error(&left);
            ExitCode::FAILURE
        }
    }
}

/// Reads until the pipe ends, then cleans up if that was a surprise.
fn watch(input: impl Read) -> Result<(), String> {
    let mut owned = OwnedProcess::default();
    let mut input = BufReader::new(input);
    let mut line = String::new();
    loop {
        line.clear();
        // Of what cannot be read nothing more is understood, but what is known is still to
        // be done.
        let read = (&mut input).take(LINE_BYTES).read_line(&mut line);
        if read.unwrap_or(0) == 0 {
            return owned.clean_up();
        }
        let line = line.trim_end_matches('\n');
        if line == "done" {
            return Ok(());
        }
        if let Err(error) = owned.take(line) {
            log_error(&error);
        }
    }
}

/// Logs what went wrong. Standard error may have been closed by whoever read it,
/// which must not keep the reaper from its work.
fn log_error(what: &str) {
    let _ = writeln!(io::stderr(), "headroom reaper: {what}");
}

#[cfg(test)]
mod tests;
