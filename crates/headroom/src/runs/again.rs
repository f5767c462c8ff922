//! Making a run again.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use lab_store::{MadeFrom, Outcome, RunFolder};

use super::{RunArgs, which};

pub(crate) const AFTER_HELP: &str = "\
The plan is that of the run, byte for byte: of the file as the run has it, with the constants that were set
then. Where this version or this machine would make another plan, nothing is run and the difference told.
The exit code is the verdict, as that of headroom run.";

#[derive(Debug, Args)]
pub(super) struct AgainArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Folder in which the new run creates its own [default: the one that the run is in]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the verdict as JSON instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) fn again(args: &AgainArgs) -> Result<Outcome> {
    let run = which::path(args.run.run.as_deref(), &args.run.within.folder)?;
    let folder = RunFolder::open(&run)?;
    // The folder of "." is not in its text.
    let within = std::path::absolute(&run)?;
    let within = within.parent().unwrap_or(Path::new("."));
    let out = args.out.as_deref().unwrap_or(within);
    crate::lab::again(&folder, out, args.json)
}

/// Which side of a gate a run was, and what was set; empty if neither.
pub(super) fn made_from_in_words(from: &MadeFrom) -> String {
    let side = match (&from.side, &from.variant) {
        (Some(side), Some(variant)) => Some(format!("{side} of a gate, the variant {variant}")),
        (Some(side), None) => Some(format!("{side} of a gate")),
        (None, _) => None,
    };
    let set = from
        .set
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let set = Vec::from_iter(set).join(" ");
    let set = (!set.is_empty()).then(|| format!("with {set}"));
    Vec::from_iter(side.into_iter().chain(set)).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_says_which_side_it_was_and_what_was_set() {
        let from = |set: &[(&str, &str)], side: Option<&str>, variant: Option<&str>| {
            let set = set
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            made_from_in_words(&MadeFrom {
                file: "/a/e.toml".to_owned(),
                ready: false,
                set: set.collect(),
                side: side.map(str::to_owned),
                variant: variant.map(str::to_owned),
            })
        };
        assert_eq!(from(&[], None, None), "");
        assert_eq!(from(&[("a", "1"), ("b", "x")], None, None), "with a=1 b=x");
        assert_eq!(from(&[], Some("base"), None), "base of a gate");
        assert_eq!(
            from(&[("a", "1")], Some("new"), Some("fast")),
            "new of a gate, the variant fast, with a=1"
        );
    }
}
