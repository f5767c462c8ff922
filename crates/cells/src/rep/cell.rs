//! A cell: its containers, and the shell that carries out what they want.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use diego::Bbs;
use diego::auction::{self, CellState, Lrp, Resource, Task};
use diego::models::PortMapping;
use rand::RngExt;
use telemetry::Fields;
use tokio::sync::watch;

use super::container::{Answer, Command, Container, Event, Kind, Phase};
use super::desired::DesiredLrps;
use super::executor::{Definition, End, Executor, Job};
use super::ledger::Ledger;
use super::logs::Logs;
use super::metrics::{Containers, Metrics, count};
use super::update::Update;
use super::work::{Work, instance_guid, lrp_state, task_state};

/// Longest pause before a failed call is made again.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// What does not change about a cell.
pub(super) struct Identity {
    /// The state that it reports, without what is on it.
    pub(super) state: CellState,
    /// Address of its instances.
    pub(super) address: String,
    /// Host ports for them.
    pub(super) ports: RangeInclusive<u16>,
}

/// A cell.
pub(super) struct Cell<E> {
    pub(super) identity: Identity,
    pub(super) bbs: Bbs,
    pub(super) desired: Arc<DesiredLrps>,
    pub(super) logs: Logs,
    metrics: Arc<Metrics>,
    executor: Arc<E>,
    inside: Mutex<Inside>,
}

struct Inside {
    ledger: Ledger,
    containers: HashMap<String, Slot>,
    /// No new work is taken and nothing new is begun.
    closed: bool,
    /// Counts resets, so that what was begun before one does not speak to a
    /// container of the same guid after it.
    epoch: u64,
}

/// A container with what its commands need.
struct Slot {
    machine: Container,
    work: Arc<Work>,
    definition: Option<Definition>,
    job: Option<Arc<Job>>,
    stop: Option<watch::Sender<bool>>,
    update: Update,
}

/// What a call to the BBS may need to know about its container.
pub(super) struct Subject {
    pub(super) work: Arc<Work>,
    pub(super) job: Option<Arc<Job>>,
    pub(super) update: Update,
    /// The BBS knows already that it runs.
    pub(super) announced: bool,
}

impl<E: Executor> Cell<E> {
    pub(super) fn new(
        identity: Identity,
        bbs: Bbs,
        desired: Arc<DesiredLrps>,
        executor: Arc<E>,
        metrics: Arc<Metrics>,
        logs: Logs,
    ) -> Arc<Self> {
        let ledger = Ledger::new(identity.state.total_resources, identity.ports.clone());
        Arc::new(Self {
            identity,
            bbs,
            desired,
            logs,
            metrics,
            executor,
            inside: Mutex::new(Inside {
                ledger,
                containers: HashMap::new(),
                closed: false,
                epoch: 0,
            }),
        })
    }

    pub(super) fn id(&self) -> &str {
        &self.identity.state.cell_id
    }

    /// What the cell holds and what is free.
    pub(super) fn state(&self) -> CellState {
        let inside = self.lock();
        let mut state = self.identity.state.clone();
        state.available_resources = inside.ledger.free();
        for slot in inside.containers.values() {
            let phase = slot.machine.phase();
            state.starting_container_count += i32::from(slot.machine.starting());
            match &*slot.work {
                Work::Lrp(lrp) => state.lrps.push(Lrp {
                    state: lrp_state(phase, slot.machine.stopping()).into(),
                    ..lrp.clone()
                }),
                Work::Task(task) => state.tasks.push(Task {
                    state: task_state(phase).into(),
                    failed: matches!(phase, Phase::Completed(end) if end.failed),
                    ..task.clone()
                }),
            }
        }
        state
    }

    /// Adds the containers by state.
    pub(super) fn count_containers(&self, containers: &mut Containers) {
        let inside = self.lock();
        let machines = inside.containers.values().map(|slot| &slot.machine);
        machines.for_each(|machine| containers.add(machine.phase()));
    }

    /// Takes work and returns what does not fit.
    pub(super) fn accept(self: &Arc<Self>, work: auction::Work) -> auction::Work {
        let mut refused = auction::Work::default();
        let mut taken = Vec::with_capacity(work.lrps.len() + work.tasks.len());
        let mut inside = self.lock();
        for lrp in work.lrps {
            if inside.take(lrp.resource) {
                let instance_guid = instance_guid(&mut rand::rng());
                let lrp = Lrp {
                    instance_guid,
                    ..lrp
                };
                taken.push(self.reserve(&mut inside, Work::Lrp(lrp)));
            } else {
                refused.lrps.push(lrp);
            }
        }
        for task in work.tasks {
            // A request that arrives twice does no harm: the task is here.
            if inside.containers.contains_key(&task.task_guid) {
                continue;
            }
            if inside.take(task.resource) {
                taken.push(self.reserve(&mut inside, Work::Task(task)));
            } else {
                refused.tasks.push(task);
            }
        }
        drop(inside);
        count(&self.metrics.taken, taken.len());
        let no_room = refused.lrps.len() + refused.tasks.len();
        count(&self.metrics.refused, no_room);
        for guid in taken {
            self.feed(&guid, Event::Reserved);
        }
        refused
    }

