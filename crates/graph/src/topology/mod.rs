//! A service graph as plain data: services, the steps of their requests, the calls
//! between them.
//!
//! Everything here has been checked: names are resolved, amounts are finite, the graph of
//! services has no cycle, but for calls between endpoints of one service, which have none. Times are nanoseconds, sizes are bytes.

mod amounts;
pub mod budget;
pub mod demand;
mod draft;
mod fields;
pub mod generate;
pub mod import;
mod names;
mod print;
mod read;
mod rules;
mod services;
mod settings;
mod steps;
pub mod testapi;
#[cfg(test)]
mod tests;
mod value;
mod walk;

use std::path::PathBuf;

use crate::Nanos;
use crate::amount::Amount;

#[cfg(test)]
pub(crate) use read::of_text;
pub use read::{Checked, Machine, check, read};

/// Longest time for an attempt of a call that does not say.
pub const TIMEOUT: Nanos = 1_000_000_000;

/// Connections of an edge whose calls do not say.
pub const CONNECTIONS: Connections = Connections::Warm(64);

/// Most connections of an edge that makes a new one for each call and does not say.
pub const COLD_CONNECTIONS: u32 = 64;

/// The body of an answer that does not say: 1 KiB.
pub const RESPONSE: Response = Response::Bytes(Amount::Constant(1024.0));

/// Workers of a service that does not say.
pub const WORKERS: u32 = 2;

/// Requests that may wait for a worker of a service that does not say.
pub const QUEUE: u32 = 1024;

/// Most instances of a service.
pub const MOST_REPLICAS: u32 = 1000;

/// Most connections of an edge.
pub const MOST_CONNECTIONS: u32 = 65_535;

/// Most workers of an instance, and most threads of a background load.
pub const MOST_WORKERS: u32 = 256;

/// Most requests that may wait for a worker.
pub const MOST_QUEUE: u32 = 1_000_000;

/// A service of a topology, by its place in [`Topology::services`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceId(pub u32);

/// An edge of a topology, by its place in [`Topology::edges`]: all calls from one service
/// to another share it, and its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EdgeId(pub u32);

/// A step of a service, counted from 1 over all its endpoints in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId(pub u32);

/// A checked service graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// For people.
    pub name: String,
    /// Fixes every draw. See [`crate::draw`].
    pub seed: u64,
    /// In the order of the file.
    pub services: Vec<Service>,
    /// In the order of their first call.
    pub edges: Vec<Edge>,
    /// Where requests of clients enter.
    pub entry: ServiceId,
    /// Which requests are traced, and where spans go.
    pub tracing: Tracing,
    /// Work that goes on beside the requests.
    pub background: Vec<Background>,
}

/// One service.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// Its own; unique. 1 to 63 characters, as a label of DNS (RFC 1123) that may have inner
    /// underscores.
    pub name: String,
    /// What it speaks to those who call it.
    pub protocol: Protocol,
    /// Instances, each with an address; callers take them in turn. At least 1.
    pub replicas: u32,
    /// Threads for work that would hold up other requests, for each instance; 0: none,
    /// all work is done where requests are read. See [`crate::work`].
    pub workers: u32,
    /// Requests that may wait for a worker; beyond, the answer is 503.
    pub queue: u32,
    /// What it answers, by path; at least one. A path without an endpoint is 404, unless
    /// there is the path `*`, which takes all that no other takes.
    pub endpoints: Vec<Endpoint>,
    /// What goes wrong, by chance.
    pub faults: Faults,
    /// Where it may run, and how much it may use.
    pub placement: Placement,
    /// Labels for manifests.
    pub labels: Vec<(String, String)>,
}

/// What a service does for one path.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    /// Starts with `/`; or `*`.
    pub path: String,
    /// Done in order, before the answer. Their ids grow in the order of the file.
    pub steps: Vec<Step>,
    /// The body of the answer.
    pub response: Response,
    /// The time from the first byte of a request to its answer if nothing is called and
    /// no work is done: an answer that is ready before is held back. [`Amount::ZERO`]: not.
    pub latency: Amount,
    /// Draws of `latency`, sizes and faults use this as their step.
    pub step: StepId,
}

