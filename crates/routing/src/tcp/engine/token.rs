//! What an event of the poller is about: kinds of [`Key::token`](wire::slab::Key::token).

/// Another thread has an order for this one.
pub(super) const WAKER: u32 = 0;
/// A listener.
pub(super) const LISTENER: u32 = 1;
/// A session's client.
pub(super) const CLIENT: u32 = 2;
/// A session's backend.
pub(super) const BACKEND: u32 = 3;
