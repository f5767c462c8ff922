//! Hashes of content: SHA-256 over parts that cannot run into each other.

use aws_lc_rs::digest::{Context, SHA256};

/// A hash of content.
pub type Digest = [u8; 32];

/// Hashes parts one after the other.
pub(super) struct Digester(Context);

impl Digester {
    /// For content of this kind: equal parts of different kinds have different hashes.
    pub(super) fn new(kind: &str) -> Self {
        let mut digester = Self(Context::new(&SHA256));
        digester.text(kind);
        digester
    }

    pub(super) fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    /// A text with its length, so that it ends where it ends.
    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    pub(super) fn optional(&mut self, text: Option<&str>) {
        self.number(u64::from(text.is_some()));
        self.text(text.unwrap_or_default());
    }

    /// Bytes without their length: only what comes last.
    pub(super) fn rest(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn digest(&mut self, digest: &Digest) {
        self.0.update(digest);
    }

    pub(super) fn finish(self) -> Digest {
        // SHA-256 has 32 bytes.
        let digest = self.0.finish();
        digest.as_ref().first_chunk().copied().unwrap_or_default()
    }
}
