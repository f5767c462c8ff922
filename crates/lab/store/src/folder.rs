//! The folder itself: making, opening, and its files as wholes.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use lab_judgement::MetricValue;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{
    Appender, DOCUMENT_BYTES_MAX, Environment, FaultRecord, FindingRecord, Record, SCHEMA,
    StoreError, StoredHistogram, Verdict, read,
};

/// Highest suffix tried when an id is taken.
const SUFFIX_MAX: u32 = 999;
/// Folders inside a run.
const FOLDERS: [&str; 4] = ["series", "lifecycles", "loads", "logs"];

/// The folder of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
}

/// A file of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunFile<'a> {
    /// The experiment file, as it was given.
    Experiment,
    /// The checked plan.
    Plan,
    /// [`Environment`].
    Environment,
    /// [`crate::Event`], one a line.
    Events,
    /// A list of [`crate::FaultRecord`]; only of runs with faults.
    Faults,
    /// A list of [`crate::FindingRecord`].
    Findings,
    /// [`crate::ProfileRecord`]; only where stacks were asked for.
    Profile,
    /// Stacks of the worst seconds with how often each was sampled: `system;caller;callee 12`.
    Stacks,
    /// A list of [`MetricValue`]: what other runs of the experiment can be compared by.
    Metrics,
    /// [`crate::ProcessSample`].
    Processes,
    /// [`crate::SystemProcess`].
    SystemProcesses,
    /// [`crate::ThreadSample`].
    Threads,
    /// [`crate::LimitSample`].
    Limits,
    /// [`crate::MachineSample`].
    Machine,
    /// [`crate::DatagramSample`].
    Datagrams,
    /// [`crate::EntityCount`].
    Entities,
    /// [`crate::ProbeSample`]; only of runs with probes.
    Probes,
    /// [`crate::LoopTurn`].
    Loops,
    /// The timelines of one lifecycle, by its name.
    Lifecycle(&'a str),
    /// The result of one load, by its name in the store: see [`RunFolder::load_names`].
    Load(&'a str),
    /// A list of [`StoredHistogram`].
    Histograms,
    /// [`Verdict`]; written last, so that its presence says that the run ended.
    Verdict,
    /// Empty; its presence says that the run ended and could not be stored.
    Broken,
    /// The output of one system, by its name.
    Log(&'a str),
    /// The page.
    Report,
}

impl RunFile<'_> {
    /// Path inside the folder of the run.
    #[must_use]
    pub fn relative_path(self) -> PathBuf {
        match self {
            Self::Experiment => "experiment.toml".into(),
            Self::Plan => "plan.json".into(),
            Self::Environment => "environment.json".into(),
            Self::Events => "events.jsonl".into(),
            Self::Faults => "faults.json".into(),
            Self::Findings => "findings.json".into(),
            Self::Profile => "profile.json".into(),
            Self::Stacks => "stacks.folded".into(),
            Self::Metrics => "metrics.json".into(),
            Self::Processes => "series/processes.csv".into(),
            Self::SystemProcesses => "series/system-processes.csv".into(),
            Self::Threads => "series/threads.csv".into(),
            Self::Limits => "series/limits.csv".into(),
            Self::Machine => "series/machine.csv".into(),
            Self::Datagrams => "series/datagrams.csv".into(),
            Self::Entities => "series/entities.csv".into(),
            Self::Probes => "series/probes.csv".into(),
            Self::Loops => "series/loops.csv".into(),
            Self::Lifecycle(name) => format!("lifecycles/{}.csv", file_stem(name)).into(),
            Self::Load(name) => format!("loads/{}.json", file_stem(name)).into(),
            Self::Histograms => "histograms.json".into(),
            Self::Verdict => "verdict.json".into(),
            Self::Broken => "broken".into(),
            Self::Log(system) => format!("logs/{}.log", file_stem(system)).into(),
            Self::Report => "report.html".into(),
        }
    }
}

/// A name as part of a file's name: it can neither leave the folder nor hide.
fn file_stem(name: &str) -> String {
    let safe = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let stem: String = name
        .chars()
        .map(|c| if safe(c) { c } else { '_' })
        .collect();
    if stem.is_empty() || stem.starts_with('.') {
        format!("_{stem}")
    } else {
        stem
    }
}

impl RunFolder {
    /// The folder of a run that may go on or be broken.
    pub(crate) fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Makes the folder of a new run inside `out_dir`, which is made as well.
    ///
    /// The id is `name-YYYYMMDD-HHMMSS` in UTC, with `-2`, `-3` and so on when it is
    /// taken. The folder is claimed atomically: two runs never share one.
    ///
    /// # Errors
    ///
    /// Fails when the disk refuses and when `name` cannot be part of a folder's name.
    pub fn create(out_dir: &Path, name: &str, started_at: Timestamp) -> Result<Self, StoreError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !(1..=100).contains(&name.len()) || name.starts_with('.') || !name.chars().all(allowed) {
            return Err(StoreError::Name {
                name: name.to_owned(),
            });
        }
        fs::create_dir_all(out_dir).map_err(StoreError::io("make the folder", out_dir))?;
        let id = format!("{name}-{}", started_at.strftime("%Y%m%d-%H%M%S"));
        for suffix in 1..=SUFFIX_MAX {
            let path = match suffix {
                1 => out_dir.join(&id),
                _ => out_dir.join(format!("{id}-{suffix}")),
            };
            match fs::create_dir(&path) {
                Ok(()) => {
                    for folder in FOLDERS {
                        let inner = path.join(folder);
                        fs::create_dir(&inner)
                            .map_err(StoreError::io("make the folder", &inner))?;
                    }
                    return Ok(Self { path });
                }
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(StoreError::io("make the folder", &path)(cause)),
            }
        }
        Err(StoreError::IdsTaken {
            folder: out_dir.to_owned(),
            id,
            last: SUFFIX_MAX,
        })
    }

    /// Opens the folder of a run that has ended.
    ///
    /// # Errors
    ///
    /// Fails when `path` holds no run, when a newer version made it, and when the run
    /// has not ended.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        #[derive(serde::Deserialize)]
        struct SchemaOnly {
            schema: u64,
        }

        let run = Self::at(path);
        if !run.file(RunFile::Environment).is_file() {
            return Err(StoreError::NotARun {
                path: path.to_owned(),
            });
        }
        // Only the version is read here: a newer record need not fit today's type.
        let found = run.read_json::<SchemaOnly>(RunFile::Environment)?.schema;
        if found > u64::from(SCHEMA) {
            return Err(StoreError::Newer {
                path: path.to_owned(),
                found,
                supported: SCHEMA,
            });
        }
        if !run.file(RunFile::Verdict).is_file() {
            let path = path.to_owned();
            return Err(match run.file(RunFile::Broken).is_file() {
                true => StoreError::Broken { path },
                false => StoreError::Unfinished { path },
            });
        }
        Ok(run)
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Identity of the run: the name of its folder.
    #[must_use]
    pub fn id(&self) -> String {
        let name = self
            .path
            .canonicalize()
            .unwrap_or_else(|_| self.path.clone());
        name.file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// Full path of one of the run's files.
    #[must_use]
    pub fn file(&self, file: RunFile<'_>) -> PathBuf {
        self.path.join(file.relative_path())
    }

    /// Opens a file of records for writing; its header is written at once.
    ///
    /// # Errors
    ///
    /// Fails when the disk refuses.
    pub fn appender<R: Record>(&self) -> Result<Appender<R>, StoreError> {
        Appender::open(self)
    }

    /// Every record of one kind, in file order; none when the file is absent.
    ///
    /// # Errors
    ///
    /// Fails on a line that is not such a record, and on more than
    /// [`crate::RECORDS_MAX`].
    pub fn records<R: Record>(&self) -> Result<Vec<R>, StoreError> {
        let path = self.file(R::FILE);
        let input = match File::open(&path) {
            Ok(file) => BufReader::new(file),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(StoreError::io("read", &path)(cause)),
        };
        read::records(&path, input)
    }

    /// As [`RunFolder::records`], of a file that is being written: a last line without an end
    /// is left for later.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::records`]; also when a line that spans several was cut, which the
    /// next look mends.
    pub fn records_so_far<R: Record>(&self) -> Result<Vec<R>, StoreError> {
        let path = self.file(R::FILE);
        let mut written = match fs::read(&path) {
            Ok(written) => written,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(StoreError::io("read", &path)(cause)),
        };
        let whole = written.iter().rposition(|byte| *byte == b'\n');
        written.truncate(whole.map_or(0, |end| end + 1));
        read::records(&path, &*written)
    }

    /// Writes a file as a whole: a reader sees the old text or the new, never a part.
    ///
    /// # Errors
    ///
    /// Fails when the disk refuses; the old file then stays.
    pub fn write(&self, file: RunFile<'_>, content: &[u8]) -> Result<(), StoreError> {
        let path = self.file(file);
        let temporary = path.with_added_extension("part");
        let write = || -> io::Result<()> {
            let mut out = File::create(&temporary)?;
            out.write_all(content)?;
            out.sync_all()?;
            fs::rename(&temporary, &path)
        };
        write().map_err(|cause| {
            // The part is of no use to anyone; the first error is the one to tell.
            let _ = fs::remove_file(&temporary);
            StoreError::io("write", &path)(cause)
        })
    }

    /// Writes a value as indented JSON, as [`RunFolder::write`] does.
    ///
    /// # Errors
    ///
    /// Fails when the disk refuses and when JSON cannot hold the value.
    pub fn write_json<T: Serialize>(&self, file: RunFile<'_>, value: &T) -> Result<(), StoreError> {
        let mut text =
            serde_json::to_vec_pretty(value).map_err(|error| StoreError::Unwritable {
                path: self.file(file),
                problem: error.to_string(),
            })?;
        text.push(b'\n');
        self.write(file, &text)
    }

    /// The text of a file.
    ///
    /// # Errors
    ///
    /// Fails when it cannot be read, is not UTF-8, or is larger than
    /// [`DOCUMENT_BYTES_MAX`].
    pub fn read_text(&self, file: RunFile<'_>) -> Result<String, StoreError> {
        let path = self.file(file);
        let input = File::open(&path).map_err(StoreError::io("read", &path))?;
        let mut text = String::new();
        let limit = DOCUMENT_BYTES_MAX;
        input
            .take(limit + 1)
            .read_to_string(&mut text)
            .map_err(StoreError::io("read", &path))?;
        if text.len() as u64 > limit {
            return Err(StoreError::TooLarge {
                path,
                limit,
                unit: "bytes",
            });
        }
        Ok(text)
    }

    /// The value in a JSON file.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::read_text`], and when the text is not such a value.
    pub fn read_json<T: DeserializeOwned>(&self, file: RunFile<'_>) -> Result<T, StoreError> {
        let text = self.read_text(file)?;
        serde_json::from_str(&text).map_err(|error| {
            StoreError::malformed(&self.file(file), error.line() as u64, error.to_string())
        })
    }

    /// The faults of the run; one without any has no file of them.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is not what its format says.
    pub fn faults(&self) -> Result<Vec<FaultRecord>, StoreError> {
        self.list(RunFile::Faults)
    }

    /// What limited the run, as it was found at its end; runs of older versions have none.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is not what its format says.
    pub fn findings(&self) -> Result<Vec<FindingRecord>, StoreError> {
        self.list(RunFile::Findings)
    }

    /// A list in a JSON file; empty when there is no such file.
    fn list<T: DeserializeOwned>(&self, file: RunFile<'_>) -> Result<Vec<T>, StoreError> {
        match self.file(file).exists() {
            true => self.read_json(file),
            false => Ok(Vec::new()),
        }
    }

    /// Names of the lifecycles that have timelines, in order.
    ///
    /// # Errors
    /// When the folder cannot be listed.
    pub fn lifecycle_names(&self) -> Result<Vec<String>, StoreError> {
        let folder = self.path.join("lifecycles");
        let listing = || StoreError::io("read the folder", &folder);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(listing()(cause)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(listing())?.file_name();
            names.extend(
                name.to_string_lossy()
                    .strip_suffix(".csv")
                    .map(str::to_owned),
            );
        }
        names.sort_unstable();
        Ok(names)
    }

    /// What expectations and gates are about, as far as it was measured and can be trusted; none
    /// when the file is absent, as in runs of versions before it.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::read_json`].
    pub fn metrics(&self) -> Result<Vec<MetricValue>, StoreError> {
        match self.file(RunFile::Metrics).exists() {
            true => self.read_json(RunFile::Metrics),
            false => Ok(Vec::new()),
        }
    }

    /// Where, when and with what the run was made.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::read_json`].
    pub fn environment(&self) -> Result<Environment, StoreError> {
        self.read_json(RunFile::Environment)
    }

    /// Marks a run that has ended and whose result cannot be written, as on a full disk: an empty
    /// file mostly still can. Where it cannot either, the run looks as if it was killed.
    pub fn break_off(&self) {
        let _ = fs::File::create(self.file(RunFile::Broken));
    }

    /// What was expected and what was measured.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::read_json`].
    pub fn verdict(&self) -> Result<Verdict, StoreError> {
        self.read_json(RunFile::Verdict)
    }

    /// The stored distributions; none when the file is absent.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::read_json`].
    pub fn histograms(&self) -> Result<Vec<StoredHistogram>, StoreError> {
        self.list(RunFile::Histograms)
    }
}
