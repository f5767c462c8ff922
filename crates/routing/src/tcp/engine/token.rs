//! What an event of the poller is about: kinds of [`Key::token`](wire::slab::Key::token).

/// A session's client.
pub(super) const CLIENT: u32 = 0;
/// A session's backend.
pub(super) const BACKEND: u32 = 1;
