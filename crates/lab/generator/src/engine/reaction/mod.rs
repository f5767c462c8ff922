//! How much of a latency this thread may have made itself.
//!
//! A thread that does not run, or that has much to do, sends late and reads late. How
//! late it sends is known of every request. How late it reads is bounded: what a wait
//! for events told became ready after the wait before it had told everything, and, if
//! the thread slept, no earlier than the kernel made the thread runnable again, which
//! the kernel counts (`schedstat`).
//!
//! Requests sent late and together delay each other, and those after them, within the
//! target. Delaying arrivals by so much delays no answer of a queue by more; so until
//! the target has caught up, every answer may be that much too late. It has when nothing is in
//! flight and no request waits for a connection, and, if less than nine tenths of what it can do
//! are asked of it, after ten times as long and ten usual latencies.
//!
//! Where all connections are busy, an answer that lies unread holds one that others wait for. As
//! long as any wait, such time adds up, and delays each by its share.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use lab_load::recording::Delays;

/// What is too short to count, in nanoseconds: what a wake-up takes on an idle machine.
pub(super) const NEGLIGIBLE: u64 = 50_000;
/// The longest wait while answers are awaited: a thread that sleeps longer was stopped.
pub(super) const LONGEST_WAIT: u64 = 5_000_000;
/// A wait that is longer did sleep.
const QUICK: u64 = 1_000_000;
/// A target has caught up with late requests after so many times as long.
const CAUGHT_UP: u64 = 10;
/// A sleep may end, and a send may take, so much longer than it should without saying anything.
const OVERSLEPT: u64 = 100_000;
/// What a byte may take to be encrypted and copied.
const BYTE: u64 = 10;

/// A wait for events, in nanoseconds of the loop's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) began: u64,
    pub(super) ended: u64,
    /// The longest that it should have taken.
    pub(super) longest: u64,
    /// Events that it told.
    pub(super) events: usize,
    /// Whether there may be more of them than it could tell.
    pub(super) full: bool,
    /// Whether a signal ended it, so that it told nothing.
    pub(super) interrupted: bool,
}

impl Wait {
    fn slept(&self) -> u64 {
        self.ended.saturating_sub(self.began)
    }

    /// Whether it took longer than it should, and than waiting `queued` for a processor
    /// explains: the thread was stopped.
    fn overslept(&self, queued: u64) -> bool {
        self.slept() > self.longest.saturating_add(queued + OVERSLEPT)
    }

    /// How long before its end what it told may have been ready at most, if that was not
    /// before `since`.
    fn before(&self, since: u64, queued: u64) -> u64 {
        let slept = self.slept();
        // It returned at once, or may have, or nobody knows what happened meanwhile. On a
        // busy machine even a wait that need not sleep takes its time.
        let quick = match self.began.saturating_sub(since) > NEGLIGIBLE {
            true => QUICK,
            false => NEGLIGIBLE,
        };
        let unknown = slept <= queued + quick || self.overslept(queued);
        match unknown {
            true => self.ended.saturating_sub(since),
            false => queued,
        }
    }

    /// Since when something may be ready that neither it nor those before have told,
    /// which is not before `since`.
    ///
    /// The kernel looks at the sockets some time before the loop looks at the clock: a thread
    /// that is kept from running in between has told what was ready before that.
    fn ready_since(&self, since: u64, queued: u64) -> u64 {
        if self.full {
            return since;
        }
        // The kernel breaks off the wait of a thread that is stopped, without a look.
        if self.interrupted {
            return since.max(self.began);
        }
        // It has looked when the time was up, however late the thread came to know.
        if self.events == 0 && self.overslept(0) {
            return since.max(self.began.saturating_add(self.longest));
        }
        match self.overslept(queued) {
            true => since.max(self.began),
            false => self.ended.saturating_sub(queued).max(self.began).max(since),
        }
    }
}

/// An answer that was read since the last wait ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Answered {
    /// Of which kind, as an index.
    pub(super) kind: usize,
    /// When.
    pub(super) at: u64,
    /// Its latencies as measured.
    pub(super) intended: u64,
    pub(super) actual: u64,
    /// How late the request was sent by this thread's fault.
    pub(super) late: u64,
    /// How late any request was that the target had not caught up with when this one was
    /// sent; since then, others may have been.
    pub(super) burst: u64,
    /// How much sooner a connection might have been free for the request.
    pub(super) pooled: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Reaction {
    queue: RunQueue,
    /// Since when something may have been ready that no wait has told.
    since: u64,
    /// The last wait, until it is settled; when it ended, and how long before that what
    /// it told may have been ready.
    last: Option<Wait>,
    ended: u64,
    before: u64,
    burst: Burst,
    /// Latency of the last answers from the actual send, on average.
    usual: u64,
    answered: Vec<Answered>,
    /// When the last request was sent that had waited for a connection.
    freed: Option<u64>,
    /// Whether requests wait for connections, and how long answers lay unread, together, since they do.
    waits: bool,
    unread: u64,
    delays: Delays,
}

/// Requests that were sent late, until the target has caught up with them.
#[derive(Debug, Default)]
struct Burst {
    late: u64,
    /// When it has, even if it was never idle.
    until: u64,
}

impl Burst {
    fn at(&mut self, now: u64) -> u64 {
        if now > self.until {
            self.late = 0;
        }
        self.late
    }
}

impl Reaction {
    /// For the calling thread.
    pub(super) fn new(now: u64) -> Self {
        Self {
            queue: RunQueue::of_this_thread(),
            since: now,
            last: None,
            ended: now,
            before: 0,
            burst: Burst::default(),
            usual: 0,
            answered: Vec::new(),
            freed: None,
            waits: false,
            unread: 0,
            delays: Delays::default(),
        }
    }

