//! `headroom compare`: stored runs beside each other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use console::measure_text_width;
use lab_judgement::{
    Comparison, Difference, Metric, Verdict, Weight, compare_groups, compare_runs, differences,
    done_by_hand, metrics_of,
};
use lab_report::terminal::printable;
use lab_store::Outcome;
use serde::{Deserialize, Serialize};
use stats::holm;

use crate::baseline::runs_of;
use crate::compare_page;
use crate::gate::{ForMetric, LIMIT, chosen, limit, outcome, verdict_word};
use crate::output::{json, print};
use crate::recorded::{Read, Recorded, plan_differences, read};

/// Most runs of a group.
const RUNS_MOST: usize = 1_000;
/// Most runs that are named of those that lack a metric.
const LACKING_MOST: usize = 5;
/// Version of the JSON.
const SCHEMA: u32 = 1;
/// The chance that one of several equal metrics is called worse.
const ALPHA: f64 = 0.05;

pub(crate) const AFTER_HELP: &str = "\
Two runs, or two groups of runs with -- between them:
  headroom compare runs/web-20260101-120000 runs/web-20260102-120000
  headroom compare runs/old-* -- runs/new-*
or new runs with older ones from a file that headroom baseline wrote:
  headroom compare --baseline baseline.json runs/new-*

Runs that were not made in random pairs say less than headroom gate does: whatever the machine did between
them counts as a difference. Other differences are listed first, and runs with another plan or on another
processor are not judged.

Exit codes:
  0  not worse     by less than the limit, if at all
  1  worse         beyond chance, and by more than the limit
  2  cannot tell   too few runs, too much noise, or runs that must not be compared
  4  error         a run could not be read";

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The run of the base and that of the new one; with --, all runs of the base
    #[arg(value_name = "RUN", required = true, num_args = 1..=RUNS_MOST)]
    pub(crate) base: Vec<PathBuf>,
    /// Runs of the new version
    #[arg(value_name = "NEW", last = true, num_args = 1..=RUNS_MOST)]
    pub(crate) new: Vec<PathBuf>,
    /// The runs of the base, as headroom baseline wrote them; all others are of the new one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["new", "page"])]
    pub(crate) baseline: Option<PathBuf>,
    /// Compare this metric only; may be repeated
    #[arg(long = "metric", value_name = "NAME")]
    pub(crate) metrics: Vec<String>,
    /// How much worse the new runs may be [default: 3%], or NAME=LIMIT for one metric; may be repeated
    #[arg(long = "limit", value_name = "[NAME=]SHARE", value_parser = limit)]
    pub(crate) limits: Vec<ForMetric<f64>>,
    /// Judge runs even if their plans or processors differ
    #[arg(long)]
    pub(crate) despite_differences: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write a self-contained page, with the lifecycles of the first run of each side
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
}

/// The JSON of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Compared {
    schema: u32,
    /// Identities of the runs.
    base: Vec<String>,
    new: Vec<String>,
    /// Besides what was measured, the weightiest first.
    differences: Vec<Difference>,
    verdict: Verdict,
    /// The verdict in a sentence.
    sentence: String,
    metrics: Vec<Comparison>,
}

pub(crate) fn compare(args: &CompareArgs) -> Result<Outcome> {
    let (base, new) = match (&args.base[..], &args.new[..]) {
        (new, []) if args.baseline.is_some() => (&[][..], new),
        ([base, new], []) => (std::slice::from_ref(base), std::slice::from_ref(new)),
        (_, []) => bail!("compare: give two runs, or two groups with -- between them"),
        (base, new) => (base, new),
    };
    let mut left_out = Vec::new();
    let base_runs = match &args.baseline {
        Some(file) => runs_of(file)?,
        None => usable("base", base, &mut left_out)?,
    };
    let new_runs = usable("new", new, &mut left_out)?;
    let mut compared = compared(&base_runs, &new_runs, args)?;
    compared.differences.extend(left_out);
    if let Some(file) = &args.page {
        let differences = compared.differences.iter();
        let differences: Vec<String> = differences.map(|one| one.sentence.clone()).collect();
        let shown = lab_report::compared::Compared {
            base: &compared.base,
            new: &compared.new,
            differences: &differences,
            verdict: compared.verdict,
            sentence: &compared.sentence,
            metrics: &compared.metrics,
        };
        // Of each side the first run that says something.
        let base = folder_of(&compared.base[0], base);
        let new = folder_of(&compared.new[0], new);
        compare_page::write(file, &shown, base, new)?;
    }
    print(&match args.json {
        true => json(&compared)?,
        false => text(&compared),
    })?;
    Ok(outcome(compared.verdict))
}

