//! What an event of the poller is about: kinds of [`Key::token`](wire::slab::Key::token).

/// A client's connection.
pub(super) const CLIENT: u32 = 0;
/// A connection to a backend.
pub(super) const BACKEND: u32 = 1;
/// A client's connection of HTTP/2.
pub(super) const HTTP2_CLIENT: u32 = 2;
/// A backend's connection of HTTP/2.
pub(super) const BACK: u32 = 3;
