//! A workflow for a build server.

use anyhow::{Result, bail};
use clap::Args;

use crate::output::print;

/// The workflow, with places for both commands.
const GITHUB: &str = include_str!("github.yml");

#[derive(Debug, Args)]
pub(crate) struct GithubArgs {
    /// The git repository of headroom that the workflow builds it from
    #[arg(long, value_name = "URL")]
    pub(crate) source: String,
    /// What builds a version, in its folder
    #[arg(long, value_name = "CMD", default_value = "make")]
    pub(crate) build: String,
    /// What is measured, in the folder of a version: by processor and wall time
    #[arg(long, value_name = "CMD", default_value = "./benchmark")]
    pub(crate) run: String,
    /// How much slower a pull request may be
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = limit)]
    pub(crate) limit: String,
}

/// A limit as `headroom gate` takes it, as it is written.
fn limit(text: &str) -> Result<String, String> {
    crate::cli::share(text).map(|_| text.to_owned())
}

pub(super) fn github(args: &GithubArgs) -> Result<()> {
    print(&filled(args)?)
}

pub(super) fn filled(args: &GithubArgs) -> Result<String> {
    for (flag, command) in [("--build", &args.build), ("--run", &args.run)] {
        if command.trim().is_empty() || command.contains(char::is_control) {
            bail!("print a workflow: {flag} is a command on one line");
        }
    }
    let source = args.source.trim();
    if source.is_empty() || source.contains(|c: char| c.is_control() || c.is_whitespace()) {
        bail!("print a workflow: --source is the address of a git repository, found {source:?}");
    }
    // A quote ends the string of the shell, stands for itself, and begins it again.
    let quote = |text: &str| text.replace('\'', r"'\''");
    let quoted = quote(&args.run);
    // The commands last: whatever is in them stays as it is.
    Ok(GITHUB
        .replace("SOURCE", &quote(source))
        .replace("LIMIT", &args.limit)
        .replace("BUILD_COMMAND", &args.build)
        .replace("RUN_COMMAND", &quoted))
}
