//! What belongs to a running graph, whoever runs it: its control server, its spans, its
//! profile's file.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use graph::admin::{Admin, AdminConfig, AdminPage, Control};
use graph::metrics::Metrics;
use graph::topology::Topology;
use graph::trace::Tracer;
use net::Shutdown;
use rustix::thread::CpuSet;
use telemetry::Logger;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::file::TopologyFile;
use super::profile::{self, Profiled};

/// Longest wait for requests in hand when the graph stops.
pub(super) const DRAIN: Duration = Duration::from_secs(10);

/// What is served.
pub(super) struct Serving<C> {
    pub(super) control: Arc<C>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) tracer: Tracer,
    pub(super) logger: Logger,
    /// Whether metrics have testapi's names beside ours.
    pub(super) testapi_names: bool,
}

/// A control server that runs, and what runs with it.
pub(super) struct Served {
    pub(super) admin: Arc<Admin>,
    tasks: Vec<JoinHandle<()>>,
    stop: watch::Sender<bool>,
    shutdown: Shutdown,
}

impl<C: Control + Profiled> Serving<C> {
    /// Starts the control server on a listener, and the collecting of spans.
    pub(super) fn start(self, listener: tokio::net::TcpListener) -> Served {
        let admin = Admin::new(AdminConfig {
            control: self.control.clone(),
            metrics: self.metrics,
            tracer: self.tracer.clone(),
            page: Some(AdminPage::embedded()),
            testapi_names: self.testapi_names,
        });
        let (stop, shutdown) = net::shutdown();
        let serving = Arc::clone(&admin).serve(listener, shutdown.clone());
        let tasks = vec![
            tokio::spawn(net::boxed(serving)),
            tokio::spawn(net::boxed(self.tracer.run(shutdown.clone()))),
        ];
        Served {
            admin,
            tasks,
            stop,
            shutdown,
        }
    }

    /// Puts what is written to a file in force, from now on.
    pub(super) fn follow(&self, file: TopologyFile, shutdown: Shutdown) {
        let (to, logger) = (self.control.clone(), self.logger.clone());
        tokio::spawn(net::boxed(async move {
            profile::follow(&file, to, logger, shutdown).await
        }));
    }
}

impl Served {
    /// Answers at another address as well.
    pub(super) fn also_on(&mut self, listener: tokio::net::TcpListener) {
        let limits = net::Limits::default();
        let (admin, shutdown) = (Arc::clone(&self.admin), self.shutdown.clone());
        let serving = net::serve(listener, None, limits, admin, shutdown);
        self.tasks.push(tokio::spawn(net::boxed(serving)));
    }

    /// Ends all: spans that are left are sent, and questions in hand answered.
    pub(super) async fn stop(self) {
        // Who is told and has ended already needs not be told.
        let _ = self.stop.send(true);
        for task in self.tasks {
            // One that panicked has said so.
            let _ = task.await;
        }
    }
}

/// Listens for the control server.
pub(super) async fn listen(address: SocketAddr) -> Result<(tokio::net::TcpListener, SocketAddr)> {
    let listener = net::bind(address).await.context(
        "start the control server (another graph may run; --admin takes another address)",
    )?;
    let address = listener.local_addr().context("ask for an own address")?;
    Ok((listener, address))
}

/// Whether every service may run where it shall. The kernel would refuse later, when
/// nobody looks.
pub(super) fn processors(topology: &Topology, file: &Path) -> Result<()> {
    let allowed = rustix::thread::sched_getaffinity(None).context("ask for processors")?;
    for service in &topology.services {
        let missing = service
            .placement
            .cpus
            .iter()
            .find(|cpu| **cpu as usize >= CpuSet::MAX_CPU || !allowed.is_set(**cpu as usize));
        if let Some(cpu) = missing {
            return Err(anyhow!(
                "{}: pin the service {} to processor {cpu}: this process may not use it (see `taskset -p $$`); name another in its cpus, or start headroom without that limit",
                file.display(),
                service.name
            ));
        }
    }
    Ok(())
}
