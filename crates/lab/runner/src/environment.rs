//! Where, when and with what a run is made.

use std::process::{Command, Stdio};

use lab_store::{Environment, SCHEMA};
use measure::{Clock, Machine};

use crate::options::Options;

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
