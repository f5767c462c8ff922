//! What carries one side of a session: NATS in, NATS out, and the time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, Subscriber};
use futures_util::StreamExt;
use futures_util::stream::{SelectAll, select_all};
use lab_load::GenerateError;
use measure::Clock;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::error;
use super::message::Packet;
use super::nats::Nats;

/// Time between looks at the clock when nothing comes.
const TICK: Duration = Duration::from_millis(20);
/// Longest wait for the client to take a packet; after it the packet is dropped, and sent
/// again later.
const PUBLISH_WITHIN: Duration = Duration::from_secs(1);
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
#[derive(Debug)]
pub(crate) struct Driver<C> {
    shared: Arc<Shared<C>>,
    runtime: Runtime,
    task: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared<C> {
    core: Mutex<C>,
    clock: Clock,
    /// Something came or time has passed.
    changed: Condvar,
    /// Something was asked of the core.
    wake: Notify,
    closing: AtomicBool,
}

impl<C> Shared<C> {
    fn lock(&self) -> MutexGuard<'_, C> {
        // A core is whole after each of its calls, whatever panicked in between.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        let origin = u64::try_from(self.clock.origin_unix_ns()).unwrap_or(0);
        Duration::from_nanos(origin) + self.clock.origin().elapsed()
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
            .map_err(|found| error("start a thread for NATS", found.to_string(), None))?;
        let (client, core, subscriptions) = runtime.block_on(async {
            let client = nats.connect().await?;
            let core = make(client.max_payload());
            let subscriptions = subscribe(&client, &core.subjects()).await;
            let subscriptions = subscriptions.map_err(|found| nats.error(found, None))?;
            Ok((client, core, subscriptions))
        })?;
        let shared = Arc::new(Shared {
            core: Mutex::new(core),
            clock: Clock::start(),
            changed: Condvar::new(),
            wake: Notify::new(),
            closing: AtomicBool::new(false),
        });
        let task = runtime.spawn(drive(client, subscriptions, Arc::clone(&shared)));
        Ok(Self {
            shared,
            runtime,
            task: Some(task),
        })
    }

    /// The time as the core is told it.
    pub(crate) fn now(&self) -> Duration {
        self.shared.now()
    }

    /// Asks something of the core.
    pub(crate) fn with<R>(&self, ask: impl FnOnce(&mut C) -> R) -> R {
        let answer = ask(&mut self.shared.lock());
        self.shared.wake.notify_one();
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
        // Reading may have made room for what could not be taken before.
        self.shared.wake.notify_one();
        found
    }
}

impl<C> Drop for Driver<C> {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        self.shared.wake.notify_one();
        if let Some(task) = self.task.take() {
            let _ = self.runtime.block_on(task);
        }
    }
}

async fn subscribe(client: &Client, subjects: &[String]) -> Result<SelectAll<Subscriber>, String> {
    let mut subscriptions = Vec::new();
    for subject in subjects {
        let subscribed = client.subscribe(subject.clone()).await;
        subscriptions.push(subscribed.map_err(|error| error.to_string())?);
    }
    client.flush().await.map_err(|error| error.to_string())?;
    Ok(select_all(subscriptions))
}

async fn drive<C: Core>(
    client: Client,
    mut subscriptions: SelectAll<Subscriber>,
    shared: Arc<Shared<C>>,
) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        // When the client gives up, time goes on, and silence is noticed.
        let came = tokio::select! {
            Some(message) = subscriptions.next() => Packet::from_bytes(&message.payload),
            _ = ticks.tick() => None,
            () = shared.wake.notified() => None,
        };
        let closing = shared.closing.load(Ordering::Relaxed);
        let now = shared.now();
        let (answer, due) = {
            let mut core = shared.lock();
            let answer = came.and_then(|packet| core.take(packet, now));
            (answer, core.tick(now))
        };
        shared.changed.notify_all();
        for (subject, packet) in answer.into_iter().chain(due) {
            // What is said into a broken connection would pile up and come too late.
            if client.connection_state() == State::Connected {
                let publish = client.publish(subject, packet.to_bytes().into());
                let _ = timeout(PUBLISH_WITHIN, publish).await;
            }
        }
        if closing {
            let _ = timeout(FLUSH_WITHIN, client.flush()).await;
            return;
        }
    }
}