    /// Takes note of a nap on purpose, which is nobody's fault.
    pub(super) fn napped(&mut self, length: u64, now: u64) {
        self.since = (self.since + length).min(now);
    }

    /// A request is or will be sent, so late by the thread's fault. Says how late any
    /// was that the target has not caught up with.
    #[inline]
    pub(super) fn sent(&mut self, late: u64, now: u64) -> u64 {
        let burst = self.burst.at(now);
        if late <= NEGLIGIBLE {
            return burst;
        }
        self.burst.late = burst.max(late);
        let longest = late.saturating_add(self.usual);
        let until = now.saturating_add(longest.saturating_mul(CAUGHT_UP));
        self.burst.until = self.burst.until.max(until);
        self.burst.late
    }

    /// Requests that count as sent from `from` on, with so many bytes, have left by `until`.
    /// A thread that was kept from running in between has sent them later than it says.
    #[inline]
    pub(super) fn held(&mut self, from: u64, until: u64, bytes: usize) {
        let length = until.saturating_sub(from);
        if length > OVERSLEPT + bytes as u64 * BYTE {
            self.sent(length, until);
        }
    }

    /// A request that waited for a connection was sent: as late as the connection was
    /// seen to be of use.
    pub(super) fn sent_freed(&mut self, at: u64) {
        self.freed = Some(at);
    }

    /// Requests wait for connections.
    pub(super) fn some_wait(&mut self) {
        self.waits = true;
    }

    /// No request waits for a connection.
    #[inline]
    pub(super) fn none_waits(&mut self) {
        (self.waits, self.unread) = (false, 0);
    }

    /// How much sooner one of so many busy connections might have been free for a request that
    /// waited for it: what each of them was held for in vain is shared by all.
    pub(super) fn pooled(&self, connections: u32) -> u64 {
        self.unread / u64::from(connections.max(1))
    }

    /// An answer was read, and so many requests are left in flight.
    #[inline]
    pub(super) fn answered(&mut self, mut answered: Answered, in_flight: u32) {
        answered.burst = answered.burst.max(self.burst.at(answered.at));
        self.usual = self.usual - self.usual / 16 + answered.actual / 16;
        self.answered.push(answered);
        if in_flight == 0 && !self.waits {
            self.burst.late = 0;
        }
    }

    /// A wait has ended. What it told is handled after this.
    pub(super) fn woken(&mut self, wait: Wait) {
        self.last = Some(wait);
        (self.ended, self.before) = (wait.ended, wait.ended.saturating_sub(self.since));
    }

    /// Whether there is nothing to settle.
    pub(super) fn is_settled(&self) -> bool {
        self.last.is_none() && self.answered.is_empty() && self.freed.is_none()
    }

    /// What was told is handled. Gives each answer to which this thread may have added
    /// something to `take`, with how long it may have lain unread, and how much was added: to the
    /// latency from the intended and to that from the actual send.
    pub(super) fn settle(&mut self, mut take: impl FnMut(&Answered, u64, u64, u64)) {
        if let Some(wait) = self.last.take() {
            self.weigh(&wait);
        }
        let mut longest = 0;
        for answered in self.answered.drain(..) {
            let read_late = answered.at.saturating_sub(self.ended) + self.before;
            let unread = read_late.min(answered.actual);
            longest = longest.max(unread);
            self.unread = self.unread.saturating_add(unread);
            let intended = read_late + answered.pooled + answered.burst.max(answered.late);
            if intended > NEGLIGIBLE {
                let actual = read_late + answered.burst.saturating_sub(answered.late);
                take(&answered, unread, intended, actual);
            }
        }
        self.delays.longest = self.delays.longest.max(Duration::from_nanos(longest));
        if let Some(at) = self.freed.take() {
            let late = at.saturating_sub(self.ended) + self.before;
            self.sent(late, at);
        }
    }

    /// Finds out how long before the end of a wait what it told may have been ready.
    fn weigh(&mut self, wait: &Wait) {
        // A look at the kernel's count costs a microsecond. Without a sleep worth the
        // name there is nothing to be found.
        let queued = match wait.slept() > NEGLIGIBLE && (wait.events > 0 || wait.overslept(0)) {
            true => self.queue.since_last(),
            false => 0,
        };
        self.before = wait.before(self.since, queued);
        self.since = wait.ready_since(self.since, queued);
        self.delays.waited += Duration::from_nanos(queued);
        if wait.overslept(queued) || wait.interrupted {
            let stopped = wait.slept().saturating_sub(wait.longest + queued);
            self.delays.stopped += Duration::from_nanos(stopped);
        }
    }

    /// How the thread was kept from running since the last call.
    pub(super) fn delays(&mut self) -> Delays {
        self.delays.waited += Duration::from_nanos(self.queue.since_last());
        std::mem::take(&mut self.delays)
    }
}

/// Time that the kernel kept a thread waiting for a processor.
#[derive(Debug)]
struct RunQueue {
    /// Not there in kernels that do not count.
    file: Option<File>,
    last: u64,
}

impl RunQueue {
    fn of_this_thread() -> Self {
        let file = File::open("/proc/thread-self/schedstat").ok();
        let mut queue = Self { file, last: 0 };
        queue.since_last();
        queue
    }

    /// Nanoseconds since the last call.
    fn since_last(&mut self) -> u64 {
        let mut text = [0; 64];
        let file = self.file.as_ref();
        let read = file.and_then(|file| file.read_at(&mut text, 0).ok());
        let text = &text[..read.unwrap_or(0)];
        let Some(waited) = waited(text) else { return 0 };
        waited - std::mem::replace(&mut self.last, waited).min(waited)
    }
}

/// The second of three numbers: time on a processor, time waiting for one, time slices.
fn waited(schedstat: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(schedstat).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests;
