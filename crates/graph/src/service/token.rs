//! What an event of the poller is about: kinds of [`Key::token`](wire::slab::Key::token).

/// A caller's connection.
pub(super) const SESSION: u32 = 0;
/// A connection to a callee.
pub(super) const LINK: u32 = 1;
/// The listener of an instance, by its place in the thread.
pub(super) const LISTENER: u32 = 2;
/// Another thread calls.
pub(super) const WAKER: u32 = 3;
/// A caller's connection of HTTP/2.
pub(super) const FRONT: u32 = 4;
/// A connection of HTTP/2 to a callee.
pub(super) const CHANNEL: u32 = 5;
