//! What one instance does under one revision of the topology, made ready for the data
//! path: programs, tasks, and the constant parts of messages.

use std::net::SocketAddr;
use std::sync::Arc;

use super::directory::Directory;
use crate::metrics::{self, ClientCounters, InstanceCounters, ServerCounters, WorkCounters};
use crate::script::Program;
use crate::topology::{
    Action, Connections, EdgeId, Protocol, Response, Service, ServiceId, Step, StepId, Topology,
    Work,
};
use crate::trace::Sampler;
use crate::work::{
    Equipment, Inbox, Load, SharedResources, Task, WorkError, Workers, WorkersConfig,
};
use traces::Name;

/// The field that names the revision that a request runs under.
pub(super) const REVISION: &str = "x-headroom-revision";

/// See the module.
pub(super) struct Plan {
    /// Counted by this process.
    pub(super) revision: u32,
    /// The same for every process with the same topology.
    pub(super) fingerprint: [u8; 16],
    pub(super) topology: Arc<Topology>,
    pub(super) name: Name,
    /// What its callers speak.
    pub(super) protocol: Protocol,
    /// The peer of those who have none.
    pub(super) nobody: Name,
    pub(super) program: Arc<Program>,
    pub(super) endpoints: Vec<EndpointPlan>,
    /// By the number of their step, from that of the service's first: steps are numbered
    /// over the whole topology.
    steps: Vec<StepPlan>,
    first_step: u32,
    /// By their slot: see [`Planner`]. `None`: this revision does not call it.
    pub(super) callees: Vec<Option<Callee>>,
    /// Who does what would hold other requests up; `None`: the event loop. `Err`: why there
    /// are none.
    pub(super) workers: Result<Option<Arc<Workers>>, &'static str>,
    /// Whether another service of this host calls this one.
    pub(super) inner: bool,
    pub(super) sampler: Sampler,
    pub(super) counters: Arc<InstanceCounters>,
    /// How often the load beside the requests ran.
    pub(super) load: Arc<Load>,
}

/// An endpoint.
pub(super) struct EndpointPlan {
    /// As in the file: `*` takes all other paths.
    pub(super) path: Name,
    pub(super) any: bool,
    /// Whether the body is testapi's, with those of the calls.
    pub(super) echo: bool,
    counters: Arc<ServerCounters>,
}

/// Whom a service calls, and how.
pub(super) struct Callee {
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) connections: Connections,
    pub(super) protocol: Protocol,
}

/// What a step does.
enum StepPlan {
    Nothing,
    Call(CallPlan),
    Work(WorkPlan),
}

/// A call.
pub(super) struct CallPlan {
    /// Of the callee.
    pub(super) slot: usize,
    /// `None`: that of the request at hand.
    pub(super) path: Option<Name>,
    pub(super) peer: Name,
    pub(super) counters: Arc<ClientCounters>,
    /// What follows the path in the head of a request: version and constant fields.
    pub(super) head: Vec<u8>,
}

/// A piece of work.
pub(super) struct WorkPlan {
    /// What kind it is, in a word.
    pub(super) name: Name,
    /// `Err`: why it cannot be done; none: the event loop does it itself.
    pub(super) task: Result<Arc<Task>, Option<WorkError>>,
    /// Whether its end is to be told in the body (testapi's `/load-status`).
    pub(super) tells_load: bool,
    pub(super) counters: Arc<WorkCounters>,
}

impl CallPlan {
    /// The path that is asked for by a request whose own is `own`.
    pub(super) fn path_or<'a>(&'a self, own: &'a [u8]) -> &'a [u8] {
        self.path.as_ref().map_or(own, |path| path.as_bytes())
    }
}

impl Plan {
    fn step(&self, step: StepId) -> Option<&StepPlan> {
        let place = step.0.checked_sub(self.first_step)?;
        self.steps.get(place as usize)
    }

    pub(super) fn call(&self, step: StepId) -> Option<&CallPlan> {
        match self.step(step)? {
            StepPlan::Call(call) => Some(call),
            _ => None,
        }
    }

