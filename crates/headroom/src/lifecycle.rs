//! `headroom lifecycle`: what logs tell about the lives of entities.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use lab_experiment::draft;
use lab_lifecycle::{Format, KeyRejection, PointRejection, Suggested, Suggestions, suggest};
use lab_report::terminal::printable;
use lab_store::Outcome;
use serde_json::{Value, json};
use units::{show_bytes, show_count, show_seconds, show_share};

use crate::output::{eprint, print};

/// Most bytes of logs that are read.
const MOST_BYTES: u64 = 1 << 30;
/// Fields that are told when nothing was found, and messages that were left out.
const TOLD: usize = 20;

#[derive(Debug, Subcommand)]
pub(crate) enum LifecycleCommand {
    /// Propose [[lifecycle]] entries for logs: what identifies an entity, and its points in order
    #[command(after_help = AFTER_HELP)]
    Suggest(SuggestArgs),
}

const AFTER_HELP: &str = "\
  headroom lifecycle suggest runs/ID/logs            the logs of a run, or any others
  headroom lifecycle suggest api.log worker.log >> experiment.toml

What is proposed is written to standard output as it stands in an experiment, with the numbers
that these logs give; exit code 2: nothing was found, and why is told on standard error.";

#[derive(Debug, Args)]
pub(crate) struct SuggestArgs {
    /// Log files; of a folder every file that ends in .log; - is standard input
    #[arg(required = true, value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// The form of their lines
    #[arg(long, value_enum, default_value = "auto")]
    format: LineFormat,
    /// Print JSON, times in seconds
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LineFormat {
    /// JSON where the line has an object, otherwise logfmt
    Auto,
    Lager,
    Json,
    Logfmt,
}

impl From<LineFormat> for Format {
    fn from(format: LineFormat) -> Self {
        match format {
            LineFormat::Auto => Self::Auto,
            LineFormat::Lager => Self::Lager,
            LineFormat::Json => Self::Json,
            LineFormat::Logfmt => Self::Logfmt,
        }
    }
}

pub(crate) fn run(command: &LifecycleCommand) -> Result<Outcome> {
    let LifecycleCommand::Suggest(args) = command;
    let logs = read(&args.files)?;
    let logs: Vec<&[u8]> = logs.iter().map(Vec::as_slice).collect();
    let found = suggest(args.format.into(), &logs);
    if args.json {
        print(&format!("{:#}\n", as_json(&found)))?;
    } else {
        for suggested in &found.lifecycles {
            print(&as_toml(suggested))?;
        }
    }
    if found.left > 0 {
        let left = show_count(found.left as f64);
        eprint(format_args!(
            "there was no room for {left} values; give a part of the logs"
        ));
    }
    if found.lifecycles.is_empty() {
        eprint(why_nothing(&found));
        return Ok(Outcome::Inconclusive);
    }
    Ok(Outcome::Pass)
}

fn read(paths: &[PathBuf]) -> Result<Vec<Vec<u8>>> {
    let mut files = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => files.extend(logs_of(path)?),
            false => files.push(path.clone()),
        }
    }
    let mut left = MOST_BYTES;
    let mut logs = Vec::with_capacity(files.len());
    for path in files {
        let reading = || format!("read the log {}", path.display());
        let mut log = Vec::new();
        let read = match path.as_os_str() == "-" {
            true => std::io::stdin().take(left + 1).read_to_end(&mut log),
            false => File::open(&path)
                .with_context(reading)?
                .take(left + 1)
                .read_to_end(&mut log),
        };
        read.with_context(reading)?;
        left = match left.checked_sub(log.len() as u64) {
            Some(left) => left,
            None => bail!(
                "the logs have more than {}; give a part of them, as in \
                 `head -c 500M {} | headroom lifecycle suggest -`",
                show_bytes(MOST_BYTES as f64),
                path.display()
            ),
        };
        logs.push(log);
    }
    Ok(logs)
}

fn logs_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let listing = || format!("list the logs in {}", folder.display());
    let mut logs = Vec::new();
    for entry in folder.read_dir().with_context(listing)? {
        let path = entry.with_context(listing)?.path();
        if path.extension().is_some_and(|end| end == "log") && path.is_file() {
            logs.push(path);
        }
    }
    if logs.is_empty() {
        bail!(
            "no file in {} ends in .log; name the files themselves",
            folder.display()
        );
    }
    logs.sort();
    Ok(logs)
}

