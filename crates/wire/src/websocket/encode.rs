//! Frames from the client, which are always masked (RFC 6455 section 5).

use super::MOST_CONTROL_BYTES;

/// A frame to be sent. Each message is one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A text message.
    Text(&'a str),
    /// A binary message.
    Binary(&'a [u8]),
    /// The end, with a code and a reason of at most 123 bytes; what is longer is cut at
    /// a character.
    Close(u16, &'a str),
    /// A question whether the peer is there, of at most 125 bytes; what is longer is cut.
    Ping(&'a [u8]),
    /// The answer to a ping: the same bytes.
    Pong(&'a [u8]),
}

/// Appends a frame to `out`. `mask` has to be new and unpredictable for each frame
/// (section 5.3).
pub fn encode(frame: Frame<'_>, mask: [u8; 4], out: &mut Vec<u8>) {
    match frame {
        Frame::Text(text) => masked(0x1, &[text.as_bytes()], mask, out),
        Frame::Binary(bytes) => masked(0x2, &[bytes], mask, out),
        Frame::Close(code, reason) => {
            let reason = &reason[..reason.floor_char_boundary(MOST_CONTROL_BYTES - 2)];
            masked(0x8, &[&code.to_be_bytes(), reason.as_bytes()], mask, out);
        }
        Frame::Ping(bytes) => masked(0x9, &[control(bytes)], mask, out),
        Frame::Pong(bytes) => masked(0xA, &[control(bytes)], mask, out),
    }
}

fn control(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(MOST_CONTROL_BYTES)]
}

fn masked(opcode: u8, payload: &[&[u8]], mask: [u8; 4], out: &mut Vec<u8>) {
    const FINAL: u8 = 0x80;
    const MASKED: u8 = 0x80;
    let length: usize = payload.iter().map(|part| part.len()).sum();
    out.reserve(14 + length);
    out.push(FINAL | opcode);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short @ 0..=125), _) => out.push(MASKED | short),
        (_, Ok(medium)) => {
            out.push(MASKED | 126);
            out.extend_from_slice(&medium.to_be_bytes());
        }
        _ => {
            out.push(MASKED | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&mask);
    let start = out.len();
    for part in payload {
        out.extend_from_slice(part);
    }
    // Whole masks at a time, which the compiler turns into wide instructions.
    let (whole, rest) = out[start..].as_chunks_mut::<4>();
    for chunk in whole {
        *chunk = (u32::from_ne_bytes(*chunk) ^ u32::from_ne_bytes(mask)).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask) {
        *byte ^= mask;
    }
}
