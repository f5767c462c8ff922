//! A connected client, as others reach it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::outbound::Outbound;
use super::sublist::Sub;

/// A connected client.
pub(super) struct Peer {
    pub(super) outbound: Outbound,
    /// It takes messages with headers.
    pub(super) headers: AtomicBool,
    /// It receives what it publishes itself.
    pub(super) echo: AtomicBool,
    /// PINGs that it did not answer yet.
    pub(super) unanswered: AtomicU32,
    subs: Mutex<HashMap<Box<[u8]>, Arc<Sub>>>,
}

impl Peer {
    pub(super) fn new(pending_bytes: usize) -> Self {
        Self {
            outbound: Outbound::new(pending_bytes),
            headers: AtomicBool::new(false),
            echo: AtomicBool::new(true),
            unanswered: AtomicU32::new(0),
            subs: Mutex::default(),
        }
    }

    /// Its subscriptions by their sid.
    pub(super) fn subs(&self) -> MutexGuard<'_, HashMap<Box<[u8]>, Arc<Sub>>> {
        self.subs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
