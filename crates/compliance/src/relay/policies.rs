//! The last policies of the nodes behind a relay, on the disk: they are served while the upstream
//! is away.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::spool::Folder;

/// The ending of a policy's file: its tag in the first line, then the document.
const POLICY: &str = ".policy";

/// Policies by their nodes, whose identities can be names of files.
pub(super) struct Policies {
    folder: Folder,
    tags: Mutex<HashMap<String, String>>,
}

fn name_of(node: &str) -> String {
    format!("{node}{POLICY}")
}

fn split(mut file: Bytes) -> Option<(String, Bytes)> {
    let end = memchr::memchr(b'\n', &file)?;
    let tag = file.split_to(end + 1);
    let tag = str::from_utf8(&tag[..end]).ok()?;
    Some((tag.to_owned(), file))
}

impl Policies {
    /// Those in this folder.
    pub(super) fn open(place: PathBuf) -> io::Result<Self> {
        let folder = Folder::open_alone(place)?;
        let mut tags = HashMap::new();
        for (name, _) in folder.list(POLICY)? {
            let file = folder.read(&name)?.into();
            if let (Some(node), Some((tag, _))) = (name.strip_suffix(POLICY), split(file)) {
                tags.insert(node.to_owned(), tag);
            }
        }
        let tags = Mutex::new(tags);
        Ok(Self { folder, tags })
    }

    fn tags(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.tags.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tag of a node's policy.
    pub(super) fn tag(&self, node: &str) -> Option<String> {
        self.tags().get(node).cloned()
    }

    /// A node's policy with its tag. One that cannot be read is forgotten, so that it is fetched
    /// again.
    pub(super) fn get(&self, node: &str) -> Option<(String, Bytes)> {
        self.tag(node)?;
        let file = self.folder.read(&name_of(node)).ok();
        let found = file.and_then(|file| split(file.into()));
        if found.is_none() {
            self.remove(node);
        }
        found
    }

    /// Keeps a node's policy. Without it the one before is gone too: it is no more the node's.
    pub(super) fn put(&self, node: &str, tag: &str, document: &[u8]) -> io::Result<()> {
        let put = self
            .folder
            .put(&name_of(node), &[tag.as_bytes(), b"\n", document]);
        match &put {
            Ok(()) => drop(self.tags().insert(node.to_owned(), tag.to_owned())),
            Err(_) => self.remove(node),
        }
        put
    }

    /// A node's policy is no more its.
    pub(super) fn remove(&self, node: &str) {
        if self.tags().remove(node).is_some() {
            // One that stays is not served, and removed with the next list of nodes.
            let _ = self.folder.remove(&name_of(node));
        }
    }

    /// Keeps those of these nodes only.
    pub(super) fn retain(&self, wanted: impl Fn(&str) -> bool) {
        let nodes: Vec<String> = self.tags().keys().cloned().collect();
        for node in nodes.iter().filter(|node| !wanted(node)) {
            self.remove(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_policy_of_each_node_outlives_the_process() {
        let place = tempfile::tempdir().unwrap();
        let open = || Policies::open(place.path().join("policies")).unwrap();
        let policies = open();
        assert_eq!(policies.get("a"), None);
        policies.put("a", "1", b"first").unwrap();
        policies.put("a", "2", b"second\nwith a line").unwrap();
        policies.put("b", "1", b"").unwrap();
        let policies = open();
        assert_eq!(policies.tag("a").as_deref(), Some("2"));
        let (tag, document) = policies.get("a").unwrap();
        assert_eq!((&*tag, &document[..]), ("2", &b"second\nwith a line"[..]));
        assert_eq!(policies.get("b").unwrap().1, Bytes::new());
        policies.retain(|node| node == "b");
        assert_eq!((policies.get("a"), policies.tag("a")), (None, None));
        assert!(open().get("a").is_none() && open().get("b").is_some());
        std::fs::remove_file(policies.folder.path("b.policy")).unwrap();
        assert_eq!((policies.get("b"), policies.tag("b")), (None, None));
    }
}
