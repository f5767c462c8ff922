//! Where, when and with what a run is made.

use std::process::{Command, Stdio};

use lab_store::{Environment, SCHEMA};
use measure::{Clock, Machine};
use units::show_seconds;

use crate::options::Options;

/// What keeps clocks right turns them little by little up to about here, and sets them beyond.
const SET_NS: i64 = 100_000_000;

/// Describes a run that starts now.
pub(crate) fn environment(run_id: &str, clock: Clock, options: &Options) -> Environment {
    let machine = Machine::detect();
    Environment {
        schema: SCHEMA,
        run_id: run_id.to_owned(),
        started_at_unix_ns: clock.origin_unix_ns(),
        command: options.command.clone(),
        headroom_version: options.version.clone(),
        git_commit: git_commit(),
        cores: machine.cores,
        cpu_model: machine.cpu_model,
        memory_bytes: machine.memory_bytes,
        kernel: machine.kernel,
        versions: options.versions.clone(),
        made_from: options.made_from.clone(),
    }
}

/// The commit that is checked out here; `None` outside a repository or without git.
fn git_commit() -> Option<String> {
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        // A lock taken for a mere look could stop someone else's commit.
        command.arg("--no-optional-locks").args(args);
        let output = command
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"]).filter(|commit| !commit.is_empty())?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() {
        commit
    } else {
        format!("{commit}-dirty")
    })
}

/// What a person should know of the wall clock, which log lines and loads have their times by, if
/// it is so much ahead of the time that passed.
pub(crate) fn clock_was_set(ahead_ns: i64) -> Option<String> {
    if ahead_ns.saturating_abs() < SET_NS {
        return None;
    }
    let by = show_seconds(ahead_ns.unsigned_abs() as f64 / 1e9);
    let way = if ahead_ns > 0 { "forward" } else { "back" };
    Some(format!(
        "the machine's clock went {way} by {by} during the run, as it was set or the machine slept: \
         times of log lines, and when loads were, are wrong by that from then on"
    ))
}

#[cfg(test)]
mod tests {
    use super::clock_was_set;

    #[test]
    fn a_clock_that_was_set_is_told() {
        for little in [0, 99_999_999, -99_999_999] {
            assert_eq!(clock_was_set(little), None, "{little}");
        }
        let told = clock_was_set(-1_500_000_000).unwrap();
        assert!(told.contains("went back by 1.5"), "{told}");
        let told = clock_was_set(3_600_000_000_000).unwrap();
        assert!(told.contains("went forward by"), "{told}");
        assert!(clock_was_set(i64::MIN).is_some());
    }
}
