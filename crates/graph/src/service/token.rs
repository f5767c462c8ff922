//! What an event of the poller is about: kinds of [`Key::token`](wire::slab::Key::token).

/// A caller's connection.
pub(super) const SESSION: u32 = 0;
/// A connection to a callee.
pub(super) const LINK: u32 = 1;
/// A caller's connection of HTTP/2.
pub(super) const HTTP2_CALLER: u32 = 2;
/// A connection of HTTP/2 to a callee.
pub(super) const CHANNEL: u32 = 3;
