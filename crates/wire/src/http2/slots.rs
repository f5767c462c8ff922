//! Room for the exchanges of a connection, reused from one to the next.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::StreamError;
use super::answer::{Answer, Exchange};
use super::wake::{SlotWaker, Wakes};

/// Names an exchange on its connection, for as long as it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamKey {
    slot: u32,
    turn: u32,
}

impl StreamKey {
    /// A small number, below the most streams there ever were at once, that no other
    /// exchange on this connection has as long as this one lasts.
    pub const fn slot(self) -> usize {
        self.slot as usize
    }
}

/// How an exchange ended.
pub(super) type Outcome = Result<Answer, StreamError>;

/// Exchanges by slot.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    wakes: Arc<Wakes>,
    /// Slots that were woken; kept for its memory.
    woken: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    turn: u32,
    exchange: Option<Exchange>,
    flag: Arc<SlotWaker>,
    waker: Waker,
}

impl Slots {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            wakes: Arc::default(),
            woken: Vec::new(),
        }
    }

    /// Exchanges that are open.
    pub(super) fn open(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Keeps an exchange and has it polled at the next occasion.
    pub(super) fn insert(&mut self, exchange: Exchange) -> StreamKey {
        let number = self.free.pop().unwrap_or_else(|| {
            let number = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
            let flag = SlotWaker::new(number, Arc::clone(&self.wakes));
            let waker = Waker::from(Arc::clone(&flag));
            self.slots.push(Slot {
                turn: 0,
                exchange: None,
                flag,
                waker,
            });
            number
        });
        let slot = &mut self.slots[number as usize];
        slot.turn = slot.turn.wrapping_add(1);
        slot.exchange = Some(exchange);
        slot.waker.wake_by_ref();
        StreamKey {
            slot: number,
            turn: slot.turn,
        }
    }

    /// Lets the exchanges that were woken go on, and moves those that end to `finished`.
    pub(super) fn poll_woken(&mut self, finished: &mut Vec<(StreamKey, Outcome)>) {
        self.wakes.take(&mut self.woken);
        for &number in &self.woken {
            let Some(slot) = self.slots.get_mut(number as usize) else {
                continue;
            };
            slot.flag.reset();
            let Some(exchange) = &mut slot.exchange else {
                continue;
            };
            if let Poll::Ready(result) = exchange.poll(&mut Context::from_waker(&slot.waker)) {
                slot.exchange = None;
                self.free.push(number);
                finished.push((
                    StreamKey {
                        slot: number,
                        turn: slot.turn,
                    },
                    result,
                ));
            }
        }
    }

    /// Takes an exchange out; `None`: it has ended.
    pub(super) fn remove(&mut self, key: StreamKey) -> Option<Exchange> {
        let slot = self.slots.get_mut(key.slot as usize)?;
        if slot.turn != key.turn {
            return None;
        }
        let exchange = slot.exchange.take()?;
        self.free.push(key.slot);
        Some(exchange)
    }

    /// Ends every exchange.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = StreamKey> {
        let free = &mut self.free;
        self.slots
            .iter_mut()
            .enumerate()
            .filter_map(|(number, slot)| {
                slot.exchange.take()?;
                let number = u32::try_from(number).unwrap_or(u32::MAX);
                free.push(number);
                Some(StreamKey {
                    slot: number,
                    turn: slot.turn,
                })
            })
    }
}