/// A run that counts twice would make noise look smaller than it is, and one on both sides the two alike.
fn once_each<'r>(runs: impl Iterator<Item = &'r Recorded>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for run in runs {
        // In two folders there may be two of one name.
        if !seen.insert((&run.record.run, run.record.started_at_unix_ns)) {
            bail!(
                "compare: the run {} is given twice",
                printable(&run.record.run)
            );
        }
    }
    Ok(())
}

/// The folder of a run among those that were given.
fn folder_of<'a>(run: &str, paths: &'a [PathBuf]) -> &'a Path {
    let named = |path: &&PathBuf| path.file_name().is_some_and(|name| name == run);
    paths.iter().find(named).unwrap_or(&paths[0])
}

/// The runs of a side that say something; the others are told.
fn usable(side: &str, paths: &[PathBuf], left_out: &mut Vec<Difference>) -> Result<Vec<Recorded>> {
    let mut runs = Vec::new();
    for path in paths {
        match read(path)? {
            Read::Measured(run) => runs.push(*run),
            Read::Invalid(why) => left_out.push(Difference {
                weight: Weight::Mentioned,
                sentence: format!("left out {}: {why}", path.display()),
            }),
        }
    }
    if let (true, Some(last)) = (runs.is_empty(), left_out.last()) {
        bail!("compare: no run of the {side} is left; {}", last.sentence);
    }
    Ok(runs)
}

fn compared(base: &[Recorded], new: &[Recorded], args: &CompareArgs) -> Result<Compared> {
    once_each(base.iter().chain(new))?;
    let records = base.iter().chain(new).map(|run| &run.record);
    let known = metrics_of(records);
    let metrics = metrics(&known, base, args)?;
    let differences = all_differences(&known, base, new);
    let forbidden = !args.despite_differences
        && differences
            .iter()
            .any(|difference| difference.weight == Weight::Forbids);
    let metrics: Vec<Comparison> = metrics
        .into_iter()
        .map(|metric| {
            let limit = chosen(&args.limits, &metric.name).unwrap_or(LIMIT);
            of_metric(metric, limit, base, new)
        })
        .collect();
    let (verdict, sentence) = match forbidden {
        true => (
            Verdict::CannotTell,
            "cannot tell: what differs besides could be the reason; --despite-differences judges \
             nevertheless"
                .to_owned(),
        ),
        false => verdict(&metrics),
    };
    let ids = |runs: &[Recorded]| runs.iter().map(|run| run.record.run.clone()).collect();
    Ok(Compared {
        schema: SCHEMA,
        base: ids(base),
        new: ids(new),
        differences,
        verdict,
        sentence,
        metrics,
    })
}

/// What is compared: all that any run of the base measured, or what was asked for. What too few runs
/// have cannot be told, and so does not pass.
fn metrics<'r>(
    known: &[&'r Metric],
    base: &[Recorded],
    args: &CompareArgs,
) -> Result<Vec<&'r Metric>> {
    let names = args
        .metrics
        .iter()
        .chain(args.limits.iter().filter_map(ForMetric::metric));
    for name in names {
        if !known.iter().any(|metric| metric.name == *name) {
            let known: Vec<&str> = known.iter().map(|metric| metric.name.as_str()).collect();
            bail!(
                "compare: no run has a metric \"{name}\"; there is {}",
                known.join(", ")
            );
        }
    }
    let wanted = |metric: &&&Metric| match args.metrics.is_empty() {
        true => base
            .iter()
            .any(|run| run.record.metric(&metric.name).is_some()),
        false => args.metrics.contains(&metric.name),
    };
    Ok(known.iter().filter(wanted).copied().collect())
}

