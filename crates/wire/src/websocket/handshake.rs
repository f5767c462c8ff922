//! The opening handshake (RFC 6455 section 4).

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::WebSocketError;
use crate::http1::fields;

/// What section 1.3 appends to the key.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The key of a handshake: the server proves with it that it read this very handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// The key made of 16 random bytes.
    pub fn new(random: [u8; 16]) -> Self {
        Self(STANDARD.encode(random))
    }

    /// As it stands in `Sec-WebSocket-Key`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What `Sec-WebSocket-Accept` must be.
    pub fn accept(&self) -> String {
        // RFC 6455 fixes SHA-1; it proves nothing but that the server speaks WebSocket.
        STANDARD.encode(digest(
            &SHA1_FOR_LEGACY_USE_ONLY,
            (self.0.clone() + GUID).as_bytes(),
        ))
    }
}

/// The request that asks for the upgrade. `path`, `authority` and the further fields go
/// in as they are: whoever makes them sees to it that they hold no line ends.
pub fn handshake(path: &str, authority: &str, key: &Key, further: &[(&str, &str)]) -> Vec<u8> {
    let mut request = format!(
        "GET {path} HTTP/1.1\r\nHost: {authority}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: {}\r\nSec-WebSocket-Version: 13\r\n",
        key.0
    );
    for (name, value) in further {
        request.push_str(name);
        request.push_str(": ");
        request.push_str(value);
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    request.into_bytes()
}

/// Checks the head that answers a handshake, as a [`Sink`](crate::http1::Sink) gets it.
/// A subprotocol is not checked: whoever offered one knows what it may be.
///
/// # Errors
/// When the connection may not be used as a WebSocket (section 4.1, last list).
pub fn accept(key: &Key, status: u16, lines: &[u8]) -> Result<(), WebSocketError> {
    accept_extended(key, status, lines)?;
    let mut extensions =
        fields(lines).filter(|(name, _)| name.eq_ignore_ascii_case(b"sec-websocket-extensions"));
    match extensions.any(|(_, value)| !value.is_empty()) {
        true => Err(WebSocketError::Extension),
        false => Ok(()),
    }
}

/// The same where extensions may have been offered: which ones were is not known here.
///
/// # Errors
/// As [`accept`].
pub fn accept_extended(key: &Key, status: u16, lines: &[u8]) -> Result<(), WebSocketError> {
    if status != 101 {
        return Err(WebSocketError::Status(status));
    }
    let (mut upgrade, mut connection, mut accept) = (false, false, None);
    for (name, value) in fields(lines) {
        if name.eq_ignore_ascii_case(b"upgrade") {
            upgrade |= names(value, b"websocket");
        } else if name.eq_ignore_ascii_case(b"connection") {
            connection |= names(value, b"upgrade");
        } else if name.eq_ignore_ascii_case(b"sec-websocket-accept") {
            // The first one decides, and a second one is wrong.
            accept = Some(accept.is_none() && value == key.accept().as_bytes());
        }
    }
    if !upgrade || !connection {
        return Err(WebSocketError::NotUpgraded);
    }
    if accept != Some(true) {
        return Err(WebSocketError::Accept);
    }
    Ok(())
}

/// Whether a comma-separated list has a member, in any case.
fn names(list: &[u8], member: &[u8]) -> bool {
    list.split(|&byte| byte == b',')
        .any(|found| found.trim_ascii().eq_ignore_ascii_case(member))
}
