//! The file with the keys.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use serde::Deserialize;

/// Longest label, in bytes.
const LABEL_BYTES: usize = 127;
/// Longest file, in bytes.
const FILE_BYTES: u64 = 1 << 20;

/// Labelled keys, one of which is active: what is written is encrypted with that one.
#[derive(Clone)]
pub struct EncryptionKeys {
    active: Arc<str>,
    keys: BTreeMap<Arc<str>, [u8; 32]>,
}

/// Why keys cannot be used. It repeats nothing of a key.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The file cannot be read.
    #[error("read the encryption keys from {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// It is not the JSON that is expected.
    #[error(
        "read the encryption keys, line {line}, column {column}: expected {{\"active_key_label\": \"LABEL\", \"encryption_keys\": {{\"LABEL\": \"PASSPHRASE\"}}}}"
    )]
    Malformed {
        /// Line of the mistake, from 1 on.
        line: usize,
        /// Column of the mistake.
        column: usize,
    },
    /// The active key is not among them.
    #[error("active_key_label is {active:?}, but encryption_keys has no such key, only: {labels}")]
    NoActive {
        /// The label that was to be active.
        active: String,
        /// Those that there are.
        labels: String,
    },
    /// A label cannot be used.
    #[error(
        "a label of an encryption key has 1 to 127 bytes and no control characters, found {0:?}"
    )]
    Label(String),
    /// A key is empty.
    #[error("the encryption key {0:?} is empty: give it a long random text")]
    Empty(String),
}

/// The parts of Diego's settings file that matter here; it may have all others.
#[derive(Deserialize)]
struct File {
    active_key_label: String,
    encryption_keys: BTreeMap<String, String>,
}

impl EncryptionKeys {
    /// The keys of a file: `{"active_key_label": "LABEL", "encryption_keys": {"LABEL": "PASSPHRASE"}}`.
    /// Diego's `bbs.json` has the same two among others.
    ///
    /// # Errors
    /// See [`KeysError`].
    pub fn read(path: &Path) -> Result<Self, KeysError> {
        let refuse = |cause| KeysError::Unreadable {
            path: path.to_owned(),
            cause,
        };
        let size = std::fs::metadata(path).map_err(refuse)?.len();
        if size > FILE_BYTES {
            return Err(refuse(std::io::Error::other("it has more than 1 MiB")));
        }
        Self::parse(&std::fs::read(path).map_err(refuse)?)
    }

    /// As [`read`](Self::read), from the file's bytes.
    ///
    /// # Errors
    /// See [`KeysError`].
    pub fn parse(json: &[u8]) -> Result<Self, KeysError> {
        // The library's words may repeat a key.
        let file: File = serde_json::from_slice(json).map_err(|error| KeysError::Malformed {
            line: error.line(),
            column: error.column(),
        })?;
        let mut keys = BTreeMap::new();
        for (label, passphrase) in &file.encryption_keys {
            if label.is_empty() || label.len() > LABEL_BYTES || label.contains(char::is_control) {
                return Err(KeysError::Label(label.clone()));
            }
            if passphrase.is_empty() {
                return Err(KeysError::Empty(label.clone()));
            }
            let mut key = [0; 32];
            key.copy_from_slice(digest(&SHA256, passphrase.as_bytes()).as_ref());
            keys.insert(Arc::from(label.as_str()), key);
        }
        let active: Arc<str> = file.active_key_label.as_str().into();
        if !keys.contains_key(&active) {
            let labels: Vec<String> = keys.keys().map(|label| format!("{label:?}")).collect();
            return Err(KeysError::NoActive {
                active: file.active_key_label,
                labels: labels.join(", "),
            });
        }
        Ok(Self { active, keys })
    }

    /// The label of the key with which is encrypted what is written.
    pub fn active(&self) -> &str {
        &self.active
    }

    /// The labels of all keys.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.keys.keys().map(|label| &**label)
    }

    pub(super) fn get(&self, label: &str) -> Option<(&Arc<str>, &[u8; 32])> {
        self.keys.get_key_value(label)
    }
}

/// Shows labels and no key.
impl std::fmt::Debug for EncryptionKeys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let labels: Vec<&str> = self.labels().collect();
        formatter
            .debug_struct("EncryptionKeys")
            .field("active", &self.active)
            .field("labels", &labels)
            .finish()
    }
}
