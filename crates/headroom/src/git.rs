//! The git of the working directory.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

/// Runs git, with what it reads, and variables besides those that there are.
///
/// # Errors
/// When it cannot be run; that it failed is in its status.
pub(crate) fn git(
    words: &[&str],
    input: Option<&[u8]>,
    variables: &[(String, &str)],
) -> Result<Output> {
    let running = || format!("run git {}", words[0]);
    let mut command = Command::new("git");
    command
        .args(words)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.stdin(match input {
        Some(_) => Stdio::piped(),
        None => Stdio::null(),
    });
    let mut child = command.spawn().with_context(running)?;
    if let (Some(input), Some(mut pipe)) = (input, child.stdin.take()) {
        // Git reads all of it before it answers; if it ended early, its answer says why.
        let _ = pipe.write_all(input);
    }
    child.wait_with_output().with_context(running)
}

/// What git printed, if it did what it was asked for.
///
/// # Errors
/// Also with what it said when it did not.
pub(crate) fn done(words: &[&str], output: Output) -> Result<Vec<u8>> {
    match output.status.success() {
        true => Ok(output.stdout),
        false => bail!("git {}: {}", words[0], error_text(&output)),
    }
}

/// The one line that git printed.
pub(crate) fn line(printed: &[u8]) -> String {
    String::from_utf8_lossy(printed).trim().to_owned()
}

/// Git's message of its failure.
pub(crate) fn error_text(output: &Output) -> String {
    lab_report::terminal::printable(&line(&output.stderr))
}
