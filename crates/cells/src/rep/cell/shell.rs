//! Carrying out what containers want.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use diego::models::PortMapping;
use rand::RngExt;

use super::super::container::{Call, Command, Event};
use super::super::executor::{Definition, End, Executor, Job, Network, name_of};
use super::super::steps::Sign;
use super::super::work::Work;
use super::{Cell, CellInner, Slot};

/// Longest pause before a failed call is made again.
const PAUSE_MAX: Duration = Duration::from_secs(30);

impl<E: Executor> Cell<E> {
    pub(super) fn perform(self: &Arc<Self>, inner: &mut CellInner, guid: &str, command: Command) {
        if inner.closed && !matches!(command, Command::Kill | Command::Delete) {
            return;
        }
        let epoch = inner.epoch;
        let Some(slot) = inner.containers.get_mut(guid) else {
            return;
        };
        let (cell, guid) = (Arc::clone(self), guid.to_owned());
        match command {
            Command::Call(call) => {
                if let (Call::RemoveLrp | Call::CrashLrp(_), Work::Lrp(lrp)) = (&call, &*slot.work)
                {
                    // Once the BBS knows, its place may be that of another LRP of this guid.
                    self.desired.forget(&lrp.process_guid);
                }
                let subject = slot.subject();
                tokio::spawn(net::boxed(async move {
                    let answer = cell.call(&subject, call).await;
                    cell.feed_if_current(epoch, &guid, Event::Answered(answer));
                }));
            }
            Command::RetryAfter(failures) => {
                self.metrics.counters.repeats.add(1);
                tokio::spawn(net::boxed(async move {
                    tokio::time::sleep(pause(failures)).await;
                    cell.feed_if_current(epoch, &guid, Event::Retry);
                }));
            }
            Command::Create => self.create(inner, guid),
            Command::Run => self.run(epoch, slot, guid),
            Command::Kill => {
                if let Some(stop) = &slot.stop {
                    // Nobody listens when the process has ended meanwhile.
                    let _ = stop.send(true);
                }
            }
            Command::Delete => self.delete(inner, &guid),
        }
    }

    fn create(self: &Arc<Self>, inner: &mut CellInner, guid: String) {
        let epoch = inner.epoch;
        let Some(slot) = inner.containers.get_mut(&guid) else {
            return;
        };
        let Some(definition) = slot.definition.take() else {
            return;
        };
        let wanted = match &definition {
            Definition::Lrp(lrp, _) => distinct(&lrp.ports),
            Definition::Task(_) => Vec::new(),
        };
        let cell = Arc::clone(self);
        let refuse = |guid: String, what: &str| {
            let (cell, reason) = (
                Arc::clone(self),
                format!("failed to create container: {what}"),
            );
            tokio::spawn(net::boxed(async move {
                cell.feed_if_current(epoch, &guid, Event::Created(Err(reason)))
            }));
        };
        let number = self.identity.state.cell_index;
        let (address, network) = match self.executor.network(&name_of(number, &guid)) {
            Network::Shared => (self.identity.address.clone(), None),
            Network::Own { address, namespace } => (address, Some(namespace)),
            Network::NoneLeft => return refuse(guid, "no network is left"),
        };
        let host_ports = match network {
            Some(_) => wanted.clone(),
            None => match self.identity.ports.take(wanted.len()) {
                Some(ports) => ports.into_iter().map(u32::from).collect(),
                None => return refuse(guid, "no host port is left"),
            },
        };
        let ports = wanted
            .into_iter()
            .zip(host_ports)
            .map(|(container_port, host_port)| PortMapping {
                container_port,
                host_port,
                ..PortMapping::default()
            });
        let job = Arc::new(Job {
            cell: number,
            guid: guid.clone(),
            key: slot.work.key(),
            address,
            ports: ports.collect(),
            network,
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
            cell.feed_if_current(epoch, &guid, Event::Created(result));
        }));
    }

    fn run(self: &Arc<Self>, epoch: u64, slot: &mut Slot, guid: String) {
        let Some(job) = slot.job.clone() else { return };
        let (ask, stop) = net::shutdown();
        slot.stop = Some(ask);
        let (cell, work) = (Arc::clone(self), Arc::clone(&slot.work));
        tokio::spawn(net::boxed(async move {
            let signs = |sign| match sign {
                Sign::Running => {
                    cell.logs
                        .step
                        .info("succeeded-transitioning-to-running", work.fields());
                    cell.feed_if_current(epoch, &guid, Event::Started);
                }
                Sign::Routable(routable) => {
                    cell.feed_if_current(epoch, &guid, Event::Routable(routable))
                }
            };
            let end = cell.executor.run(job, signs, stop).await;
            cell.ended(epoch, &guid, end);
        }));
    }

    fn ended(self: &Arc<Self>, epoch: u64, guid: &str, end: End) {
        let mut inner = self.lock();
        if inner.epoch != epoch {
            return;
        }
        let Some(slot) = inner.containers.get_mut(guid) else {
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
        self.step(&mut inner, guid, Event::Ended(end.completion));
    }

    pub(super) fn delete(&self, inner: &mut CellInner, guid: &str) {
        if let Some(slot) = inner.containers.remove(guid) {
            inner.ledger.give_back(slot.work.resource());
            if let Some(job) = slot.job {
                if job.network.is_none() {
                    let ports = job
                        .ports
                        .iter()
                        .filter_map(|port| u16::try_from(port.host_port).ok());
                    self.identity.ports.give_back(ports);
                }
                self.executor.forget(&job);
            }
        }
    }
}

/// Each port once, in the order in which they are first named.
fn distinct(ports: &[u32]) -> Vec<u32> {
    let mut seen = HashSet::new();
    ports
        .iter()
        .copied()
        .filter(|port| seen.insert(*port))
        .collect()
}

/// Pause before a call is made again after so many failures in a row. Half of it
/// is random, so that many containers do not call at the same moment.
fn pause(failures: u32) -> Duration {
    let longest = Duration::from_millis(200)
        .saturating_mul(1 << failures.saturating_sub(1).min(10))
        .min(PAUSE_MAX);
    longest.mul_f64(rand::rng().random_range(0.5..1.0))
}
