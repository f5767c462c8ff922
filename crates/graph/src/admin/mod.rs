//! The control server of a running graph: what it is, what it does, where its time goes;
//! and the collector of its spans.
//!
//! | Request | Answer |
//! |---|---|
//! | `GET /` | the page |
//! | `GET /ping` | `pong` |
//! | `GET /topology` | the graph: services, steps, edges, instances, revision |
//! | `GET /stats?seconds=5` | rates and latencies of the last seconds |
//! | `GET /metrics?names=testapi` | Prometheus' text |
//! | `GET /counters` | all counters as plain data that adds up |
//! | `GET /traces?slowest=20&seconds=60`, `?recent=50`, `?since=0` | traces, a line each |
//! | `GET /traces/ID?format=zipkin` | one trace |
//! | `GET /spans?limit=1000&seconds=60&path=/` | the spans of the last whole traces, as OTLP's JSON; `format=protobuf`, `zipkin`, `jaeger` |
//! | `GET /analysis?limit=1000&seconds=60&path=/` | where the time goes |
//! | `GET /profile`, `PUT /profile` | the topology file |
//! | `POST /api/v2/spans`, `POST /v1/traces` | takes spans of others |
//!
//! Times in answers are nanoseconds, rates are per second, ids are hexadecimal digits.
//! What is refused is answered with a JSON object whose `error` says why.

mod graph;
mod page;
mod peers;
mod server;
mod stats;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;

pub use peers::Peer;
pub use server::{Admin, AdminConfig, AdminPage};

use telemetry::prometheus::Page;

use crate::topology::{ServiceId, Topology};
use traces::Span;

/// Where an instance of a service is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// The service.
    pub service: ServiceId,
    /// Counted from 0.
    pub replica: u32,
    /// Where it takes requests.
    pub address: SocketAddr,
    /// Its process.
    pub pid: u32,
    /// The control server of its process, if that is not this one.
    pub admin: Option<SocketAddr>,
}

/// What the control server asks of the graph that runs. Calls may take time: they are
/// made on a thread where that hurts nobody.
pub trait Control: Send + Sync + 'static {
    /// The graph that is in force, and its revision.
    fn topology(&self) -> (Arc<Topology>, u32);

    /// Where all instances are.
    fn instances(&self) -> Vec<Instance>;

    /// How they are placed, the machine's facts, why the last profile was refused:
    /// whatever is worth knowing beside results.
    fn deployment(&self) -> serde_json::Value;

    /// The text of the profile that is in force.
    fn profile(&self) -> String;

    /// Puts another profile in force, and gives its revision. Otherwise the last good one
    /// stays, and the text says what is wrong and where.
    ///
    /// # Errors
    /// When it is not a graph, or one that cannot take the place of this one.
    fn put_profile(&self, text: &str) -> Result<u32, String>;

    /// Where the time of these requests went: the spans of each.
    ///
    /// # Errors
    /// When there is nothing to be said, and why.
    fn analysis(&self, traces: Vec<Vec<Span>>) -> Result<serde_json::Value, String>;

    /// Adds metrics of its own to the page: their names begin with `headroom_graph_`.
    fn metrics(&self, page: &mut Page) {
        let _ = page;
    }
}
