//! Malformed heads, found before the codec reads them.
//!
//! A head with a field that is none (a name in upper case, a control sign in a value, an
//! unknown pseudo-header field) is an error of its stream (RFC 9113 section 8.1.1). The codec
//! gives up such a block in the middle, and with it the table that later ones refer to, so that
//! it has to end the connection. Here every block is read before, and one of that sort replaced
//! by one that is malformed in another way, which the codec reads to the end and answers with a
//! reset of the stream. A head that comes in several frames is handed on in one, if it fits, for
//! the codec gives up also what is malformed in other ways at the end of a frame. All else
//! passes as it is: what is no HTTP/2, broken compression among it, is for the codec to judge.
//! Pure.

mod block;
mod huffman;
mod table;
#[cfg(test)]
mod tests;

use std::ops::Range;

use block::Blocks;

/// Bytes of frames that are kept of one head until it is whole. Heads are read no more behind a
/// longer one: from there on the codec alone judges.
const MOST_KEPT: usize = 64 * 1024;
/// The same for frames of `CONTINUATION`.
const MOST_CONTINUATIONS: usize = 16;
/// The longest payload that a peer may send (`SETTINGS_MAX_FRAME_SIZE` as it is without a word).
const MOST_PAYLOAD: usize = 16 * 1024;

/// What a client says first (RFC 9113 section 3.4).
const PREFACE_BYTES: usize = 24;
const FRAME_HEAD: usize = 9;

const HEADERS: u8 = 1;
const PUSH_PROMISE: u8 = 5;
const CONTINUATION: u8 = 9;

const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;
/// Bytes of a stream's priority.
const PRIORITY_BYTES: usize = 5;

/// What cannot be read at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unreadable;

/// Everything that a peer sends on one connection, on its way to the codec.
#[derive(Debug, Default)]
pub(super) struct Heads {
    blocks: Blocks,
    /// Bytes to come that pass unread.
    unread: usize,
    /// A frame's head or a message's that is not whole.
    kept: Vec<u8>,
    /// What goes to the codec before anything that comes.
    ready: Vec<u8>,
    taken: usize,
    /// What replaces the frames of a head.
    replacement: Vec<u8>,
    /// Nothing is read any more.
    blind: bool,
}

/// Where reading stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// All passes.
    End,
    /// There is more to come of what begins there.
    Partial,
    /// What begins there is replaced by other bytes, up to this place.
    Replaced(usize),
}

/// A head in its frames.
struct Frames {
    /// Bytes of all of them.
    length: usize,
    /// Where the fragment of its block is, and the further ones of `CONTINUATION`.
    fragment: Range<usize>,
    further: Vec<Range<usize>>,
    flags: u8,
    stream: [u8; 4],
    priority: Option<[u8; PRIORITY_BYTES]>,
}

impl Heads {
    /// Those that a server receives.
    pub(super) fn of_client() -> Self {
        Self {
            unread: PREFACE_BYTES,
            ..Self::default()
        }
    }

