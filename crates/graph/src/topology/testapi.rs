//! The environment variables of testapi (mcastelino/testapi at ce72104) as a graph: one
//! service with its endpoints, and the one that it calls, which runs elsewhere.
//!
//! What differs from testapi is on purpose: busywork is 10 ms of processor time, not of
//! the clock; a failure of the called service is one of the caller too; a call ends after
//! [`TIMEOUT`] (with stress-ng [`LONG_TIMEOUT`]); `/stress-ng` and `/load` without a file
//! do no work and call on.

use std::fmt;
use std::path::PathBuf;

use url::Url;

use super::draft::{Draft, endpoint, step};
use super::names::{is_service_name, service_name};
use super::steps::MOST_PRIME;
use super::{Action, Call, Connections, Endpoint, Response, ServiceId, Topology, Tracing, Work};
use crate::Nanos;
use crate::amount::Amount;

/// Longest time for a call.
pub const TIMEOUT: Nanos = 10_000_000_000;

/// Longest time for a call that waits for stress-ng: its job files run for as long as they say.
pub const LONG_TIMEOUT: Nanos = 300_000_000_000;

/// Processor time of `/busywork`, in nanoseconds.
const BUSYWORK: f64 = 10_000_000.0;

/// Share of the requests without a decision of their client that are traced.
const SAMPLED: f64 = 0.01;

/// Connections to the called service: as many as testapi's clients use at most, and more.
const CONNECTIONS: Connections = Connections::Warm(1024);

const REPORTER: &str = "http://localhost:9411/api/v2/spans";

const METRICS_PORT: u16 = 8887;

/// An address as Go writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// A name or an IP address; empty: every address of the machine.
    pub host: String,
    /// The port; 0: any.
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(formatter, "[{}]:{}", self.host, self.port),
            false => write!(formatter, "{}:{}", self.host, self.port),
        }
    }
}

/// What the variables say.
#[derive(Debug, Clone, PartialEq)]
pub struct Configured {
    /// The service is the entry; the called one, if there is one, is the other.
    pub topology: Topology,
    /// Where requests are accepted (`UPSTREAM_URI`).
    pub listen: Address,
    /// The called service and where it is (`DOWNSTREAM_URI`).
    pub downstream: Option<(ServiceId, Address)>,
    /// Where metrics are served (`METRICS_PORT`).
    pub metrics_port: u16,
}

/// A variable that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is {found}; expected {expected}")]
pub struct VariableError {
    variable: &'static str,
    found: String,
    expected: &'static str,
}