fn as_toml(suggested: &Suggested) -> String {
    let count = |count: u64| show_count(count as f64);
    let mut text = format!(
        "# {} entities in these logs; {} have every point.\n",
        count(suggested.entities),
        count(suggested.complete),
    );
    if suggested.others > 0 {
        text += &format!(
            "# It gives {} rows of another kind too: the same fields name them, and they show some \
             of these points.\n",
            count(suggested.others)
        );
    }
    for left in suggested.left_out.iter().take(TOLD) {
        text += &format!(
            "# No point: {} ({})\n",
            printable(&left.message),
            describe_rejection(left.why)
        );
    }
    if let Some(more) = suggested.left_out.len().checked_sub(TOLD + 1) {
        text += &format!("# No points: {} more\n", count(more as u64 + 1));
    }
    let remarks: Vec<String> = suggested
        .points
        .iter()
        .map(|point| {
            let entities = count(point.entities);
            match point.since_before_ns {
                Some(ns) => format!("{entities}, median {} later", seconds(ns)),
                None => entities,
            }
        })
        .collect();
    text + &draft::lifecycle(&suggested.definition, &remarks) + "\n"
}

fn seconds(ns: i64) -> String {
    show_seconds(ns as f64 / 1e9)
}

fn describe_rejection(why: PointRejection) -> String {
    match why {
        PointRejection::Recurs(times) => format!("comes {} times for an entity", show_count(times)),
        PointRejection::Rare(share) => format!("{} of the entities show it", show_share(share)),
        PointRejection::Unsteady => "comes now before and now after others".to_owned(),
        PointRejection::Brief => "hardly any time passes before it, and there are many".to_owned(),
    }
}

fn no_key(why: KeyRejection) -> &'static str {
    match why {
        KeyRejection::FewValues => "fewer than five values",
        KeyRejection::OneMessage => "no value is in lines with different messages",
        KeyRejection::NoPattern => "its values do not share two messages, once each, in one order",
        KeyRejection::Covered => "another key tells the same",
    }
}

fn why_nothing(found: &Suggestions) -> String {
    let count = |count: u64| show_count(count as f64);
    let lines = &found.lines;
    let mut text = format!(
        "no lifecycle found in {} lines, of which {} could not be read",
        count(lines.lines),
        count(lines.unreadable)
    );
    if let Some(sample) = &lines.unreadable_sample {
        text += &format!(", the first: {}", printable(sample));
    }
    if found.fields.is_empty() {
        return text + "\nno line has a field; docs/lifecycles.md shows the forms that are read";
    }
    text += "\nits fields, and why none of them identifies an entity:";
    for field in found.fields.iter().take(TOLD) {
        text += &format!(
            "\n  {}  {} lines, {} values such as {:?}: {}",
            field.path,
            count(field.lines),
            count(field.values),
            field.example,
            no_key(field.no_key.unwrap_or(KeyRejection::NoPattern))
        );
    }
    text
}

fn as_json(found: &Suggestions) -> Value {
    let lifecycles: Vec<Value> = found
        .lifecycles
        .iter()
        .map(|suggested| {
            let points = suggested.points.iter().map(|point| {
                json!({
                    "name": point.name,
                    "entities": point.entities,
                    "p50_since_before_s": point.since_before_ns.map(|ns| ns as f64 / 1e9),
                })
            });
            let left_out = suggested.left_out.iter().map(
                |left| json!({ "message": left.message, "why": describe_rejection(left.why) }),
            );
            json!({
                "lifecycle": suggested.definition,
                "entities": suggested.entities,
                "complete": suggested.complete,
                "others": suggested.others,
                "points": points.collect::<Vec<_>>(),
                "left_out": left_out.collect::<Vec<_>>(),
            })
        })
        .collect();
    let fields = found.fields.iter().map(|field| {
        json!({
            "path": field.path,
            "lines": field.lines,
            "values": field.values,
            "example": field.example,
            "no_key": field.no_key.map(no_key),
        })
    });
    json!({
        "lines": found.lines.lines,
        "unreadable": found.lines.unreadable,
        "left": found.left,
        "lifecycles": lifecycles,
        "fields": fields.collect::<Vec<_>>(),
    })
}