    /// Takes what was received, and says how many of these bytes go to the codec now. The others
    /// are kept. Behind them goes what is [`ready`](Self::give), and before the next bytes.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> usize {
        if self.blind {
            return bytes.len();
        }
        if !self.kept.is_empty() {
            self.kept.extend_from_slice(bytes);
            self.settle();
            return 0;
        }
        let (passed, stop) = self.read(bytes);
        let behind = match stop {
            Stop::End => return bytes.len(),
            Stop::Partial => passed,
            Stop::Replaced(until) => {
                self.ready.append(&mut self.replacement);
                until
            }
        };
        self.kept
            .extend_from_slice(bytes.get(behind..).unwrap_or_default());
        if stop != Stop::Partial {
            self.settle();
        }
        passed
    }

    /// Gives what goes to the codec before anything that comes, and says how many bytes.
    pub(super) fn give(&mut self, into: &mut [u8]) -> usize {
        let ready = self.ready.get(self.taken..).unwrap_or_default();
        let given = ready.len().min(into.len());
        into[..given].copy_from_slice(&ready[..given]);
        self.taken += given;
        if self.taken == self.ready.len() {
            // A connection at rest holds no memory for it.
            (self.ready, self.taken) = (Vec::new(), 0);
        }
        given
    }

    /// Nothing comes any more: what is kept goes to the codec as it is.
    pub(super) fn end(&mut self) {
        self.ready.append(&mut self.kept);
        self.blind = true;
    }

    /// Makes ready what is whole of what is kept.
    fn settle(&mut self) {
        let mut kept = std::mem::take(&mut self.kept);
        let mut at = 0;
        loop {
            let rest = kept.get(at..).unwrap_or_default();
            let (passed, stop) = self.read(rest);
            self.ready
                .extend_from_slice(rest.get(..passed).unwrap_or_default());
            match stop {
                Stop::End => return,
                Stop::Partial => {
                    kept.drain(..at + passed);
                    self.kept = kept;
                    return;
                }
                Stop::Replaced(until) => {
                    self.ready.append(&mut self.replacement);
                    at += until;
                }
            }
        }
    }

    /// Reads frames, and says how many bytes pass as they are.
    fn read(&mut self, bytes: &[u8]) -> (usize, Stop) {
        let mut at = 0;
        loop {
            let left = bytes.len() - at;
            if self.unread >= left {
                self.unread -= left;
                return (bytes.len(), Stop::End);
            }
            at += std::mem::take(&mut self.unread);
            let rest = bytes.get(at..).unwrap_or_default();
            let Some((payload, kind)) = frame_head(rest) else {
                return (at, Stop::Partial);
            };
            if kind != HEADERS && kind != PUSH_PROMISE && kind != CONTINUATION {
                self.unread = FRAME_HEAD + payload;
                continue;
            }
            match self.head(rest) {
                Ok(None) => return (at, Stop::Partial),
                Ok(Some(length)) if self.replacement.is_empty() => at += length,
                Ok(Some(length)) => return (at, Stop::Replaced(at + length)),
                Err(Unreadable) => {
                    self.blind = true;
                    return (bytes.len(), Stop::End);
                }
            }
        }
    }

    /// Reads the head that begins there, makes its replacement if it needs one, and says how
    /// many bytes it has. `None`: it is not whole.
    fn head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Unreadable> {
        let Some(frames) = frames(bytes)? else {
            return Ok(None);
        };
        let fragment = bytes.get(frames.fragment).ok_or(Unreadable)?;
        let mut together = Vec::new();
        if !frames.further.is_empty() {
            together.extend_from_slice(fragment);
            for further in frames.further {
                together.extend_from_slice(bytes.get(further).ok_or(Unreadable)?);
            }
        }
        let block = match together.is_empty() {
            true => fragment,
            false => &together,
        };
        let payload = |block: &[u8]| block.len() + frames.priority.map_or(0, |it| it.len());
        let block = match self.blocks.read(block)? {
            Some(block) if payload(block) > MOST_PAYLOAD => return Err(Unreadable),
            Some(block) => block,
            // What is malformed in other ways the codec resets the stream for in one frame only.
            None if !together.is_empty() && payload(block) <= MOST_PAYLOAD => block,
            None => return Ok(Some(frames.length)),
        };
        let length = (payload(block) as u32).to_be_bytes();
        let flags = (frames.flags | END_HEADERS) & !PADDED;
        self.replacement.extend_from_slice(&length[1..]);
        self.replacement.extend_from_slice(&[HEADERS, flags]);
        self.replacement.extend_from_slice(&frames.stream);
        self.replacement.extend(frames.priority.iter().flatten());
        self.replacement.extend_from_slice(block);
        Ok(Some(frames.length))
    }
}

/// Bytes of the payload, and the kind, of the frame that begins there.
fn frame_head(bytes: &[u8]) -> Option<(usize, u8)> {
    let [a, b, c, kind, ..] = *bytes.first_chunk::<FRAME_HEAD>()?;
    Some((u32::from_be_bytes([0, a, b, c]) as usize, kind))
}

/// The head that begins there; `None`: it is not whole.
fn frames(bytes: &[u8]) -> Result<Option<Frames>, Unreadable> {
    let mut head: Option<Frames> = None;
    let mut at = 0;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(&[_, _, _, kind, flags, stream @ ..]) = rest.first_chunk::<FRAME_HEAD>() else {
            return Ok(None);
        };
        let payload = frame_head(rest).map_or(0, |(payload, _)| payload);
        let expected = match &head {
            None => kind == HEADERS,
            Some(head) => {
                kind == CONTINUATION
                    && stream == head.stream
                    && head.further.len() < MOST_CONTINUATIONS
            }
        };
        let begin = at + FRAME_HEAD;
        let end = begin + payload;
        if !expected || payload > MOST_PAYLOAD || end > MOST_KEPT {
            return Err(Unreadable);
        }
        if bytes.len() < end {
            return Ok(None);
        }
        match &mut head {
            None => {
                let (fragment, priority) = trimmed(flags, begin..end, bytes)?;
                head = Some(Frames {
                    length: end,
                    fragment,
                    further: Vec::new(),
                    flags,
                    stream,
                    priority,
                });
            }
            Some(head) => {
                head.length = end;
                head.further.push(begin..end);
            }
        }
        if flags & END_HEADERS != 0 {
            break;
        }
        at = end;
    }
    Ok(head)
}

/// What a frame of `HEADERS` has besides its padding: where its fragment is, and its priority
/// (RFC 9113 section 6.2).
fn trimmed(
    flags: u8,
    payload: Range<usize>,
    bytes: &[u8],
) -> Result<(Range<usize>, Option<[u8; PRIORITY_BYTES]>), Unreadable> {
    let Range { mut start, mut end } = payload;
    if flags & PADDED != 0 {
        let padding = *bytes.get(start).filter(|_| start < end).ok_or(Unreadable)?;
        start += 1;
        end = end.checked_sub(usize::from(padding)).ok_or(Unreadable)?;
    }
    let mut priority = None;
    if flags & PRIORITY != 0 {
        let rest = bytes.get(start..).unwrap_or_default();
        priority = Some(*rest.first_chunk().ok_or(Unreadable)?);
        start += PRIORITY_BYTES;
    }
    match start <= end {
        true => Ok((start..end, priority)),
        false => Err(Unreadable),
    }
}
