//! May a store be used with these keys, and what is to be done to it first?

use super::vault::{Column, SealError, Vault};

/// What a store says of the values in it: some may be under the key of this label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Empty: some may not be encrypted.
    pub(crate) label: String,
    /// What only that key opens; of values that are not encrypted, nothing.
    pub(crate) proof: Vec<u8>,
}

/// What is to be done with a store that may be used.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Admitted {
    /// What it is to say from now on beside what it says already.
    pub(crate) new: Vec<Listed>,
    /// Values may be under another key than the active one, or under none.
    pub(crate) reencrypt: bool,
}

/// Why a store cannot be used with the keys that there are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncryptionError {
    /// There are no keys.
    #[error(
        "the store is encrypted with the key {0}: start with --encryption-keys and a file that has it"
    )]
    NoKeys(String),
    /// A key is missing.
    #[error(
        "the store has values that are encrypted with the key {missing}, and --encryption-keys has only {given}: add the missing key to the file; it may go once the log says reencryption-done"
    )]
    Missing {
        /// Labels of keys that are missing.
        missing: String,
        /// Labels of those that there are.
        given: String,
    },
    /// A key is another one than that of before.
    #[error(
        "the key {0:?} of --encryption-keys is not the one that the store was encrypted with under this label: give that one, and a new key under a new label"
    )]
    Other(String),
    /// The store could not be told of the active key.
    #[error("encrypt for the store: the system gave no random bytes")]
    NoProof,
}

impl From<SealError> for EncryptionError {
    fn from(_: SealError) -> Self {
        Self::NoProof
    }
}

/// What becomes of a store that says this of itself.
pub(crate) fn admit(
    vault: Option<&mut Vault>,
    listed: &[Listed],
) -> Result<Admitted, EncryptionError> {
    let encrypted = || listed.iter().filter(|listed| !listed.label.is_empty());
    let Some(vault) = vault else {
        return match quoted(encrypted().map(|listed| &*listed.label)) {
            labels if labels.is_empty() => Ok(Admitted::default()),
            labels => Err(EncryptionError::NoKeys(labels)),
        };
    };
    let missing = encrypted().map(|listed| &*listed.label);
    let missing = quoted(missing.filter(|label| !vault.knows(label)));
    if !missing.is_empty() {
        return Err(EncryptionError::Missing {
            missing,
            given: quoted(vault.labels()),
        });
    }
    for listed in encrypted() {
        let opened = vault.open(&listed.label, Column::Proof, 0, &listed.proof);
        opened.map_err(|_| EncryptionError::Other(listed.label.clone()))?;
    }
    let mut new = Vec::new();
    if listed.is_empty() {
        // Keys are given for the first time. There may be values from before, and their traces.
        new.push(Listed {
            label: String::new(),
            proof: Vec::new(),
        });
    }
    let is_active = |listed: &Listed| listed.label == vault.active();
    let reencrypt = new.iter().chain(listed).any(|listed| !is_active(listed));
    if !listed.iter().any(is_active) {
        new.push(Listed {
            label: vault.active().to_owned(),
            proof: vault.seal(Column::Proof, 0, b"")?,
        });
    }
    Ok(Admitted { new, reencrypt })
}

fn quoted<'a>(labels: impl Iterator<Item = &'a str>) -> String {
    let labels: Vec<String> = labels.map(|label| format!("{label:?}")).collect();
    labels.join(", ")
}