/// The body of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Response {
    /// So many bytes, always of the same text.
    Bytes(Amount),
    /// `hello:SERVICE:PATH`, and behind a colon each the bodies of the calls' answers, in
    /// the order of the steps (testapi's).
    Echo,
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Names it in draws, metrics and spans.
    pub id: StepId,
    /// What is done.
    pub action: Action,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Own work.
    Work(Work),
    /// Calls another service.
    Call(Call),
    /// One after the other.
    Sequence(Vec<Step>),
    /// All at once.
    Parallel {
        /// Begun in this order, without waiting.
        branches: Vec<Step>,
        /// When the step is done.
        join: Join,
    },
}

/// When branches that run at once are done. What still runs then goes on unseen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// All have ended. One failure is the step's failure.
    All,
    /// So many have ended well; too few that still can is the step's failure.
    Quorum(u32),
}

/// A call of another service.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Whose connections it uses; says who is called.
    pub edge: EdgeId,
    /// The path that is asked for; `None`: that of the request at hand.
    pub path: Option<String>,
    /// Share of requests that make it, 0 to 1.
    pub probability: f64,
    /// How often it is made, all at once; rounded to a whole number.
    pub count: Amount,
    /// Bytes of the request's body; 0: a GET without a body.
    pub request: Amount,
    /// Longest time for an attempt. What the request at hand has left bounds it too, if the
    /// step waits.
    pub timeout: Nanos,
    /// Attempts after a failed first one: no answer, or a status from 500. Within the
    /// call's timeout times all attempts and the request's deadline.
    pub retries: u32,
    /// Pause before an attempt that follows a failed one.
    pub backoff: Nanos,
    /// Whether the step waits for the answer, and fails with it.
    pub wait: bool,
}

/// Own work. See [`crate::work`] for how each is done and what is measured.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Processor time of the thread, in nanoseconds.
    Cpu(Amount),
    /// A constant number of steps of a generator, whatever time they take.
    Ops(Amount),
    /// Every prime up to a number, by a segmented sieve.
    Primes(u64),
    /// Walks over memory that it keeps.
    Memory {
        /// Bytes of the working set, of the whole instance.
        set: u64,
        /// Cache lines that are touched.
        touches: Amount,
    },
    /// Starts a program and waits for its end; a status other than 0 is a failure.
    Fork(Vec<String>),
    /// A file of the instance.
    Disk {
        /// Bytes that are read.
        read: Amount,
        /// Bytes that are written.
        write: Amount,
        /// Whether what was written must be on the disk.
        sync: bool,
    },
    /// Holds a lock that all steps with its name share, of all services of the process.
    Lock {
        /// Its name.
        name: String,
        /// Processor time with the lock held, in nanoseconds.
        hold: Amount,
    },
    /// Nothing, for a time.
    Sleep(Amount),
    /// stress-ng with a job file, to its end.
    StressNg {
        /// Read anew for every request.
        job: PathBuf,
    },
    /// stress-ng with a job file beside the requests: begun, and not waited for; one that
    /// runs already is let be (testapi's `/load`).
    StressNgBackground {
        /// The job file.
        job: PathBuf,
    },
    /// Waits until no stress-ng of the background runs (testapi's `/load-status`).
    StressNgStatus,
}

/// All calls from one service to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// Who calls.
    pub from: ServiceId,
    /// Who is called.
    pub to: ServiceId,
    /// Connections, from each instance of the caller to each of the callee.
    pub connections: Connections,
}

/// How connections are kept. Over HTTP/2 and gRPC, one warm connection carries all calls at
/// once, up to the number here; cold ones carry one call each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connections {
    /// Kept, up to so many; calls beyond wait for one.
    Warm(u32),
    /// A new one for each call, up to so many at once.
    Cold(u32),
}

