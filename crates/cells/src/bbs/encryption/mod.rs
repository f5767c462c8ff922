//! Encryption of what the store keeps: labelled keys, one of them active, as Diego's BBS has them.
//!
//! What holds:
//! - **No nonce is used twice.** Each start of a process, and each 2³² values after it, draws 16
//!   random bytes, from which and from the key of the file a key of its own is derived
//!   (HKDF-SHA-256); under that one, nonces are counted. So neither a copy of the database that is
//!   put back nor a second BBS with the same file can bring one back.
//! - **A value stays where it is.** Its table, column and row number are authenticated with it
//!   (AES-256-GCM), so that none can stand in for another.
//! - **The store says which keys it needs**, by label, with a value that only the right key opens.

mod admission;
mod keys;
#[cfg(test)]
mod tests;
mod vault;

pub use admission::EncryptionError;
pub(crate) use admission::{Listed, admit};
pub use keys::{EncryptionKeys, KeysError};
pub(crate) use vault::{Column, SealError, Vault};
