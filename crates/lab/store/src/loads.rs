//! Results of loads: one file for each step and load.

use std::fs;
use std::io;

use lab_load::Summary;
use lab_load::summary::SCHEMA as LOAD_SCHEMA;
use serde::{Deserialize, Serialize};

use crate::{RunFile, RunFolder, StoreError};

/// Most loads of one run.
pub const LOADS_MAX: usize = 10_000;
/// Most bytes of a name that go into the name of a file.
const STEM_BYTES_MAX: usize = 80;

/// The result of one load, as its file has it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredLoad {
    /// The step that the load was part of; `None` for one that goes on over steps.
    pub step: Option<String>,
    /// The result.
    pub summary: Summary,
}

/// What is written: the summary with its step among its fields, so that the file is
/// also what `headroom load --json` prints.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'a str>,
    #[serde(flatten)]
    summary: &'a Summary,
}

/// What is read before the rest: a newer summary need not fit today's type.
#[derive(Deserialize)]
struct Head {
    schema: u64,
    step: Option<String>,
}

impl RunFolder {
    /// Writes the result of a load as a whole, as [`RunFolder::write`] does. A result
    /// of the same step and load is replaced.
    ///
    /// # Errors
    ///
    /// Fails when the disk refuses, when a number of the summary is not finite, and
    /// when the run has [`LOADS_MAX`] files whose names clash with this one.
    pub fn write_load(&self, summary: &Summary, step: Option<&str>) -> Result<(), StoreError> {
        let name = self.name_of_load(summary, step)?;
        let file = RunFile::Load(&name);
        let refused = |problem: String| StoreError::Unwritable {
            path: self.file(file),
            problem,
        };
        let mut text = serde_json::to_string(&Written { step, summary })
            .map_err(|error| refused(error.to_string()))?;
        // JSON has no form for numbers that are not finite: they become `null`.
        if !serde_json::from_str::<Summary>(&text).is_ok_and(|read| read == *summary) {
            return Err(refused("a number of it is not finite".into()));
        }
        text.push('\n');
        let folder = self.path().join("loads");
        // Folders of runs that an older version began have none.
        fs::create_dir_all(&folder).map_err(StoreError::io("make the folder", &folder))?;
        self.write(file, text.as_bytes())
    }

    /// Names of the stored loads, for [`RunFolder::load`], in alphabetical order.
    ///
    /// # Errors
    ///
    /// Fails when the folder cannot be listed, and on more than [`LOADS_MAX`] files.
    pub fn load_names(&self) -> Result<Vec<String>, StoreError> {
        let folder = self.path().join("loads");
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(StoreError::io("list", &folder)(cause)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(StoreError::io("list", &folder))?.file_name();
            let Some(name) = name
                .to_string_lossy()
                .strip_suffix(".json")
                .map(str::to_owned)
            else {
                continue;
            };
            if names.len() == LOADS_MAX {
                return Err(StoreError::TooLarge {
                    path: folder,
                    limit: LOADS_MAX as u64,
                    unit: "loads",
                });
            }
            names.push(name);
        }
        names.sort();
        Ok(names)
    }

    /// One stored load, by a name of [`RunFolder::load_names`].
    ///
    /// # Errors
    ///
    /// As [`RunFolder::read_json`], and when a newer version wrote it.
    pub fn load(&self, name: &str) -> Result<StoredLoad, StoreError> {
        let file = RunFile::Load(name);
        let text = self.read_text(file)?;
        let malformed = |error: serde_json::Error| {
            StoreError::malformed(&self.file(file), error.line() as u64, error.to_string())
        };
        let Head { schema, step } = serde_json::from_str(&text).map_err(malformed)?;
        if schema > u64::from(LOAD_SCHEMA) {
            return Err(StoreError::Newer {
                path: self.file(file),
                found: schema,
                supported: LOAD_SCHEMA,
            });
        }
        let mut summary: Summary = serde_json::from_str(&text).map_err(malformed)?;
        summary.read_from_older();
        Ok(StoredLoad { step, summary })
    }

    /// Every stored load, in the order in which they began.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::load_names`] and [`RunFolder::load`].
    pub fn loads(&self) -> Result<Vec<StoredLoad>, StoreError> {
        let names = self.load_names()?;
        let mut loads = names
            .iter()
            .map(|name| self.load(name))
            .collect::<Result<Vec<_>, _>>()?;
        loads.sort_by_key(|load| load.summary.began_unix_ns);
        Ok(loads)
    }

    /// A name that is free, or that the same step and load has taken.
    fn name_of_load(&self, summary: &Summary, step: Option<&str>) -> Result<String, StoreError> {
        let part = |name: &str| shortened(name).to_owned();
        let stem = match step {
            Some(step) => format!("{}.{}", part(step), part(&summary.name)),
            None => part(&summary.name),
        };
        for number in 1..=LOADS_MAX {
            let name = match number {
                1 => stem.clone(),
                _ => format!("{stem}-{number}"),
            };
            if !self.file(RunFile::Load(&name)).exists() {
                return Ok(name);
            }
            // What cannot be read is nobody's, and stays as it is.
            let taken = self.load(&name);
            if taken
                .is_ok_and(|load| load.step.as_deref() == step && load.summary.name == summary.name)
            {
                return Ok(name);
            }
        }
        Err(StoreError::TooLarge {
            path: self.path().join("loads"),
            limit: LOADS_MAX as u64,
            unit: "loads",
        })
    }
}

/// As much of a name as a file's name has room for.
fn shortened(name: &str) -> &str {
    &name[..name.floor_char_boundary(STEM_BYTES_MAX)]
}