    pub(super) fn work(&self, step: StepId) -> Option<&WorkPlan> {
        match self.step(step)? {
            StepPlan::Work(work) => Some(work),
            _ => None,
        }
    }

    pub(super) fn endpoint(&self, place: usize) -> Option<&EndpointPlan> {
        self.endpoints.get(place)
    }

    /// Where requests of an endpoint are counted, or those without one.
    pub(super) fn server_counters(&self, endpoint: usize) -> &ServerCounters {
        self.endpoint(endpoint)
            .map_or_else(|| self.counters.server(None), |one| &one.counters)
    }

    /// The place of the endpoint for a path; beyond all of them if there is none.
    pub(super) fn find(&self, path: &[u8]) -> usize {
        let exact = |endpoint: &EndpointPlan| endpoint.path.as_bytes() == path;
        let place = self.endpoints.iter().position(exact);
        let any = || self.endpoints.iter().position(|endpoint| endpoint.any);
        place.or_else(any).unwrap_or(self.endpoints.len())
    }

    /// Writes `FROM>TO`.
    pub(super) fn write_edge(&self, edge: EdgeId, out: &mut Vec<u8>) {
        out.extend_from_slice(self.name.as_bytes());
        out.push(b'>');
        let to = self.topology.edge(edge).map(|edge| edge.to);
        if let Some(to) = to.and_then(|to| self.topology.service(to)) {
            out.extend_from_slice(to.name.as_bytes());
        }
    }
}

/// Makes the plans of one instance.
pub(super) struct Planner {
    /// What its work needs, over all revisions.
    equipment: Equipment,
    /// Names of those whom it has ever called. A callee's place among them, its slot, is
    /// the same in all plans, so that connections outlive a revision.
    slots: Vec<Name>,
    resources: Arc<SharedResources>,
    /// Where the event loop finds the work that has ended.
    inbox: Arc<Inbox>,
    /// The newest, and what they were made for.
    workers: Option<(WorkersConfig, Arc<Workers>)>,
}

impl Planner {
    pub(super) fn new(resources: &Arc<SharedResources>, inbox: &Arc<Inbox>) -> Self {
        Self {
            equipment: resources.equipment(),
            slots: Vec::new(),
            resources: Arc::clone(resources),
            inbox: Arc::clone(inbox),
            workers: None,
        }
    }

