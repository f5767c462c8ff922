//! Messages over an upgraded connection.

use lab_load::recording::Phase;
use lab_load::request::{Composer, Visit};
use stats::SplitMix;
use wire::http1::{Limits, ResponseScanner, Sink};
use wire::websocket::{Event, Frame, FrameScanner, Key, accept, encode, handshake};

use super::conversation::{Broken, CompleteResponse, ResponseCapture, ScanResult};

/// Most bytes of one message; a target that sends a longer one breaks the exchange.
const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// Normal closure, the answer to a close frame.
const CLOSE_NORMAL: u16 = 1000;
/// What a frame is, in its first byte, and those that stand between messages.
const OPCODE: u8 = 0x0f;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;

/// The conversation on one connection.
#[derive(Debug)]
pub(super) struct WebSocket {
    /// Reads the answer to the handshake.
    head: ResponseScanner,
    frames: FrameScanner,
    key: Key,
    /// Masks of frames keep proxies from taking a message for a request; a generator sends
    /// nothing that somebody else chose, so they need not be secret.
    masks: SplitMix,
    replies: Vec<u8>,
    closed: bool,
}

impl WebSocket {
    pub(super) fn new(number: u64) -> Self {
        let mut masks = SplitMix::new(number);
        let (low, high) = (masks.bits(), masks.bits());
        let random = u128::from(high) << 64 | u128::from(low);
        Self {
            head: ResponseScanner::new(Limits::default()),
            frames: FrameScanner::new(MOST_BYTES),
            key: Key::new(random.to_be_bytes()),
            masks,
            replies: Vec::new(),
            closed: false,
        }
    }

    /// The request that asks for the upgrade: path and fields are those of a visit.
    pub(super) fn handshake(&self, composer: &Composer, visit: &Visit) -> Option<Vec<u8>> {
        let parts = composer.parts(visit).ok()?;
        let path = match parts.path.as_ref() {
            "" => "/",
            path => path,
        };
        let fields = parts.headers.iter();
        let fields: Vec<_> = fields
            .map(|(name, value)| (*name, value.as_ref()))
            .collect();
        Some(handshake(path, &parts.authority, &self.key, &fields))
    }

    /// Looks at the answer to the handshake. When it is whole, gives its length and
    /// whether the connection is upgraded; what follows is the first message.
    pub(super) fn upgrade(&mut self, input: &[u8]) -> Result<Option<usize>, Broken> {
        let mut fields = Fields::default();
        let scan = self.head.scan(input, &mut fields);
        let scan = scan.map_err(|error| (Phase::Protocol, error.cause()))?;
        if fields.status == 0 {
            return Ok(None);
        }
        let accepted = accept(&self.key, fields.status, &fields.lines);
        accepted.map_err(|error| (Phase::Protocol, error.cause()))?;
        Ok(Some(scan.consumed))
    }

    /// Appends a message as a frame.
    pub(super) fn frame(&mut self, message: &[u8], text: bool, out: &mut Vec<u8>) {
        let mask = self.mask();
        match std::str::from_utf8(message) {
            Ok(message) if text => encode(Frame::Text(message), mask, out),
            _ => encode(Frame::Binary(message), mask, out),
        }
    }

    pub(super) fn take(
        &mut self,
        input: &[u8],
        kept: &mut ResponseCapture,
    ) -> Result<ScanResult, Broken> {
        let mut consumed = 0;
        while !self.closed {
            let scan = self.frames.scan(&input[consumed..]);
            let scan = scan.map_err(|error| (Phase::Protocol, error.cause()))?;
            consumed += scan.consumed;
            match scan.event {
                None => break,
                Some(Event::Data { part, ends, .. }) => {
                    kept.body(part);
                    if let Some(bytes) = ends {
                        let whole = Some(CompleteResponse::of(bytes, true));
                        consumed += self.take_pings(&input[consumed..]);
                        return Ok(ScanResult { consumed, whole });
                    }
                }
                Some(Event::Ping(bytes)) => self.pong(bytes),
                Some(Event::Pong(_)) => {}
                Some(Event::Close(..)) => {
                    self.closed = true;
                    let mask = self.mask();
                    encode(Frame::Close(CLOSE_NORMAL, ""), mask, &mut self.replies);
                }
            }
        }
        Ok(ScanResult {
            consumed,
            whole: None,
        })
    }

    /// Takes the questions right behind a message whether we are there, and says how many bytes
    /// they have. Whatever else stands there is left.
    fn take_pings(&mut self, input: &[u8]) -> usize {
        let mut consumed = 0;
        while let Some(first) = input.get(consumed)
            && matches!(first & OPCODE, PING | PONG)
            && let Ok(scan) = self.frames.scan(&input[consumed..])
            && let Some(event) = scan.event
        {
            consumed += scan.consumed;
            if let Event::Ping(bytes) = event {
                self.pong(bytes);
            }
        }
        consumed
    }

    fn pong(&mut self, bytes: &[u8]) {
        let mask = self.mask();
        encode(Frame::Pong(bytes), mask, &mut self.replies);
    }

    /// Whether the target has said that it says no more.
    pub(super) fn is_over(&self) -> bool {
        self.closed
    }

    fn mask(&mut self) -> [u8; 4] {
        (self.masks.bits() as u32).to_be_bytes()
    }

    pub(super) fn replies(&mut self) -> Option<&mut Vec<u8>> {
        (!self.replies.is_empty()).then_some(&mut self.replies)
    }
}

/// The head that answers a handshake.
#[derive(Debug, Default)]
struct Fields {
    status: u16,
    lines: Vec<u8>,
}

impl Sink for Fields {
    fn head(&mut self, status: u16, fields: &[u8]) {
        self.status = status;
        self.lines = fields.to_vec();
    }
}
