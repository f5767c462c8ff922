//! Feeds of routers from a routing API.

pub mod http;
pub mod tcp;

/// Updates that wait for a router. When it falls behind this far we stop reading, the
/// server cuts us off, and we begin anew with a whole list.
const WAITING: usize = 1024;
