//! The command line of `headroom gate`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lab_judgement::Direction;

use super::reading::{Reading, reading};
use crate::ci::ResultFiles;
use crate::cli::{RunArgs, duration, name_and_value, share};

pub(crate) const AFTER_HELP: &str = "\
Two commands that print numbers, or that only take time (about an experiment file see below):
  headroom gate --base './old --bench' --new './new --bench'
  headroom gate --base ./old --new ./new --metric 'p99=p99 +([0-9.]+)' --limit 5%
  headroom gate --base ./old --new ./new --metric rate=/requests/rate --better higher

A metric is NAME=REGEX, whose first group (or the whole of it) is a number in what the command prints, the
last one if there are several; NAME=/json/pointer into the JSON that it prints; or one of
  cpu    processor time of the command and of all children that it waited for
  wall   time from its start to its end
Without --metric it is both of these. A unit after a number counts: 950 ms and 1.2 s are compared as times.

Both run once before the first pair, which does not count. Then they run in pairs, in a random order,
until the verdict is clear.

With an experiment file each run is one of the experiment, and the sides differ in constants of its [let]:
  headroom gate router.toml --base-set router=./old --new-set router=./new
The program of either side can be a file or a revision of git, which is built once:
  headroom gate parse.toml --program parse --base main --new ./parse --build 'make parse' --built parse
Its [[gate]] tables define the metrics; without them, all metrics of its expectations are compared. Its
[variants] are the sides unless they are set here.

Exit codes:
  0  not worse     by less than the limit, if at all
  1  worse         beyond chance, and by more than the limit
  2  cannot tell   the noise hides the limit; it says what would help
  4  error         a command failed, printed no number, or took too long";

#[derive(Debug, Default, Args)]
pub(crate) struct GateArgs {
    /// An experiment file (or the name of a ready one) whose runs are compared, instead of commands
    pub(crate) file: Option<PathBuf>,
    /// The shell command of the base; with a file and --program, its program or a git revision
    #[arg(long, value_name = "CMD", required_unless_present = "file")]
    pub(crate) base: Option<String>,
    /// The command of the new version, or its program or revision
    #[arg(long, value_name = "CMD", required_unless_present = "file")]
    pub(crate) new: Option<String>,
    /// The constant of the file's [let] that is the path of the program that --base and --new give
    #[arg(long, value_name = "NAME", requires = "file")]
    pub(crate) program: Option<String>,
    /// Shell command that builds a revision, run in the top folder of its files
    #[arg(long, value_name = "CMD", requires_all = ["program", "built"])]
    pub(crate) build: Option<String>,
    /// The program that the build produces there
    #[arg(long, value_name = "PATH", requires = "build")]
    pub(crate) built: Option<PathBuf>,
    /// A value of the file's [let] for the base; may be repeated
    #[arg(long = "base-set", value_name = "NAME=VALUE", requires = "file", value_parser = name_and_value)]
    pub(crate) base_set: Vec<(String, String)>,
    /// A value of the file's [let] for the new version; may be repeated
    #[arg(long = "new-set", value_name = "NAME=VALUE", requires = "file", value_parser = name_and_value)]
    pub(crate) new_set: Vec<(String, String)>,
    /// A value of the file's [let] for both; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", requires = "file", value_parser = name_and_value)]
    pub(crate) set: Vec<(String, String)>,
    /// Folder in which runs of the file create their own folders
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// Metric to compare: cpu, wall, NAME=REGEX or NAME=/json/pointer; may be repeated
    #[arg(long = "metric", value_name = "METRIC", value_parser = reading, conflicts_with = "file")]
    pub(crate) metrics: Vec<Reading>,
    /// Which way metrics get better, or NAME=WAY for one of them; may be repeated
    #[arg(long = "better", value_name = "[NAME=]lower|higher", value_parser = better)]
    pub(crate) better: Vec<ForMetric<Direction>>,
    /// How much worse the new one may be [default: 3%], or NAME=LIMIT for one metric; may be repeated
    #[arg(long = "limit", value_name = "[NAME=]SHARE", value_parser = limit)]
    pub(crate) limits: Vec<ForMetric<f64>>,
    /// How long one run of a command may take
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub(crate) time_limit: Duration,
    #[command(flatten)]
    pub(crate) pairs: PairArgs,
}

