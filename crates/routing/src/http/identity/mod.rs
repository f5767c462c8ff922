//! Identity-aware routing (Cloud Foundry RFC-0055): domains whose clients prove themselves
//! by a certificate, and routes that say who may call them. Pure.
//!
//! ```text
//! ClientHello ──▶ find: whose TLS settings? ──▶ handshake ──▶ Caller
//! request ──▶ fits_handshake (421) ──▶ Rules::admit (403) ──▶ endpoint ──▶ Rules::reaches (403)
//! ```

mod caller;
mod domain;
mod rules;
#[cfg(test)]
mod tests;

pub use caller::{Caller, CallerIdentity};
pub use domain::{CertificateFormat, MtlsDomain, fault, find, fits_handshake};
pub use rules::{Denial, Rules};
