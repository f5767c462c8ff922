//! Instances of services on threads of this process, and what is told to them.

use std::collections::{BTreeMap, HashSet};
use std::mem;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use wire::listeners::BACKLOG;
use wire::socket;
use wire::threads::{Phase, Threads, processors};

use super::directory::Directory;
use super::event_loop::{EventLoop, ThreadSetup};
use super::instances::KEPT_REVISIONS;
use super::orders::{Orders, Revision};
use super::plan::{self, Plan, Planner};
use super::{HostConfig, Hosted, StartError, SwapError};
use crate::lock;
use crate::metrics::Metrics;
use crate::topology::{ServiceId, Topology};
use crate::work::pin;

/// How often it is looked whether threads have ended.
const LOOK: Duration = Duration::from_millis(2);

/// Running instances of services. Dropping it stops them. See [`crate::service`].
pub struct Host {
    orders: Arc<Orders>,
    threads: Threads,
    control: Mutex<Control>,
}

/// What a host needs to make plans.
struct Control {
    topology: Arc<Topology>,
    directory: Directory,
    metrics: Arc<Metrics>,
    placed: Vec<Placed>,
    revision: u32,
}

/// An instance, and where it lives.
struct Placed {
    service: String,
    replica: u32,
    thread: usize,
    planner: Planner,
}

impl Control {
    /// Plans of all instances by thread; `Err`: who calls, and whom, of whom no address is
    /// known.
    fn plans(
        &mut self,
        topology: &Arc<Topology>,
        revision: u32,
        threads: usize,
    ) -> Result<Vec<Vec<Arc<Plan>>>, (String, String)> {
        let fingerprint = plan::fingerprint(topology);
        let mut plans: Vec<Vec<_>> = Vec::new();
        let here: HashSet<_> = self.placed.iter().map(|one| one.service.clone()).collect();
        plans.resize_with(threads, Vec::new);
        let is_here = |id: ServiceId| {
            topology
                .service(id)
                .map(|one| &*one.name)
                .filter(|name| here.contains(*name))
        };
        let called: HashSet<_> = topology
            .edges
            .iter()
            .filter(|edge| is_here(edge.from).is_some())
            .filter_map(|edge| is_here(edge.to))
            .collect();
        for placed in &mut self.placed {
            let service = topology
                .find(&placed.service)
                .unwrap_or(ServiceId(u32::MAX));
            let counters = self.metrics.instance(topology, service, placed.replica);
            let mut plan = placed
                .planner
                .plan(
                    topology,
                    service,
                    revision,
                    fingerprint,
                    &self.directory,
                    counters,
                )
                .map_err(|callee| (placed.service.clone(), callee))?;
            plan.inner = called.contains(&*placed.service);
            if let Some(own) = plans.get_mut(placed.thread) {
                own.push(Arc::new(plan));
            }
        }
        Ok(plans)
    }
}

impl Host {
    /// Opens the listeners and starts the threads.
    ///
    /// # Errors
    /// When a service is not in the topology, an address cannot be listened on, a callee's
    /// address is not known, or there are no threads or descriptors left.
    pub fn start(config: HostConfig) -> Result<Self, StartError> {
        let descriptors = socket::allow_most_descriptors().map_err(StartError::Threads)?;
        let topology = config.topology;
        let mut directory = config.directory;
        let seating = assign_threads(&topology, &config.hosted, config.threads);
        let mut seats: Vec<ThreadSetup> = Vec::new();
        let mut placed = Vec::new();
        for (hosted, (thread, cpus)) in config.hosted.iter().zip(seating) {
            let service = topology
                .service(hosted.service)
                .ok_or(StartError::NoService(hosted.service.0))?;
            let (listener, address) = listen(&service.name, hosted.listen)?;
            directory.set(&service.name, hosted.replica, address);
            while seats.len() <= thread {
                let seat = ThreadSetup::new(config.run, config.tracer.recorder());
                seats.push(seat.map_err(StartError::Threads)?);
            }
            let Some(seat) = seats.get_mut(thread) else {
                continue;
            };
            seat.cpus = cpus;
            let instances = &mut seat.context.instances;
            instances.add(hosted.replica, service.replicas);
            seat.listeners.push(listener);
            placed.push(Placed {
                service: service.name.clone(),
                replica: hosted.replica,
                thread,
                planner: Planner::new(&config.resources, &seat.inbox),
            });
        }
        // Plans are in the order of threads and of the instances in them, as `placed` is
        // for each thread.
        let mut control = Control {
            topology: Arc::clone(&topology),
            directory,
            metrics: config.metrics,
            placed,
            revision: 1,
        };
        let plans = control
            .plans(&topology, 1, seats.len())
            .map_err(|(caller, callee)| StartError::NoAddress { caller, callee })?;
        let orders = Arc::new(Orders {
            newest: AtomicU64::new(1),
            revisions: ArcSwap::from_pointee(vec![Arc::new(Revision { number: 1, plans })]),
            // Until a thread has said something, it may have anything.
            busy: (0..seats.len()).map(|_| AtomicUsize::new(1)).collect(),
        });
        let most = usize::try_from(descriptors / 2).unwrap_or(usize::MAX);
        let most_callers = (most / seats.len().max(1)).max(16);
        let mut host = Self {
            orders: Arc::clone(&orders),
            threads: Threads::default(),
            control: Mutex::new(control),
        };
        for (thread, mut seat) in seats.into_iter().enumerate() {
            let cpus = mem::take(&mut seat.cpus);
            let waker = seat.context.poller.waker().clone();
            let event_loop = EventLoop::new(seat, &orders, thread, &config.resources, most_callers)
                .map_err(StartError::Threads)?;
            let run = move || {
                // A processor may be gone or forbidden: where a service runs is told by its
                // facts, and it is better to run elsewhere than not.
                let _ = pin(&cpus);
                event_loop.run();
            };
            let started = host.threads.start("services", waker, run);
            started.map_err(StartError::Threads)?;
        }
        Ok(host)
    }