/// What is spoken over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2 without TLS, known beforehand (RFC 9113 section 3.3).
    Http2,
    /// gRPC: messages of bytes to `/headroom.graph.Service/Call`, over such HTTP/2.
    Grpc,
}

impl Protocol {
    /// Every one.
    pub(crate) const ALL: [Self; 3] = [Self::Http1, Self::Http2, Self::Grpc];

    /// As in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http1",
            Self::Http2 => "http2",
            Self::Grpc => "grpc",
        }
    }
}

/// What goes wrong in a service, by chance. Shares are 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Faults {
    /// Share of requests that are answered with `status`, before any step.
    pub error: f64,
    /// 400 to 599.
    pub status: u16,
    /// Share of requests whose connection is closed without an answer.
    pub drop: f64,
    /// Share of requests that are held back.
    pub delay_rate: f64,
    /// How long those are held back, before any step.
    pub delay: Amount,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            error: 0.0,
            status: 503,
            drop: 0.0,
            delay_rate: 0.0,
            delay: Amount::ZERO,
        }
    }
}

/// Where a service may run, and how much it may use.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Placement {
    /// Processors, counted from 0; empty: any.
    pub cpus: Vec<u32>,
    /// Most processor time for each time that passes, in processors.
    pub cpu_limit: Option<f64>,
    /// Most memory.
    pub memory_limit: Option<u64>,
}

/// Which requests are traced.
#[derive(Debug, Clone, PartialEq)]
pub struct Tracing {
    /// Share of the requests without a decision of their client, 0 to 1.
    pub sample: f64,
    /// Whether `traceparent` is sent (W3C); it is always read.
    pub w3c: bool,
    /// Whether `X-B3-…` is sent (Zipkin); it is always read.
    pub b3: bool,
    /// Spans go there in Zipkin's form (v2, JSON).
    pub zipkin: Option<url::Url>,
    /// Spans go there in OTLP's form (protobuf over HTTP).
    pub otlp: Option<url::Url>,
}

impl Tracing {
    /// How calls carry their context.
    pub fn forms(&self) -> traces::context::Forms {
        traces::context::Forms {
            w3c: self.w3c,
            b3: self.b3,
        }
    }
}

impl Default for Tracing {
    fn default() -> Self {
        Self {
            sample: 1.0,
            w3c: true,
            b3: true,
            zipkin: None,
            otlp: None,
        }
    }
}

/// Work beside the requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Background {
    /// For people.
    pub name: String,
    /// Processors it may run on; empty: any.
    pub cpus: Vec<u32>,
    /// Share of a processor's time that each of `threads` takes, 0 to 1.
    pub cpu_share: f64,
    /// How many.
    pub threads: u32,
    /// Bytes that each thread walks over, again and again.
    pub memory: u64,
    /// When it begins, after the graph has started.
    pub from: Nanos,
    /// How long; `None`: to the end.
    pub lasts: Option<Nanos>,
}

impl Topology {
    /// A service by its id, which must be of this topology.
    pub fn service(&self, id: ServiceId) -> Option<&Service> {
        self.services.get(id.0 as usize)
    }

    /// An edge by its id.
    pub fn edge(&self, id: EdgeId) -> Option<&Edge> {
        self.edges.get(id.0 as usize)
    }

    /// A service by its name.
    pub fn find(&self, name: &str) -> Option<ServiceId> {
        let at = self.services.iter().position(|one| one.name == name)?;
        u32::try_from(at).ok().map(ServiceId)
    }

    /// What a service of this name is.
    pub fn named(&self, name: &str) -> Option<&Service> {
        self.services.iter().find(|one| one.name == name)
    }
}

impl Service {
    /// The endpoint of a path, and its place.
    pub fn endpoint(&self, path: &str) -> Option<(usize, &Endpoint)> {
        let find = |path: &str| {
            let mut all = self.endpoints.iter().enumerate();
            all.find(|(_, endpoint)| endpoint.path == path)
        };
        find(path).or_else(|| find("*"))
    }
}
