//! The thread that carries one side of the protocol: NATS in, NATS out, and the time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::{Client, Subscriber};
use futures_util::StreamExt;
use futures_util::stream::{SelectAll, select_all};
use lab_load::GenerateError;
use measure::Clock;
use tokio::sync::Notify;

use super::nats::{self, Nats};

/// Time between looks at the clock when nothing comes.
const TICK: Duration = Duration::from_millis(20);
/// Longest wait for the client to take a frame; after it the frame is dropped, and
/// sent again later.
const PUBLISH_WITHIN: Duration = Duration::from_secs(1);
/// Longest wait, at the end, for what was said last to leave.
const FLUSH_WITHIN: Duration = Duration::from_millis(500);

/// One side of the protocol. Pure: it is told what came and how late it is (time since
/// its begin), and is asked what shall leave.
pub(crate) trait Core: Send + 'static {
    /// What it listens on.
    fn subjects(&self) -> Vec<String>;
    /// Something came.
    fn take(&mut self, subject: &str, payload: &[u8], now: Duration);
    /// Time has passed.
    fn tick(&mut self, now: Duration);
    /// What leaves next: subject and payload.
    fn outgoing(&mut self) -> Option<(String, Vec<u8>)>;
}

/// A core with the thread that drives it.
#[derive(Debug)]
pub(crate) struct Driver<C> {
    shared: Arc<Shared<C>>,
    clock: Clock,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared<C> {
    core: Mutex<C>,
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
}

impl<C: Core> Driver<C> {
    /// Connects, and drives the core that `make` builds from the own clock and the
    /// server's largest payload.
    pub(crate) fn start(
        nats: &Nats,
        make: impl FnOnce(&Clock, usize) -> C + Send + 'static,
    ) -> Result<Self, GenerateError> {
        let clock = Clock::start();
        let (started, answer) = mpsc::sync_channel(1);
        let nats = nats.clone();
        let thread = std::thread::Builder::new()
            .name("nats".into())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                let runtime = match runtime {
                    Ok(runtime) => runtime,
                    Err(error) => {
                        let _ = started.send(Err(nats::error(&nats, error.to_string(), None)));
                        return;
                    }
                };
                runtime.block_on(async {
                    let opened = open(&nats, clock, make).await;
                    match opened {
                        Err(error) => {
                            let _ = started.send(Err(error));
                        }
                        Ok((client, subscriptions, shared)) => {
                            let _ = started.send(Ok(Arc::clone(&shared)));
                            drive(&client, subscriptions, &shared, clock.origin()).await;
                        }
                    }
                });
            })
            .map_err(|error| GenerateError {
                doing: "start a thread for NATS".into(),
                found: error.to_string(),
                help: None,
            })?;
        let shared = answer.recv().unwrap_or_else(|_| {
            Err(GenerateError {
                doing: "start a thread for NATS".into(),
                found: "it ended at once".into(),
                help: None,
            })
        })?;
        Ok(Self {
            shared,
            clock,
            thread: Some(thread),
        })
    }

    /// Time since the core's begin.
    pub(crate) fn now(&self) -> Duration {
        self.clock.origin().elapsed()
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
        let until = Instant::now() + within;
        let mut core = self.shared.lock();
        loop {
            if let Some(found) = ready(&mut core) {
                drop(core);
                // Reading may have made room for what could not be taken before.
                self.shared.wake.notify_one();
                return Some(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let woken = self.shared.changed.wait_timeout(core, left);
            core = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl<C> Drop for Driver<C> {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

type Opened<C> = (Client, SelectAll<Subscriber>, Arc<Shared<C>>);

async fn open<C: Core>(
    nats: &Nats,
    clock: Clock,
    make: impl FnOnce(&Clock, usize) -> C,
) -> Result<Opened<C>, GenerateError> {
    let client = nats.connect().await?;
    let core = make(&clock, client.max_payload());
    let mut subscriptions = Vec::new();
    for subject in core.subjects() {
        let subscribed = client.subscribe(subject).await;
        subscriptions.push(subscribed.map_err(|error| nats::error(nats, error.to_string(), None))?);
    }
    let flushed = client.flush().await;
    flushed.map_err(|error| nats::error(nats, error.to_string(), None))?;
    let shared = Shared {
        core: Mutex::new(core),
        changed: Condvar::new(),
        wake: Notify::new(),
        closing: AtomicBool::new(false),
    };
    Ok((client, select_all(subscriptions), Arc::new(shared)))
}

async fn drive<C: Core>(
    client: &Client,
    mut subscriptions: SelectAll<Subscriber>,
    shared: &Shared<C>,
    origin: Instant,
) {
    let mut listening = true;
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            message = subscriptions.next(), if listening => match message {
                Some(message) => {
                    let now = origin.elapsed();
                    shared.lock().take(message.subject.as_str(), &message.payload, now);
                }
                // The client has given up. Time goes on, and silence is noticed.
                None => listening = false,
            },
            _ = ticks.tick() => {}
            () = shared.wake.notified() => {}
        }
        shared.lock().tick(origin.elapsed());
        shared.changed.notify_all();
        send(client, shared).await;
        if shared.closing.load(Ordering::Relaxed) {
            let _ = tokio::time::timeout(FLUSH_WITHIN, client.flush()).await;
            return;
        }
    }
}

async fn send<C: Core>(client: &Client, shared: &Shared<C>) {
    loop {
        let next = shared.lock().outgoing();
        let Some((subject, payload)) = next else {
            return;
        };
        // What is said into a broken connection would pile up and come too late.
        if client.connection_state() == State::Connected {
            let publish = client.publish(subject, payload.into());
            let _ = tokio::time::timeout(PUBLISH_WITHIN, publish).await;
        }
    }
}
