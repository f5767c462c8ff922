//! TLS over sockets that never block.

mod certificate;
mod client;
mod der;
mod failure;
mod hello;
mod pem;
mod rules;
mod server;
mod stream;
mod subject;
mod suites;
#[cfg(test)]
mod tests;
mod verify;

pub use client::{TlsClient, TlsOptions};
pub use failure::TlsFailure;
pub(crate) use failure::cause;
pub use hello::{Hello, MOST_HELLO, client_hello_name, looks_like_http};
pub use pem::TlsOptionsError;
pub use rules::SubjectRule;
pub use server::{ClientProof, TlsServer, TlsServerOptions, check_subject_rules};
pub use stream::TlsStream;
pub use subject::{Attribute, Subject};
pub use suites::cipher_suite;

/// Protocols to agree on as rustls takes them.
fn protocols(names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}
