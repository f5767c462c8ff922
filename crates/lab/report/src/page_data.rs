//! Everything the page shows, gathered from the folder of a run.
//!
//! `web/src/data/run.ts` has the same types; change both together.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::hash::Hash;
use std::path::Path;

use lab_lifecycle::{Definition, Table};
use lab_load::Summary;
use lab_store::{
    EntityCount, Environment, Event, FindingRecord, LoadRate, LoopTurn, ProbeSample, ProcessSample,
    Record, RunFile, RunFolder, SoFar, StoreError, StoredLoad, SystemProcess, Verdict,
};
use serde::{Deserialize, Serialize};

use crate::ReportError;
use crate::blob::{Blob, Text};
use crate::log_lines::{self, PlannedSystem};
use crate::moment::Moment;
use crate::page_events::{Fault, Note, SkippedStep, Step, faults_so_far, notes, skipped, steps};
use crate::page_loads::PageLoad;
use crate::page_probes::{PageProbe, probes, summaries_so_far};
use crate::page_profile::{self, PageProfile};
use crate::series::{Line, pack};
use crate::timelines::{self, TIMES_MOST, Timelines};

/// Version of the page's data; the page and its data are built together.
const VERSION: u32 = 1;

/// The data of a page, apart from the numbers in the blob.
#[derive(Debug, Default, Serialize)]
pub(crate) struct PageData {
    version: u32,
    name: String,
    about: String,
    /// As text: JavaScript's numbers cannot hold every seed.
    seed: Option<String>,
    environment: Environment,
    /// Absent for loads that are no part of a run, and of a run that goes on.
    verdict: Option<Verdict>,
    /// Of a run that goes on.
    underway: Option<Underway>,
    steps: Vec<Step>,
    skipped: Vec<SkippedStep>,
    faults: Vec<Fault>,
    notes: Vec<Note>,
    findings: Vec<FindingRecord>,
    /// Of a run that has ended.
    profile: Option<PageProfile>,
    counts: Vec<Counts>,
    processes: Vec<Process>,
    loops: Vec<Named>,
    probes: Vec<PageProbe>,
    lifecycles: Vec<Timelines>,
    loads: Vec<PageLoad>,
    experiment: Option<Text>,
    files: Vec<FileSize>,
    problems: Vec<Problem>,
}

/// How far a run has come that goes on.
#[derive(Debug, Serialize)]
struct Underway {
    now_s: f64,
    /// What it does or waits for, in words.
    doing: String,
    /// What the reader may do to it: `mark`, `stop`, `rate`.
    may: Vec<&'static str>,
    /// The rates that the reader may change.
    rates: Vec<LoadRate>,
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
    /// Those of its processes that used the processor most.
    each: Vec<OneProcess>,
    /// How many more there were.
    more: u64,
}

/// One process of a system.
#[derive(Debug, Serialize)]
struct OneProcess {
    pid: u32,
    command: String,
    from_s: f64,
    to_s: f64,
    cpu_s: f64,
    rss_bytes_max: u64,
}

/// A line with its name.
#[derive(Debug, Serialize)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) line: Line,
}

#[derive(Debug, Serialize)]
struct FileSize {
    path: String,
    bytes: u64,
}

/// A part of a run that could not be read, so that the page can say it.
#[derive(Debug, PartialEq, Serialize)]
struct Problem {
    /// Path inside the folder of the run.
    file: String,
    /// What is wrong with it.
    text: String,
}

/// What the report needs from `plan.json`.
#[derive(Debug, Default, Deserialize)]
struct PlanHead {
    name: String,
    about: String,
    seed: u64,
    #[serde(default)]
    lifecycles: Vec<Definition>,
    #[serde(default)]
    systems: Vec<PlannedSystem>,
}

impl PageData {
    /// Reads a run; the second value is the blob, deflated.
    ///
    /// Only the environment and the verdict must be there. Of the rest, what cannot be
    /// read is named among the problems.
    pub(crate) fn of(run: &RunFolder) -> Result<(Self, Vec<u8>), ReportError> {
        let verdict = run.verdict()?;
        Self::gather(run, Moment::End(verdict))
    }

