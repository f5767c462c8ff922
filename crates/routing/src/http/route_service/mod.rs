//! Signatures by which a request that comes back from a route service proves where it was.
//!
//! `X-CF-Proxy-Signature` is the AES-GCM seal of a JSON document, `X-CF-Proxy-Metadata`
//! tells its nonce; both in base64 for URLs. The key comes from the shared secret by
//! PBKDF2 with SHA-256, without salt, in 100,001 rounds: as in gorouter, so that routers of
//! both kinds may stand side by side.

mod hairpin;
mod networks;
#[cfg(test)]
mod tests;

pub(crate) use self::hairpin::{HairpinHosts, is_entry};
pub(crate) use self::networks::{Networks, is_network};

use std::num::NonZeroU32;
use std::time::Duration;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::pbkdf2;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use rand::Rng;
use serde::{Deserialize, Serialize};

use super::access_log::quoted;

const ROUNDS: NonZeroU32 = NonZeroU32::new(100_001).unwrap();

/// Signs and verifies with one secret, and verifies with the one before it.
#[derive(Debug)]
pub(crate) struct Signer {
    key: LessSafeKey,
    previous: Option<LessSafeKey>,
}

/// Why a signature is not valid; the texts are those of gorouter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SignatureError {
    /// There is no `X-CF-Proxy-Metadata`.
    #[error("No metadata found")]
    NoMetadata,
    /// Not base64; the first byte that is wrong.
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
    /// Not the document that it should be.
    #[error("{0}")]
    Json(String),
    /// The nonce has another length than 12 bytes.
    #[error("incorrect nonce length")]
    Nonce,
    /// Sealed with another key, or changed.
    #[error("cipher: message authentication failed")]
    Seal,
    /// Older than the settings allow.
    #[error("route service request expired")]
    Expired,
}

#[derive(Serialize, Deserialize)]
struct Contents {
    #[serde(default)]
    forwarded_url: String,
    /// RFC 3339, nanoseconds.
    requested_time: String,
}

#[derive(Serialize, Deserialize)]
struct Metadata {
    #[serde(default)]
    nonce: String,
}

impl Signer {
    /// A signer; `None` when there is no secret. Costs some ten milliseconds.
    pub(crate) fn new(secret: &str, previous: &str) -> Option<Self> {
        Some(Self {
            key: key(secret)?,
            previous: key(previous),
        })
    }

    /// Signature and metadata for a URL, made at `wall` (nanoseconds since 1970). `None`
    /// when that is no time.
    pub(crate) fn sign(
        &self,
        url: &[u8],
        wall: u64,
        random: &mut impl Rng,
    ) -> Option<(String, String)> {
        let contents = Contents {
            // As it is: it is taken apart again when the request comes back.
            forwarded_url: String::from_utf8_lossy(url).into_owned(),
            requested_time: jiff::Timestamp::from_nanosecond(i128::from(wall))
                .ok()?
                .to_string(),
        };
        let mut sealed = serde_json::to_vec(&contents).ok()?;
        let mut nonce = [0; 12];
        random.fill_bytes(&mut nonce);
        self.key
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::empty(),
                &mut sealed,
            )
            .ok()?;
        let metadata = Metadata {
            nonce: base64::engine::general_purpose::STANDARD.encode(nonce),
        };
        let metadata = serde_json::to_vec(&metadata).ok()?;
        Some((URL_SAFE.encode(sealed), URL_SAFE.encode(metadata)))
    }

    /// The URL that was signed.
    ///
    /// # Errors
    /// When the signature is not of this secret or the previous one, or older than `timeout`
    /// at `wall` (nanoseconds since 1970).
    pub(crate) fn verify(
        &self,
        signature: &[u8],
        metadata: &[u8],
        wall: u64,
        timeout: Duration,
    ) -> Result<String, SignatureError> {
        let opened = open(&self.key, signature, metadata);
        let contents = match (opened, &self.previous) {
            (Err(_), Some(previous)) => open(previous, signature, metadata),
            (opened, _) => opened,
        }?;
        let requested: jiff::Timestamp = contents.requested_time.parse().map_err(|_| {
            let found = &contents.requested_time;
            SignatureError::Json(format!("parsing time {found:?} as RFC 3339"))
        })?;
        let age = i128::from(wall) - requested.as_nanosecond();
        if age > timeout.as_nanos() as i128 {
            return Err(SignatureError::Expired);
        }
        Ok(contents.forwarded_url)
    }
}

fn key(secret: &str) -> Option<LessSafeKey> {
    if secret.is_empty() {
        return None;
    }
    let mut key = [0; 16];
    let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
    pbkdf2::derive(algorithm, ROUNDS, &[], secret.as_bytes(), &mut key);
    UnboundKey::new(&AES_128_GCM, &key)
        .ok()
        .map(LessSafeKey::new)
}

fn open(key: &LessSafeKey, signature: &[u8], metadata: &[u8]) -> Result<Contents, SignatureError> {
    if metadata.is_empty() {
        return Err(SignatureError::NoMetadata);
    }
    let metadata: Metadata = json(&decode(metadata)?)?;
    let nonce = base64::engine::general_purpose::STANDARD
        .decode(&metadata.nonce)
        .map_err(|_| SignatureError::Base64(0))?;
    let mut sealed = decode(signature)?;
    let nonce: [u8; 12] = nonce.try_into().map_err(|_| SignatureError::Nonce)?;
    let nonce = Nonce::assume_unique_for_key(nonce);
    let opened = key
        .open_in_place(nonce, Aad::empty(), &mut sealed)
        .map_err(|_| SignatureError::Seal)?;
    json(opened)
}

fn json<'d, T: Deserialize<'d>>(document: &'d [u8]) -> Result<T, SignatureError> {
    serde_json::from_slice(document).map_err(|error| {
        SignatureError::Json(match wrong_beginning(document) {
            _ if error.is_eof() => "unexpected end of JSON input".to_owned(),
            Some(byte) => format!("invalid character '{byte}' looking for beginning of value"),
            None => error.to_string(),
        })
    })
}

/// The first byte of what does not even begin as JSON, as Go writes it.
fn wrong_beginning(document: &[u8]) -> Option<String> {
    let mut bytes = document.iter().copied();
    let first = bytes.find(|byte| !b" \t\r\n".contains(byte))?;
    match first {
        b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => None,
        b'\'' => Some(r"\'".to_owned()),
        first => {
            let mut text = Vec::new();
            let letter = char::from(first).to_string();
            quoted(letter.as_bytes(), &mut text);
            Some(String::from_utf8_lossy(&text).into_owned())
        }
    }
}

/// Decodes; an error says which byte is wrong as Go's decoder does.
fn decode(text: &[u8]) -> Result<Vec<u8>, SignatureError> {
    URL_SAFE.decode(text).map_err(|_| {
        let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
        let digits = &text[..text.len() - padding.min(2)];
        let known = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let wrong = digits.iter().position(|byte| !known(byte));
        // What is missing at the end is charged to where its group of four begins.
        SignatureError::Base64(wrong.unwrap_or(digits.len() / 4 * 4))
    })
}
