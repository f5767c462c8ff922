//! A cell: its containers, and the shell that carries out what they want.

mod shell;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use diego::Bbs;
use diego::auction::{self, CellState, Lrp, Resource, Task};
use diego::models::StartActualLrpRequest;
use fleet::Agent;
use net::Shutdown;
use telemetry::Fields;
use tokio::sync::watch;

use super::container::{Answer, Container, Event, Kind, Phase};
use super::desired::DesiredLrps;
use super::executor::{Definition, Executor, Job};
use super::ledger::Ledger;
use super::logs::Logs;
use super::metrics::{Containers, Metrics};
use super::ports::HostPorts;
use super::presence::Hold;
use super::update::Update;
use super::work::{Work, instance_guid, lrp_state, task_state};
use crate::mutex::lock;

/// What does not change about a cell.
pub(super) struct Identity {
    /// The state that it reports, without what is on it.
    pub(super) state: CellState,
    /// Address of its instances.
    pub(super) address: String,
    /// Host ports for them.
    pub(super) ports: Arc<HostPorts>,
    /// What it hears of orders to all cells of its process.
    pub(super) agent: Agent,
}

/// A cell.
pub(super) struct Cell<E> {
    pub(super) identity: Identity,
    pub(super) bbs: Bbs,
    pub(super) desired: Arc<DesiredLrps>,
    pub(super) logs: Logs,
    pub(super) metrics: Arc<Metrics>,
    held: watch::Receiver<Hold>,
    executor: Arc<E>,
    inner: Mutex<CellInner>,
}

struct CellInner {
    ledger: Ledger,
    containers: HashMap<String, Slot>,
    /// No new work is taken and nothing new is begun.
    closed: bool,
    /// No new work is taken, and what is here leaves.
    evacuating: bool,
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
    /// Requests may be routed to it.
    pub(super) routable: bool,
    /// The BBS knows already that it runs.
    pub(super) announced: bool,
}

impl<E: Executor> Cell<E> {
    pub(super) fn new(
        identity: Identity,
        held: watch::Receiver<Hold>,
        bbs: Bbs,
        desired: Arc<DesiredLrps>,
        executor: Arc<E>,
        metrics: Arc<Metrics>,
        logs: Logs,
    ) -> Arc<Self> {
        let ledger = Ledger::new(identity.state.total_resources);
        Arc::new(Self {
            identity,
            bbs,
            desired,
            logs,
            held,
            metrics,
            executor,
            inner: Mutex::new(CellInner {
                ledger,
                containers: HashMap::new(),
                closed: false,
                evacuating: false,
                epoch: 0,
            }),
        })
    }

    pub(super) fn id(&self) -> &str {
        &self.identity.state.cell_id
    }