    /// Makes a container for `work`, whose room has been taken.
    fn reserve(&self, inside: &mut Inside, work: Work) -> String {
        let fields = work.fields();
        self.logs
            .allocate
            .info("allocating-container", fields.clone());
        self.logs
            .events
            .info("processing-reserved-container", fields);
        let guid = work.guid().to_owned();
        let slot = Slot {
            machine: Container::new(work.kind()),
            work: Arc::new(work),
            definition: None,
            job: None,
            stop: None,
            update: Update::default(),
        };
        inside.containers.insert(guid.clone(), slot);
        guid
    }

    /// Tells a container what happened. One that is gone is not told.
    pub(super) fn feed(self: &Arc<Self>, guid: &str, event: Event) {
        self.step(&mut self.lock(), guid, event);
    }

    /// As [`Cell::feed`], from something that was begun in `epoch`.
    fn tell(self: &Arc<Self>, epoch: u64, guid: &str, event: Event) {
        let mut inside = self.lock();
        if inside.epoch == epoch {
            self.step(&mut inside, guid, event);
        }
    }

    fn step(self: &Arc<Self>, inside: &mut Inside, guid: &str, event: Event) {
        let Some(slot) = inside.containers.get_mut(guid) else {
            return;
        };
        for command in slot.machine.on(event) {
            self.perform(inside, guid, command);
        }
    }

    /// Asks an instance to stop or cancels a task.
    pub(super) fn stop(self: &Arc<Self>, guid: &str, kind: Kind) {
        let mut inside = self.lock();
        let Some(slot) = inside.containers.get(guid) else {
            return;
        };
        if slot.machine.kind() == kind {
            if kind == Kind::Lrp {
                self.logs.stop.info("stopping", slot.work.fields());
            }
            self.step(&mut inside, guid, Event::Stop);
        }
    }

    /// Keeps new routes or tags of an instance and reports them to the BBS.
    pub(super) fn update(self: &Arc<Self>, guid: &str, update: Update) {
        let mut inside = self.lock();
        if let Some(slot) = inside.containers.get_mut(guid) {
            slot.update.merge(update);
            self.step(&mut inside, guid, Event::Refresh);
        }
    }

    /// Guids of all containers.
    pub(super) fn guids(&self) -> Vec<String> {
        self.lock().containers.keys().cloned().collect()
    }

    /// Is there a container with this guid?
    pub(super) fn has(&self, guid: &str) -> bool {
        self.lock().containers.contains_key(guid)
    }

    /// Forgets every container without telling anybody.
    pub(super) fn reset(&self) {
        let mut inside = self.lock();
        inside.epoch += 1;
        let guids: Vec<String> = inside.containers.keys().cloned().collect();
        for guid in guids {
            self.delete(&mut inside, &guid);
        }
    }

