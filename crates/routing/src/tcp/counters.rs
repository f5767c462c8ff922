//! What a TCP router counts. Threads add to these numbers once for each connection, and
//! now and then for its bytes: never for each piece that they carry.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Upper bounds of the connect time's buckets, in microseconds; above them is one more.
pub const CONNECT_BOUNDS: [u64; 12] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000, 5_000_000, 30_000_000,
];

/// How a connection of a client ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Both sides said all they had to say.
    Finished,
    /// The client's side broke.
    ClientBroke,
    /// The backend's side broke.
    BackendBroke,
    /// Neither side said anything for too long.
    Idle,
    /// There was no route for it.
    NoRoute,
    /// No backend could be reached.
    NoBackend,
    /// The handshake of TLS with the client failed, or took too long.
    ClientTls,
    /// The router stopped.
    Stopped,
}

impl End {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Finished,
        Self::ClientBroke,
        Self::BackendBroke,
        Self::Idle,
        Self::NoRoute,
        Self::NoBackend,
        Self::ClientTls,
        Self::Stopped,
    ];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::ClientBroke => "client_broke",
            Self::BackendBroke => "backend_broke",
            Self::Idle => "idle",
            Self::NoRoute => "no_route",
            Self::NoBackend => "no_backend",
            Self::ClientTls => "client_tls",
            Self::Stopped => "stopped",
        }
    }
}

/// Numbers of a whole router. All but `active` only rise.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections of clients that are open.
    pub active: AtomicU64,
    /// Connections of clients so far.
    pub accepted: AtomicU64,
    /// Connections that waited in the kernel's queue because of a limit: how often a port
    /// was not accepted from.
    pub held_back: AtomicU64,
    /// Accepts that failed, but for want of a connection.
    pub accept_errors: AtomicU64,
    /// Bytes from clients to backends, up to date to a second.
    pub sent: AtomicU64,
    /// Bytes from backends to clients, up to date to a second.
    pub received: AtomicU64,
    ends: [AtomicU64; End::ALL.len()],
    /// By cause.
    dial_errors: Mutex<BTreeMap<&'static str, u64>>,
    connect_times: [AtomicU64; CONNECT_BOUNDS.len() + 1],
    connect_micros: AtomicU64,
}

impl Counters {
    /// A connection of a client ended.
    pub fn ended(&self, end: End) {
        self.ends[end as usize].fetch_add(1, Relaxed);
        self.active.fetch_sub(1, Relaxed);
    }

    /// How many ended in this way.
    pub fn ends(&self, end: End) -> u64 {
        self.ends[end as usize].load(Relaxed)
    }

    /// A backend could not be reached.
    pub fn dial_failed(&self, cause: &'static str) {
        let mut errors = self.locked_dial_errors();
        *errors.entry(cause).or_default() += 1;
    }

    /// Attempts to reach a backend that failed, by cause, without those that never happened.
    pub fn dial_errors(&self) -> BTreeMap<&'static str, u64> {
        self.locked_dial_errors().clone()
    }

    fn locked_dial_errors(&self) -> MutexGuard<'_, BTreeMap<&'static str, u64>> {
        let locked = self.dial_errors.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }

    /// A backend was reached after so long, TLS included.
    pub fn connected_after(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = CONNECT_BOUNDS.iter().position(|bound| micros <= *bound);
        self.connect_times[bucket.unwrap_or(CONNECT_BOUNDS.len())].fetch_add(1, Relaxed);
        self.connect_micros.fetch_add(micros, Relaxed);
    }

    /// Connect times: how many fell into each bucket (the last: above all bounds), and
    /// their sum in microseconds.
    pub fn connect_times(&self) -> ([u64; CONNECT_BOUNDS.len() + 1], u64) {
        let mut counts = [0; CONNECT_BOUNDS.len() + 1];
        for (count, bucket) in counts.iter_mut().zip(&self.connect_times) {
            *count = bucket.load(Relaxed);
        }
        (counts, self.connect_micros.load(Relaxed))
    }
}

/// Numbers of one port. All but `active` only rise.
#[derive(Debug, Default)]
pub struct PortCounters {
    /// Connections of clients that are open.
    pub active: AtomicU64,
    /// Connections of clients so far.
    pub accepted: AtomicU64,
    /// Bytes from clients to backends, up to date to a second.
    pub sent: AtomicU64,
    /// Bytes from backends to clients, up to date to a second.
    pub received: AtomicU64,
    /// Attempts to reach a backend that failed.
    pub dial_errors: AtomicU64,
}
