//! `headroom gate`: whether one of two is worse, by pairs of runs.

mod args;
mod command;
mod experiment;
mod pairs;
mod picture;
mod programs;
mod reading;
mod summary;

use std::time::Instant;

use anyhow::{Result, bail};
use lab_judgement::{Direction, Gate, GateSettings, Gated, Metric, Unit};
use lab_store::Outcome;

use args::PairArgs;
pub(crate) use args::{AFTER_HELP, ForMetric, GateArgs, LIMIT, better, chosen, limit};
use command::Commands;
use experiment::{Experiments, Sides, gated, sides};
pub(crate) use pairs::outcome;
use pairs::{Decided, decide};
use reading::times;
pub(crate) use reading::unit_of;
pub(crate) use summary::verdict_word;

use crate::ci::{CiResult, ResultFiles};
use crate::cli::RunArgs;
use crate::lab::ExperimentFile;
use crate::output::{eprint, print, replace};

/// Pairs before the first look, if there are as many.
const FIRST_LOOK: usize = 8;
/// Most pairs when nothing says.
const PAIRS: u16 = 24;
/// The seed of the order when nothing says.
const SEED: u64 = 1;

/// Compares two commands, or the runs of a file.
pub(crate) fn run(args: &GateArgs) -> Result<Outcome> {
    let file = args.file.as_ref().map(|file| file.display().to_string());
    let name = file.or_else(|| args.new.clone()).unwrap_or_default();
    errors_too(&name, &args.pairs.files, || compare(args))
}

fn compare(args: &GateArgs) -> Result<Outcome> {
    match (&args.file, &args.base, &args.new) {
        (Some(file), ..) => of_file(&ExperimentFile::read(file)?, args),
        (None, Some(base), Some(new)) => of_commands([base, new], args),
        _ => bail!("compare what? Give --base and --new, or an experiment file"),
    }
}

/// Has a build server see also why nothing could be judged.
pub(crate) fn errors_too(
    name: &str,
    files: &ResultFiles,
    judge: impl FnOnce() -> Result<Outcome>,
) -> Result<Outcome> {
    let begin = Instant::now();
    files.check()?;
    let ended = judge();
    // What was told already stays the only thing that is told.
    if let Err(error) = &ended
        && !files.done.get()
    {
        let (why, seconds) = (format!("{error:#}"), begin.elapsed().as_secs_f64());
        if let Err(error) = files.write(&CiResult::of_error(name, &why, seconds)) {
            eprint(format_args!("headroom: {error:#}"));
        }
    }
    ended
}

/// The same of a file whose mistakes a person has been told.
pub(crate) fn mistaken(name: &str, files: &ResultFiles) -> Result<Outcome> {
    let why = "the file has mistakes; headroom check tells them";
    files.write(&CiResult::of_error(name, why, 0.0))?;
    Ok(Outcome::Error)
}

fn of_commands(sides: [&str; 2], args: &GateArgs) -> Result<Outcome> {
    let readings = match args.metrics.is_empty() {
        true => times(),
        false => args.metrics.clone(),
    };
    let names: Vec<&str> = readings.iter().map(|one| one.name.as_str()).collect();
    no_stray(args, &names)?;
    let gated = |units: &[Unit]| -> Vec<Gated> {
        let each = names.iter().zip(units).map(|(name, unit)| Gated {
            limit_share: args.limit(name).unwrap_or(LIMIT),
            metric: Metric {
                name: (*name).to_owned(),
                unit: *unit,
                direction: args.direction(name).unwrap_or(Direction::LowerIsBetter),
            },
        });
        each.collect()
    };
    let pairs = usize::from(args.pairs.pairs.unwrap_or(PAIRS));
    let seed = args.pairs.seed.unwrap_or(SEED);
    let settings = |units: &[Unit]| settings(gated(units), pairs, seed);
    // A mistake in the settings is told before anything runs.
    Gate::new(settings(&vec![Unit::Count; names.len()]))?;
    let begin = Instant::now();
    let commands = Commands::new(sides, &readings, args.time_limit)?;
    eprint("headroom: a run of each that does not count");
    let units = commands.units()?;
    let decided = decide(
        settings(&units),
        |side| commands.sample(side, &units),
        summary::look,
    )?;
    report_decision(&decided, sides, sides[1], begin, &args.pairs)
}

fn no_stray(args: &GateArgs, names: &[&str]) -> Result<()> {
    match args.unknown_metric(names) {
        Some(name) => {
            let known = names.join(", ");
            bail!("compare: no metric is called \"{name}\"; there is {known}")
        }
        None => Ok(()),
    }
}