    /// As [`PageData::of`], of a run that goes on, without its lifecycles.
    pub(crate) fn so_far(run: &RunFolder, so_far: &SoFar) -> Result<(Self, Vec<u8>), ReportError> {
        Self::gather(run, Moment::Now(so_far))
    }

    fn gather(run: &RunFolder, moment: Moment<'_>) -> Result<(Self, Vec<u8>), ReportError> {
        let mut blob = match moment {
            Moment::End(_) => Blob::default(),
            Moment::Now(_) => Blob::short_lived(),
        };
        let environment = run.environment()?;
        let mut rest = Rest {
            run,
            so_far: moment.so_far(),
            whole: moment.is_whole(),
            problems: Vec::new(),
        };
        let plan = rest.document(RunFile::Plan, |file| run.read_json::<PlanHead>(file));
        let experiment = rest.document(RunFile::Experiment, |file| run.read_text(file));
        let declared: Vec<&str> = plan
            .iter()
            .flat_map(|plan| &plan.lifecycles)
            .map(|named| named.name.as_str())
            .collect();
        let tables = rest.tables(&declared)?;
        let cells = |table: &Table| (table.rows.len() * table.points.len()) as f64;
        let all: f64 = tables.iter().map(cells).sum();
        let room = |table| TIMES_MOST * cells(table) / all.max(1.0);
        let lifecycles: Result<Vec<Timelines>, ReportError> = tables
            .iter()
            .map(|table| Timelines::pack(table, room(table), &mut blob))
            .collect();
        let mut lifecycles = lifecycles?;
        // Logs that grow are not searched again and again.
        if let (Some(plan), Moment::End(_)) = (&plan, &moment) {
            let origin = environment.started_at_unix_ns;
            let (systems, planned) = (&plan.systems, &plan.lifecycles);
            let lines = log_lines::pack(run, origin, systems, planned, &tables, &mut blob);
            for (timelines, lines) in lifecycles.iter_mut().zip(lines) {
                timelines.lines = lines;
            }
        }
        let turns = rest.turns();
        let tries: Vec<ProbeSample> = rest.records(RunFile::Probes);
        let summaries = match &moment {
            Moment::End(verdict) => verdict.probes.clone(),
            Moment::Now(_) => summaries_so_far(&tries),
        };
        let events: Vec<Event> = rest.records(RunFile::Events);
        let at_s = moment.at_s(&events);
        let loads = rest.loads(environment.started_at_unix_ns, &mut blob)?;
        let data = Self {
            version: VERSION,
            seed: plan.as_ref().map(|plan| plan.seed.to_string()),
            about: plan
                .as_ref()
                .map(|plan| plan.about.clone())
                .unwrap_or_default(),
            name: plan.map_or_else(|| environment.run_id.clone(), |plan| plan.name),
            steps: steps(&events, at_s),
            skipped: skipped(&events),
            faults: match moment {
                Moment::End(_) => rest.faults(),
                Moment::Now(_) => faults_so_far(&events),
            },
            notes: notes(&events),
            findings: rest.findings(),
            profile: rest.profile(),
            counts: counts(&rest.records(RunFile::Entities), &mut blob),
            processes: processes(
                &rest.records(RunFile::Processes),
                &rest.records(RunFile::SystemProcesses),
                &mut blob,
            ),
            loops: loops(&turns, &mut blob),
            probes: probes(&tries, &summaries, &mut blob),
            lifecycles,
            loads,
            experiment: experiment.map(|text| blob.push_text(&text)),
            files: match moment {
                Moment::End(_) => files(run.path())?,
                Moment::Now(_) => Vec::new(),
            },
            problems: rest.problems,
            environment,
            underway: moment.so_far().map(|so_far| Underway {
                now_s: at_s,
                doing: so_far.doing.clone(),
                may: so_far.may.clone(),
                rates: so_far.rates.clone(),
            }),
            verdict: moment.verdict(),
        };
        Ok((data, blob.finish()))
    }