    /// Where all instances listen: those of this host, and what it was told of others.
    pub fn directory(&self) -> Directory {
        lock(&self.control).directory.clone()
    }

    /// The topology in force, and its revision: 1 from the start, one more with each swap.
    pub fn topology(&self) -> (Arc<Topology>, u32) {
        let control = lock(&self.control);
        (Arc::clone(&control.topology), control.revision)
    }

    /// Puts another topology in force, from the next request on: requests in hand go on
    /// under the one that they began under, in all services that still know it. Gives the
    /// number of the new revision.
    ///
    /// # Errors
    /// When a service that runs here is not in it, or it calls one of which no address is
    /// known; the old one stays in force.
    pub fn swap(&self, topology: Arc<Topology>) -> Result<u32, SwapError> {
        let mut control = lock(&self.control);
        for placed in &control.placed {
            let service = topology.named(&placed.service);
            let before = control.topology.named(&placed.service);
            match (service, before) {
                (None, _) => return Err(SwapError::Gone(placed.service.clone())),
                (Some(new), Some(old)) if new.protocol != old.protocol => {
                    return Err(SwapError::Protocol(placed.service.clone()));
                }
                _ => {}
            }
        }
        let same = *control.topology == *topology;
        let revision = control.revision + u32::from(!same);
        let plans = control
            .plans(&topology, revision, self.orders.busy.len())
            .map_err(|(caller, callee)| SwapError::NoAddress { caller, callee })?;
        control.topology = topology;
        control.revision = revision;
        let number = self.orders.newest.load(Ordering::Acquire) + 1;
        let mut revisions = vec![Arc::new(Revision { number, plans })];
        let before = self.orders.revisions.load();
        revisions.extend(before.iter().take(KEPT_REVISIONS - 1).cloned());
        self.orders.revisions.store(Arc::new(revisions));
        self.orders.newest.store(number, Ordering::Release);
        self.threads.wake();
        Ok(revision)
    }

    /// Accepts nothing more, lets the requests in hand end, and says whether all did within
    /// a time. Services that others of this host call go on for those until the last one.
    /// What has not ended goes on until [`Host::stop`].
    pub fn drain(&self, longest: Duration) -> bool {
        self.threads.set_phase(Phase::Draining);
        let until = Instant::now() + longest;
        while !self.threads.have_ended() {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    /// Ends all threads; requests in hand are cut off.
    pub fn stop(mut self) {
        self.threads.stop();
    }
}

/// The thread of each instance, and the processors of that thread. Instances that share
/// their processors share threads, at most one for each of those; instances that may run
/// anywhere share `threads`.
fn assign_threads(
    topology: &Topology,
    hosted: &[Hosted],
    threads: usize,
) -> Vec<(usize, Vec<u32>)> {
    let threads = if threads == 0 { processors() } else { threads };
    let mut groups: BTreeMap<Vec<u32>, Vec<usize>> = BTreeMap::new();
    for (place, hosted) in hosted.iter().enumerate() {
        let mut cpus = topology
            .service(hosted.service)
            .map(|service| service.placement.cpus.clone())
            .unwrap_or_default();
        cpus.sort_unstable();
        cpus.dedup();
        groups.entry(cpus).or_default().push(place);
    }
    let mut seats = vec![(0, Vec::new()); hosted.len()];
    let mut first = 0;
    for (cpus, members) in groups {
        let most = if cpus.is_empty() {
            threads
        } else {
            cpus.len().min(threads)
        };
        let count = most.min(members.len()).max(1);
        for (turn, place) in members.into_iter().enumerate() {
            if let Some(seat) = seats.get_mut(place) {
                *seat = (first + turn % count, cpus.clone());
            }
        }
        first += count;
    }
    seats
}

fn listen(service: &str, address: SocketAddr) -> Result<(OwnedFd, SocketAddr), StartError> {
    let failed = |errno: rustix::io::Errno| StartError::Listen {
        service: service.to_owned(),
        address,
        source: errno.into(),
    };
    let listener = socket::listen_tcp(address, BACKLOG, false).map_err(failed)?;
    let address = socket::local_address(&listener).map_err(failed)?;
    Ok((listener, address))
}