/// How many pairs, in which order, and what becomes of the verdict.
#[derive(Debug, Default, Args)]
pub(crate) struct PairArgs {
    /// Most pairs of runs; it ends earlier once it can decide [default: 24, or as the file says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(6..=1_000))]
    pub(crate) pairs: Option<u16>,
    /// Seed of the order within each pair [default: 1, or that of the file]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Print JSON, with the values of every pair, instead of sentences
    #[arg(long)]
    pub(crate) json: bool,
    /// Also draw the changes, their intervals and the limits as a PNG, which the Markdown then shows
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,
    /// Where a reader of the Markdown finds the picture [default: FILE itself]
    #[arg(long, value_name = "URL", requires = "picture")]
    pub(crate) picture_address: Option<String>,
    #[command(flatten)]
    pub(crate) files: ResultFiles,
}

impl GateArgs {
    /// Those of a run of a file that has gates.
    pub(crate) fn of_run(args: &RunArgs) -> Self {
        Self {
            file: Some(args.check.file.clone()),
            set: args.check.set.clone(),
            out: args.out.clone(),
            pairs: PairArgs {
                json: args.json,
                files: args.files.clone(),
                ..PairArgs::default()
            },
            ..Self::default()
        }
    }

    /// Which way a metric gets better, if it was said; a name counts for more than a way for all.
    pub(crate) fn direction(&self, metric: &str) -> Option<Direction> {
        chosen(&self.better, metric)
    }

    /// The share that a metric may be worse by, if it was said.
    pub(crate) fn limit(&self, metric: &str) -> Option<f64> {
        chosen(&self.limits, metric)
    }

    /// The first name that `--better` or `--limit` is told of and no metric has.
    pub(crate) fn unknown_metric<'a>(&'a self, metrics: &[&str]) -> Option<&'a str> {
        let better = self.better.iter().filter_map(|one| one.metric.as_deref());
        let limits = self.limits.iter().filter_map(|one| one.metric.as_deref());
        let mut named = better.chain(limits);
        named.find(|name| !metrics.contains(name))
    }
}

/// How much worse a metric may be, when nothing says.
pub(crate) const LIMIT: f64 = 0.03;

/// A setting of all metrics, or of one.
#[derive(Debug, Clone)]
pub(crate) struct ForMetric<T> {
    metric: Option<String>,
    value: T,
}

impl<T> ForMetric<T> {
    /// The metric that it is about; `None`: all.
    pub(crate) fn metric(&self) -> Option<&String> {
        self.metric.as_ref()
    }
}

/// The last one that is about a metric by its name, or else about all.
pub(crate) fn chosen<T: Copy>(all: &[ForMetric<T>], metric: &str) -> Option<T> {
    let of = |name: Option<&str>| all.iter().rfind(|one| one.metric.as_deref() == name);
    of(Some(metric)).or_else(|| of(None)).map(|one| one.value)
}

/// Reads a way in which metrics get better.
pub(crate) fn better(text: &str) -> Result<ForMetric<Direction>, String> {
    for_metric(text, |way| match way {
        "lower" => Ok(Direction::LowerIsBetter),
        "higher" => Ok(Direction::HigherIsBetter),
        _ => Err(format!(
            "expected lower or higher, or NAME=lower, found \"{way}\""
        )),
    })
}

/// Reads a share above 0 and below 1.
pub(crate) fn limit(text: &str) -> Result<ForMetric<f64>, String> {
    for_metric(text, |text| match share(text)? {
        found if found > 0.0 && found < 1.0 => Ok(found),
        _ => Err("a limit is above 0% and below 100%".into()),
    })
}

/// Reads what may stand behind `NAME=`.
fn for_metric<T>(
    text: &str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<ForMetric<T>, String> {
    let (metric, value) = match text.rsplit_once('=') {
        Some((name, value)) => (Some(name.to_owned()), value),
        None => (None, text),
    };
    Ok(ForMetric {
        metric,
        value: read(value)?,
    })
}
