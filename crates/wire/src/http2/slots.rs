//! Room for the streams of a connection, reused from one to the next.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

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

/// Streams by slot, with what is known of each.
#[derive(Debug)]
pub(super) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    wakes: Arc<Wakes>,
    /// Slots that were woken; kept for its memory.
    woken: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    turn: u32,
    stream: Option<T>,
    flag: Arc<SlotWaker>,
    waker: Waker,
}

impl<T> Slots<T> {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            wakes: Arc::default(),
            woken: Vec::new(),
        }
    }

    /// Streams that are open.
    pub(super) fn open(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Keeps a stream and has it polled at the next occasion.
    pub(super) fn insert(&mut self, stream: T) -> StreamKey {
        let number = self.free.pop().unwrap_or_else(|| {
            let number = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
            let flag = SlotWaker::new(number, Arc::clone(&self.wakes));
            let waker = Waker::from(Arc::clone(&flag));
            self.slots.push(Slot {
                turn: 0,
                stream: None,
                flag,
                waker,
            });
            number
        });
        let slot = &mut self.slots[number as usize];
        slot.turn = slot.turn.wrapping_add(1);
        slot.stream = Some(stream);
        slot.waker.wake_by_ref();
        StreamKey {
            slot: number,
            turn: slot.turn,
        }
    }

    /// Lets the streams that were woken go on; `poll` says whether one has ended.
    pub(super) fn poll_woken(
        &mut self,
        mut poll: impl FnMut(StreamKey, &mut T, &mut Context<'_>) -> bool,
    ) {
        self.wakes.take(&mut self.woken);
        for &number in &self.woken {
            let Some(slot) = self.slots.get_mut(number as usize) else {
                continue;
            };
            slot.flag.reset();
            let Some(stream) = &mut slot.stream else {
                continue;
            };
            let key = StreamKey {
                slot: number,
                turn: slot.turn,
            };
            if poll(key, stream, &mut Context::from_waker(&slot.waker)) {
                slot.stream = None;
                self.free.push(number);
            }
        }
    }

    /// A stream and its waker. It is polled at the next occasion too. `None`: it has ended.
    pub(super) fn touch(&mut self, key: StreamKey) -> Option<(&mut T, Context<'_>)> {
        let slot = self.slots.get_mut(key.slot as usize)?;
        let stream = slot.stream.as_mut().filter(|_| slot.turn == key.turn)?;
        slot.waker.wake_by_ref();
        Some((stream, Context::from_waker(&slot.waker)))
    }

    /// Takes a stream out; `None`: it has ended.
    pub(super) fn remove(&mut self, key: StreamKey) -> Option<T> {
        let slot = self.slots.get_mut(key.slot as usize)?;
        if slot.turn != key.turn {
            return None;
        }
        let stream = slot.stream.take()?;
        self.free.push(key.slot);
        Some(stream)
    }

    /// Ends every stream.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = StreamKey> {
        let free = &mut self.free;
        self.slots
            .iter_mut()
            .enumerate()
            .filter_map(|(number, slot)| {
                slot.stream.take()?;
                let number = u32::try_from(number).unwrap_or(u32::MAX);
                free.push(number);
                Some(StreamKey {
                    slot: number,
                    turn: slot.turn,
                })
            })
    }
}

/// Wakers put their slots here; whoever drives the connection reads them.
/// Everything happens on one thread; the atomics are what [`Wake`] asks for.
#[derive(Debug, Default)]
struct Wakes {
    streams: Mutex<Vec<u32>>,
}

impl Wakes {
    /// Moves the slots that were woken into `woken`, which is cleared before.
    fn take(&self, woken: &mut Vec<u32>) {
        woken.clear();
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *streams, woken);
    }
}

/// The waker of one slot. It lives as long as the slot, over many streams.
#[derive(Debug)]
struct SlotWaker {
    slot: u32,
    queued: AtomicBool,
    wakes: Arc<Wakes>,
}

impl SlotWaker {
    fn new(slot: u32, wakes: Arc<Wakes>) -> Arc<Self> {
        Arc::new(Self {
            slot,
            queued: AtomicBool::new(false),
            wakes,
        })
    }

    /// To be called before the slot is polled: a wake from then on counts anew.
    fn reset(&self) {
        self.queued.store(false, Ordering::Relaxed);
    }
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            let mut streams = self
                .wakes
                .streams
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            streams.push(self.slot);
        }
    }
}
