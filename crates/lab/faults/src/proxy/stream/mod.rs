//! One direction of one TCP connection, without sockets and clock: bytes come in at instants,
//! and may go out at instants.
//!
//! Every byte leaves when its segment came in plus the delays that are on *now*, and after all
//! that came before it. So a delay that is taken off or lowered lets what was held through at
//! once and in order, and what passes never depends on when somebody looked.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::{Buf, Bytes};

use super::applied::Applied;
use super::on_path::OnPath;
use super::toxic::{Direction, LimitEnd, ResetWhen, ToxicKind};
use crate::recur::exponential;

/// What jitter and loss are drawn for: what one Ethernet frame carries of a TCP stream with
/// time stamps. A read that brings less is one segment.
pub const SEGMENT: usize = 1448;
/// Bytes that a direction of a connection holds without a delay.
pub(super) const LEAST_HELD: usize = 64 << 10;
/// Most bytes that a direction of a connection holds, however long the delay.
pub(super) const MOST_HELD: usize = 16 << 20;
/// What a chunk costs beside its bytes, so that single bytes cannot fill the memory.
const CHUNK_COST: usize = 128;
/// It is not read for less room than this.
const LEAST_ROOM: usize = 4 << 10;

/// How a stream of bytes ended that comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// In order.
    Finished,
    /// By a reset of the sender.
    Reset,
}

/// What is to be done with what comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// So many of the first bytes may be written now.
    Write(usize),
    /// Nothing, until then or until something changes.
    Wait(Option<Duration>),
    /// The stream ends in order; the other direction goes on.
    Finish,
    /// Both directions end in order.
    Close,
    /// Both sides see a reset.
    Reset,
}

/// Bytes that came in at once.
#[derive(Debug)]
struct Chunk {
    arrived: Duration,
    bytes: Bytes,
    /// How many of them have gone out.
    gone: usize,
    /// How many chunks came before it.
    ordinal: u64,
}

/// What a toxic remembers of one direction of one connection.
#[derive(Debug)]
struct Memory {
    /// When it resets the connection.
    reset_at: Option<Duration>,
    /// What is left of a piece, how many came before it, and when the next may go.
    piece: usize,
    pieces: u64,
    not_before: Duration,
}

#[derive(Debug)]
pub(super) struct StreamPath {
    direction: Direction,
    /// Its number among all directions of all connections.
    id: u64,
    toxics: Vec<OnPath<Memory>>,
    queue: VecDeque<Chunk>,
    bytes: usize,
    chunks: u64,
    end: Option<(Duration, StreamEnd)>,
}

impl StreamPath {
    /// That of the `ordinal`th connection.
    pub(super) fn new(direction: Direction, ordinal: u64) -> Self {
        Self {
            direction,
            id: ordinal * 2 + direction.index() as u64,
            toxics: Vec::new(),
            queue: VecDeque::new(),
            bytes: 0,
            chunks: 0,
            end: None,
        }
    }

    /// These toxics are on from now on. Those that were keep what they remember.
    pub(super) fn set(&mut self, now: Duration, toxics: Vec<Arc<Applied>>) {
        let id = self.id;
        let remember = |applied: &Applied| Memory::of(applied, id, now);
        OnPath::replace(
            &mut self.toxics,
            toxics,
            self.direction,
            self.bytes,
            remember,
        );
    }

    /// Which one it is.
    pub(super) fn direction(&self) -> Direction {
        self.direction
    }

    /// Whether bytes that come in may go straight out.
    pub(super) fn is_plain(&self) -> bool {
        self.toxics.is_empty() && self.queue.is_empty() && self.end.is_none()
    }

    /// What it holds, in bytes of memory.
    pub(super) fn cost(&self) -> usize {
        self.bytes + self.queue.len() * CHUNK_COST
    }

    /// How many bytes may be read now, given what all connections may still hold together.
    ///
    /// At its bound nothing is read, and the sender's own window closes. The bound is what the
    /// delays and the slowest rate keep under way, at least [`LEAST_HELD`], which does not
    /// count against the others, and at most [`MOST_HELD`].
    pub(super) fn room(&self, spare: usize) -> usize {
        let cost = self.cost() + CHUNK_COST;
        let room = self.capacity().saturating_sub(cost);
        let room = room.min(spare.max(LEAST_HELD.saturating_sub(cost)));
        if room < LEAST_ROOM { 0 } else { room }
    }

