//! A connection whose streams are in several hands, all of one thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::codec::{Connection, StreamKey};
use crate::signal::Signal;

/// The connection, and who is told of what happens to its streams. The lock is never waited
/// for.
#[derive(Debug)]
pub(super) struct Shared {
    inner: Mutex<Inner>,
    /// Rings when streams have left something to do for the connection's drive.
    signal: Signal,
    woken: AtomicBool,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) connection: Connection,
    /// By slot.
    signals: Vec<Option<Signal>>,
    /// Waits for a free stream.
    opener: Option<Signal>,
}

impl Shared {
    pub(super) fn new(connection: Connection) -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::new(Inner {
                connection,
                signals: Vec::new(),
                opener: None,
            }),
            signal: Signal::default(),
            woken: AtomicBool::new(false),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for another drive.
    pub(super) fn wake(&self) {
        self.woken.store(true, Ordering::Relaxed);
        self.signal.ring();
    }

    /// The drive that was asked for begins.
    pub(super) fn begin(&self) {
        self.signal.hush();
        self.woken.store(false, Ordering::Relaxed);
    }

    pub(super) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Relaxed)
    }

    pub(super) fn signal(&self) -> &Signal {
        &self.signal
    }
}

impl Inner {
    /// Wakes the streams that something happened to.
    pub(super) fn wake_streams(&mut self) {
        while let Some(key) = self.connection.touched() {
            if let Some(Some(signal)) = self.signals.get(key.slot()) {
                signal.ring();
            }
        }
    }

    /// Rings `signal` when something happens to a stream.
    pub(super) fn watch(&mut self, key: StreamKey, signal: &Signal) {
        let slot = key.slot();
        if self.signals.len() <= slot {
            self.signals.resize(slot + 1, None);
        }
        self.signals[slot] = Some(signal.clone());
    }

    /// Rings once a stream may be opened, or never will be.
    pub(super) fn await_opening(&mut self, signal: Signal) {
        self.opener = Some(signal);
    }

    /// Wakes whoever waits for a free stream.
    pub(super) fn wake_opener(&mut self) {
        let waits = self.connection.ready() == Err(super::Http2Error::Full);
        if !waits && let Some(signal) = self.opener.take() {
            signal.ring();
        }
    }
}

/// A stream that somebody has. Dropped, it is given up.
#[derive(Debug)]
pub(super) struct Handle {
    shared: Arc<Shared>,
    key: StreamKey,
}

impl Handle {
    /// The stream of a key that nobody else has.
    pub(super) fn new(shared: &Arc<Shared>, key: StreamKey) -> Self {
        Self {
            shared: Arc::clone(shared),
            key,
        }
    }

    /// Rings `signal` when something happens to the stream.
    pub(super) fn watch(&self, signal: &Signal) {
        self.shared.lock().watch(self.key, signal);
    }

    /// Does something with the stream. What is to be sent goes out with the next drive.
    pub(super) fn with<T>(&self, what: impl FnOnce(&mut Connection, StreamKey) -> T) -> T {
        let inner = &mut *self.shared.lock();
        let done = what(&mut inner.connection, self.key);
        inner.wake_streams();
        if !inner.connection.out().is_empty() {
            self.shared.wake();
        }
        done
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let inner = &mut *self.shared.lock();
        if let Some(signal) = inner.signals.get_mut(self.key.slot()) {
            *signal = None;
        }
        inner.connection.release(self.key);
        inner.wake_streams();
        inner.wake_opener();
        // The last one may be the connection's end.
        if !inner.connection.out().is_empty() || inner.connection.open_streams() == 0 {
            self.shared.wake();
        }
    }
}
