//! The control of a graph whose services are other processes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::anyhow;
use bytes::Bytes;
use document::Source;
use graph::admin::{Control, Instance, Peer};
use graph::processes::{Child, ProcessGroup, State};
use graph::profile::{Profile, fixed};
use graph::topology::Topology;
use graph::work::SharedResources;
use http_body_util::Full;
use net::{Client, ClientOptions};
use serde_json::{Value, json};
use telemetry::Logger;
use telemetry::prometheus::Page;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use traces::Span;

use crate::graph::analyse;
use crate::graph::background::BackgroundWork;
use crate::graph::deployment::Deployment;
use crate::graph::profile::{self, Profiled};

/// Longest wait for a process to take a profile.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);

/// Answers for all processes.
pub(super) struct Supervisor {
    group: Arc<ProcessGroup>,
    /// In force, with its revision.
    topology: Mutex<(Arc<Topology>, u32)>,
    profile: Profile,
    deployment: Deployment,
    resources: Arc<SharedResources>,
    background: BackgroundWork,
    logger: Logger,
    client: Client,
    runtime: Handle,
}

impl Supervisor {
    /// Must be called within a runtime.
    pub(super) fn new(
        group: Arc<ProcessGroup>,
        topology: Arc<Topology>,
        source: Source,
        deployment: Deployment,
        resources: Arc<SharedResources>,
        background: BackgroundWork,
        logger: Logger,
    ) -> Self {
        Self {
            group,
            topology: Mutex::new((topology, 1)),
            profile: Profile::new(source),
            deployment,
            resources,
            background,
            logger,
            client: Client::new(ClientOptions {
                connections_per_host: 1,
                connect_within: TAKEN_WITHIN,
                answer_within: TAKEN_WITHIN,
                answer_bytes: 1 << 20,
                tls: None,
            }),
            runtime: Handle::current(),
        }
    }

    fn put(&self, source: &Source) -> anyhow::Result<u32> {
        let checked = super::super::checked(source, Some(&super::super::machine()))?;
        let topology = Arc::new(checked.topology);
        let (before, revision) = self.in_force().clone();
        fixed(&before, &topology)?;
        if *before == *topology {
            return Ok(revision);
        }
        let followed = self.background.follow(&topology.background);
        followed.map_err(|error| anyhow!("start the background work: {error}"))?;
        self.runtime
            .block_on(net::local(self.spread(&before, &topology)))?;
        let revision = revision + 1;
        *self.in_force() = (topology, revision);
        Ok(revision)
    }

    /// Gives a profile to all processes, the entry's last: it decides under which one a
    /// request runs, and the others know that by then. If one refuses, those that took it
    /// get the one before again.
    async fn spread(&self, before: &Topology, topology: &Topology) -> anyhow::Result<()> {
        let text = Bytes::from(topology.to_toml());
        let children = self.group.children();
        let running = children.iter().filter(|one| one.state() == State::Running);
        let (entries, others): (Vec<_>, Vec<_>) =
            running.partition(|one| one.service == topology.entry);
        for some in [others, entries] {
            if let Err(why) = self.send_profile(&some, &text).await {
                let old = Bytes::from(before.to_toml());
                let all: Vec<_> = children.iter().collect();
                // Whoever cannot take it back has ended, and that is told already.
                let _ = self.send_profile(&all, &old).await;
                return Err(anyhow!("change the profile: {why}"));
            }
        }
        Ok(())
    }

    async fn send_profile(&self, to: &[&Arc<Child>], text: &Bytes) -> Result<(), String> {
        let mut giving = JoinSet::new();
        for child in to {
            let (client, text) = (self.client.clone(), text.clone());
            let child = Arc::clone(child);
            giving.spawn(net::boxed(async move {
                send_profile(&client, &child, text).await
            }));
        }
        let mut all = Ok(());
        while let Some(given) = giving.join_next().await {
            let given = given.unwrap_or_else(|error| Err(error.to_string()));
            all = all.and(given);
        }
        all
    }

    fn in_force(&self) -> MutexGuard<'_, (Arc<Topology>, u32)> {
        self.topology.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn send_profile(client: &Client, child: &Child, text: Bytes) -> Result<(), String> {
    let request = http::Request::put(format!("http://{}/profile", child.at.admin));
    let request = request
        .body(Full::new(text))
        .map_err(|error| error.to_string())?;
    let answer = client.request(request).await;
    let answer = answer.map_err(|error| format!("the service {}: {error}", child.name))?;
    match answer.status.is_success() {
        true => Ok(()),
        false => Err(format!(
            "the service {} refused it: {}",
            child.name,
            error_message(&answer.body)
        )),
    }
}

/// What a control server says is wrong: JSON with an `error`.
fn error_message(body: &[u8]) -> String {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let error = json.as_ref().and_then(|json| json["error"].as_str());
    error.map_or_else(|| String::from_utf8_lossy(body).into_owned(), str::to_owned)
}

/// The processes that run, as the control server reads their counters.
pub(super) fn peers(group: &ProcessGroup) -> Vec<Peer> {
    let running = group
        .children()
        .iter()
        .filter(|child| child.state() == State::Running);
    let peers = running.filter_map(|child| {
        Some(Peer {
            name: child.name.clone(),
            counters: format!("http://{}/counters", child.at.admin).parse().ok()?,
        })
    });
    peers.collect()
}

impl Profiled for Supervisor {
    fn take(&self, found: Result<Source, String>) -> anyhow::Result<u32> {
        profile::take(&self.profile, &self.logger, found, |source| {
            self.put(source)
        })
    }
}

impl Control for Supervisor {
    fn topology(&self) -> (Arc<Topology>, u32) {
        self.in_force().clone()
    }

    fn instances(&self) -> Vec<Instance> {
        let children = self.group.children().iter();
        let instances = children.map(|child| Instance {
            service: child.service,
            replica: child.replica,
            address: child.at.address,
            pid: child.pid,
            admin: Some(child.at.admin),
        });
        instances.collect()
    }

    fn deployment(&self) -> Value {
        let (topology, _) = self.topology();
        let seen = self.background.seen();
        let mut all = self
            .deployment
            .describe(&topology, &self.resources, &self.profile, &seen);
        let processes = self.group.children().iter().map(|child| {
            let ended = match child.state() {
                State::Running => None,
                State::Ended(how) => Some(how),
            };
            json!({ "name": child.name, "pid": child.pid, "ended": ended })
        });
        if let Some(all) = all.as_object_mut() {
            all.insert("processes".to_owned(), processes.collect());
        }
        all
    }

    fn profile(&self) -> String {
        self.profile.source().text
    }

    fn put_profile(&self, text: &str) -> Result<u32, String> {
        let source = self.deployment.source(text);
        self.take(Ok(source)).map_err(|error| error.to_string())
    }

    fn analysis(&self, traces: Vec<Vec<Span>>) -> Result<Value, String> {
        analyse::live(
            &self.topology().0,
            self.resources.calibration(),
            self.deployment.floors(),
            traces,
        )
    }

    fn metrics(&self, page: &mut Page) {
        profile::metrics(page, self.in_force().1, &self.profile);
        let all = self.group.children().len();
        let running = self.group.running();
        page.gauge(
            "headroom_graph_processes_running",
            "Processes of services that run.",
            running,
        );
        page.gauge(
            "headroom_graph_processes_ended",
            "Processes of services that have ended though the graph runs.",
            all - running.min(all),
        );
    }
}
