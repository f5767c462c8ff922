//! Ports that a test names before somebody listens there.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// A port that nobody has. Below those that systems hand out themselves, so that no other
/// socket is given it before somebody listens there.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let own = std::process::id().wrapping_mul(61);
        let number = own.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = 10_000 + (number % 20_000) as u16;
        if TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok() {
            return port;
        }
    }
}
