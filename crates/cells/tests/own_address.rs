//! Addresses that a test names before somebody listens there.

use std::net::{Ipv4Addr, SocketAddr};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

/// An address that nobody else takes, also while nobody listens there: the host belongs to this
/// process alone, and connections to it come from another one, 127.0.0.1.
pub(crate) fn own_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    let [_, high, middle, low] = process::id().to_be_bytes();
    let host = Ipv4Addr::new(127, 64 | high, middle, low);
    (host, NEXT.fetch_add(1, Ordering::Relaxed)).into()
}
