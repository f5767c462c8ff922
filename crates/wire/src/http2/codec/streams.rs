//! The streams of a connection, and their states (RFC 9113 section 5.1).

use super::fields::Fields;
use super::flow::{Allowance, Window};
use crate::http2::StreamError;

/// Names a stream on its connection, for as long as it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamKey {
    slot: u32,
    turn: u32,
}

impl StreamKey {
    /// A small number, below the most streams there ever were at once, that no other
    /// stream on this connection has as long as this one lasts.
    pub const fn slot(self) -> usize {
        self.slot as usize
    }
}

/// What came of a message, and what may still come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Incoming {
    /// No head, or only interim ones.
    #[default]
    Awaited,
    /// A head; a body, or trailers.
    Begun,
    /// All of it.
    Ended,
}

/// What was sent of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Outgoing {
    /// No head, or only interim ones.
    #[default]
    Idle,
    /// A head.
    Begun,
    /// All of it.
    Ended,
}

/// One stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) id: u32,
    pub(super) incoming: Incoming,
    pub(super) outgoing: Outgoing,
    /// Why nothing more comes, and nothing more goes.
    pub(super) failed: Option<StreamError>,
    /// Somebody has its key.
    pub(super) held: bool,
    /// It counts among those that are open.
    pub(super) open: bool,
    /// It waits to be told of.
    pub(super) touched: bool,
    /// It waits for room of the connection's.
    pub(super) blocked: bool,
    /// The answer has no body, whatever it says of its length.
    pub(super) bodiless: bool,
    pub(super) head: Fields,
    pub(super) interim: Vec<Fields>,
    pub(super) trailers: Option<Fields>,
    /// What of the body came and was not used, behind bytes that were.
    pub(super) body: Vec<u8>,
    pub(super) used: usize,
    /// Bytes of the body that are to come, if it was told.
    pub(super) expected: Option<u64>,
    pub(super) window: Window,
    pub(super) allowance: Allowance,
}

/// Memory for a body that is kept for the next stream.
const KEPT: usize = 16 * 1024;

impl Stream {
    /// Nothing more is sent or received.
    pub(super) fn is_over(&self) -> bool {
        self.failed.is_some()
            || (self.incoming == Incoming::Ended && self.outgoing == Outgoing::Ended)
    }

    /// What of the body waits.
    pub(super) fn waiting(&self) -> usize {
        self.body.len() - self.used
    }
}

/// The streams by key, and by their numbers as long as they are open.
#[derive(Debug, Default)]
pub(super) struct Streams {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Numbers and slots of the open ones, in the order of their numbers, which is that in which
    /// they were opened.
    numbers: Vec<(u32, u32)>,
}

#[derive(Debug, Default)]
struct Slot {
    turn: u32,
    used: bool,
    stream: Stream,
}

impl Streams {
    /// A new stream, whose number is above all others of those that are open.
    pub(super) fn insert(&mut self, id: u32, window: Window, allowance: Allowance) -> StreamKey {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let place = &mut self.slots[slot as usize];
        place.turn = place.turn.wrapping_add(1);
        place.used = true;
        let stream = &mut place.stream;
        stream.id = id;
        stream.incoming = Incoming::Awaited;
        stream.outgoing = Outgoing::Idle;
        stream.failed = None;
        (stream.held, stream.open) = (false, true);
        (stream.touched, stream.blocked, stream.bodiless) = (false, false, false);
        (stream.expected, stream.used) = (None, 0);
        (stream.window, stream.allowance) = (window, allowance);
        self.numbers.push((id, slot));
        debug_assert!(self.numbers.is_sorted());
        StreamKey {
            slot,
            turn: place.turn,
        }
    }

    /// A stream; `None`: it is gone.
    #[inline]
    pub(super) fn get(&self, key: StreamKey) -> Option<&Stream> {
        let slot = self.slots.get(key.slot())?;
        (slot.used && slot.turn == key.turn).then_some(&slot.stream)
    }

    /// The same, to be changed.
    #[inline]
    pub(super) fn get_mut(&mut self, key: StreamKey) -> Option<&mut Stream> {
        let slot = self.slots.get_mut(key.slot())?;
        (slot.used && slot.turn == key.turn).then_some(&mut slot.stream)
    }

    /// The open stream with a number.
    #[inline]
    pub(super) fn find(&self, id: u32) -> Option<StreamKey> {
        let at = self.numbers.binary_search_by_key(&id, |it| it.0).ok()?;
        let (_, slot) = *self.numbers.get(at)?;
        let turn = self.slots.get(slot as usize)?.turn;
        Some(StreamKey { slot, turn })
    }

    /// The keys of all open streams, the oldest first.
    pub(super) fn open(&self) -> impl Iterator<Item = StreamKey> + '_ {
        self.numbers.iter().filter_map(|(_, slot)| {
            let turn = self.slots.get(*slot as usize)?.turn;
            Some(StreamKey { slot: *slot, turn })
        })
    }

    /// How many are open.
    pub(super) fn count_open(&self) -> usize {
        self.numbers.len()
    }

    /// How many there are, with those that are over and that somebody still has.
    pub(super) fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// A stream is no longer among the open ones.
    pub(super) fn close(&mut self, key: StreamKey) {
        if let Some(stream) = self.get_mut(key)
            && std::mem::take(&mut stream.open)
        {
            let id = stream.id;
            if let Ok(at) = self.numbers.binary_search_by_key(&id, |it| it.0) {
                self.numbers.remove(at);
            }
        }
    }

    /// Gives up the slot of a stream that is over and that nobody has.
    pub(super) fn remove(&mut self, key: StreamKey) {
        self.close(key);
        let Some(slot) = self.slots.get_mut(key.slot()) else {
            return;
        };
        if slot.used && slot.turn == key.turn {
            slot.used = false;
            let stream = &mut slot.stream;
            stream.head.clear();
            stream.interim.clear();
            stream.trailers = None;
            stream.body.clear();
            stream.body.shrink_to(KEPT);
            self.free.push(key.slot);
        }
    }
}
