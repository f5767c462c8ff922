//! What passed a proxy, with or without toxics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use super::toxic::Direction;

/// What passed and what did not, since the proxy was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Connections that came, over UDP clients.
    pub connections: u64,
    /// Of these, those that are there now.
    pub open_connections: u64,
    /// Connections that were reset, over UDP datagrams dropped, because there were too many.
    pub refused: u64,
    /// Connections that were reset because the server could not be reached; over UDP datagrams
    /// that were not sent for that.
    pub unreachable: u64,
    /// Datagrams that were dropped because too much was held.
    pub overflowed_datagrams: u64,
    /// Bytes that reached the server.
    pub to_server_bytes: u64,
    /// Bytes that reached the client.
    pub to_client_bytes: u64,
}

/// The same while it is counted.
#[derive(Debug, Default)]
pub(super) struct TrafficCounters {
    pub(super) connections: AtomicU64,
    pub(super) open: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) unreachable: AtomicU64,
    pub(super) overflowed: AtomicU64,
    bytes: [AtomicU64; 2],
}

impl TrafficCounters {
    pub(super) fn passed(&self, direction: Direction, bytes: usize) {
        self.bytes[direction.index()].fetch_add(bytes as u64, Relaxed);
    }

    /// A connection came. Returns how many came before it; it ends when the guard is dropped.
    pub(super) fn opened(&self) -> (u64, OpenConnection<'_>) {
        self.open.fetch_add(1, Relaxed);
        (self.connections.fetch_add(1, Relaxed), OpenConnection(self))
    }

    pub(super) fn snapshot(&self) -> Traffic {
        let [to_server, to_client] = &self.bytes;
        Traffic {
            connections: self.connections.load(Relaxed),
            open_connections: self.open.load(Relaxed),
            refused: self.refused.load(Relaxed),
            unreachable: self.unreachable.load(Relaxed),
            overflowed_datagrams: self.overflowed.load(Relaxed),
            to_server_bytes: to_server.load(Relaxed),
            to_client_bytes: to_client.load(Relaxed),
        }
    }
}

/// A connection that counts as open.
pub(super) struct OpenConnection<'c>(&'c TrafficCounters);

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}
