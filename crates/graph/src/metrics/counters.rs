//! What an instance of a service counts. An instance lives on one thread, which alone
//! writes; a reader may miss what happens meanwhile and counts nothing twice.

use std::sync::{Arc, OnceLock};

use traces::failure;

use super::count::Count;
use super::histogram::Histogram;
use crate::Nanos;
use crate::topology::{EdgeId, StepId};

/// Classes of status that are told apart: the first digit, or none at all.
pub(super) const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// The place of a status in [`CLASSES`].
fn class_of(status: u16) -> usize {
    match status / 100 {
        class @ 1..=5 => usize::from(class),
        _ => 0,
    }
}

/// Times by class of status. A class takes memory from its first time on.
#[derive(Debug, Default)]
pub(super) struct ByStatus([OnceLock<Box<Histogram>>; CLASSES.len()]);

impl ByStatus {
    fn record(&self, status: u16, time: Nanos) {
        if let Some(class) = self.0.get(class_of(status)) {
            class.get_or_init(Box::default).record(time);
        }
    }

    /// The classes that have times, by their place in [`CLASSES`].
    pub(super) fn seen(&self) -> impl Iterator<Item = (usize, &Histogram)> {
        let classes = self.0.iter().enumerate();
        classes.filter_map(|(class, times)| Some((class, times.get()?.as_ref())))
    }
}

/// Failures by cause.
#[derive(Debug, Default)]
pub(super) struct ByCause([Count; failure::ALL.len()]);

impl ByCause {
    fn add(&self, cause: &str) {
        let known = failure::ALL.iter().position(|known| *known == cause);
        let count = self.0.get(known.unwrap_or(failure::ALL.len() - 1));
        if let Some(count) = count {
            count.add(1);
        }
    }

    pub(super) fn get(&self) -> [u64; failure::ALL.len()] {
        std::array::from_fn(|cause| self.0[cause].get())
    }
}

/// Requests of one endpoint of an instance.
#[derive(Debug, Default)]
pub struct ServerCounters {
    pub(super) latency: ByStatus,
    pub(super) in_flight: Count,
    pub(super) queue: Count,
    pub(super) dropped: Count,
    pub(super) failures: ByCause,
}

impl ServerCounters {
    /// A request began. `queue`: from the moment when the kernel told of it to now.
    pub fn began(&self, queue: Nanos) {
        self.in_flight.add(1);
        self.queue.add(queue);
    }

    /// It was answered, so long after its first byte.
    pub fn answered(&self, status: u16, latency: Nanos) {
        self.in_flight.less();
        self.latency.record(status, latency);
    }

    /// Its connection closed before an answer: a fault, or the client went.
    pub fn dropped(&self) {
        self.in_flight.less();
        self.dropped.add(1);
    }

    /// Why an answer is a failure; one of [`failure::ALL`].
    pub fn failed(&self, cause: &str) {
        self.failures.add(cause);
    }
}

/// Calls over one edge by an instance.
#[derive(Debug, Default)]
pub struct ClientCounters {
    pub(super) latency: ByStatus,
    pub(super) attempts: Count,
    pub(super) retries: Count,
    pub(super) in_flight: Count,
    pub(super) waiting: Count,
    pub(super) queue: Count,
    pub(super) opened: Count,
    pub(super) open: Count,
    pub(super) failures: ByCause,
}

impl ClientCounters {
    /// An attempt began; the first has number 0.
    pub fn began(&self, attempt: u8) {
        self.attempts.add(1);
        self.retries.add(u64::from(attempt > 0));
        self.in_flight.add(1);
    }

    /// An attempt ended, with a status or, 0, without an answer. `queue`: the part of
    /// `latency` until a connection was free and made.
    pub fn ended(&self, status: u16, latency: Nanos, queue: Nanos) {
        self.in_flight.less();
        self.queue.add(queue);
        self.latency.record(status, latency);
    }

    /// Why an attempt failed; one of [`failure::ALL`].
    pub fn failed(&self, cause: &str) {
        self.failures.add(cause);
    }

    /// A call waits for a connection.
    pub fn waits(&self) {
        self.waiting.add(1);
    }

    /// One that waited does so no more.
    pub fn waited(&self) {
        self.waiting.less();
    }

    /// A connection was begun.
    pub fn opened(&self) {
        self.opened.add(1);
        self.open.add(1);
    }

    /// A connection is no more.
    pub fn closed(&self) {
        self.open.less();
    }
}

/// Work of one step of an instance.
#[derive(Debug, Default)]
pub struct WorkCounters {
    pub(super) wall: Histogram,
    pub(super) cpu: Count,
    pub(super) stolen: Count,
    pub(super) queue: Count,
    pub(super) failures: ByCause,
}

impl WorkCounters {
    /// Work was done: the time that passed, the processor time in it, what others took
    /// of it, and the time before it until a worker was free.
    pub fn done(&self, wall: Nanos, cpu: Nanos, stolen: Nanos, queue: Nanos) {
        self.wall.record(wall);
        self.cpu.add(cpu);
        self.stolen.add(stolen);
        self.queue.add(queue);
    }

    /// Work was not done; one of [`failure::ALL`].
    pub fn failed(&self, cause: &str) {
        self.failures.add(cause);
    }
}

/// What one instance of a service counts.
#[derive(Debug, Default)]
pub struct InstanceCounters {
    pub(super) endpoints: Box<[Arc<ServerCounters>]>,
    pub(super) elsewhere: Arc<ServerCounters>,
    /// By rising id.
    pub(super) edges: Box<[(EdgeId, Arc<ClientCounters>)]>,
    pub(super) unknown_edge: Arc<ClientCounters>,
    /// By rising id.
    pub(super) works: Box<[(StepId, Arc<WorkCounters>)]>,
    pub(super) unknown_work: Arc<WorkCounters>,
    pub(super) connections: Arc<ConnectionCounters>,
}

/// Connections of clients of an instance.
#[derive(Debug, Default)]
pub struct ConnectionCounters {
    pub(super) accepted: Count,
    pub(super) open: Count,
}

impl InstanceCounters {
    /// Those of an endpoint, by its place; `None`: no endpoint has the path.
    pub fn server(&self, endpoint: Option<usize>) -> &Arc<ServerCounters> {
        let found = endpoint.and_then(|place| self.endpoints.get(place));
        found.unwrap_or(&self.elsewhere)
    }

    /// Those of an edge that the service calls over. One of another service counts for
    /// nothing.
    pub fn client(&self, edge: EdgeId) -> &Arc<ClientCounters> {
        let found = self.edges.binary_search_by_key(&edge, |(id, _)| *id);
        let found = found.ok().and_then(|place| self.edges.get(place));
        found.map_or(&self.unknown_edge, |(_, counters)| counters)
    }

    /// Those of a step of the service that is work. Another one counts for nothing.
    pub fn work(&self, step: StepId) -> &Arc<WorkCounters> {
        let found = self.works.binary_search_by_key(&step, |(id, _)| *id);
        let found = found.ok().and_then(|place| self.works.get(place));
        found.map_or(&self.unknown_work, |(_, counters)| counters)
    }

    /// A client's connection was accepted.
    pub fn accepted(&self) {
        self.connections.accepted.add(1);
        self.connections.open.add(1);
    }

    /// A client's connection is no more.
    pub fn closed(&self) {
        self.connections.open.less();
    }

    /// Connections of clients that were accepted so far, and those that are open.
    pub fn connections(&self) -> (u64, u64) {
        (self.connections.accepted.get(), self.connections.open.get())
    }
}
