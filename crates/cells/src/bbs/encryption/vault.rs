//! What encrypts and decrypts values.
//!
//! A value is stored as a byte that says how, the 16 random bytes that its key was derived with,
//! the nonce, and what AES-256-GCM makes of the value, its tag included.

use std::collections::HashMap;
use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use commit::StoreError;

use super::keys::EncryptionKeys;

/// How values are stored; others may follow.
const FORMAT: u8 = 1;
const SALT_BYTES: usize = 16;
/// Bytes before what was encrypted.
const HEAD: usize = 1 + SALT_BYTES + NONCE_LEN;
/// What keys are derived for.
const PURPOSE: &[u8] = b"headroom bbs store";
/// Values under one derived key: for as many a counted nonce is far from its end.
const VALUES_MOST: u64 = 1 << 32;
/// Derived keys that are remembered per label; each start of a process has one.
const REMEMBERED: usize = 1024;

/// The place of a value: which of a row's values it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// What proves that a key is the right one.
    Proof = 0,
    /// A task.
    Task = 1,
    /// The scheduling info of a desired LRP.
    Info = 2,
    /// The rest of a desired LRP.
    Rest = 3,
    /// An actual LRP.
    Actual = 4,
    /// The value of a presence or lock.
    Presence = 5,
}

impl Column {
    /// What is authenticated with a value.
    fn bound(self, id: i64) -> [u8; 10] {
        let mut bound = [FORMAT; 10];
        bound[1] = self as u8;
        bound[2..].copy_from_slice(&id.to_be_bytes());
        bound
    }
}

/// A value could not be encrypted.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("a value could not be encrypted: the machine has no random bytes, or it is too long")]
pub(crate) struct SealError;

impl From<SealError> for StoreError {
    fn from(error: SealError) -> Self {
        Self::Database {
            doing: "encrypt for",
            cause: error.to_string(),
        }
    }
}

/// Why a value cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("it is encrypted with the key {0:?}, which was not given")]
    Unknown(String),
    #[error("the key {0:?} does not decrypt it: it was altered, or another key had this label")]
    Wrong(String),
}

/// The keys, and those derived from them.
pub(crate) struct Vault {
    keys: EncryptionKeys,
    sealing: Option<Sealing>,
    opening: HashMap<Arc<str>, HashMap<[u8; SALT_BYTES], LessSafeKey>>,
}

/// What new values are encrypted with.
struct Sealing {
    salt: [u8; SALT_BYTES],
    key: LessSafeKey,
    used: u64,
}

impl Vault {
    pub(crate) fn new(keys: EncryptionKeys) -> Self {
        Self {
            keys,
            sealing: None,
            opening: HashMap::new(),
        }
    }

    /// The label of what is encrypted from now on.
    pub(crate) fn active(&self) -> &str {
        self.keys.active()
    }

    pub(super) fn labels(&self) -> impl Iterator<Item = &str> {
        self.keys.labels()
    }

    pub(super) fn knows(&self, label: &str) -> bool {
        self.keys.get(label).is_some()
    }

    /// Encrypts a value with the active key.
    pub(crate) fn seal(
        &mut self,
        column: Column,
        id: i64,
        value: &[u8],
    ) -> Result<Vec<u8>, SealError> {
        let usable = self.sealing.take_if(|sealing| sealing.used < VALUES_MOST);
        let sealing = match usable {
            Some(sealing) => sealing,
            None => self.derive_anew()?,
        };
        let sealing = self.sealing.insert(sealing);
        let mut nonce = [0; NONCE_LEN];
        nonce[NONCE_LEN - 8..].copy_from_slice(&sealing.used.to_be_bytes());
        // Also where it fails: it may have been used.
        sealing.used += 1;
        let mut stored = Vec::with_capacity(HEAD + value.len() + AES_256_GCM.tag_len());
        stored.push(FORMAT);
        stored.extend_from_slice(&sealing.salt);
        stored.extend_from_slice(&nonce);
        stored.extend_from_slice(value);
        let tag = sealing.key.seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(column.bound(id)),
            &mut stored[HEAD..],
        );
        stored.extend_from_slice(tag.map_err(|_| SealError)?.as_ref());
        Ok(stored)
    }

    fn derive_anew(&self) -> Result<Sealing, SealError> {
        let mut salt = [0; SALT_BYTES];
        aws_lc_rs::rand::fill(&mut salt).map_err(|_| SealError)?;
        let (_, key) = self.keys.get(self.active()).ok_or(SealError)?;
        Ok(Sealing {
            salt,
            key: derived(key, &salt).ok_or(SealError)?,
            used: 0,
        })
    }

    /// Decrypts a value that was encrypted with the key of this label.
    pub(crate) fn open(
        &mut self,
        label: &str,
        column: Column,
        id: i64,
        stored: &[u8],
    ) -> Result<Vec<u8>, OpenError> {
        let unknown = || OpenError::Unknown(label.to_owned());
        let wrong = || OpenError::Wrong(label.to_owned());
        let (label, key) = self.keys.get(label).ok_or_else(unknown)?;
        let (head, sealed) = stored.split_at_checked(HEAD).ok_or_else(wrong)?;
        let (salt, nonce) = head[1..].split_at(SALT_BYTES);
        let salt: [u8; SALT_BYTES] = salt.try_into().map_err(|_| wrong())?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| wrong())?;
        if head[0] != FORMAT {
            return Err(wrong());
        }
        let known = self.opening.entry(Arc::clone(label)).or_default();
        if known.len() >= REMEMBERED && !known.contains_key(&salt) {
            known.clear();
        }
        let key = match known.entry(salt) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                new.insert(derived(key, &salt).ok_or_else(wrong)?)
            }
        };
        let mut value = sealed.to_vec();
        let opened = key.open_in_place(nonce, Aad::from(column.bound(id)), &mut value);
        let length = opened.map_err(|_| wrong())?.len();
        value.truncate(length);
        Ok(value)
    }
}

/// Length of a derived key.
struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        AES_256_GCM.key_len()
    }
}

fn derived(key: &[u8; 32], salt: &[u8; SALT_BYTES]) -> Option<LessSafeKey> {
    let extracted = Salt::new(HKDF_SHA256, salt).extract(key);
    let mut bytes = [0; 32];
    extracted
        .expand(&[PURPOSE], Length)
        .and_then(|expanded| expanded.fill(&mut bytes))
        .ok()?;
    let key = UnboundKey::new(&AES_256_GCM, &bytes).ok()?;
    Some(LessSafeKey::new(key))
}