    fn capacity(&self) -> usize {
        let reach: Duration = self.toxics.iter().map(|on| on.applied.reach()).sum();
        if reach.is_zero() {
            return LEAST_HELD;
        }
        let rates = self
            .toxics
            .iter()
            .filter_map(|on| match on.applied.toxic.kind {
                ToxicKind::Throttle {
                    bytes_per_s,
                    burst_bytes,
                    ..
                } => Some((bytes_per_s, burst_bytes)),
                _ => None,
            });
        let under_way = rates.min().map_or(MOST_HELD, |(rate, burst)| {
            // A float beyond the largest integer becomes that.
            let bytes = (rate as f64 * reach.as_secs_f64()) as usize;
            bytes.saturating_add(usize::try_from(burst).unwrap_or(MOST_HELD))
        });
        under_way.saturating_add(LEAST_HELD).min(MOST_HELD)
    }

    /// Bytes come in.
    pub(super) fn push(&mut self, now: Duration, bytes: Bytes) {
        for on in &self.toxics {
            on.counters()
                .held_bytes
                .fetch_add(bytes.len() as u64, Relaxed);
        }
        self.bytes += bytes.len();
        let ordinal = self.chunks;
        self.chunks += 1;
        self.queue.push_back(Chunk {
            arrived: now,
            bytes,
            gone: 0,
            ordinal,
        });
    }

    /// No more bytes will come in.
    pub(super) fn end(&mut self, now: Duration, how: StreamEnd) {
        self.end.get_or_insert((now, how));
    }

    /// The bytes that [`Step::Write`] speaks of, and perhaps more.
    pub(super) fn front(&self) -> &[u8] {
        self.queue.front().map_or(&[], |chunk| &chunk.bytes)
    }

    /// What is to be done now.
    pub(super) fn step(&mut self, now: Duration) -> Step {
        if let Some(step) = self.cut_off(now) {
            return step;
        }
        let reset = self.toxics.iter().filter_map(|on| on.memory.reset_at).min();
        let sooner = |at: Duration| Step::Wait(Some(reset.map_or(at, |reset| reset.min(at))));
        let partitioned = |on: &OnPath<Memory>| on.applied.toxic.kind == ToxicKind::Partition;
        if self.toxics.iter().any(partitioned) {
            return Step::Wait(reset);
        }
        if let Some(front) = self.queue.front() {
            let ready = ready(front, &mut self.toxics, self.id, now);
            return ready.map_or_else(sooner, Step::Write);
        }
        match self.end {
            None => Step::Wait(reset),
            Some((at, how)) => match (at + self.end_delay(), how) {
                (due, _) if due > now => sooner(due),
                (_, StreamEnd::Finished) => Step::Finish,
                (_, StreamEnd::Reset) => Step::Reset,
            },
        }
    }

    /// Whether a toxic ends the connection now.
    fn cut_off(&self, now: Duration) -> Option<Step> {
        self.toxics.iter().find_map(|on| {
            let counters = on.counters();
            let (count, step) = match on.applied.toxic.kind {
                ToxicKind::Reset(when) => {
                    let reset = match when {
                        ResetWhen::AfterBytes(bytes) => on.passed >= bytes,
                        _ => on.memory.reset_at.is_some_and(|at| at <= now),
                    };
                    (reset.then_some(&counters.reset_connections)?, Step::Reset)
                }
                ToxicKind::Limit { bytes, end } if on.passed >= bytes => match end {
                    LimitEnd::Close => (&counters.closed_connections, Step::Close),
                    LimitEnd::Reset => (&counters.reset_connections, Step::Reset),
                },
                _ => return None,
            };
            // Whoever asked ends the connection, so this comes once.
            count.fetch_add(1, Relaxed);
            Some(step)
        })
    }

    fn end_delay(&self) -> Duration {
        let place = [self.id, u64::MAX];
        let delay = |on: &OnPath<Memory>| match on.applied.toxic.kind {
            ToxicKind::CloseSlowly(by) => by,
            _ => on.applied.delay(&place),
        };
        self.toxics.iter().map(delay).sum()
    }

    /// So many of the first bytes were written.
    pub(super) fn written(&mut self, now: Duration, count: usize) {
        let Some(front) = self.queue.front_mut() else {
            return;
        };
        let count = count.min(front.bytes.len());
        for on in &mut self.toxics {
            on.written(front, self.id, now, count);
        }
        self.bytes -= count;
        front.gone += count;
        front.bytes.advance(count);
        if front.bytes.is_empty() {
            self.queue.pop_front();
        }
    }
}

