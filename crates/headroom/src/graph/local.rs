//! Services of this process, and what belongs to them: their counters, their spans, the
//! work beside them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use document::Source;
use graph::background::Neighbours;
use graph::metrics::Metrics;
use graph::profile::Profile;
use graph::service::{Directory, Host, HostConfig, Hosted};
use graph::topology::{Background, Topology};
use graph::trace::{Export, StoreLimits, Tracer};
use graph::work::{Calibration, Site};

use super::profile::{PutError, unix_s};

/// Longest wait for the end of background work.
const NEIGHBOURS_END: Duration = Duration::from_secs(2);

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
}

/// Services that run in this process.
pub(super) struct Local {
    pub(super) host: Host,
    pub(super) site: Arc<Site>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) tracer: Tracer,
    pub(super) profile: Profile,
    collector: Option<Export>,
    /// What runs beside the services, and what it follows; `None`: not here.
    background: Mutex<Option<(Vec<Background>, Option<Neighbours>)>>,
}

impl Local {
    /// Starts them.
    pub(super) fn start(config: LocalConfig) -> Result<Arc<Self>> {
        let folder = std::env::temp_dir();
        let site = Site::open(config.calibration, &folder)?;
        let metrics = Arc::new(Metrics::new());
        let exports = exports(&config.topology, config.collector.as_ref());
        let tracer = Tracer::new(StoreLimits::default(), exports);
        let host = Host::start(HostConfig {
            topology: Arc::clone(&config.topology),
            hosted: config.hosted,
            directory: config.directory,
            threads: config.threads,
            site: Arc::clone(&site),
            metrics: Arc::clone(&metrics),
            tracer: tracer.clone(),
        })?;
        let background = match config.background {
            true => Some(beside(&site, &config.topology.background)?),
            false => None,
        };
        Ok(Arc::new(Self {
            host,
            site,
            metrics,
            tracer,
            profile: Profile::new(config.source),
            collector: config.collector,
            background: Mutex::new(background),
        }))
    }

    /// Puts another profile in force, or keeps the one before and says why. Gives the
    /// number of the revision in force.
    pub(super) fn put(&self, source: Source) -> Result<u32, PutError> {
        let put = self.try_put(&source);
        match &put {
            Ok(_) => self.profile.taken(source),
            Err(error) => self.profile.refused(error.to_string(), unix_s()),
        }
        put
    }

    fn try_put(&self, source: &Source) -> Result<u32, PutError> {
        let checked = super::checked(source, Some(&super::machine()))?;
        let topology = Arc::new(checked.topology);
        let revision = self.host.swap(Arc::clone(&topology))?;
        let exports = exports(&topology, self.collector.as_ref());
        self.tracer.export_to(exports);
        self.follow_background(&topology.background)?;
        Ok(revision)
    }

    /// Background work that is another now begins anew.
    fn follow_background(&self, wanted: &[Background]) -> Result<(), PutError> {
        let mut background = self
            .background
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some((running, neighbours)) = &mut *background else {
            return Ok(());
        };
        if running == wanted {
            return Ok(());
        }
        if let Some(before) = neighbours.take() {
            before.stop_within(NEIGHBOURS_END);
        }
        running.clear();
        (*running, *neighbours) = beside(&self.site, wanted)?;
        Ok(())
    }

    /// Accepts nothing more, and waits for the requests in hand.
    pub(super) async fn drain(self: &Arc<Self>, longest: Duration) -> bool {
        let local = Arc::clone(self);
        let drained = tokio::task::spawn_blocking(move || local.host.drain(longest)).await;
        drained.unwrap_or(false)
    }

    /// The background work of this process, and what it took so far.
    pub(super) fn neighbours(&self) -> Vec<graph::background::Seen> {
        let background = self
            .background
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let running = background.as_ref().and_then(|(_, running)| running.as_ref());
        running.map(Neighbours::seen).unwrap_or_default()
    }
}

fn exports(topology: &Topology, collector: Option<&Export>) -> Vec<Export> {
    let mut exports = Export::all(&topology.tracing);
    exports.extend(collector.cloned());
    exports
}

type Beside = (Vec<Background>, Option<Neighbours>);

fn beside(site: &Arc<Site>, wanted: &[Background]) -> Result<Beside, graph::work::WorkError> {
    let neighbours = match wanted {
        [] => None,
        wanted => Some(Neighbours::start(site, wanted)?),
    };
    Ok((wanted.to_owned(), neighbours))
}
