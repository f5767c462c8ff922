//! Files that were downloaded before.

use std::collections::HashMap;

/// What a server said about the version of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) etag: String,
    pub(super) last_modified: String,
}

impl Version {
    /// Can the server be asked whether there is a newer one?
    pub(super) fn has_validator(&self) -> bool {
        !self.etag.is_empty() || !self.last_modified.is_empty()
    }
}

/// Which files are kept, by their keys; the files have numbers. Those that were used least
/// recently go when there is no room.
#[derive(Debug)]
pub(super) struct Index {
    bytes_max: u64,
    bytes: u64,
    uses: u64,
    kept: HashMap<String, Kept>,
}

#[derive(Debug)]
struct Kept {
    file: u64,
    bytes: u64,
    version: Version,
    used: u64,
}

impl Index {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self {
            bytes_max,
            bytes: 0,
            uses: 0,
            kept: HashMap::new(),
        }
    }

    /// The file of a key, which counts as used now, and its version.
    pub(super) fn find(&mut self, key: &str) -> Option<(u64, Version)> {
        let kept = self.kept.get_mut(key)?;
        self.uses += 1;
        kept.used = self.uses;
        Some((kept.file, kept.version.clone()))
    }

    /// Keeps a file, and says which ones are to go. That may be the file itself, when it is
    /// larger than all that is kept may be.
    pub(super) fn keep(&mut self, key: &str, file: u64, bytes: u64, version: Version) -> Vec<u64> {
        let mut go: Vec<u64> = self.remove(key).into_iter().collect();
        if bytes > self.bytes_max {
            go.push(file);
            return go;
        }
        while self.bytes + bytes > self.bytes_max {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                break;
            };
            go.extend(self.remove(&oldest));
        }
        self.uses += 1;
        self.bytes += bytes;
        let used = self.uses;
        let kept = Kept {
            file,
            bytes,
            version,
            used,
        };
        self.kept.insert(key.to_owned(), kept);
        go
    }

    /// Forgets a key, and says which file is to go.
    pub(super) fn remove(&mut self, key: &str) -> Option<u64> {
        let kept = self.kept.remove(key)?;
        self.bytes -= kept.bytes;
        Some(kept.file)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_least_recently_used_go_first() {
        let mut index = Index::new(100);
        assert!(index.keep("a", 1, 40, Version::default()).is_empty());
        assert!(index.keep("b", 2, 40, Version::default()).is_empty());
        assert!(index.find("a").is_some());
        assert_eq!(index.keep("c", 3, 40, Version::default()), [2]);
        assert_eq!(index.keep("a", 4, 10, Version::default()), [1], "replaced");
        assert_eq!(
            index.keep("d", 5, 101, Version::default()),
            [5],
            "too large"
        );
        assert_eq!(index.find("a").map(|(file, _)| file), Some(4));
    }

    proptest! {
        #[test]
        fn files_are_on_disk_exactly_while_they_are_kept(
            steps in prop::collection::vec((0..6u8, 0..70u64, any::<bool>()), 0..80),
        ) {
            let mut index = Index::new(100);
            // What is on disk: sizes by number.
            let mut disk: BTreeMap<u64, u64> = BTreeMap::new();
            for (number, (key, bytes, keep)) in (0..).zip(steps) {
                let key = key.to_string();
                if keep {
                    disk.insert(number, bytes);
                    for file in index.keep(&key, number, bytes, Version::default()) {
                        prop_assert!(disk.remove(&file).is_some(), "{} is removed once", file);
                    }
                    prop_assert_eq!(index.find(&key).map(|(file, _)| file), Some(number));
                } else if let Some((file, _)) = index.find(&key) {
                    prop_assert!(disk.contains_key(&file));
                }
                prop_assert_eq!(disk.values().sum::<u64>(), index.bytes);
                prop_assert!(index.bytes <= 100);
                prop_assert_eq!(disk.len(), index.kept.len());
            }
        }
    }
}
