//! HTTP/1.1 over bytes, other request-answer protocols, and an event loop for clients.

pub mod clock;
pub mod framing;
pub mod http1;
pub mod http2;
pub mod poller;
pub mod proxy_protocol;
pub mod socket;
pub mod stream;
pub mod tls;
pub mod websocket;