    /// The data of loads that are no part of a run; the second value is the blob.
    pub(crate) fn of_loads(summaries: &[Summary], environment: &Environment) -> (Self, Vec<u8>) {
        let mut blob = Blob::default();
        let mut problems = Vec::new();
        let began = summaries.iter().map(|summary| summary.began_unix_ns);
        let origin_ns = began.min().unwrap_or(environment.started_at_unix_ns);
        let mut loads = Vec::new();
        for summary in summaries {
            let (load, unread) = PageLoad::pack(summary, None, origin_ns, &mut blob);
            loads.push(load);
            problems.extend(unread.into_iter().map(|text| Problem {
                file: summary.name.clone(),
                text,
            }));
        }
        let mut targets: Vec<&str> = summaries.iter().map(|one| one.target.as_str()).collect();
        targets.dedup();
        let data = Self {
            version: VERSION,
            name: match targets.as_slice() {
                [] => "No load".into(),
                targets => targets.join(", "),
            },
            environment: environment.clone(),
            loads,
            problems,
            ..Self::default()
        };
        (data, blob.finish())
    }

    /// The same of something that goes on.
    pub(crate) fn underway(mut self, now_s: f64, doing: &str) -> Self {
        self.underway = Some(Underway {
            now_s,
            doing: doing.to_owned(),
            may: Vec::new(),
            rates: Vec::new(),
        });
        self
    }
}

/// The parts of a run that a report can do without.
struct Rest<'a> {
    run: &'a RunFolder,
    /// What the folder does not tell yet, of a run that goes on.
    so_far: Option<&'a SoFar>,
    /// Was the run made? One that was not lacks files by right.
    whole: bool,
    problems: Vec<Problem>,
}

