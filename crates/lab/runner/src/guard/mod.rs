//! Nothing of a run may outlive it, however the laboratory ends.
//!
//! Three nets, each for what the one before lets through:
//! 1. The laboratory stops its children itself, in order.
//! 2. The kernel kills each child when the laboratory dies (`PR_SET_PDEATHSIG`).
//! 3. The *guard*, a small process in a session of its own, sees its pipe to the
//!    laboratory end. It kills the process groups that it was told of and every
//!    process that carries the run's marker in its environment (children of
//!    children, also those that left their group), then removes what is left on
//!    disk.

mod charge;
mod link;
mod marker;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::ExitCode;

use nix::sys::signal::{SigSet, Signal};

use charge::Charge;
pub(crate) use charge::{kill_group, remove_cgroup};
pub use link::GuardError;
pub(crate) use link::GuardLink;
pub(crate) use marker::{Marker, VARIABLE};

/// Longest line that the guard reads. Paths on Linux have at most 4,096 bytes.
const LINE_BYTES: u64 = 8192;
/// What the guard says once it can be relied on.
const READY: &str = "ready";

/// The guard's whole life: reads what it is charged with from standard input, and
/// cleans up unless the last word was `done`. For the hidden sub-command `guard`.
///
/// The lines are `group N` and `gone N` (a process group), `dir PATH`,
/// `cgroup PATH`, `marker ID` and `done`.
pub fn guard_main() -> ExitCode {
    // What a terminal or a service manager sends to the laboratory must not end the
    // guard: it goes when its pipe does.
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
            tell(&left);
            ExitCode::FAILURE
        }
    }
}

/// Reads until the pipe ends, then cleans up if that was a surprise.
fn watch(input: impl Read) -> Result<(), String> {
    let mut charge = Charge::default();
    let mut input = BufReader::new(input);
    let mut line = String::new();
    loop {
        line.clear();
        match (&mut input).take(LINE_BYTES).read_line(&mut line) {
            Ok(0) => break,
            Ok(_) => {}
            // Nothing more can be understood, but what is known is still to be done.
            Err(_) => break,
        }
        if let Err(error) = charge.take(line.trim_end_matches('\n')) {
            tell(&error);
        }
        if charge.is_done() {
            return Ok(());
        }
    }
    charge.clean_up()
}

/// Says what went wrong. Standard error may have been closed by whoever read it,
/// which must not keep the guard from its work.
fn tell(what: &str) {
    let _ = writeln!(io::stderr(), "headroom guard: {what}");
}

#[cfg(test)]
mod tests;
