//! What happens to a request and to its answer, without any socket.
//!
//! ```text
//! admit ──▶ refused: write_refusal, write_health
//!   │
//!   ▼
//! write_request (each attempt) ──▶ failed: retry::judge
//!   │
//!   ▼
//! write_answer, write_trailers ──▶ access_log::write_line
//! ```
//!
//! What is sent follows gorouter a602bb6 byte for byte, dates and ids aside: the order of
//! its handlers, the names and the order of header fields as Go writes them, the texts of
//! its errors.

mod admit;
mod answer;
mod client;
mod error_template;
mod exchange;
pub(crate) mod fields;
mod head_size;
mod reason;
mod refusal;
mod request;
pub mod retry;
mod route_pass;
mod sticky;
pub(super) mod target;
#[cfg(test)]
mod tests;
pub(crate) mod text;
mod trace;

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

pub use answer::{Answer, ClientBody, Promise};
pub use client::{Client, TlsFacts};
pub use error_template::{ErrorTemplate, ErrorTemplateError};
pub use exchange::{Exchange, Progress, RouteService, Times, Upgrade};
pub use refusal::Refusal;
pub(crate) use target::unescaped;

use super::route_service::{HairpinHosts, Networks, Signer};
use super::settings::HttpSettings;

/// What to do with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Answer it with [`Pipeline::write_refusal`].
    Answer(Refusal),
    /// Answer it with [`Pipeline::write_health`].
    HealthCheck,
    /// Send it to an endpoint of [`Exchange::pool`], or to [`Exchange::route_service`].
    Forward,
}

/// The rules for requests and answers of one router. What settings say as text is
/// prepared once, so that nothing of it is worked out for a request.
#[derive(Debug)]
pub struct Pipeline {
    settings: Arc<HttpSettings>,
    /// The router's own address.
    address: String,
    /// Fields for answers that lack them, names canonical.
    added: Vec<(String, String)>,
    template: Option<ErrorTemplate>,
    signer: Option<Signer>,
    /// Route services that are called through this router; `None`: none is.
    hairpin: Option<HairpinHosts>,
    /// Where no route service is called.
    blocked: Networks,
    /// Names of request fields that are logged: as fields have them, and as the log does.
    logged: Vec<(String, String)>,
}

impl Pipeline {
    /// The rules that the settings ask for. An error template that cannot be read is left
    /// out; [`ErrorTemplate::parse`] says what is wrong with it.
    pub fn new(settings: Arc<HttpSettings>) -> Self {
        let headers = &settings.headers;
        let added = headers.add.iter();
        let template = settings.error_template.as_deref();
        Self {
            address: settings.address.to_string(),
            added: added
                .filter(|(name, _)| !frames(name))
                .map(|(name, value)| (canonical(name), value.clone()))
                .collect(),
            template: template.and_then(|text| ErrorTemplate::parse(text).ok()),
            signer: Signer::new(
                &settings.route_services.secret,
                &settings.route_services.secret_previous,
            ),
            hairpin: settings
                .route_services
                .hairpin
                .then(|| HairpinHosts::new(&settings.route_services.hairpin_hosts)),
            blocked: Networks::new(&settings.route_services.blocked_networks),
            logged: logged(&settings),
            settings,
        }
    }

    /// The settings.
    pub fn settings(&self) -> &Arc<HttpSettings> {
        &self.settings
    }

    /// Whether a route service at an address may be called.
    pub(super) fn may_call(&self, address: IpAddr) -> bool {
        !self.blocked.hold(address)
    }

    /// Names of request fields that are logged: as fields have them, and as the log does.
    pub(super) fn logged(&self) -> &[(String, String)] {
        &self.logged
    }
}

/// Whether a field says how a message or a connection ends: settings cannot.
fn frames(name: &str) -> bool {
    ["Connection", "Content-Length", "Transfer-Encoding"]
        .iter()
        .any(|framing| name.eq_ignore_ascii_case(framing))
}

fn canonical(name: &str) -> String {
    let mut first = true;
    let spelled = name.chars().map(|letter| {
        let upper = std::mem::replace(&mut first, letter == '-');
        if upper {
            letter.to_ascii_uppercase()
        } else {
            letter.to_ascii_lowercase()
        }
    });
    spelled.collect()
}

/// The fields that the settings name, and those of traces, each once.
fn logged(settings: &HttpSettings) -> Vec<(String, String)> {
    let mut names = settings.access_log.extra_headers.clone();
    let mut trace = |traced: bool, more: &[&str]| {
        if traced {
            names.extend(more.iter().map(|name| (*name).to_owned()));
        }
    };
    let b3 = ["x-b3-traceid", "x-b3-spanid", "x-b3-parentspanid", "b3"];
    trace(settings.tracing.zipkin, &b3);
    trace(settings.tracing.w3c, &["traceparent", "tracestate"]);
    // As in gorouter, to which a name in another case is another name.
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let label = |name: &String| name.to_ascii_lowercase().replace('-', "_");
    names
        .iter()
        .map(|name| (canonical(name), label(name)))
        .collect()
}
