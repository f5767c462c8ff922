//! What an event of the poller is about: kinds of [`Key::token`](wire::slab::Key::token).

/// A client's connection.
pub(super) const CLIENT: u32 = 0;
/// A connection to a backend.
pub(super) const BACKEND: u32 = 1;
/// A listener, by its number.
pub(super) const LISTENER: u32 = 2;
/// A client's connection of HTTP/2.
pub(super) const FRONT: u32 = 3;
/// A backend's connection of HTTP/2.
pub(super) const BACK: u32 = 4;
/// Another thread calls.
pub(super) const WAKER: u32 = 5;
