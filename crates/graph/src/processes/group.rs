//! All children of a graph.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use processes::{Program, Signal};

use super::child::{Child, OnOutput, Starting, State};
use super::{AT_ONCE, ProcessError};
use crate::service::Directory;
use crate::topology::{ServiceId, Topology};

/// How long killed children may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// What is needed to start the children of a graph.
pub struct Start<'a> {
    /// What is started: each instance of each service.
    pub topology: &'a Topology,
    /// The program of an instance, from where its callees are.
    pub program: &'a dyn Fn(ServiceId, u32, &Directory) -> Program,
    /// Takes lines that children print, beside the one that says that they are ready.
    pub said: Arc<dyn Fn(String) + Send + Sync>,
}

/// The processes of a graph. Dropping it kills them.
#[derive(Debug)]
pub struct ProcessGroup {
    children: Vec<Arc<Child>>,
    directory: Directory,
}

impl ProcessGroup {
    /// Starts every instance, callees before their callers, and waits until all are ready.
    ///
    /// Must be awaited on a thread that lasts as long as the process (the one that blocks
    /// on the runtime): see [`Program::spawn`]. `None`: `stop` came first, and those
    /// that had started are gone.
    ///
    /// # Errors
    /// When one does not start; the others are killed.
    pub async fn start(
        start: &Start<'_>,
        stop: impl Future<Output = ()>,
    ) -> Result<Option<Self>, ProcessError> {
        let mut stop = pin!(stop);
        let mut group = Self {
            children: Vec::new(),
            directory: Directory::default(),
        };
        for level in levels(start.topology) {
            for some in level.chunks(AT_ONCE) {
                let stopped = tokio::select! {
                    biased;
                    () = &mut stop => Some(Ok(None)),
                    ready = group.start_some(start, some) => ready.err().map(Err),
                };
                if let Some(stopped) = stopped {
                    group.kill().await;
                    return stopped;
                }
            }
        }
        Ok(Some(group))
    }

    async fn start_some(
        &mut self,
        start: &Start<'_>,
        some: &[(ServiceId, u32)],
    ) -> Result<(), ProcessError> {
        let mut starting = Vec::new();
        for (service, replica) in some {
            let Some(of) = start.topology.service(*service) else {
                continue;
            };
            let name = match of.replicas {
                0 | 1 => of.name.clone(),
                _ => format!("{}-{replica}", of.name),
            };
            let program = (start.program)(*service, *replica, &self.directory);
            let said: OnOutput = Arc::clone(&start.said);
            let child = Starting::start(name, *service, *replica, program, said);
            let failed = child.is_err();
            starting.push((&of.name, child));
            if failed {
                break;
            }
        }
        let mut done = Ok(());
        for (name, child) in starting {
            match (child, &done) {
                (Ok(child), Ok(())) => match child.ready().await {
                    Ok(child) => {
                        self.directory.set(name, child.replica, child.at.address);
                        self.children.push(Arc::new(child));
                    }
                    Err(error) => done = Err(error),
                },
                (Ok(child), Err(_)) => child.end().await,
                (Err(error), Ok(())) => done = Err(error),
                (Err(_), Err(_)) => {}
            }
        }
        done
    }

    /// Every child, callees first.
    pub fn children(&self) -> &[Arc<Child>] {
        &self.children
    }

    /// Where they take requests.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Returns once one of those in `watched` has ended, with its place among the
    /// [children](Self::children) and how it ended; it is taken out of `watched`. Waits for
    /// ever when none is left.
    pub async fn next_end(&self, watched: &mut Vec<usize>) -> (usize, String) {
        let ends = watched.iter().filter_map(|place| {
            let child = Arc::clone(self.children.get(*place)?);
            let place = *place;
            Some(Box::pin(async move { (place, child.ended().await) }))
        });
        let mut ends: Vec<_> = ends.collect();
        let (place, how) = std::future::poll_fn(|context| {
            for end in &mut ends {
                if let std::task::Poll::Ready(ended) = end.as_mut().poll(context) {
                    return std::task::Poll::Ready(ended);
                }
            }
            std::task::Poll::Pending
        })
        .await;
        watched.retain(|one| *one != place);
        (place, how)
    }

    /// Stops them: first the instances of the entry, so that requests in hand can still
    /// call, then all others. Those that have not ended after `longest` are killed. Whether
    /// none was.
    pub async fn stop(&self, entry: ServiceId, longest: Duration) -> bool {
        let until = tokio::time::Instant::now() + longest;
        let mut in_time = true;
        for entries in [true, false] {
            let mine = |child: &&Arc<Child>| (child.service == entry) == entries;
            for child in self.children.iter().filter(mine) {
                child.signal(Signal::SIGTERM);
            }
            for child in self.children.iter().filter(mine) {
                in_time &= tokio::time::timeout_at(until, child.ended()).await.is_ok();
            }
        }
        self.kill().await;
        in_time
    }

    /// Kills what runs, and waits until it is gone.
    async fn kill(&self) {
        for child in &self.children {
            child.signal(Signal::SIGKILL);
        }
        let all = async {
            for child in &self.children {
                child.ended().await;
            }
        };
        // A process that the kernel does not let go (its disk hangs) is not waited for.
        let _ = tokio::time::timeout(GONE_WITHIN, all).await;
    }

    /// How many run.
    pub fn running(&self) -> usize {
        let running = self
            .children
            .iter()
            .filter(|child| child.state() == State::Running);
        running.count()
    }
}

/// Every instance, in levels: whoever is called is in an earlier one.
pub(super) fn levels(topology: &Topology) -> Vec<Vec<(ServiceId, u32)>> {
    let mut level = vec![0; topology.services.len()];
    let at = |id: ServiceId| id.0 as usize;
    for id in topology.callers_first().into_iter().rev() {
        // Whoever calls itself knows where it is.
        let callees = topology.edges.iter();
        let callees = callees.filter(|edge| edge.from == id && edge.to != id);
        let below = callees.filter_map(|edge| level.get(at(edge.to)).map(|level| level + 1));
        let own = below.max().unwrap_or(0);
        if let Some(level) = level.get_mut(at(id)) {
            *level = own;
        }
    }
    let count = level.iter().max().map_or(0, |highest| highest + 1);
    let mut levels = vec![Vec::new(); count];
    for ((id, service), level) in (0..).map(ServiceId).zip(&topology.services).zip(level) {
        if let Some(instances) = levels.get_mut(level) {
            instances.extend((0..service.replicas).map(|replica| (id, replica)));
        }
    }
    levels
}
