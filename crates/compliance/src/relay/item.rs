//! An upload in the spool: a line of JSON that says what it is, then its content as it came.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::reports::decision::UnixMillis;
use crate::spool::Entry;

/// Bytes of the line that are read.
const HEAD_BYTES: u64 = 64 << 10;

/// What an upload is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    /// Whose it is.
    pub(super) node: String,
    /// Where it goes.
    pub(super) path: String,
    /// When it came.
    pub(super) arrived: UnixMillis,
    /// The start of a run; none for an inventory.
    pub(super) run: Option<UnixMillis>,
    /// The [digest](crate::uploads::digest_of) of a run's log.
    #[serde(default)]
    pub(super) digest: i64,
    /// The file that signs an inventory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) signature: Option<String>,
    /// Relays that it came over.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) relays: String,
    /// Bytes of the content.
    pub(super) bytes: u64,
}

/// Why an upload cannot be read from the spool.
#[derive(Debug, thiserror::Error)]
pub(super) enum ItemError {
    /// The disk cannot.
    #[error("read an upload that waits: {0}")]
    Disk(#[from] io::Error),
    /// It is damaged.
    #[error("read an upload that waits: {0}; the disk or somebody else changed it")]
    Damaged(String),
}

impl Head {
    /// The line.
    pub(super) fn line(&self) -> Vec<u8> {
        // Texts and numbers always are JSON.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// As one that waits, with the bytes that it takes on the disk.
    pub(super) fn entry(&self, bytes: u64) -> Entry {
        Entry {
            node: self.node.as_str().into(),
            run: self.run.map(|start| (start, self.digest)),
            bytes,
            arrived: self.arrived,
        }
    }

    /// What the file at this place is, of which so many bytes are there.
    pub(super) fn of_file(path: &Path, bytes: u64) -> Result<Self, ItemError> {
        let mut start = Vec::new();
        File::open(path)?.take(HEAD_BYTES).read_to_end(&mut start)?;
        let (head, line) = Self::of_line(&start)?;
        head.check(bytes.saturating_sub(line as u64))?;
        Ok(head)
    }

    /// The head of a whole file, and its content.
    pub(super) fn split(file: Bytes) -> Result<(Self, Bytes), ItemError> {
        let (head, line) = Self::of_line(&file)?;
        let content = file.slice(line..);
        head.check(content.len() as u64)?;
        Ok((head, content))
    }

    fn of_line(start: &[u8]) -> Result<(Self, usize), ItemError> {
        let damaged = |why: &str| ItemError::Damaged(why.to_owned());
        let end =
            memchr::memchr(b'\n', start).ok_or_else(|| damaged("its first line has no end"))?;
        let head = serde_json::from_slice(&start[..end])
            .map_err(|error| damaged(&format!("its first line: {error}")))?;
        Ok((head, end + 1))
    }

    fn check(&self, bytes: u64) -> Result<(), ItemError> {
        if bytes == self.bytes {
            return Ok(());
        }
        let expected = self.bytes;
        Err(ItemError::Damaged(format!(
            "it has {bytes} bytes; expected {expected}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        Head {
            node: "n".into(),
            path: "/reports/n.log.gz".into(),
            arrived: 5,
            run: Some(7),
            digest: 8,
            signature: Some("header=x\nalgorithm=y\n".into()),
            relays: "r1".into(),
            bytes: 4,
        }
    }

    #[test]
    fn what_was_written_is_read_and_damage_is_found() {
        let file = [&head().line()[..], b"a\nbc"].concat();
        let (read, content) = Head::split(file.clone().into()).unwrap();
        assert_eq!((read, &content[..]), (head(), &b"a\nbc"[..]));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("item");
        let written = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            Head::of_file(&path, bytes.len() as u64)
        };
        assert_eq!(written(&file).unwrap(), head());
        for cut in [0, 1, 20, file.len() - 1] {
            assert!(Head::split(file[..cut].to_vec().into()).is_err(), "{cut}");
            assert!(written(&file[..cut]).is_err(), "{cut}");
        }
        assert!(written(&[&file[..], b"x"].concat()).is_err());
    }
}
