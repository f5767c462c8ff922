//! Frames (RFC 9113 sections 4 and 6): their heads, and those that are written here.

use crate::http2::Reason;

/// What a client says first (section 3.4).
pub(super) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of a frame before its payload.
pub(super) const HEAD: usize = 9;
/// The longest payload that either side sends without the other's word, and the longest that
/// is taken here (`SETTINGS_MAX_FRAME_SIZE` as it begins).
pub(super) const MOST_PAYLOAD: usize = 16 * 1024;
/// The largest window, and the largest number of a stream.
pub(super) const MOST: u32 = i32::MAX as u32;
/// The window that both sides begin with (section 6.9.2).
pub(super) const FIRST_WINDOW: u32 = 65_535;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 0x1;
pub(super) const ACK: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
pub(super) const PADDED: u8 = 0x8;
pub(super) const WITH_PRIORITY: u8 = 0x20;

/// The settings (section 6.5.2, and RFC 8441 section 3).
pub(super) const HEADER_TABLE_SIZE: u16 = 1;
pub(super) const ENABLE_PUSH: u16 = 2;
pub(super) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(super) const MAX_FRAME_SIZE: u16 = 5;
pub(super) const MAX_HEADER_LIST_SIZE: u16 = 6;
pub(super) const ENABLE_CONNECT_PROTOCOL: u16 = 8;

/// A frame without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Frame {
    /// The frame that begins there; `None`: its head is not whole.
    #[inline]
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let [a, b, c, kind, flags, stream @ ..] = *bytes.first_chunk::<HEAD>()?;
        Some(Self {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & MOST,
        })
    }

    pub(super) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The payload of this frame without its padding (section 6.1).
    ///
    /// # Errors
    /// When there is more padding than payload.
    pub(super) fn unpadded<'p>(&self, payload: &'p [u8]) -> Result<&'p [u8], Reason> {
        if !self.has(PADDED) {
            return Ok(payload);
        }
        let (&padding, rest) = payload.split_first().ok_or(Reason::FRAME_SIZE_ERROR)?;
        let length = rest.len().checked_sub(usize::from(padding));
        length
            .and_then(|length| rest.get(..length))
            .ok_or(Reason::PROTOCOL_ERROR)
    }
}

/// A number of four bytes at the front.
pub(super) fn number(payload: &[u8]) -> Option<u32> {
    payload
        .first_chunk()
        .map(|bytes| u32::from_be_bytes(*bytes))
}

/// The head of a frame. `length` is below 2^24.
#[inline]
pub(super) fn head(length: usize, kind: u8, flags: u8, stream: u32) -> [u8; HEAD] {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    let [d, e, f, g] = stream.to_be_bytes();
    [a, b, c, kind, flags, d, e, f, g]
}

pub(super) fn settings(settings: &[(u16, u32)], out: &mut Vec<u8>) {
    out.extend_from_slice(&head(settings.len() * 6, SETTINGS, 0, 0));
    for (setting, value) in settings {
        out.extend_from_slice(&setting.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

pub(super) fn settings_ack(out: &mut Vec<u8>) {
    out.extend_from_slice(&head(0, SETTINGS, ACK, 0));
}

pub(super) fn ping(flags: u8, payload: &[u8; 8], out: &mut Vec<u8>) {
    out.extend_from_slice(&head(8, PING, flags, 0));
    out.extend_from_slice(payload);
}

pub(super) fn window_update(stream: u32, more: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&head(4, WINDOW_UPDATE, 0, stream));
    out.extend_from_slice(&more.to_be_bytes());
}

pub(super) fn reset(stream: u32, reason: Reason, out: &mut Vec<u8>) {
    out.extend_from_slice(&head(4, RST_STREAM, 0, stream));
    out.extend_from_slice(&u32::from(reason).to_be_bytes());
}

pub(super) fn go_away(last: u32, reason: Reason, out: &mut Vec<u8>) {
    out.extend_from_slice(&head(8, GOAWAY, 0, 0));
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&u32::from(reason).to_be_bytes());
}
