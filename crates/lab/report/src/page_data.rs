//! Everything the page shows, gathered from the folder of a run.
//!
//! `web/src/run.ts` has the same types; change both together.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::hash::Hash;
use std::path::Path;

use lab_store::{
    EntityCount, Environment, Event, EventKind, LoopTurn, ProcessSample, RunFile, RunFolder,
    StoreError, Verdict,
};
use serde::{Deserialize, Serialize};

use crate::ReportError;
use crate::blob::{Blob, Text};
use crate::series::{Line, pack};
use crate::timelines::{self, Timelines};

/// Version of the page's data; the page and its data are built together.
const VERSION: u32 = 1;

/// The data of a page, apart from the numbers in the blob.
#[derive(Debug, Serialize)]
pub(crate) struct PageData {
    version: u32,
    name: String,
    about: String,
    /// As text: JavaScript's numbers cannot hold every seed.
    seed: Option<String>,
    environment: Environment,
    verdict: Verdict,
    steps: Vec<Step>,
    counts: Vec<Counts>,
    processes: Vec<Process>,
    loops: Vec<Named>,
    lifecycles: Vec<Timelines>,
    experiment: Option<Text>,
    files: Vec<FileSize>,
}

/// A step on the time axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Step {
    name: String,
    start_s: f64,
    end_s: f64,
    /// When everything it asked for had been asked for.
    made_s: Option<f64>,
    failed: bool,
    text: String,
}

/// Entities of one kind, one line for each state.
#[derive(Debug, Serialize)]
struct Counts {
    what: String,
    states: Vec<Named>,
}

/// What one process used.
#[derive(Debug, Serialize)]
struct Process {
    system: String,
    cpu_cores: Line,
    rss_bytes: Line,
    fds: Line,
    threads: Line,
}

#[derive(Debug, Serialize)]
struct Named {
    name: String,
    line: Line,
}

#[derive(Debug, Serialize)]
struct FileSize {
    path: String,
    bytes: u64,
}

/// What the report needs from `plan.json`.
#[derive(Debug, Default, Deserialize)]
struct PlanHead {
    name: String,
    about: String,
    seed: u64,
    #[serde(default)]
    lifecycles: Vec<NameOnly>,
}

#[derive(Debug, Deserialize)]
struct NameOnly {
    name: String,
}

impl PageData {
    /// Reads a run; the second value is the blob as text.
    pub(crate) fn of(run: &RunFolder) -> Result<(Self, String), ReportError> {
        let mut blob = Blob::default();
        let environment = run.environment()?;
        let verdict = run.verdict()?;
        let plan = present(run, RunFile::Plan, |file| run.read_json::<PlanHead>(file))?;
        let experiment = present(run, RunFile::Experiment, |file| run.read_text(file))?;
        let declared: Vec<&str> = plan
            .iter()
            .flat_map(|plan| &plan.lifecycles)
            .map(|named| named.name.as_str())
            .collect();
        let mut lifecycles = Vec::new();
        for name in lifecycle_names(run, &declared)? {
            let table = timelines::read(&name, &run.file(RunFile::Lifecycle(&name)))?;
            lifecycles.push(Timelines::pack(&table, &mut blob)?);
        }
        let data = Self {
            version: VERSION,
            seed: plan.as_ref().map(|plan| plan.seed.to_string()),
            about: plan
                .as_ref()
                .map(|plan| plan.about.clone())
                .unwrap_or_default(),
            name: plan.map_or_else(|| environment.run_id.clone(), |plan| plan.name),
            steps: steps(&run.records::<Event>()?, verdict.duration_s),
            counts: counts(&run.records::<EntityCount>()?, &mut blob),
            processes: processes(&run.records::<ProcessSample>()?, &mut blob),
            loops: loops(&run.records::<LoopTurn>()?, &mut blob),
            lifecycles,
            experiment: experiment.map(|text| blob.push_text(&text)),
            files: files(run.path())?,
            environment,
            verdict,
        };
        Ok((data, blob.finish()))
    }
}

/// What `read` gives, or `None` when the file is absent: a run that could not be
/// started has neither plan nor samples.
fn present<T>(
    run: &RunFolder,
    file: RunFile<'static>,
    read: impl FnOnce(RunFile<'static>) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    if run.file(file).exists() {
        read(file).map(Some)
    } else {
        Ok(None)
    }
}

/// Lifecycles that have a file: those of the plan in its order, then others by name.
fn lifecycle_names(run: &RunFolder, declared: &[&str]) -> Result<Vec<String>, ReportError> {
    let mut stored: BTreeSet<String> = list(&run.path().join("lifecycles"))?
        .into_iter()
        .filter_map(|(name, _)| name.strip_suffix(".csv").map(str::to_owned))
        .collect();
    let mut names = Vec::new();
    for name in declared {
        let file = RunFile::Lifecycle(name).relative_path();
        let stem = file
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        if stem.is_some_and(|stem| stored.remove(&stem)) {
            names.push((*name).to_owned());
        }
    }
    names.extend(stored);
    Ok(names)
}