/// Which runs lack a metric that others have.
fn lacking(metric: &Metric, base: &[Recorded], new: &[Recorded]) -> Option<String> {
    let lack = |runs: &[Recorded]| -> Vec<String> {
        let lack = runs.iter().map(|run| &run.record);
        let lack = lack.filter(|record| record.metric(&metric.name).is_none());
        lack.map(|record| record.run.clone()).collect()
    };
    let (name, sides) = (&metric.name, [(base, "base"), (new, "new")]);
    let lacks = sides.map(|(runs, side)| (lack(runs), runs.len(), side));
    for (at, (lack, runs, _)) in lacks.iter().enumerate() {
        if lack.len() == *runs {
            let other = lacks[1 - at].2;
            return Some(match base.len() + new.len() {
                2 => format!("only the {other} run measured {name}"),
                _ => format!("only {other} runs measured {name}"),
            });
        }
    }
    let lack: Vec<String> = lacks.into_iter().flat_map(|(lack, ..)| lack).collect();
    let shown = lack[..lack.len().min(LACKING_MOST)].join(", ");
    match lack.len() {
        0 => None,
        count if count > LACKING_MOST => Some(format!(
            "{name} is missing in {shown} and {} more",
            count - LACKING_MOST
        )),
        _ => Some(format!("{name} is missing in {shown}")),
    }
}

/// In what any run differs from the first of the base, each difference once.
fn all_differences(known: &[&Metric], base: &[Recorded], new: &[Recorded]) -> Vec<Difference> {
    let all = || base.iter().chain(new);
    // A metric that the first run lacks has the unit of the first one that has it.
    let mut first = base[0].record.clone();
    let has = all().flat_map(|run| &run.record.metrics);
    for metric in known {
        if first.metric(&metric.name).is_none() {
            let mut has = has.clone();
            first
                .metrics
                .extend(has.find(|value| value.metric == **metric).cloned());
        }
    }
    let mut found: Vec<Difference> = Vec::new();
    for run in all() {
        for mut difference in differences(&first, &run.record) {
            if difference
                .sentence
                .starts_with("the plan of the experiment")
                && !base[0].plan.is_null()
            {
                let details = plan_differences(&base[0].plan, &run.plan).join("; ");
                difference.sentence = format!("the plan of the experiment differs: {details}");
            }
            if !found.contains(&difference) {
                found.push(difference);
            }
        }
    }
    let lacking = known.iter().filter_map(|metric| lacking(metric, base, new));
    found.extend(lacking.map(|sentence| Difference {
        weight: Weight::Mentioned,
        sentence,
    }));
    let commits = |runs: &[Recorded]| -> BTreeSet<String> {
        runs.iter().map(|run| run.record.commit.clone()).collect()
    };
    let [base, new] = [base, new].map(|runs| Vec::from_iter(commits(runs)).join(", "));
    if base != new {
        found.push(Difference {
            weight: Weight::Mentioned,
            sentence: format!("the commit differs: {base} and {new}"),
        });
    }
    found.sort_by_key(|difference| std::cmp::Reverse(difference.weight));
    // What was done by hand is more than a difference.
    let done: Vec<Difference> = all().flat_map(|run| done_by_hand(&run.record)).collect();
    found.retain(|difference| !done.contains(difference));
    found.splice(0..0, done);
    found
}

