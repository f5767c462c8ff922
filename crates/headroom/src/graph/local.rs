//! Services of this process, and what belongs to them: their counters, their spans, the
//! work beside them.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use document::Source;
use graph::admin::{Control, Instance};
use graph::metrics::Metrics;
use graph::processes::READY;
use graph::profile::{Profile, fixed};
use graph::service::{Directory, Host, HostConfig, Hosted};
use graph::topology::Topology;
use graph::trace::{Export, Tracer};
use graph::work::{Calibration, SharedResources};
use net::Shutdown;
use telemetry::prometheus::Page;
use telemetry::{Fields, Logger};
use tokio::net::TcpListener;
use traces::{Span, StoreLimits};

use super::background::BackgroundWork;
use super::deployment::Deployment;
use super::file::TopologyFile;
use super::profile::{self, Profiled};
use super::serving::{DRAIN, Serving};
use crate::server::ended;

/// What to start.
pub(super) struct LocalConfig {
    /// The profile, and where it comes from.
    pub(super) source: Source,
    pub(super) topology: Arc<Topology>,
    pub(super) hosted: Vec<Hosted>,
    /// Where those are that do not run here.
    pub(super) directory: Directory,
    /// 0: one for each processor.
    pub(super) threads: usize,
    pub(super) calibration: Calibration,
    /// Where spans go besides what the profile says.
    pub(super) collector: Option<Export>,
    /// Whether the background work of the profile is done here.
    pub(super) background: bool,
    pub(super) deployment: Deployment,
    pub(super) logger: Logger,
}

/// Services that run in this process.
pub(super) struct Local {
    pub(super) host: Host,
    metrics: Arc<Metrics>,
    tracer: Tracer,
    resources: Arc<SharedResources>,
    profile: Profile,
    hosted: Vec<(String, u32)>,
    collector: Option<Export>,
    /// What runs beside the services; `None`: not here.
    background: Option<BackgroundWork>,
    deployment: Deployment,
    logger: Logger,
}

impl Local {
    /// Starts them.
    pub(super) fn start(config: LocalConfig) -> Result<Arc<Self>> {
        let resources = SharedResources::open(config.calibration, &std::env::temp_dir())?;
        let metrics = Arc::new(Metrics::new());
        let exports = exports(&config.topology, config.collector.as_ref());
        let kept = match config.collector {
            Some(_) => StoreLimits::of_collected(),
            None => StoreLimits::default(),
        };
        let tracer = Tracer::new(kept, exports);
        let names = config.hosted.iter().filter_map(|hosted| {
            let service = config.topology.service(hosted.service)?;
            Some((service.name.clone(), hosted.replica))
        });
        let hosted = names.collect();
        let host = Host::start(HostConfig {
            topology: Arc::clone(&config.topology),
            hosted: config.hosted,
            directory: config.directory,
            threads: config.threads,
            resources: Arc::clone(&resources),
            metrics: Arc::clone(&metrics),
            tracer: tracer.clone(),
            run: config.deployment.run,
        })?;
        let background = match config.background {
            true => {
                let background = BackgroundWork::new(&resources);
                background.follow(&config.topology.background)?;
                Some(background)
            }
            false => None,
        };
        Ok(Arc::new(Self {
            host,
            metrics,
            tracer,
            resources,
            profile: Profile::new(config.source),
            hosted,
            collector: config.collector,
            background,
            deployment: config.deployment,
            logger: config.logger,
        }))
    }

    fn put(&self, source: &Source) -> Result<u32> {
        // One of several processes is pinned itself, and sees fewer processors than there
        // are: whoever started it has looked.
        let machine = self.background.as_ref().map(|_| super::machine());
        let checked = super::checked(source, machine.as_ref())?;
        let topology = Arc::new(checked.topology);
        if let Some(background) = &self.background {
            fixed(&self.host.topology().0, &topology)?;
            let followed = background.follow(&topology.background);
            followed.map_err(|error| anyhow!("start the background work: {error}"))?;
        }
        let revision = self.host.swap(Arc::clone(&topology))?;
        let exports = exports(&topology, self.collector.as_ref());
        self.tracer.export_to(exports);
        Ok(revision)
    }

    /// Serves on a listener, follows the file of the profile if there is one, says that it is
    /// ready, and ends in good order once it is asked to.
    pub(super) async fn serve(
        self: &Arc<Self>,
        listener: TcpListener,
        file: Option<TopologyFile>,
        testapi_names: bool,
        mut shutdown: Shutdown,
        ready: Fields,
    ) -> Result<()> {
        let serving = Serving {
            control: Arc::clone(self),
            metrics: Arc::clone(&self.metrics),
            tracer: self.tracer.clone(),
            logger: self.logger.clone(),
            testapi_names,
        };
        if let Some(file) = file {
            serving.follow(file, shutdown.clone());
        }
        let served = serving.start(listener);
        self.logger.of_every_level().info(READY, ready);
        shutdown.requested().await;
        let local = Arc::clone(self);
        let drained = tokio::task::spawn_blocking(move || {
            let drained = local.host.drain(DRAIN);
            local.warn_of_drift();
            drained
        });
        let drained = drained.await;
        served.stop().await;
        let fields = Fields::new().and("drained", drained.unwrap_or(false));
        self.logger.info("stopped", fields);
        ended(&self.logger, anyhow::Ok(()))
    }
}

impl Local {
    /// Warns if the machine is not as fast as it was, where that spoils what was measured.
    fn warn_of_drift(&self) {
        let drift = self.resources.calibration().recheck();
        if let Some(told) = drift.warning(&self.host.topology().0) {
            let fields = Fields::new()
                .and("before_ns", drift.before_ns)
                .and("now_ns", drift.now_ns);
            self.logger.error("calibration-drifted", &told, fields);
        }
    }
}

impl Profiled for Local {
    fn take(&self, found: Result<Source, String>) -> Result<u32> {
        profile::take(&self.profile, &self.logger, found, |source| {
            self.put(source)
        })
    }
}

impl Control for Local {
    fn topology(&self) -> (Arc<Topology>, u32) {
        self.host.topology()
    }

    fn instances(&self) -> Vec<Instance> {
        let (topology, _) = self.host.topology();
        let directory = self.host.directory();
        let instances = self.hosted.iter().filter_map(|(name, replica)| {
            Some(Instance {
                service: topology.find(name)?,
                replica: *replica,
                address: directory.get(name, *replica)?,
                pid: std::process::id(),
                admin: None,
            })
        });
        instances.collect()
    }

    fn deployment(&self) -> serde_json::Value {
        let (topology, _) = self.host.topology();
        let seen = self
            .background
            .as_ref()
            .map(BackgroundWork::seen)
            .unwrap_or_default();
        self.deployment
            .describe(&topology, &self.resources, &self.profile, &seen)
    }

    fn profile(&self) -> String {
        self.profile.source().text
    }

    fn put_profile(&self, text: &str) -> Result<u32, String> {
        let source = self.deployment.source(text);
        self.take(Ok(source)).map_err(|error| error.to_string())
    }

    fn analysis(&self, traces: Vec<Vec<Span>>) -> Result<serde_json::Value, String> {
        super::analyse::live(
            &self.host.topology().0,
            self.resources.calibration(),
            self.deployment.floors(),
            traces,
        )
    }

    fn metrics(&self, page: &mut Page) {
        profile::metrics(page, self.host.topology().1, &self.profile);
    }
}

fn exports(topology: &Topology, collector: Option<&Export>) -> Vec<Export> {
    let mut exports = Export::all(&topology.tracing);
    exports.extend(collector.cloned());
    exports
}
