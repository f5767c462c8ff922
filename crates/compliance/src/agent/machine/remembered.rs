//! What runs of the agent remember for later ones: a file in its folder.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use crate::agent::disk::Disk;
use crate::agent::system::SystemError;
use crate::trust::write_secret;

/// Texts that are remembered.
const REMEMBERED: usize = 10_000;

impl Disk {
    /// Where the agent keeps what it remembers.
    fn memory(&self, key: &str) -> Result<PathBuf, SystemError> {
        let folder = self.site.folder.as_ref();
        let folder = folder.ok_or_else(|| {
            SystemError::new("remembering", key, "this agent has no folder to keep it in")
        })?;
        Ok(folder.join("remembered.json"))
    }

    pub(super) fn all_remembered(
        &self,
        key: &str,
    ) -> Result<BTreeMap<String, String>, SystemError> {
        let failed = |problem: String| SystemError::new("remembering", key, problem);
        match fs::read(self.memory(key)?) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(failed(error.to_string())),
            Ok(text) => serde_json::from_slice(&text).map_err(|error| {
                failed(format!(
                    "{error}; remove remembered.json from the agent's folder to begin anew"
                ))
            }),
        }
    }

    pub(super) fn keep(&self, key: &str, text: &str) -> Result<(), SystemError> {
        let failed = |problem: String| SystemError::new("remembering", key, problem);
        let mut all = self.all_remembered(key)?;
        if all.len() >= REMEMBERED && !all.contains_key(key) {
            return Err(failed(format!(
                "{REMEMBERED} texts are remembered already; remove remembered.json from the \
                 agent's folder"
            )));
        }
        all.insert(key.to_owned(), text.to_owned());
        let json = serde_json::to_vec(&all).map_err(|error| failed(error.to_string()))?;
        write_secret(&self.memory(key)?, &json).map_err(|error| failed(error.to_string()))
    }
}
