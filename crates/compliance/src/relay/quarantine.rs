//! Uploads that are refused: kept aside for people to look at, the newest of them.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use crate::spool::Folder;

/// Uploads that are kept, and their bytes; the oldest make room.
const FILES: usize = 1_000;
const BYTES: u64 = 64 << 20;

/// A folder of refused uploads: each a line of JSON with its name and why, then its content.
pub(super) struct Quarantine {
    folder: Folder,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// From the oldest: numbers and bytes.
    files: VecDeque<(u64, u64)>,
    bytes: u64,
    next: u64,
}

fn name_of(number: u64) -> String {
    format!("{number:020}.refused")
}

impl Quarantine {
    pub(super) fn open(place: PathBuf) -> io::Result<Self> {
        let folder = Folder::open_alone(place)?;
        let mut kept = Kept::default();
        for (name, bytes) in folder.list(".refused")? {
            if let Some(number) = name
                .split('.')
                .next()
                .and_then(|number| number.parse().ok())
            {
                kept.files.push_back((number, bytes));
                kept.bytes += bytes;
                kept.next = kept.next.max(number + 1);
            }
        }
        let kept = Mutex::new(kept);
        Ok(Self { folder, kept })
    }

    /// Keeps an upload aside.
    pub(super) fn add(&self, name: &str, why: &str, content: &[u8]) -> io::Result<()> {
        let about = json!({
            "at": jiff::Timestamp::now().to_string(),
            "name": name.chars().take(256).collect::<String>(),
            "why": why,
        });
        let line = format!("{about}\n");
        let bytes = (line.len() + content.len()) as u64;
        // One at a time: they are few, and each is on the disk before the oldest goes.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let number = kept.next;
        self.folder
            .put(&name_of(number), &[line.as_bytes(), content])?;
        kept.next += 1;
        kept.files.push_back((number, bytes));
        kept.bytes += bytes;
        while kept.files.len() > FILES || (kept.bytes > BYTES && kept.files.len() > 1) {
            let Some((oldest, bytes)) = kept.files.pop_front() else {
                break;
            };
            kept.bytes -= bytes;
            // One that stays is found at the next start.
            let _ = self.folder.remove(&name_of(oldest));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_within_bounds() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("refused");
        let quarantine = Quarantine::open(path.clone()).unwrap();
        quarantine.add("first", "no", b"content").unwrap();
        let first = std::fs::read_to_string(path.join(name_of(0))).unwrap();
        let (about, content) = first.split_once('\n').unwrap();
        let about: serde_json::Value = serde_json::from_str(about).unwrap();
        assert_eq!(
            (&about["name"], &about["why"]),
            (&json!("first"), &json!("no"))
        );
        assert_eq!(content, "content");
        let quarantine = Quarantine::open(path.clone()).unwrap();
        let large = vec![0; 30 << 20];
        for _ in 0..3 {
            quarantine.add("large", "no", &large).unwrap();
        }
        let files = std::fs::read_dir(&path).unwrap();
        let bytes: u64 = files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum();
        assert!((60 << 20..=BYTES).contains(&bytes), "{bytes}");
        assert!(!path.join(name_of(0)).exists() && path.join(name_of(3)).exists());
    }
}
