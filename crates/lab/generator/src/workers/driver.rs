//! What carries one side of a session: NATS in, NATS out, and the time.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lab_load::GenerateError;
use measure::Clock;
use nats::client::{Client, QueueLimits};
use tokio::runtime::Runtime;

use super::message::Packet;
use super::nats::Nats;

/// Time between looks at the clock when nothing comes.
const TICK: Duration = Duration::from_millis(20);
/// What may wait to be taken in. Beyond it packets are dropped, and come again.
const UNREAD: QueueLimits = QueueLimits {
    messages: 4096,
    bytes: 64 * 1024 * 1024,
};
/// Longest wait, at the end, for what was said last to leave.
const FLUSH_WITHIN: Duration = Duration::from_millis(500);
/// Time between looks at things that nobody announces.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Longest wait, at the end, for the other side to take what was said last.
pub(crate) const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// A subject, and what is to be published there.
pub(crate) type Outgoing = (String, Packet);

/// One side of a session. Pure: it is told what came and what time it is (Unix time, on a
/// clock that is never set), and says what is to leave.
pub(crate) trait Core: Send + 'static {
    /// What it listens on.
    fn subjects(&self) -> Vec<String>;
    /// Something came; the answer to it.
    fn take(&mut self, packet: Packet, now: Duration) -> Option<Outgoing>;
    /// Time has passed, or something was asked of it.
    fn tick(&mut self, now: Duration) -> Vec<Outgoing>;
}

/// A core and the thread that drives it.
pub(crate) struct Driver<C> {
    shared: Arc<Shared<C>>,
    runtime: Runtime,
}

struct Shared<C> {
    core: Mutex<C>,
    /// Something came or time has passed.
    changed: Condvar,
    client: Client,
    clock: Clock,
}

impl<C: Core> Shared<C> {
    fn lock(&self) -> MutexGuard<'_, C> {
        // A core is whole after each of its calls, whatever panicked in between.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        let origin = u64::try_from(self.clock.origin_unix_ns()).unwrap_or(0);
        Duration::from_nanos(origin) + self.clock.origin().elapsed()
    }

    /// Something came, or it is time to look at the clock.
    fn step(&self, came: Option<Packet>) {
        let now = self.now();
        let mut core = self.lock();
        let answer = came.and_then(|packet| core.take(packet, now));
        let due = core.tick(now);
        drop(core);
        self.changed.notify_all();
        // What is said into a broken connection would pile up and come too late.
        if self.client.state().borrow().connected {
            for (subject, packet) in answer.into_iter().chain(due) {
                // What finds no room is sent again later.
                let _ = self.client.publish(subject.as_bytes(), &packet.to_bytes());
            }
        }
    }
}

impl<C: Core> Driver<C> {
    /// Connects, and drives the core that `make` builds from the server's largest payload.
    /// Must not be called within an asynchronous runtime.
    pub(crate) fn start(nats: &Nats, make: impl FnOnce(usize) -> C) -> Result<Self, GenerateError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("nats")
            .enable_all()
            .build()
            .map_err(|found| GenerateError::new("start a thread for NATS", found))?;
        let client = runtime.block_on(nats.connect())?;
        let core = make(client.max_payload());
        let subscriptions = core.subjects().into_iter();
        let subscriptions: Result<Vec<_>, _> = subscriptions
            .map(|subject| client.subscribe(&subject, UNREAD))
            .collect();
        let subscriptions = subscriptions.map_err(|found| nats.error(found))?;
        let shared = Arc::new(Shared {
            core: Mutex::new(core),
            changed: Condvar::new(),
            client,
            clock: Clock::start(),
        });
        for mut subscription in subscriptions {
            let shared = Arc::clone(&shared);
            runtime.spawn(async move {
                while let Some(batch) = subscription.next().await {
                    for message in batch.iter() {
                        shared.step(Packet::from_bytes(message.payload));
                    }
                }
            });
        }
        let ticking = Arc::clone(&shared);
        runtime.spawn(async move {
            loop {
                tokio::time::sleep(TICK).await;
                ticking.step(None);
            }
        });
        Ok(Self { shared, runtime })
    }

    /// The time as the core is told it.
    pub(crate) fn now(&self) -> Duration {
        self.shared.now()
    }

    /// Asks something of the core.
    pub(crate) fn with<R>(&self, ask: impl FnOnce(&mut C) -> R) -> R {
        let answer = ask(&mut self.shared.lock());
        self.shared.step(None);
        answer
    }

    /// Waits until `ready` says something; `None` when it did not within the time.
    pub(crate) fn wait<R>(
        &self,
        within: Duration,
        mut ready: impl FnMut(&mut C) -> Option<R>,
    ) -> Option<R> {
        let mut found = None;
        let waiting = |core: &mut C| {
            found = ready(core);
            found.is_none()
        };
        let core = self.shared.lock();
        drop(
            self.shared
                .changed
                .wait_timeout_while(core, within, waiting),
        );
        found
    }
}

impl<C> fmt::Debug for Driver<C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl<C> Drop for Driver<C> {
    fn drop(&mut self) {
        let flush = async { tokio::time::timeout(FLUSH_WITHIN, self.shared.client.flush()).await };
        let _ = self.runtime.block_on(flush);
    }
}