impl Drop for StreamPath {
    fn drop(&mut self) {
        OnPath::let_go(&self.toxics, self.bytes);
    }
}

/// How many of a chunk's bytes may go now, else when one may.
fn ready(
    front: &Chunk,
    toxics: &mut [OnPath<Memory>],
    id: u64,
    now: Duration,
) -> Result<usize, Duration> {
    let mut count = due(front, toxics, id, now)?;
    for on in toxics.iter() {
        let left = |bytes: u64| usize::try_from(bytes - on.passed).unwrap_or(usize::MAX);
        count = count.min(match on.applied.toxic.kind {
            ToxicKind::Limit { bytes, .. } => left(bytes),
            ToxicKind::Reset(ResetWhen::AfterBytes(bytes)) => left(bytes),
            ToxicKind::Slice { .. } if on.memory.not_before > now => {
                return Err(on.memory.not_before);
            }
            ToxicKind::Slice { .. } => on.memory.piece,
            _ => continue,
        });
    }
    for on in toxics {
        let wanted = count as u64;
        let allowed = on.with_bucket(|bucket| {
            let available = bucket.available(now);
            let least = wanted.min(bucket.quantum());
            match available < least {
                true => Err(bucket.when(now, least)),
                false => Ok(available.min(wanted)),
            }
        });
        if let Some(allowed) = allowed {
            count = usize::try_from(allowed?).unwrap_or(count);
        }
    }
    Ok(count)
}

/// How many of a chunk's bytes have waited long enough, else until when the first waits.
fn due(
    front: &Chunk,
    toxics: &[OnPath<Memory>],
    id: u64,
    now: Duration,
) -> Result<usize, Duration> {
    let mut count = 0;
    while count < front.bytes.len() {
        let segment = (front.gone + count) / SEGMENT;
        let place = [id, front.ordinal, segment as u64];
        let delay: Duration = toxics.iter().map(|on| on.applied.delay(&place)).sum();
        let due = front.arrived + delay;
        if due > now {
            return if count == 0 { Err(due) } else { Ok(count) };
        }
        count = (segment + 1) * SEGMENT - front.gone;
    }
    Ok(front.bytes.len())
}

impl Memory {
    /// That of a toxic which is put on the direction `id` now.
    fn of(applied: &Applied, id: u64, now: Duration) -> Self {
        let reset_at = match applied.toxic.kind {
            ToxicKind::Reset(ResetWhen::Now) => Some(now),
            ToxicKind::Reset(ResetWhen::AtRandom(mean)) => {
                Some(now + exponential(mean, &mut applied.draw(&[id])))
            }
            _ => None,
        };
        let mut memory = Self {
            reset_at,
            piece: 0,
            pieces: 0,
            not_before: Duration::ZERO,
        };
        memory.next_piece(applied, id);
        memory
    }

    fn next_piece(&mut self, applied: &Applied, id: u64) {
        if let ToxicKind::Slice { bytes, vary, .. } = applied.toxic.kind {
            let mut random = applied.draw(&[id, self.pieces]);
            self.piece = bytes - vary + random.below(2 * vary + 1);
            self.pieces += 1;
        }
    }
}

impl OnPath<Memory> {
    /// So many of a chunk's bytes pass it.
    fn written(&mut self, front: &Chunk, id: u64, now: Duration, count: usize) {
        let counters = self.counters();
        counters.bytes.fetch_add(count as u64, Relaxed);
        counters.held_bytes.fetch_sub(count as u64, Relaxed);
        self.passed += count as u64;
        self.with_bucket(|bucket| bucket.take(count as u64));
        match self.applied.toxic.kind {
            ToxicKind::Slice { pause, .. } => {
                let memory = &mut self.memory;
                memory.piece -= count.min(memory.piece);
                if memory.piece == 0 {
                    memory.not_before = now + pause;
                    memory.next_piece(&self.applied, id);
                }
            }
            ToxicKind::Lose { .. } => {
                // Segments are counted with their first byte.
                let segments = front.gone.div_ceil(SEGMENT)..(front.gone + count).div_ceil(SEGMENT);
                let losses = |segment| self.applied.losses(&[id, front.ordinal, segment as u64]);
                let lost: u64 = segments.map(|segment| u64::from(losses(segment))).sum();
                self.counters().lost_segments.fetch_add(lost, Relaxed);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
