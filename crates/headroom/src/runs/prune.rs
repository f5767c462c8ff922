//! Removing old runs.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use clap::Args;
use lab_store::{Outcome, StoredRun, remove_rests};
use units::show_bytes;

use super::{InArgs, stored};
use crate::output::print;

/// A run without an end in which nothing was changed for so long does not go on.
const STILL: Duration = Duration::from_secs(24 * 3600);

pub(crate) const AFTER_HELP: &str = "\
Without --yes it says what would go, and removes nothing. A run goes only if every condition that is
given is true of it. What cannot be read stays, and so do runs without an end, of which nobody knows if
they go on; --unfinished lets those go as well in which nothing was changed for a day.";

#[derive(Debug, Args)]
pub(super) struct PruneArgs {
    #[command(flatten)]
    within: InArgs,
    /// Keep this many of each experiment, the latest
    #[arg(long, value_name = "NUMBER", required_unless_present = "older")]
    keep: Option<usize>,
    /// Only runs that began longer ago than this (30d, 12h)
    #[arg(long, value_name = "AGE", value_parser = age)]
    older: Option<Duration>,
    /// Only runs of this experiment
    #[arg(long, value_name = "EXPERIMENT")]
    name: Option<String>,
    /// Also runs that were killed
    #[arg(long)]
    unfinished: bool,
    /// Remove them
    #[arg(long)]
    yes: bool,
}

/// `30d`, or a duration as everywhere else.
fn age(text: &str) -> Result<Duration, String> {
    let days = text.strip_suffix('d');
    let Some(days) = days.filter(|days| days.bytes().all(|byte| byte.is_ascii_digit())) else {
        return crate::cli::duration(text).map_err(|why| format!("{why}; days are written as 30d"));
    };
    match days.parse::<u32>() {
        Ok(days) => Ok(Duration::from_secs(u64::from(days) * 24 * 3600)),
        Err(_) => Err(format!(
            "expected a number of days up to {}, found {days:?}",
            u32::MAX
        )),
    }
}

pub(super) fn prune(args: &PruneArgs) -> Result<Outcome> {
    let folder = &args.within.folder;
    let runs = stored(folder)?;
    if args.yes && folder.exists() {
        remove_rests(folder)?;
    }
    let all = runs.len();
    let going = runs_to_remove(runs, args, SystemTime::now());
    let bytes: u64 = going.iter().map(|run| run.bytes).sum();
    let count = going.len();
    let mut text = String::new();
    for run in going {
        text += &format!("{}\n", run.folder.id());
        if args.yes {
            run.remove()?;
        }
    }
    let noun = if all == 1 { "run" } else { "runs" };
    text += &match (args.yes, count) {
        (_, 0) => format!(
            "nothing to remove among {all} {noun} in {}\n",
            folder.display()
        ),
        (true, _) => format!(
            "removed {count} of {all} {noun}, {}\n",
            show_bytes(bytes as f64)
        ),
        (false, _) => format!(
            "{count} of {all} {noun} would go, {}; --yes removes them\n",
            show_bytes(bytes as f64)
        ),
    };
    print(&text)?;
    Ok(Outcome::Pass)
}

/// The runs that go, in the order of their start, as `runs` has it.
fn runs_to_remove(runs: Vec<StoredRun>, args: &PruneArgs, now: SystemTime) -> Vec<StoredRun> {
    // How many of an experiment are later than the one that is looked at.
    let mut later: HashMap<String, usize> = HashMap::new();
    let mut going = Vec::new();
    for run in runs.into_iter().rev() {
        let Ok(found) = &run.found else { continue };
        let later = later.entry(found.name().to_owned()).or_default();
        let kept = args.keep.is_some_and(|keep| *later < keep);
        let named = args.name.as_ref().is_none_or(|name| found.name() == name);
        let still = now.duration_since(run.changed).unwrap_or_default() >= STILL;
        let over = found.verdict.is_some() || args.unfinished && still;
        let old = args.older.is_none_or(|older| {
            let began = u64::try_from(found.environment.started_at_unix_ns).unwrap_or_default();
            let began = SystemTime::UNIX_EPOCH + Duration::from_nanos(began);
            now.duration_since(began).is_ok_and(|age| age > older)
        });
        if found.verdict.is_some() {
            *later += 1;
        }
        if named && over && old && !kept {
            going.push(run);
        }
    }
    going.reverse();
    going
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_in_days_or_as_durations_are() {
        let day = Duration::from_secs(24 * 3600);
        assert_eq!(age("30d"), Ok(30 * day));
        assert_eq!(age("12h"), Ok(day / 2));
        for wrong in ["99999999999d", "d"] {
            assert!(
                age(wrong).unwrap_err().contains("a number of days"),
                "{wrong}"
            );
        }
        for wrong in ["3x", "-3d", "3"] {
            assert!(age(wrong).unwrap_err().contains("30d"), "{wrong}");
        }
    }
}