fn of_file(file: &ExperimentFile, args: &GateArgs) -> Result<Outcome> {
    let Some(plan) = file.plan(&args.set) else {
        return mistaken(&file.source.name, &args.pairs.files);
    };
    // A constant that there is not is told before anything is built.
    if let Some(name) = &args.program {
        let named = [args.set.as_slice(), &[(name.clone(), name.clone())]].concat();
        if file.plan(&named).is_none() {
            return mistaken(&file.source.name, &args.pairs.files);
        }
    }
    let sides = sides(&plan, args, &programs::programs(args)?)?;
    let metrics = gated(&plan, args)?;
    let names: Vec<&str> = metrics.iter().map(|one| one.metric.name.as_str()).collect();
    no_stray(args, &names)?;
    let of_plan = plan.gates.as_ref().map(|gates| gates.pairs as usize);
    let pairs = args.pairs.pairs.map(usize::from).or(of_plan);
    let pairs = pairs.unwrap_or(usize::from(PAIRS));
    let settings = settings(metrics, pairs, args.pairs.seed.unwrap_or(plan.seed));
    compare_runs(file, &plan.name, &sides, settings, args)
}

/// What `headroom run` does with a file that has gates and variants.
pub(crate) fn run_file(file: &ExperimentFile, args: &RunArgs) -> Result<Outcome> {
    of_file(file, &GateArgs::of_run(args))
}

fn compare_runs(
    file: &ExperimentFile,
    name: &str,
    sides: &Sides,
    settings: GateSettings,
    args: &GateArgs,
) -> Result<Outcome> {
    let begin = Instant::now();
    let Some(mut runs) = Experiments::of(file, &args.out, sides) else {
        return mistaken(name, &args.pairs.files);
    };
    let metrics = settings.metrics.clone();
    let decided = decide(settings, |side| runs.sample(side, &metrics), summary::look)?;
    let names = sides.set.each_ref().map(|set| {
        let set = set.iter();
        let set: Vec<String> = set.map(|(name, value)| format!("{name}={value}")).collect();
        set.join(" ")
    });
    let names = names.each_ref().map(String::as_str);
    report_decision(&decided, names, name, begin, &args.pairs)
}

/// Reports to a person and whoever else wants to know; `name` is what a build server calls it.
fn report_decision(
    decided: &Decided,
    [base, new]: [&str; 2],
    name: &str,
    begin: Instant,
    args: &PairArgs,
) -> Result<Outcome> {
    let judgement = &decided.judgement;
    print(&match args.json {
        true => summary::json(decided, base, new)?,
        false => summary::text(decided),
    })?;
    let mut result = CiResult::of_gate(name, judgement, begin.elapsed().as_secs_f64());
    let mut written = Ok(());
    if let Some(path) = &args.picture {
        written = picture::png(name, judgement).and_then(|drawn| replace(path, &drawn));
        let address = args.picture_address.clone();
        result.picture = Some(address.unwrap_or_else(|| path.display().to_string()));
    }
    // What was judged is so, whether or not all could be written of it.
    for failed in [written, args.files.write(&result)] {
        if let Err(error) = failed {
            eprint(format_args!("headroom: {error:#}"));
            return Ok(Outcome::Error);
        }
    }
    Ok(outcome(judgement.verdict))
}

fn settings(metrics: Vec<Gated>, pairs_most: usize, seed: u64) -> GateSettings {
    GateSettings {
        pairs_most,
        pairs_first: FIRST_LOOK.min(pairs_most),
        ..GateSettings::new(metrics, seed)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_could_not_be_compared_is_told_to_build_servers_too() {
        let folder = tempfile::tempdir().unwrap();
        let files = ResultFiles {
            junit: Some(folder.path().join("g.xml")),
            markdown: Some(folder.path().join("g.md")),
            ..ResultFiles::default()
        };
        let written = || {
            let read = |path: &Option<std::path::PathBuf>| {
                fs::read_to_string(path.as_ref().unwrap()).unwrap_or_default()
            };
            (read(&files.junit), read(&files.markdown))
        };
        assert!(errors_too("web.toml", &files, || Ok(Outcome::Pass)).is_ok());
        assert_eq!(written(), (String::new(), String::new()));
        let ended = errors_too("web.toml", &files, || bail!("base: it fell over"));
        assert_eq!(ended.unwrap_err().to_string(), "base: it fell over");
        let (junit, markdown) = written();
        assert!(
            junit.contains("errors=\"1\"") && junit.contains("it fell over"),
            "{junit}"
        );
        assert!(
            markdown.contains("error") && markdown.contains("it fell over"),
            "{markdown}"
        );
    }

    #[test]
    fn what_was_told_is_not_told_again_as_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let files = ResultFiles {
            junit: Some(folder.path().join("g.xml")),
            markdown: Some(folder.path().join("g.md")),
            ..ResultFiles::default()
        };
        let ended = errors_too("web.toml", &files, || {
            files.write(&CiResult {
                outcome: Outcome::Pass,
                ..CiResult::of_error("web", "all is well", 1.0)
            })?;
            bail!("the disk is full")
        });
        assert_eq!(ended.unwrap_err().to_string(), "the disk is full");
        for path in [&files.junit, &files.markdown] {
            let text = fs::read_to_string(path.as_ref().unwrap()).unwrap();
            assert!(!text.contains("the disk is full"), "{text}");
            assert_eq!(text.matches("all is well").count(), 2, "{text}");
        }
    }
}