    /// Takes no more work, ends every process and waits until all have ended, at
    /// most `within`. The BBS is not told: it sees the cell go.
    pub(super) async fn close(&self, within: Duration) {
        {
            let mut inside = self.lock();
            inside.closed = true;
            for slot in inside.containers.values() {
                if let Some(stop) = &slot.stop {
                    // Nobody listens when the process has ended meanwhile.
                    let _ = stop.send(true);
                }
            }
        }
        let ended = async {
            while self.lock().containers.values().any(Slot::has_process) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(within, ended).await.is_err() {
            let cause = format!("some processes did not end within {within:?}");
            self.logs.cell.error("close", &cause, Fields::new());
        }
        self.reset();
    }

    fn perform(self: &Arc<Self>, inside: &mut Inside, guid: &str, command: Command) {
        if inside.closed && !matches!(command, Command::Kill | Command::Delete) {
            return;
        }
        let epoch = inside.epoch;
        let Some(slot) = inside.containers.get_mut(guid) else {
            return;
        };
        let (cell, guid) = (Arc::clone(self), guid.to_owned());
        match command {
            Command::Call(call) => {
                let subject = Subject {
                    work: Arc::clone(&slot.work),
                    job: slot.job.clone(),
                    update: slot.update.clone(),
                    announced: slot.machine.announced(),
                };
                tokio::spawn(net::boxed(async move {
                    let answer = cell.call(&subject, call).await;
                    cell.tell(epoch, &guid, Event::Answered(answer));
                }));
            }
            Command::RetryAfter(failures) => {
                count(&self.metrics.repeats, 1);
                tokio::spawn(net::boxed(async move {
                    tokio::time::sleep(pause(failures)).await;
                    cell.tell(epoch, &guid, Event::Retry);
                }));
            }
            Command::Create => self.create(inside, guid),
            Command::Run => self.run(epoch, slot, guid),
            Command::Kill => {
                if let Some(stop) = &slot.stop {
                    // Nobody listens when the process has ended meanwhile.
                    let _ = stop.send(true);
                }
            }
            Command::Delete => self.delete(inside, &guid),
        }
    }

    fn create(self: &Arc<Self>, inside: &mut Inside, guid: String) {
        let Inside {
            ledger,
            containers,
            epoch,
            ..
        } = inside;
        let epoch = *epoch;
        let Some(slot) = containers.get_mut(&guid) else {
            return;
        };
        let Some(definition) = slot.definition.take() else {
            return;
        };
        let wanted = match &definition {
            Definition::Lrp(lrp, _) => lrp.ports.as_slice(),
            Definition::Task(_) => &[],
        };
        let cell = Arc::clone(self);
        let Some(host_ports) = ledger.take_ports(wanted.len()) else {
            let reason = "failed to create container: no host port is left on the cell";
            tokio::spawn(net::boxed(async move {
                cell.tell(epoch, &guid, Event::Created(Err(reason.into())))
            }));
            return;
        };
        let ports = wanted
            .iter()
            .zip(host_ports)
            .map(|(&container_port, host_port)| PortMapping {
                container_port,
                host_port: host_port.into(),
                ..PortMapping::default()
            });
        let job = Arc::new(Job {
            guid: guid.clone(),
            key: slot.work.key(),
            address: self.identity.address.clone(),
            ports: ports.collect(),
            definition,
        });
        slot.job = Some(Arc::clone(&job));
        let work = Arc::clone(&slot.work);
        tokio::spawn(net::boxed(async move {
            let result = cell.executor.create(job).await;
            match &result {
                Ok(()) => {
                    let event = "succeeded-creating-garden-container";
                    cell.logs.create.info(event, work.fields());
                }
                Err(reason) => cell.logs.create.error("failed", reason, work.fields()),
            }
            cell.tell(epoch, &guid, Event::Created(result));
        }));
    }

    fn run(self: &Arc<Self>, epoch: u64, slot: &mut Slot, guid: String) {
        let Some(job) = slot.job.clone() else { return };
        let (ask, stop) = net::shutdown();
        slot.stop = Some(ask);
        let (cell, work) = (Arc::clone(self), Arc::clone(&slot.work));
        tokio::spawn(net::boxed(async move {
            let started = || {
                cell.logs
                    .step
                    .info("succeeded-transitioning-to-running", work.fields());
                cell.tell(epoch, &guid, Event::Started);
            };
            let end = cell.executor.run(job, started, stop).await;
            cell.ended(epoch, &guid, end);
        }));
    }

    fn ended(self: &Arc<Self>, epoch: u64, guid: &str, end: End) {
        let mut inside = self.lock();
        if inside.epoch != epoch {
            return;
        }
        let Some(slot) = inside.containers.get_mut(guid) else {
            return;
        };
        slot.stop = None;
        let (step, fields) = (&self.logs.step, slot.work.fields());
        step.info(
            "process-exit",
            fields.clone().and("exit-status", end.exit_status),
        );
        if slot.machine.stopping() {
            step.info("step-cancelled", fields.clone());
        }
        step.info("succeeded-transitioning-to-complete", fields);
        self.step(&mut inside, guid, Event::Ended(end.completion));
    }

    fn delete(&self, inside: &mut Inside, guid: &str) {
        if let Some(slot) = inside.containers.remove(guid) {
            inside.ledger.give_back(slot.work.resource());
            if let Some(job) = slot.job {
                let ports = job
                    .ports
                    .iter()
                    .filter_map(|port| u16::try_from(port.host_port).ok());
                inside.ledger.give_back_ports(ports);
                self.executor.forget(&job);
            }
        }
    }

    /// Keeps what was fetched for a container until it is created.
    pub(super) fn fetched(&self, guid: &str, definition: Definition) -> Answer {
        if let Some(slot) = self.lock().containers.get_mut(guid) {
            slot.definition = Some(definition);
        }
        Answer::Done
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn take(&mut self, resource: Resource) -> bool {
        !self.closed && self.ledger.take(resource)
    }
}

impl Slot {
    fn has_process(&self) -> bool {
        self.stop.is_some()
    }
}

/// Pause before a call is made again after so many failures in a row. Half of it
/// is random, so that many containers do not call at the same moment.
fn pause(failures: u32) -> Duration {
    let longest = Duration::from_millis(200)
        .saturating_mul(1 << failures.saturating_sub(1).min(10))
        .min(PAUSE_MAX);
    longest.mul_f64(rand::rng().random_range(0.5..1.0))
}