fn of_metric(metric: &Metric, limit: f64, base: &[Recorded], new: &[Recorded]) -> Comparison {
    let values = |runs: &[Recorded]| -> Vec<f64> {
        let values = runs.iter().map(|run| run.record.metric(&metric.name));
        values
            .map(|found| found.map_or(f64::NAN, |found| found.value))
            .collect()
    };
    let (base_values, new_values) = (values(base), values(new));
    if base.len() > 1 || new.len() > 1 {
        return compare_groups(metric, limit, &base_values, &new_values);
    }
    let within = |runs: &[Recorded]| -> Vec<f64> {
        let found = runs.first().and_then(|run| run.record.metric(&metric.name));
        found
            .map(|found| found.replicates.clone())
            .unwrap_or_default()
    };
    let found = compare_runs(metric, limit, &within(base), &within(new));
    let value = |values: &[f64]| values.first().copied().filter(|value| value.is_finite());
    Comparison {
        // Of a run it is its value that was measured, not that of its parts.
        base_median: value(&base_values),
        new_median: value(&new_values),
        ..found
    }
}

/// Worse if one metric is, not worse if all are not. Of many metrics one is worse by chance, so those
/// that are must be so beyond what Holm's procedure allows for.
fn verdict(metrics: &[Comparison]) -> (Verdict, String) {
    let p_values: Vec<f64> = metrics
        .iter()
        .map(|metric| metric.mann_whitney_p_value.unwrap_or(1.0))
        .collect();
    let worse: Vec<(&str, bool)> = metrics
        .iter()
        .zip(holm(&p_values))
        .filter(|(metric, _)| metric.verdict == Verdict::Worse)
        .map(|(metric, p_value)| (metric.metric.name.as_str(), p_value <= ALPHA))
        .collect();
    let names = |certain: bool| {
        let names = worse.iter().filter(|(_, known)| *known == certain);
        names.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    };
    let open = metrics
        .iter()
        .filter(|metric| metric.verdict == Verdict::CannotTell);
    let open: Vec<&str> = open.map(|metric| metric.metric.name.as_str()).collect();
    if worse.iter().any(|(_, certain)| *certain) {
        (Verdict::Worse, format!("worse: {}", names(true)))
    } else if !worse.is_empty() {
        let text = format!(
            "cannot tell: of {} metrics, one is as much worse as {} by chance",
            metrics.len(),
            names(false)
        );
        (Verdict::CannotTell, text)
    } else if open.is_empty() {
        (Verdict::NotWorse, "not worse".to_owned())
    } else {
        (
            Verdict::CannotTell,
            format!("cannot tell: {}", open.join(", ")),
        )
    }
}

fn text(compared: &Compared) -> String {
    let mut out = String::new();
    for difference in &compared.differences {
        out += &format!("{}\n", printable(&difference.sentence));
    }
    if compared.differences.is_empty() {
        out += "nothing differs in file, environment and machine\n";
    }
    out += "\n";
    let head = ["metric", "base", "new", "change", "verdict"].map(str::to_owned);
    let rows = compared.metrics.iter().map(row);
    out += &columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>());
    let open = compared
        .metrics
        .iter()
        .filter(|it| it.verdict == Verdict::CannotTell);
    let open: String = open
        .filter(|metric| metric.effect.is_some() || metric.needs.is_some())
        .map(|metric| format!("{}\n", printable(&metric.finding_in_words())))
        .collect();
    if !open.is_empty() {
        out += &format!("\n{open}");
    }
    let mut licences: Vec<String> = Vec::new();
    for licence in compared.metrics.iter().map(Comparison::licence_in_words) {
        if !licences.contains(&licence) {
            licences.push(licence);
        }
    }
    let ending = verdict_word(compared.verdict, &compared.sentence);
    out + &format!("\n{}\n\n{ending}\n", licences.join("\n"))
}

fn row(comparison: &Comparison) -> [String; 5] {
    let unit = comparison.metric.unit;
    let value = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |it| unit.show(it));
    let effect = comparison.effect.as_ref();
    let verdict = comparison.verdict.in_words();
    [
        printable(&comparison.metric.name),
        value(comparison.base_median),
        value(comparison.new_median),
        effect.map_or_else(|| "unknown".to_owned(), |effect| effect.in_words()),
        verdict.to_owned(),
    ]
}

/// Cells under each other.
fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: [usize; N] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| measure_text_width(&row[column]));
        cells.max().unwrap_or(0)
    });
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| {
            let space = width.saturating_sub(measure_text_width(cell));
            format!("{cell}{}", " ".repeat(space))
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests;