    /// What the cell holds and what is free.
    pub(super) fn state(&self) -> CellState {
        let inner = self.lock();
        let mut state = self.identity.state.clone();
        state.available_resources = inner.ledger.free();
        state.evacuating = inner.evacuating;
        for slot in inner.containers.values() {
            let phase = slot.machine.phase();
            state.starting_container_count += i32::from(slot.machine.starting());
            match &*slot.work {
                Work::Lrp(lrp) => state.lrps.push(Lrp {
                    state: lrp_state(phase).into(),
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
        let inner = self.lock();
        let machines = inner.containers.values().map(|slot| &slot.machine);
        machines.for_each(|machine| containers.add(machine.phase()));
    }

    /// Has the cell its presence?
    pub(super) fn is_held(&self) -> bool {
        *self.held.borrow() == Hold::Held
    }

    /// Takes work, the largest instances first, and returns what does not fit: all of it while
    /// the cell has no presence, and once it is evacuated.
    pub(super) fn accept(self: &Arc<Self>, mut work: auction::Work) -> auction::Work {
        work.lrps.sort_by_key(|lrp| Reverse(lrp.resource.memory_mb));
        let mut refused = auction::Work::default();
        let mut taken = Vec::with_capacity(work.lrps.len() + work.tasks.len());
        let held = self.is_held();
        let mut inner = self.lock();
        for lrp in work.lrps {
            if held && inner.take(lrp.resource) {
                let instance_guid = instance_guid(&mut rand::rng());
                let lrp = Lrp {
                    instance_guid,
                    ..lrp
                };
                taken.push(self.reserve(&mut inner, Work::Lrp(lrp)));
            } else {
                refused.lrps.push(lrp);
            }
        }
        for task in work.tasks {
            // A request that arrives twice does no harm: the task is here.
            if inner.containers.contains_key(&task.task_guid) {
                continue;
            }
            if held && inner.take(task.resource) {
                taken.push(self.reserve(&mut inner, Work::Task(task)));
            } else {
                refused.tasks.push(task);
            }
        }
        drop(inner);
        self.metrics.counters.taken.add(taken.len());
        let no_room = refused.lrps.len() + refused.tasks.len();
        self.metrics.counters.refused.add(no_room);
        for guid in taken {
            self.feed(&guid, Event::Reserved);
        }
        refused
    }

    /// Makes a container for `work`, whose room has been taken.
    fn reserve(&self, inner: &mut CellInner, work: Work) -> String {
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
        inner.containers.insert(guid.clone(), slot);
        guid
    }

    /// Tells a container what happened. One that is gone is not told.
    pub(super) fn feed(self: &Arc<Self>, guid: &str, event: Event) {
        self.step(&mut self.lock(), guid, event);
    }

    /// As [`Cell::feed`], from something that was begun in `epoch`.
    fn feed_if_current(self: &Arc<Self>, epoch: u64, guid: &str, event: Event) {
        let mut inner = self.lock();
        if inner.epoch == epoch {
            self.step(&mut inner, guid, event);
        }
    }

    fn step(self: &Arc<Self>, inner: &mut CellInner, guid: &str, event: Event) {
        let Some(slot) = inner.containers.get_mut(guid) else {
            return;
        };
        for command in slot.machine.on(event) {
            self.perform(inner, guid, command);
        }
    }

    /// Asks an instance to stop or cancels a task.
    pub(super) fn stop(self: &Arc<Self>, guid: &str, kind: Kind) {
        let mut inner = self.lock();
        let Some(slot) = inner.containers.get(guid) else {
            return;
        };
        if slot.machine.kind() == kind {
            if kind == Kind::Lrp {
                self.logs.stop.info("stopping", slot.work.fields());
            }
            self.step(&mut inner, guid, Event::Stop);
        }
    }

    /// Keeps new routes or tags of an instance and reports them to the BBS.
    pub(super) fn update(self: &Arc<Self>, guid: &str, update: Update) {
        let mut inner = self.lock();
        if let Some(slot) = inner.containers.get_mut(guid) {
            slot.update.merge(update);
            self.step(&mut inner, guid, Event::Refresh);
        }
    }

    /// All containers, and of which the BBS has acknowledged that they are this cell's: of
    /// an instance that it runs, of a task that it was started.
    pub(super) fn acknowledged(&self) -> HashMap<String, bool> {
        let inner = self.lock();
        let all = inner.containers.iter();
        all.map(|(guid, slot)| (guid.clone(), slot.machine.acknowledged()))
            .collect()
    }

    /// What the BBS's record of an instance is to say; `None` when none runs under this guid.
    pub(super) fn report(&self, guid: &str) -> Option<StartActualLrpRequest> {
        let inner = self.lock();
        let slot = inner.containers.get(guid)?;
        let running = *slot.machine.phase() == Phase::Running;
        match &*slot.work {
            Work::Lrp(lrp) if running => Some(self.start_request(&slot.subject(), lrp)),
            _ => None,
        }
    }

    /// Ends a task that the BBS does not know as this cell's any more.
    pub(super) fn end_disowned_task(self: &Arc<Self>, guid: &str) {
        let mut inner = self.lock();
        let Some(slot) = inner.containers.get(guid) else {
            return;
        };
        let (kind, phase) = (slot.machine.kind(), slot.machine.phase());
        if kind == Kind::Task && matches!(phase, Phase::Creating | Phase::Created | Phase::Running)
        {
            let fields = slot.work.fields();
            self.logs.bulk.info("ending-disowned-task", fields);
            self.step(&mut inner, guid, Event::Stop);
        }
    }

    /// Takes no more work, and tells all containers to leave.
    pub(super) fn evacuate(self: &Arc<Self>) {
        let mut inner = self.lock();
        inner.evacuating = true;
        let guids: Vec<String> = inner.containers.keys().cloned().collect();
        for guid in guids {
            self.step(&mut inner, &guid, Event::Evacuate);
        }
    }

    /// Is nothing on the cell?
    pub(super) fn is_empty(&self) -> bool {
        self.lock().containers.is_empty()
    }

    /// Is there a container with this guid?
    pub(super) fn has(&self, guid: &str) -> bool {
        self.lock().containers.contains_key(guid)
    }

    /// Forgets every container without telling anybody.
    pub(super) fn reset(&self) {
        let mut inner = self.lock();
        inner.epoch += 1;
        let guids: Vec<String> = inner.containers.keys().cloned().collect();
        for guid in guids {
            self.delete(&mut inner, &guid);
        }
    }

    /// Ends everything with `shutdown`, and whenever another rep has taken the cell's
    /// presence: what runs here would run twice, and the records are that rep's.
    pub(super) async fn follow(
        self: Arc<Self>,
        mut held: watch::Receiver<Hold>,
        within: Duration,
        mut shutdown: Shutdown,
    ) {
        loop {
            tokio::select! {
                // The presence is kept for as long as this goes on.
                Ok(_) = held.wait_for(|held| *held == Hold::Taken) => {}
                () = shutdown.requested() => break,
            }
            self.close(within).await;
            self.lock().closed = false;
            tokio::select! {
                Ok(_) = held.wait_for(|held| *held != Hold::Taken) => {}
                () = shutdown.requested() => break,
            }
        }
        self.close(within).await;
    }

    /// Takes no more work, ends every process and waits until all have ended, at
    /// most `within`. The BBS is not told: it sees the cell go.
    pub(super) async fn close(&self, within: Duration) {
        {
            let mut inner = self.lock();
            inner.closed = true;
            for slot in inner.containers.values() {
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

    /// Keeps what was fetched for a container until it is created.
    pub(super) fn fetched(&self, guid: &str, definition: Definition) -> Answer {
        if let Some(slot) = self.lock().containers.get_mut(guid) {
            slot.definition = Some(definition);
        }
        Answer::Done
    }

    fn lock(&self) -> MutexGuard<'_, CellInner> {
        lock(&self.inner)
    }
}

impl CellInner {
    fn take(&mut self, resource: Resource) -> bool {
        !self.closed && !self.evacuating && self.ledger.take(resource)
    }
}

impl Slot {
    fn subject(&self) -> Subject {
        Subject {
            work: Arc::clone(&self.work),
            job: self.job.clone(),
            update: self.update.clone(),
            routable: self.machine.routable(),
            announced: self.machine.announced(),
        }
    }

    fn has_process(&self) -> bool {
        self.stop.is_some()
    }
}
