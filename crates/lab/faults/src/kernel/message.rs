//! Messages of netlink, as bytes: numbers of the machine's order but for what says otherwise.
//!
//! From `linux/netlink.h`, `linux/netfilter/nfnetlink.h` and their descriptions in
//! `Documentation/userspace-api/netlink`.

/// A message is answered, for good or bad.
const REQUEST: u16 = 0x1;
const ANSWER: u16 = 0x4;
const NESTED: u16 = 0x8000;
const HEADER: usize = 16;
/// Type of an answer, and of the end of a list.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// A message is the last of its list.
const MULTI: u16 = 0x2;

/// Flags of an order that makes something: there must be none yet; the end of a list.
pub(super) const NEW: u16 = 0x400 | 0x200;
pub(super) const APPEND: u16 = 0x400 | 0x800;
/// Flags of a question for a list.
pub(super) const DUMP: u16 = 0x300;

/// Attributes of a message or of an attribute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Attributes(Vec<u8>);

impl Attributes {
    pub(super) fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        let length = 4 + value.len();
        self.0.extend((length as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    pub(super) fn text(self, kind: u16, value: &str) -> Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes)
    }

    /// A number in the order of the network, as netfilter has them.
    pub(super) fn number(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    pub(super) fn nested(self, kind: u16, inner: &Self) -> Self {
        self.bytes(kind | NESTED, &inner.0)
    }
}

/// One message.
pub(super) fn message(kind: u16, flags: u16, number: u32, head: &[u8], of: &Attributes) -> Vec<u8> {
    let length = HEADER + head.len() + of.0.len();
    let mut out = Vec::with_capacity(length);
    out.extend((length as u32).to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend((flags | REQUEST).to_ne_bytes());
    out.extend(number.to_ne_bytes());
    out.extend(0_u32.to_ne_bytes());
    out.extend(head);
    out.extend(&of.0);
    out
}

/// The flags of a message that wants an answer.
pub(super) fn answered(flags: u16) -> u16 {
    flags | ANSWER
}

/// What the kernel sent, of one message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KernelReply<'a> {
    /// The answer to the message of a number: an error of the system, or 0.
    Answer(u32, i32),
    /// A list is over.
    Over,
    /// A piece of a list: the head of its subsystem and its attributes.
    Piece(&'a [u8]),
}

/// Every message in what was received. What is cut short is left out.
pub(super) fn parse_replies(mut bytes: &[u8]) -> Vec<KernelReply<'_>> {
    let mut all = Vec::new();
    while let Some((length, rest)) = cut(bytes, 0).filter(|(length, _)| *length >= HEADER) {
        let Some(message) = bytes.get(..length) else {
            break;
        };
        let body = &message[HEADER..];
        let (kind, flags) = (u16_at(message, 4), u16_at(message, 6));
        all.push(match kind {
            ERROR => {
                let code = body.get(..4).map_or(0, |code| {
                    i32::from_ne_bytes([code[0], code[1], code[2], code[3]])
                });
                KernelReply::Answer(u32_at(message, 8), -code)
            }
            DONE => KernelReply::Over,
            _ => KernelReply::Piece(body),
        });
        if kind > DONE && flags & MULTI == 0 {
            all.push(KernelReply::Over);
        }
        bytes = rest;
    }
    all
}

/// The length of the message at a place, and what follows it.
fn cut(bytes: &[u8], at: usize) -> Option<(usize, &[u8])> {
    (bytes.len() >= at + HEADER).then(|| {
        let length = u32_at(bytes, at) as usize;
        let next = length.next_multiple_of(4).min(bytes.len());
        (length, &bytes[next..])
    })
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The attributes in some bytes: kinds and values. What is cut short is left out.
pub(super) fn attributes(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut all = Vec::new();
    while bytes.len() >= 4 {
        let length = usize::from(u16_at(bytes, 0));
        let Some(value) = bytes.get(4..length) else {
            break;
        };
        all.push((u16_at(bytes, 2) & !NESTED, value));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    all
}
