//! TLS over sockets that never block.

mod client;
mod failure;
mod hello;
mod pem;
mod server;
mod stream;
mod subject;
#[cfg(test)]
mod tests;
mod verify;

pub use client::{TlsClient, TlsOptions};
pub use failure::TlsFailure;
pub(crate) use failure::cause;
pub use hello::{Hello, MOST_HELLO, client_hello_name};
pub use pem::TlsOptionsError;
pub use server::{ClientProof, TlsServer, TlsServerOptions};
pub use stream::TlsStream;
pub use subject::{Attribute, Subject};
