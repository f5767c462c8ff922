//! Making a stored run again.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use lab_experiment::Source;
use lab_report::terminal::printable;
use lab_store::{MadeFrom, Outcome, RunFile, RunFolder};
use serde_json::Value;

use super::{Checked, ExperimentFile, folder_of, one_run};
use crate::ci::ResultFiles;
use crate::cli::{CheckArgs, RunArgs};
use crate::output::eprint;
use crate::ready;
use crate::recorded::plan_differences;

/// Words of a command as a shell reads them back.
fn command_line(words: &[String]) -> String {
    let plain = |word: &str| {
        let is_plain =
            |letter: char| letter.is_ascii_alphanumeric() || "_@%+=:,./-".contains(letter);
        !word.is_empty() && word.chars().all(is_plain)
    };
    let quoted = words.iter().map(|word| match plain(word) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    });
    quoted.collect::<Vec<String>>().join(" ")
}

/// Makes the run of a folder again: its plan, byte for byte, or none at all. `out` is the folder in
/// which the new run gets its own.
pub(crate) fn again(folder: &RunFolder, out: &Path, json: bool) -> Result<Outcome> {
    let environment = folder.environment()?;
    let id = folder.id();
    let Some(from) = environment.made_from else {
        bail!(
            "{id} does not say what it was made from: an older version made it, or headroom load; its command \
             was: {}",
            printable(&command_line(&environment.command))
        );
    };
    let file = ExperimentFile::again(folder, from)?;
    let Some(plan) = file.plan(&file.from.set) else {
        return Ok(Outcome::Error);
    };
    let mut made_here = plan.clone();
    for left_out in lab_runner::leave_out(&mut made_here).lines {
        eprint(format_args!("headroom: {left_out}"));
    }
    let stored: Value = folder.read_json(RunFile::Plan)?;
    let differences = plan_differences(&stored, &serde_json::to_value(&made_here)?);
    if !differences.is_empty() {
        bail!(
            "{id} cannot be made again as it was: version {} made another plan of its file than this one, {}, \
             does here: {}",
            environment.headroom_version,
            env!("CARGO_PKG_VERSION"),
            differences.join("; ")
        );
    }
    let args = RunArgs {
        check: CheckArgs {
            file: PathBuf::from(&file.from.file),
            set: file.from.set.clone(),
        },
        out: out.to_owned(),
        json,
        keep: false,
        page: false,
        page_port: 0,
        files: ResultFiles::default(),
    };
    one_run(&args, &Checked { file, plan })
}

impl ExperimentFile {
    /// The file as the run has it; what its relative paths lead to is where it was.
    fn again(folder: &RunFolder, from: MadeFrom) -> Result<Self> {
        let id = folder.id();
        let whence = Path::new(&from.file);
        let ready = match from.ready {
            true => ready::unpack(whence)?,
            false => None,
        };
        if from.ready && ready.is_none() {
            bail!(
                "{id} was made of the ready experiment {}, which this version lacks",
                from.file
            );
        }
        let base = folder_of(ready.as_ref().map_or(whence, |ready| &ready.file));
        if !base.is_dir() {
            bail!(
                "{id} was made of a file in {}, from where its relative paths start, and that folder is gone",
                base.display()
            );
        }
        Ok(Self {
            source: Source {
                name: folder.file(RunFile::Experiment).display().to_string(),
                text: folder.read_text(RunFile::Experiment)?,
            },
            folder: base,
            _ready: ready,
            from,
        })
    }
}