    /// The workers of a service. Those of an older revision live on with its requests.
    fn workers(&mut self, own: &Service) -> Result<Option<Arc<Workers>>, &'static str> {
        if own.workers == 0 {
            return Ok(None);
        }
        let config = WorkersConfig {
            name: own.name.clone(),
            threads: own.workers,
            queue: own.queue,
            cpus: own.placement.cpus.clone(),
        };
        if let Some((known, workers)) = &self.workers
            && *known == config
        {
            return Ok(Some(Arc::clone(workers)));
        }
        let workers = Workers::new(&self.resources, &self.inbox, config.clone());
        let workers = Arc::new(workers.map_err(|error| error.cause())?);
        self.workers = Some((config, Arc::clone(&workers)));
        Ok(Some(workers))
    }

    /// The plan for a service of a topology; `Err`: the name of a callee of which no
    /// address is known.
    pub(super) fn plan(
        &mut self,
        topology: &Arc<Topology>,
        service: ServiceId,
        revision: u32,
        fingerprint: [u8; 16],
        directory: &Directory,
        counters: Arc<InstanceCounters>,
    ) -> Result<Plan, String> {
        let mut plan = Plan {
            revision,
            fingerprint,
            topology: Arc::clone(topology),
            name: Name::from(""),
            protocol: Protocol::default(),
            nobody: Name::from(""),
            program: Program::compile(topology, service),
            endpoints: Vec::new(),
            steps: Vec::new(),
            first_step: 0,
            callees: Vec::new(),
            workers: Ok(None),
            inner: false,
            sampler: Sampler::new(topology.tracing.sample),
            counters,
            load: Arc::clone(&self.equipment.load),
        };
        let Some(own) = topology.service(service) else {
            return Ok(plan);
        };
        plan.name = Name::from(&*own.name);
        plan.protocol = own.protocol;
        plan.workers = self.workers(own);
        let mut first = u32::MAX;
        for endpoint in &own.endpoints {
            endpoint.each_step(|step| first = first.min(step.id.0));
        }
        plan.first_step = first;
        for (place, endpoint) in own.endpoints.iter().enumerate() {
            plan.endpoints.push(EndpointPlan {
                path: Name::from(&*endpoint.path),
                any: endpoint.path == "*",
                echo: endpoint.response == Response::Echo,
                counters: Arc::clone(plan.counters.server(Some(place))),
            });
            let mut steps = Vec::new();
            endpoint.each_step(|step| steps.push(step));
            for step in steps {
                self.add(&mut plan, step, directory)?;
            }
        }
        Ok(plan)
    }

    fn add(&mut self, plan: &mut Plan, step: &Step, directory: &Directory) -> Result<(), String> {
        let made = match &step.action {
            Action::Work(work) => {
                let counters = Arc::clone(plan.counters.work(step.id));
                StepPlan::Work(self.work(work, counters))
            }
            Action::Call(call) => {
                StepPlan::Call(self.call(plan, call.edge, call.path.as_deref(), directory)?)
            }
            Action::Sequence(_) | Action::Parallel { .. } => return Ok(()),
        };
        let at = step.id.0.saturating_sub(plan.first_step) as usize;
        if at >= plan.steps.len() {
            plan.steps.resize_with(at + 1, || StepPlan::Nothing);
        }
        plan.steps[at] = made;
        Ok(())
    }

    fn work(&mut self, work: &Work, counters: Arc<WorkCounters>) -> WorkPlan {
        WorkPlan {
            counters,
            name: Name::from(metrics::kind(work)),
            task: match work {
                Work::Sleep(_) => Err(None),
                work => self.equipment.task(work).map(Arc::new).map_err(Some),
            },
            tells_load: *work == Work::StressNgStatus,
        }
    }

    fn call(
        &mut self,
        plan: &mut Plan,
        edge: EdgeId,
        path: Option<&str>,
        directory: &Directory,
    ) -> Result<CallPlan, String> {
        let topology = Arc::clone(&plan.topology);
        let connections = topology.edge(edge).map(|edge| (edge.to, edge.connections));
        let (callee, connections) = connections
            .and_then(|(to, connections)| Some((topology.service(to)?, connections)))
            .ok_or_else(|| format!("edge {}", edge.0))?;
        let known = self.slots.iter().position(|name| **name == *callee.name);
        let slot = known.unwrap_or_else(|| {
            self.slots.push(Name::from(&*callee.name));
            self.slots.len() - 1
        });
        let addresses: Vec<_> = directory
            .all(&callee.name)
            .take(callee.replicas as usize)
            .collect();
        if addresses.is_empty() {
            return Err(callee.name.clone());
        }
        let peer = Name::from(&*callee.name);
        if slot >= plan.callees.len() {
            plan.callees.resize_with(slot + 1, || None);
        }
        plan.callees[slot] = Some(Callee {
            addresses,
            connections,
            protocol: callee.protocol,
        });
        let mut head = Vec::new();
        head.extend_from_slice(b" HTTP/1.1\r\n");
        wire::http1::write::field(b"Host", callee.name.as_bytes(), &mut head);
        wire::http1::write::field(REVISION.as_bytes(), &plan.fingerprint, &mut head);
        if matches!(connections, Connections::Cold(_)) {
            wire::http1::write::field(b"Connection", b"close", &mut head);
        }
        Ok(CallPlan {
            slot,
            path: path.map(Name::from),
            peer,
            counters: Arc::clone(plan.counters.client(edge)),
            head,
        })
    }
}

/// A number that differs between topologies that differ, whatever process computes it
/// (FNV-1a over its text), in hexadecimal.
pub(super) fn fingerprint(topology: &Topology) -> [u8; 16] {
    let hash = stats::fnv1a(0, format!("{topology:?}").bytes());
    let mut digits = [0; 16];
    for (place, digit) in digits.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(hash >> (60 - 4 * place) & 0xf) as usize];
    }
    digits
}
