//! HTTP/1.1 and HTTP/2 over bytes, other request-answer protocols, TLS and sockets, for
//! clients and servers that have an event loop on each thread.

pub mod clock;
pub mod deadlines;
pub mod floor;
pub mod framing;
pub mod http1;
pub mod http2;
pub mod listeners;
pub mod poller;
pub mod proxy_protocol;
pub mod resp;
pub mod signal;
pub mod slab;
pub mod socket;
pub mod stream;
pub mod threads;
pub mod timed;
pub mod tls;
pub mod websocket;