/// Reads testapi's variables: `UPSTREAM_URI` (an address to listen on, without a scheme),
/// `DOWNSTREAM_URI` (`http://host:port`, to which the path of a request is appended as it
/// is), `SERVICE_NAME`, `PRIME_MAX`, `JOBFILE`, `LOADFILE`, `METRICS_PORT`, `REPORTER_URI`.
/// `host` is the machine's name, the service's if it has no other; `cpus` becomes the
/// number of workers.
///
/// # Errors
/// The first variable that cannot be used. `UPSTREAM_URI` must be there.
pub fn from_env(
    variable: impl Fn(&str) -> Option<String>,
    host: Option<&str>,
    cpus: u32,
) -> Result<Configured, VariableError> {
    // What is empty is not set, as in testapi.
    let variable = |name: &'static str| variable(name).filter(|value| !value.is_empty());
    let listen = listen(variable("UPSTREAM_URI"))?;
    let name = name(variable("SERVICE_NAME"), host)?;
    let downstream = variable("DOWNSTREAM_URI");
    let downstream = read("DOWNSTREAM_URI", downstream, DOWNSTREAM, callee)?;
    let primes = variable("PRIME_MAX");
    let primes = read(
        "PRIME_MAX",
        primes,
        "a whole number from 0 to 4000000000",
        |text| {
            text.parse()
                .ok()
                .filter(|most| *most <= u64::from(MOST_PRIME))
        },
    )?;
    let primes = primes.unwrap_or(0);
    let port = variable("METRICS_PORT");
    let port = read("METRICS_PORT", port, "a port from 0 to 65535", |text| {
        text.parse().ok()
    })?;
    let reporter = variable("REPORTER_URI").or_else(|| Some(REPORTER.to_owned()));
    let expected = "a URL such as \"http://localhost:9411/api/v2/spans\"";
    let reporter = read("REPORTER_URI", reporter, expected, |text| {
        Url::parse(text).ok().filter(|url| url.scheme() == "http")
    })?;
    let file = |name| variable(name).map(PathBuf::from);

    let mut draft = Draft::new(&name, 0);
    let own = draft.service(name.clone());
    let called = downstream.map(|(address, base)| {
        let other = if name == "downstream" {
            "downstream-2"
        } else {
            "downstream"
        };
        let other = draft.service(other.to_owned());
        if let Some(service) = draft.topology.services.last_mut() {
            // What it answers is its own affair.
            service.endpoints = vec![endpoint("*")];
        }
        (other, address, base)
    });
    let works = [
        ("/", None),
        ("/busywork", Some(Work::Cpu(Amount::Constant(BUSYWORK)))),
        ("/prime", (primes > 0).then_some(Work::Primes(primes))),
        ("/fork", Some(Work::Fork(vec!["date".to_owned()]))),
        (
            "/stress-ng",
            file("JOBFILE").map(|job| Work::StressNg { job }),
        ),
        (
            "/load",
            file("LOADFILE").map(|job| Work::StressNgBackground { job }),
        ),
        ("/load-status", Some(Work::StressNgStatus)),
    ];
    let mut endpoints = Vec::with_capacity(works.len());
    for (path, work) in works {
        let waits = matches!(path, "/stress-ng" | "/load-status");
        let call = called.as_ref().map(|(other, _, base)| Call {
            // Appended as it is, without a look at slashes.
            path: (!base.is_empty()).then(|| format!("{base}{path}")),
            timeout: if waits { LONG_TIMEOUT } else { TIMEOUT },
            ..draft.call(own, *other)
        });
        let actions = work.map(Action::Work).into_iter();
        let actions = actions.chain(call.map(Action::Call));
        endpoints.push(Endpoint {
            steps: actions.map(step).collect(),
            response: Response::Echo,
            ..endpoint(path)
        });
    }
    if let Some(service) = draft.topology.services.first_mut() {
        service.endpoints = endpoints;
        service.workers = cpus.clamp(1, super::MOST_WORKERS);
    }
    draft.topology.tracing = Tracing {
        sample: SAMPLED,
        zipkin: reporter,
        ..Tracing::default()
    };
    for edge in &mut draft.topology.edges {
        edge.connections = CONNECTIONS;
    }
    Ok(Configured {
        topology: draft.finish(own),
        listen,
        downstream: called.map(|(other, address, _)| (other, address)),
        metrics_port: port.unwrap_or(METRICS_PORT),
    })
}

/// Reads a variable, if it is set.
fn read<T>(
    variable: &'static str,
    value: Option<String>,
    expected: &'static str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, VariableError> {
    let value = value.map(|text| read(&text).ok_or_else(|| wrong(variable, &text, expected)));
    value.transpose()
}

fn wrong(variable: &'static str, found: &str, expected: &'static str) -> VariableError {
    VariableError {
        variable,
        found: format!("\"{found}\""),
        expected,
    }
}

fn listen(value: Option<String>) -> Result<Address, VariableError> {
    let expected = "an address to listen on, without a scheme, such as \"127.0.0.1:8888\"";
    read("UPSTREAM_URI", value, expected, address)?.ok_or_else(|| VariableError {
        variable: "UPSTREAM_URI",
        found: "not set".to_owned(),
        expected,
    })
}

/// `host:port`; an IPv6 address stands in brackets.
fn address(text: &str) -> Option<Address> {
    let (host, port) = text.rsplit_once(':')?;
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let outside = |character: char| ":/[] @".contains(character);
    let host = match bare {
        Some(inner) => inner.parse::<std::net::Ipv6Addr>().ok().map(|_| inner)?,
        None if host.contains(outside) => return None,
        None => host,
    };
    Some(Address {
        host: host.to_owned(),
        port: port.parse().ok()?,
    })
}

const DOWNSTREAM: &str = "a base such as \"http://127.0.0.1:8889\", to which paths are appended";

/// Where the called service is, and what stands before the path.
fn callee(value: &str) -> Option<(Address, String)> {
    let rest = value.strip_prefix("http://")?;
    let (authority, base) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    let address = match authority.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => address(authority)?,
        _ => address(&format!("{authority}:80"))?,
    };
    // A path must follow: whatever has a question mark is none.
    let plain = base.is_empty() || super::steps::is_path(base) && !base.contains(['?', '#']);
    (plain && !address.host.is_empty()).then(|| (address, base.to_owned()))
}

fn name(value: Option<String>, host: Option<&str>) -> Result<String, VariableError> {
    let expected = "a name of 1 to 63 letters, digits, and inner dashes and underscores";
    match value {
        Some(name) if is_service_name(&name.to_ascii_lowercase()) => Ok(name),
        Some(name) => Err(wrong("SERVICE_NAME", &name, expected)),
        // The machine's name without its domain.
        None => Ok(host
            .and_then(|host| host.split('.').next())
            .map(service_name)
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "service".to_owned())),
    }
}
