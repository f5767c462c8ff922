//! `headroom compare`: stored runs beside each other.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use console::measure_text_width;
use lab_judgement::{
    Comparison, Difference, Metric, Record, Verdict, Weight, compare_groups, compare_runs,
    differences,
};
use lab_report::terminal::printable;
use lab_store::Outcome;
use serde::{Deserialize, Serialize};
use stats::holm;

use crate::baseline::runs_of;
use crate::compare_page;
use crate::gate::{ForMetric, LIMIT, Limit, chosen, for_metric, outcome, verdict_word};
use crate::output::print;
use crate::recorded::{Recorded, plan_differences, recorded};

/// Most runs of a group.
const RUNS_MOST: usize = 1_000;
/// Version of the JSON.
const SCHEMA: u32 = 1;
/// The chance that one of several equal metrics is called worse.
const ALPHA: f64 = 0.05;

pub(crate) const AFTER_HELP: &str = "\
Two runs, or two groups of runs with -- between them:
  headroom compare runs/web-20260101-120000 runs/web-20260102-120000
  headroom compare runs/old-* -- runs/new-*
or new runs with what older ones measured, of which headroom baseline wrote a file:
  headroom compare --baseline baseline.json runs/new-*

Runs that were not made in random pairs say less than headroom gate does: whatever the machine did between
them counts as a difference. What differs besides is told first, and runs with another plan or on another
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
    /// Runs of what may be worse
    #[arg(value_name = "NEW", last = true, num_args = 1..=RUNS_MOST)]
    pub(crate) new: Vec<PathBuf>,
    /// The runs of the base, as headroom baseline wrote them; all others are of the new one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["new", "page"])]
    pub(crate) baseline: Option<PathBuf>,
    /// Compare this metric only; may be repeated
    #[arg(long = "metric", value_name = "NAME")]
    pub(crate) metrics: Vec<String>,
    /// How much worse the new runs may be (3% if nothing says), or NAME=LIMIT for one metric; may be repeated
    #[arg(long = "limit", value_name = "[NAME=]SHARE", value_parser = for_metric::<Limit>)]
    pub(crate) limits: Vec<ForMetric<Limit>>,
    /// Judge runs also when their plans or processors differ
    #[arg(long)]
    pub(crate) despite_differences: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write a page that needs nothing else, with the lifecycles of the first run of each side
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
    let read = |paths: &[PathBuf]| -> Result<Vec<Recorded>> {
        paths.iter().map(|path| recorded(path)).collect()
    };
    let kept = args.baseline.as_deref().map(runs_of).transpose()?;
    let base_runs = kept.map_or_else(|| read(base), Ok)?;
    let compared = compared(&base_runs, &read(new)?, args)?;
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
        compare_page::write(file, &shown, &base[0], &new[0])?;
    }
    print(&match args.json {
        true => serde_json::to_string_pretty(&compared)? + "\n",
        false => text(&compared),
    })?;
    Ok(outcome(compared.verdict))
}

fn compared(base: &[Recorded], new: &[Recorded], args: &CompareArgs) -> Result<Compared> {
    let first = &base[0];
    let metrics = metrics(&first.record, args)?;
    let differences = all_differences(base, new);
    let forbidden = !args.despite_differences
        && differences
            .iter()
            .any(|difference| difference.weight == Weight::Forbids);
    let metrics: Vec<Comparison> = metrics
        .into_iter()
        .map(|metric| {
            let limit = chosen(&args.limits, &metric.name).map_or(LIMIT, |limit| limit.0);
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

/// What is compared: all that the first run of the base measured, or what was asked for.
fn metrics<'r>(first: &'r Record, args: &CompareArgs) -> Result<Vec<&'r Metric>> {
    let known: Vec<&Metric> = first.metrics.iter().map(|value| &value.metric).collect();
    let names = args
        .metrics
        .iter()
        .chain(args.limits.iter().filter_map(ForMetric::metric));
    for name in names {
        if !known.iter().any(|metric| metric.name == *name) {
            let known: Vec<&str> = known.iter().map(|metric| metric.name.as_str()).collect();
            bail!(
                "compare: {} has no metric \"{name}\"; it has {}",
                first.run,
                known.join(", ")
            );
        }
    }
    let wanted = |metric: &&Metric| args.metrics.is_empty() || args.metrics.contains(&metric.name);
    Ok(known.into_iter().filter(wanted).collect())
}

/// In what any run differs from the first of the base, each difference once.
fn all_differences(base: &[Recorded], new: &[Recorded]) -> Vec<Difference> {
    let first = &base[0];
    let mut found: Vec<Difference> = Vec::new();
    for run in base[1..].iter().chain(new) {
        for mut difference in differences(&first.record, &run.record) {
            if difference
                .sentence
                .starts_with("the plan of the experiment")
                && !first.plan.is_null()
            {
                let details = plan_differences(&first.plan, &run.plan).join("; ");
                difference.sentence = format!("the plan of the experiment differs: {details}");
            }
            if !found.contains(&difference) {
                found.push(difference);
            }
        }
    }
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
        .filter(|metric| metric.effect.is_some())
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
    let verdict = match comparison.verdict {
        Verdict::Worse => "worse",
        Verdict::NotWorse => "not worse",
        Verdict::CannotTell => "cannot tell",
    };
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
