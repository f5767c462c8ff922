//! Services as they run: any number of instances on a few threads, each of which waits
//! for all of its sockets at once.
//!
//! ```text
//! caller ──▶ session, caller ──▶ active request: its script ──▶ link, channel ──▶ callee
//! caller ◀────── reply ◀────────────┤     ▲ ended
//!                                   ▼     │
//!                              here, or workers
//! ```
//!
//! A thread is an `event_loop`, which waits, accepts and drains, over `requests`, which does
//! what scripts command by those who each own what they are about: `sessions` and `http2_callers`
//! (callers), `calls` (callees) and `jobs` (work). None of these knows of another: what is
//! for others to do waits in the `context`, beside what all use: the `active_requests` in hand, the
//! `instances` and their plans, `routes` to callees, `recordings`.
//!
//! An instance lives on exactly one thread: its listener, its connections and its requests
//! take no lock. Calls between instances of one process go over real sockets as well.
//! What a request does is decided by [`crate::script`]; this is its shell.
//!
//! # What travels beside the trace context
//! - `x-envoy-expected-rq-timeout-ms`: how long the caller waits. The smaller of it and
//!   own bounds holds.
//! - `x-headroom-revision`: 16 hexadecimal digits that tell profiles apart. The entry
//!   decides; a callee that still keeps that revision (the newest four) follows it, so
//!   that a request runs under one revision in all services. Answers carry it too.
//! - `x-headroom-failed`: which edge failed, and why (`root>store timeout`), as the
//!   innermost service saw it.
//!
//! # Bounds
//! Heads of 32 KiB and 128 fields (431), bodies of 1 GiB (413), 64 KiB ahead of an answer
//! (then nothing is read), 60 s for a head, for each part of a body or of an answer, ten
//! minutes without a request; callers: half of the descriptors that the process may have;
//! calls that wait for a connection to one callee: 4096, each until its deadline; bodies
//! that an answer repeats: 64 KiB.
//!
//! A kept connection that breaks before anything of an answer came is no failure: the
//! request is sent once more over a new one (RFC 9110 section 9.2.2). So a request that a
//! fault drops may reach a service twice; draws are the same both times.

mod active_requests;
mod bounds;
mod calls;
mod context;
mod directory;
mod event_loop;
mod host;
mod http2;
mod http2_callers;
mod instances;
mod jobs;
mod message;
mod orders;
mod outbox;
mod plan;
mod recordings;
mod reply;
mod request_state;
mod requests;
mod routes;
mod sessions;
#[cfg(test)]
mod tests;
mod token;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

pub use directory::Directory;
pub use host::Host;

use crate::metrics::Metrics;
use crate::topology::{ServiceId, Topology};
use crate::trace::Tracer;
use crate::work::SharedResources;
use traces::ids::Run;

/// What `x-headroom-revision` says of answers under a profile: 16 hexadecimal digits, the
/// same in every process of this build, and others for another profile.
pub fn fingerprint(topology: &Topology) -> String {
    String::from_utf8_lossy(&plan::fingerprint(topology)).into_owned()
}

/// An instance to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosted {
    /// Its service.
    pub service: ServiceId,
    /// Its number among the service's replicas, counted from 0.
    pub replica: u32,
    /// Where it listens; port 0: any free one, see [`Host::directory`].
    pub listen: SocketAddr,
}

/// What a host works with.
pub struct HostConfig {
    /// What the services do.
    pub topology: Arc<Topology>,
    /// Those that run here.
    pub hosted: Vec<Hosted>,
    /// Where those listen that are called and do not run here.
    pub directory: Directory,
    /// Threads for services that may run on any processor; 0: one for each processor.
    /// Services that share other processors have threads of their own, pinned there.
    pub threads: usize,
    /// For their work.
    pub resources: Arc<SharedResources>,
    /// Where they count.
    pub metrics: Arc<Metrics>,
    /// Where their spans go.
    pub tracer: Tracer,
    /// Part of the trace ids of requests that enter here without one.
    pub run: Run,
}

/// Why a host did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The topology has fewer services.
    #[error("start a service: there is no service with the number {0} in the topology")]
    NoService(u32),
    /// An address cannot be listened on.
    #[error(
        "listen on {address} for the service {service}: {source}; another program may listen there: give another address"
    )]
    Listen {
        /// The service.
        service: String,
        /// The address.
        address: SocketAddr,
        /// What the kernel says.
        source: io::Error,
    },
    /// A service is called that does not run here, and nobody said where it does.
    #[error(
        "start the service {caller}: it calls {callee}, which does not run in this process and has no address; give one"
    )]
    NoAddress {
        /// Who calls.
        caller: String,
        /// Who is called.
        callee: String,
    },
    /// There are no threads or descriptors left.
    #[error("start the threads of the services: {0}")]
    Threads(#[source] io::Error),
}

/// Why a topology was not put in force. The one before still is.
#[derive(Debug, thiserror::Error)]
pub enum SwapError {
    /// A service that runs is not in it.
    #[error(
        "change the profile: the service {0} runs, and is not in the new one; services stay while the graph runs. Stop the graph and start it with this profile"
    )]
    Gone(String),
    /// A service that runs speaks another protocol in it.
    #[error(
        "change the profile: the service {0} has another protocol in the new one; start the graph again for that"
    )]
    Protocol(String),
    /// A service is called of which no address is known.
    #[error(
        "change the profile: {caller} calls {callee}, and knows no address of it: a process of its own can call only what it called at the start. Stop the graph and start it with this profile"
    )]
    NoAddress {
        /// Who calls.
        caller: String,
        /// Who is called.
        callee: String,
    },
}
