//! What the name of an uploaded file says of its run.

use serde::Serialize;
use thiserror::Error;

use super::moment::Moment;

/// Bytes of a file's name that are read.
const NAME_BYTES: usize = 512;

/// Which node ran, and when its run started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunInfo {
    /// The node's identifier: a UUID or `root`.
    pub node_id: String,
    /// The start of the run.
    pub timestamp: Moment,
}

/// How the content of an uploaded file is packed, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    Plain,
    /// `.gz`
    Gzip,
    /// `.zip`
    Zip,
}

/// A file's name is not that of a run log.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error(
    "reading the name of an uploaded report: {found:?} has {problem}; expected \
     NODE_DATE.log or DATE@NODE.log, then nothing, .gz or .zip"
)]
pub struct RunInfoError {
    found: String,
    problem: &'static str,
}

impl RunInfo {
    /// Reads `DATE@NODE.log` (agents before 8.1) and `NODE_DATE.log`, each also with `.gz` or
    /// `.zip`. The date is RFC 3339; its colons may be underscores.
    ///
    /// # Errors
    /// Another form, a date that does not exist, a name of more than 512 bytes.
    pub fn from_file_name(name: &str) -> Result<(Self, Packing), RunInfoError> {
        let error = |problem| RunInfoError {
            found: name.chars().take(NAME_BYTES).collect(),
            problem,
        };
        if name.len() > NAME_BYTES {
            return Err(error("too many bytes"));
        }
        let (stem, packing) = if let Some(stem) = name.strip_suffix(".log") {
            (stem, Packing::Plain)
        } else if let Some(stem) = name.strip_suffix(".log.gz") {
            (stem, Packing::Gzip)
        } else if let Some(stem) = name.strip_suffix(".log.zip") {
            (stem, Packing::Zip)
        } else {
            return Err(error("an unknown ending"));
        };
        let (node, date) = match stem.split_once('@') {
            Some((date, node)) => (node, date),
            None => stem.split_once('_').ok_or_else(|| error("no date"))?,
        };
        if node.is_empty() || node.contains(['@', '.', '/']) {
            return Err(error("no identifier of a node"));
        }
        let timestamp = Moment::from_rfc3339(&date.replace('_', ":"))
            .ok_or_else(|| error("no date of RFC 3339"))?;
        let node_id = node.to_owned();
        Ok((Self { node_id, timestamp }, packing))
    }

    /// The name that agents since 8.1 give the file of a run, with colons.
    pub fn file_name(&self) -> String {
        format!("{}_{}.log", self.node_id, self.timestamp)
    }
}

#[cfg(test)]
mod tests {
    use super::{Packing, RunInfo};

    #[test]
    fn both_orders_and_all_endings_are_read() {
        for (name, packing) in [
            ("2018-08-24T15:55:01+00:00@root.log", Packing::Plain),
            ("2018-08-24T15_55_01+00_00@root.log.gz", Packing::Gzip),
            ("root_2018-08-24T15:55:01+00:00.log", Packing::Plain),
            ("root_2018-08-24T15_55_01+00_00.log.zip", Packing::Zip),
        ] {
            let (info, found) = RunInfo::from_file_name(name).unwrap();
            assert_eq!(found, packing, "{name}");
            assert_eq!(info.node_id, "root");
            assert_eq!(info.timestamp.to_string(), "2018-08-24T15:55:01+00:00");
            assert_eq!(RunInfo::from_file_name(&info.file_name()).unwrap().0, info);
        }
    }

    #[test]
    fn other_names_are_refused() {
        let long = format!("{}_2018-08-24T15:55:01Z.log", "n".repeat(600));
        for name in [
            "",
            ".log",
            "root.log",
            "@root.log",
            "2018-08-24T15:55:01+00:00@.log",
            "_2018-08-24T15:55:01+00:00.log",
            "2018-08-24@root.log",
            "2018-08-24T15:55:01+00:00@root.txt",
            "../2018_2018-08-24T15:55:01+00:00.log",
            &long,
        ] {
            let error = RunInfo::from_file_name(name).unwrap_err().to_string();
            assert!(error.contains("expected"), "{error}");
        }
    }
}