impl<'a> Rest<'a> {
    /// What was read; if it could not be, the problem is kept.
    fn read<T, E: std::fmt::Display>(
        &mut self,
        file: RunFile<'_>,
        read: Result<T, E>,
    ) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(error) => {
                // The path of the run is where it was read, not part of it.
                let folder = format!("{}/", self.run.path().display());
                let text = error.to_string().replace(&folder, "");
                self.problem(file, text);
                None
            }
        }
    }

    fn problem(&mut self, file: RunFile<'_>, text: String) {
        let file = file.relative_path().to_string_lossy().into_owned();
        self.problems.push(Problem { file, text });
    }

    /// A file that every run has which could be started.
    fn document<T>(
        &mut self,
        file: RunFile<'static>,
        read: impl FnOnce(RunFile<'static>) -> Result<T, StoreError>,
    ) -> Option<T> {
        if self.run.file(file).exists() {
            let read = read(file);
            return self.read(file, read);
        }
        if self.whole {
            self.problem(file, "is missing".into());
        }
        None
    }

    fn faults(&mut self) -> Vec<Fault> {
        let read = self.run.faults();
        let records = self.read(RunFile::Faults, read).unwrap_or_default();
        records.into_iter().map(Fault::from).collect()
    }

    fn findings(&mut self) -> Vec<FindingRecord> {
        let read = self.run.findings();
        self.read(RunFile::Findings, read).unwrap_or_default()
    }

    fn profile(&mut self) -> Option<PageProfile> {
        let read = page_profile::read(self.run);
        self.read(RunFile::Profile, read).flatten()
    }

    fn records<R: Record>(&mut self, file: RunFile<'_>) -> Vec<R> {
        let records = match self.so_far {
            Some(_) => self.run.records_so_far::<R>(),
            None => self.run.records::<R>(),
        };
        self.read(file, records).unwrap_or_default()
    }

    /// The stored timelines of each lifecycle; none while the run goes on.
    fn tables(&mut self, declared: &[&str]) -> Result<Vec<Table>, ReportError> {
        let mut tables = Vec::new();
        if self.so_far.is_some() {
            return Ok(tables);
        }
        for name in self.lifecycle_names(declared)? {
            let file = RunFile::Lifecycle(&name);
            let read = timelines::read(&name, &self.run.file(file));
            tables.extend(self.read(file, read));
        }
        Ok(tables)
    }

    /// The turns of all loops.
    fn turns(&mut self) -> Cow<'a, [LoopTurn]> {
        match self.so_far {
            Some(so_far) => Cow::Borrowed(&so_far.turns),
            None => Cow::Owned(self.records(RunFile::Loops)),
        }
    }

    /// Lifecycles that have a file: those of the plan in its order, then others by name.
    fn lifecycle_names(&mut self, declared: &[&str]) -> Result<Vec<String>, ReportError> {
        let mut stored: BTreeSet<String> = list(&self.run.path().join("lifecycles"))?
            .into_iter()
            .filter_map(|(name, _)| name.strip_suffix(".csv").map(str::to_owned))
            .collect();
        let mut names = Vec::new();
        for name in declared {
            let file = RunFile::Lifecycle(name);
            let path = file.relative_path();
            let stem = path.file_stem().map(|stem| stem.to_string_lossy());
            if stem.is_some_and(|stem| stored.remove(&*stem)) {
                names.push((*name).to_owned());
            } else if self.whole {
                self.problem(file, "is missing, though the plan declares it".into());
            }
        }
        names.extend(stored);
        Ok(names)
    }

    /// Loads in the order in which they began.
    fn loads(&mut self, origin_ns: i64, blob: &mut Blob) -> Result<Vec<PageLoad>, ReportError> {
        let mut stored = Vec::new();
        for name in self.run.load_names()? {
            let file = RunFile::Load(&name);
            let load = self.run.load(&name);
            stored.extend(self.read(file, load).map(|load| (name.clone(), load)));
        }
        for load in self.so_far.iter().flat_map(|so_far| &so_far.loads) {
            let is = |(_, stored): &(String, StoredLoad)| {
                stored.step == load.step && stored.summary.name == load.summary.name
            };
            if !stored.iter().any(is) {
                stored.push((load.summary.name.clone(), load.clone()));
            }
        }
        stored.sort_by_key(|(_, load)| load.summary.began_unix_ns);
        let mut loads = Vec::new();
        for (name, load) in stored {
            let (load, unread) = PageLoad::pack(&load.summary, load.step, origin_ns, blob);
            loads.push(load);
            for text in unread {
                self.problem(RunFile::Load(&name), text);
            }
        }
        Ok(loads)
    }
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

/// Processes of a system that are listed.
const LISTED: usize = 30;

fn processes(records: &[ProcessSample], each: &[SystemProcess], blob: &mut Blob) -> Vec<Process> {
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
            let own = each.iter().filter(|process| process.system == *system);
            let (mut own, more): (Vec<_>, Vec<_>) = own.partition(|process| process.pid > 0);
            own.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s));
            let more = own.len().saturating_sub(LISTED) + more.len();
            own.truncate(LISTED);
            Process {
                each: own.into_iter().map(OneProcess::of).collect(),
                more: more as u64,
                system: system.clone(),
                cpu_cores: line(1e-3, |sample| sample.cpu_cores),
                rss_bytes: line(1024.0, |sample| sample.rss_bytes as f64),
                fds: line(1.0, |sample| sample.fds as f64),
                threads: line(1.0, |sample| sample.threads as f64),
            }
        })
        .collect()
}

impl OneProcess {
    fn of(process: &SystemProcess) -> Self {
        Self {
            pid: process.pid,
            command: process.command.clone(),
            from_s: process.from_s,
            to_s: process.to_s,
            cpu_s: process.cpu_s,
            rss_bytes_max: process.rss_bytes_max,
        }
    }
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
    for place in ["", "series", "lifecycles", "loads", "logs"] {
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
