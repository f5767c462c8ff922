//! Where a history is kept besides a file: in a folder, or in a branch of a git repository. Both hold
//! the lines of a file, a file for each plan.

mod branch;
mod folder;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use lab_judgement::{Record, read_records, write_record};
use lab_store::Outcome;
use sha2::{Digest, Sha256};

use super::{Counts, HistoryFile, New, added, read};
use branch::Branch;
use folder::Folder;

/// What the names of its files end with.
const ENDING: &str = ".jsonl";
/// Most letters of a plan in the name of its file.
const NAME_LETTERS: usize = 24;

/// Where a history is kept, if not in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Store {
    Folder(PathBuf),
    /// Of the repository that the working directory is in.
    Branch(String),
}

impl FromStr for Store {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("git:") {
            Some("") => Err("after git: comes the name of a branch".into()),
            Some(branch) => Ok(Self::Branch(branch.to_owned())),
            None if text.is_empty() => Err("give a folder, or git: and a branch".into()),
            None => Ok(Self::Folder(PathBuf::from(text))),
        }
    }
}

/// A file of a store: the runs of a plan.
#[derive(Debug, Clone, PartialEq)]
struct PlanFile {
    name: String,
    text: String,
}

/// The runs of a history, those of the plan that was added to last at the end.
pub(super) fn stored(history: &HistoryFile) -> Result<Vec<Record>> {
    let files = match &history.store {
        None => return read(&history.file),
        Some(Store::Folder(folder)) => Folder(folder).read()?,
        Some(Store::Branch(branch)) => Branch(branch).read()?,
    };
    if files.is_empty() {
        bail!(
            "read {}: no history is there; add a run first",
            history.place()
        );
    }
    records(&files, &history.place())
}

/// Adds runs to a history, all of them or none.
pub(super) fn add(history: &HistoryFile, new: &New) -> Result<Outcome> {
    let place = history.place();
    let counts = match &history.store {
        None => return super::add(&history.file, new),
        Some(Store::Folder(folder)) => Folder(folder).change(|files| with(files, new, &place)),
        Some(Store::Branch(branch)) => Branch(branch).change(|files| with(files, new, &place)),
    };
    added(&place, new, counts?)
}

fn records(files: &[PlanFile], place: &str) -> Result<Vec<Record>> {
    let mut plans = Vec::new();
    for file in files {
        let found = read_records(&file.text);
        plans.push(found.with_context(|| format!("read {} of {place}", file.name))?);
    }
    // Whatever keeps the files need not keep an order of them.
    plans.sort_by_key(|runs: &Vec<Record>| runs.last().map(|run| run.started_at_unix_ns));
    Ok(plans.into_iter().flatten().collect())
}

/// The files that change when runs are added, as they are then, and how many runs that were.
fn with(files: &[PlanFile], new: &New, place: &str) -> Result<(Vec<PlanFile>, Counts)> {
    let known = records(files, place)?;
    let missing = new.missing(&known);
    let missing = missing.with_context(|| format!("add to {place}"))?;
    let mut changed: Vec<PlanFile> = Vec::new();
    for record in &missing {
        let name = file_name(&record.environment.plan_hash);
        let line = write_record(record)?;
        if let Some(file) = changed.iter_mut().find(|file| file.name == name) {
            file.text += &line;
            continue;
        }
        let before = files.iter().find(|file| file.name == name);
        let mut text = before.map_or_else(String::new, |file| file.text.clone());
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        changed.push(PlanFile {
            name,
            text: text + &line,
        });
    }
    Ok((changed, new.counts(known.len(), missing.len())))
}

/// The name of a plan's file: what can be read of it, and what tells it apart.
fn file_name(plan: &str) -> String {
    let letters = plan.chars().take(NAME_LETTERS).map(|c| match c {
        c if c.is_ascii_alphanumeric() || c == '-' || c == '_' => c,
        _ => '_',
    });
    let mut name: String = letters.collect();
    name.push('-');
    for byte in Sha256::digest(plan).iter().take(4) {
        // Writing to a string does not fail.
        let _ = write!(name, "{byte:02x}");
    }
    name + ENDING
}

#[cfg(test)]
mod tests {
    use lab_judgement::Fingerprint;

    use super::*;

    fn record(run: &str, plan: &str, started_at_unix_ns: i64) -> Record {
        let environment = Fingerprint {
            plan_hash: plan.to_owned(),
            ..Fingerprint::default()
        };
        Record::new(
            run.to_owned(),
            "c".to_owned(),
            started_at_unix_ns,
            environment,
            Vec::new(),
        )
    }

    #[test]
    fn a_store_is_a_folder_or_a_branch() {
        let read = |text: &str| text.parse::<Store>();
        assert_eq!(read("a/b"), Ok(Store::Folder("a/b".into())));
        assert_eq!(read("git:perf"), Ok(Store::Branch("perf".into())));
        assert!(read("git:").is_err() && read("").is_err());
    }

    #[test]
    fn each_plan_has_a_file_and_the_latest_is_last() {
        let new = [
            record("a", "../one", 1),
            record("b", "two", 2),
            record("c", "../one", 3),
        ];
        let given = |records: &[Record]| New {
            records: records.to_vec(),
            lines: None,
        };
        let (files, counts) = with(&[], &given(&new), "x").unwrap();
        assert_eq!((files.len(), counts.all), (2, 3));
        assert!(files[0].name.starts_with("___one-") && files[0].name.ends_with(ENDING));
        assert_eq!(files[0].text.lines().count(), 2);
        let runs = |files: &[PlanFile]| -> Vec<String> {
            let found = records(files, "x").unwrap();
            found.into_iter().map(|record| record.run).collect()
        };
        assert_eq!(runs(&files), ["b", "a", "c"]);
        let (changed, counts) = with(&files, &given(&[record("d", "two", 4)]), "x").unwrap();
        assert_eq!((changed.len(), counts.all), (1, 4));
        assert_eq!(
            runs(&[files[0].clone(), changed[0].clone()]),
            ["a", "c", "b", "d"]
        );

        // Each run once, whatever its plan.
        for again in [record("a", "two", 5), record("a", "../one", 5)] {
            let error = with(&files, &given(&[again]), "x").unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains("the run a is in it already"), "{error}");
        }
        // Lines of another history that say the same are there, and change no file.
        let lines = New {
            records: new.to_vec(),
            lines: Some((PathBuf::from("other.jsonl"), vec![1, 2, 4])),
        };
        let (changed, counts) = with(&files, &lines, "x").unwrap();
        assert_eq!((changed, counts.there), (vec![], 3));
        let twice = [record("e", "two", 5), record("e", "two", 5)];
        assert!(with(&files, &given(&twice), "x").is_err());
        // A line that has no end gets one.
        let cut = PlanFile {
            text: files[1].text.trim_end().to_owned(),
            ..files[1].clone()
        };
        let (changed, _) = with(&[cut], &given(&[record("d", "two", 4)]), "x").unwrap();
        assert_eq!(changed[0].text.lines().count(), 2);
    }

    #[test]
    fn plans_whose_names_look_alike_have_files_of_their_own() {
        assert_ne!(file_name("a/b"), file_name("a_b"));
        assert_ne!(file_name(&"a".repeat(30)), file_name(&"a".repeat(31)));
        assert_eq!(file_name("a"), file_name("a"));
    }
}