fn steps(events: &[Event], run_end_s: f64) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for event in events {
        if event.kind == EventKind::StepStarted {
            steps.push(Step {
                name: event.name.clone(),
                start_s: event.t_s,
                // A step without an end was cut short by the end of the run.
                end_s: run_end_s.max(event.t_s),
                made_s: None,
                failed: false,
                text: String::new(),
            });
        } else if let Some(step) = steps.iter_mut().rev().find(|step| step.name == event.name) {
            match event.kind {
                EventKind::Made => step.made_s = Some(event.t_s),
                EventKind::StepEnded => step.end_s = event.t_s,
                EventKind::StepFailed => {
                    step.end_s = event.t_s;
                    step.failed = true;
                    step.text.clone_from(&event.text);
                }
                _ => {}
            }
        }
    }
    steps
}

/// Groups records by a key, keys in order of first appearance.
fn grouped<'a, R, K>(records: &'a [R], key: impl Fn(&'a R) -> K) -> Vec<(K, Vec<&'a R>)>
where
    K: Copy + Eq + Hash,
{
    let mut groups: Vec<(K, Vec<&R>)> = Vec::new();
    let mut place_of: HashMap<K, usize> = HashMap::new();
    for record in records {
        let key = key(record);
        let place = *place_of.entry(key).or_insert_with(|| {
            groups.push((key, Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(record);
    }
    groups
}

fn counts(records: &[EntityCount], blob: &mut Blob) -> Vec<Counts> {
    let mut counts: Vec<Counts> = Vec::new();
    for ((what, state), members) in grouped(records, |record| (&record.what, &record.state)) {
        let points: Vec<(f64, f64)> = members
            .iter()
            .map(|record| (record.t_s, record.count as f64))
            .collect();
        let line = Named {
            name: state.clone(),
            line: pack(blob, &points, 1.0),
        };
        match counts.iter_mut().find(|counts| counts.what == *what) {
            Some(counts) => counts.states.push(line),
            None => counts.push(Counts {
                what: what.clone(),
                states: vec![line],
            }),
        }
    }
    counts
}

fn processes(records: &[ProcessSample], blob: &mut Blob) -> Vec<Process> {
    grouped(records, |record| &record.system)
        .into_iter()
        .map(|(system, samples)| {
            let mut line = |unit: f64, of: fn(&ProcessSample) -> f64| {
                let points: Vec<(f64, f64)> = samples
                    .iter()
                    .map(|sample| (sample.t_s, of(sample)))
                    .collect();
                pack(blob, &points, unit)
            };
            Process {
                system: system.clone(),
                cpu_cores: line(1e-3, |sample| sample.cpu_cores),
                rss_bytes: line(1024.0, |sample| sample.rss_bytes as f64),
                fds: line(1.0, |sample| sample.fds as f64),
                threads: line(1.0, |sample| sample.threads as f64),
            }
        })
        .collect()
}

fn loops(records: &[LoopTurn], blob: &mut Blob) -> Vec<Named> {
    grouped(records, |record| &record.name)
        .into_iter()
        .map(|(name, turns)| {
            let points: Vec<(f64, f64)> = turns
                .iter()
                .map(|turn| (turn.t_s, turn.duration_s))
                .collect();
            Named {
                name: name.clone(),
                line: pack(blob, &points, 1e-6),
            }
        })
        .collect()
}

/// Files of the run by path; not the report, which is made from them.
fn files(folder: &Path) -> Result<Vec<FileSize>, ReportError> {
    let report = RunFile::Report.relative_path();
    let mut files = Vec::new();
    for place in ["", "series", "lifecycles", "logs"] {
        for (name, bytes) in list(&folder.join(place))? {
            let path = Path::new(place).join(name);
            if path != report && path.extension().is_none_or(|end| end != "part") {
                files.push(FileSize {
                    path: path.to_string_lossy().into_owned(),
                    bytes,
                });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Name and size of each file in a folder; none when there is no such folder.
fn list(folder: &Path) -> Result<Vec<(String, u64)>, ReportError> {
    let failed = |cause: std::io::Error| ReportError::Timelines {
        path: folder.to_owned(),
        problem: format!("cannot list: {cause}"),
    };
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let metadata = entry.metadata().map_err(failed)?;
        if metadata.is_file() {
            files.push((
                entry.file_name().to_string_lossy().into_owned(),
                metadata.len(),
            ));
        }
    }
    Ok(files)
}
