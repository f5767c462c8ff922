//! An executor that runs a child process per container.
//!
//! What it gives: a folder per container, the environment of the platform, output
//! kept and logged, processes that end with their container and with the rep.
//!
//! What it does not give: any isolation. Processes have the rep's user, file
//! system, network, limits and privileges; the `user` of an action is ignored, as
//! are memory and disk limits, egress rules, root file systems and volume mounts.
//! There is no port translation either: a process must listen on its host port,
//! which is why `PORT` is made it. Downloads, uploads and health checks are not
//! performed; an instance counts as running once its process runs.

mod actions;
mod environment;
mod output;
mod spawn;
#[cfg(test)]
mod tests;

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use net::Shutdown;
use processes::{Reaper, RunTag};
use telemetry::Logger;
use tokio::io::AsyncReadExt;

use super::super::config::ProcessSettings;
use super::super::container::{Completion, Kind};
use super::super::metrics::Metrics;
use super::super::settings::Error;
use super::super::work::uuid;
use super::{Definition, End, Executor, Job};
use actions::Run;
use spawn::Spawner;

/// Longest result file that is read; a longer one fails its task.
const RESULT_BYTES: u64 = 51_200;

/// Runs a child process per container.
pub(in crate::rep) struct Process {
    folder: Folder,
    settings: ProcessSettings,
    spawner: Spawner,
    metrics: Arc<Metrics>,
    logger: Logger,
    /// Ends, when this process is gone, what carries the tag.
    reaper: Option<(Reaper, RunTag)>,
}

/// The folder of all containers; removed in the end when it is ours.
struct Folder {
    path: PathBuf,
    ours: bool,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.ours {
            // What cannot be removed stays in the system's temporary folder.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

impl Process {
    /// Must be called within a runtime.
    ///
    /// # Errors
    /// When the folder cannot be made, or the thread that starts processes or the reaper
    /// cannot run.
    pub(in crate::rep) fn new(
        settings: ProcessSettings,
        metrics: Arc<Metrics>,
        logger: &Logger,
    ) -> Result<Self, Error> {
        let folder = match settings.root.clone() {
            Some(path) => Folder { path, ours: false },
            None => Folder {
                path: std::env::temp_dir().join(format!("cells-{}", uuid(&mut rand::rng()))),
                ours: true,
            },
        };
        make_folder(&folder.path)?;
        let reaper = match settings.reaper.as_slice() {
            [] => None,
            command => {
                let reaper = Reaper::start(command)?;
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                let now = now.unwrap_or_default().as_nanos();
                let tag = RunTag::new("rep", i64::try_from(now).unwrap_or(i64::MAX));
                reaper.tag(&tag)?;
                Some((reaper, tag))
            }
        };
        Ok(Self {
            reaper,
            spawner: Spawner::start(settings.spawns)?,
            metrics,
            logger: logger.session("executor.run-container.run.output"),
            folder,
            settings,
        })
    }

    fn folder_of(&self, job: &Job) -> Result<PathBuf, String> {
        // The guid comes from a request: it must be a name, not a way out.
        let name = Path::new(&job.guid).components().collect::<Vec<_>>();
        match name.as_slice() {
            [std::path::Component::Normal(name)] => Ok(self.folder.path.join(name)),
            _ => Err(format!("the guid {:?} cannot name a folder", job.guid)),
        }
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|cause| io::Error::new(cause.kind(), format!("make {}: {cause}", path.display())))
}

impl Executor for Process {
    async fn create(&self, job: Arc<Job>) -> Result<(), String> {
        let folder = self.folder_of(&job)?;
        tokio::task::spawn_blocking(move || make_folder(&folder))
            .await
            .map_err(io::Error::other)
            .flatten()
            .map_err(|cause| format!("failed to create container: {cause}"))
    }

    async fn run(&self, job: Arc<Job>, started: impl FnOnce() + Send, stop: Shutdown) -> End {
        let folder = match self.folder_of(&job) {
            Ok(folder) => folder,
            Err(reason) => return ended(Err(reason), None),
        };
        let run = Run::new(self, &job, &folder);
        let outcome = run.all(started, stop).await;
        let exit_status = run.exit_status();
        if let (Ok(()), Definition::Task(task)) = (&outcome, &job.definition)
            && !task.result_file.is_empty()
        {
            return match read_result(&folder.join(&task.result_file)).await {
                Ok(result) => End {
                    completion: Completion {
                        result,
                        ..Completion::default()
                    },
                    exit_status,
                },
                Err(cause) => {
                    self.logger
                        .error("failed-to-read-result", &cause, run.fields());
                    ended(Err("failed to fetch result".into()), exit_status)
                }
            };
        }
        ended(outcome, exit_status)
    }

    fn forget(&self, job: &Job) {
        if let Ok(folder) = self.folder_of(job) {
            // A folder that cannot be removed, or was never made, is not an error here.
            tokio::task::spawn_blocking(move || std::fs::remove_dir_all(folder));
        }
    }
}

fn ended(outcome: Result<(), String>, exit_status: Option<i32>) -> End {
    let failed = outcome.is_err();
    let reason = outcome.err().unwrap_or_default();
    End {
        completion: Completion {
            failed,
            reason,
            ..Completion::default()
        },
        exit_status,
    }
}

/// Reads a result file; a relative name lies in the container's folder.
async fn read_result(path: &Path) -> io::Result<String> {
    let file = tokio::fs::File::open(path).await?;
    let mut text = String::new();
    let read = file
        .take(RESULT_BYTES + 1)
        .read_to_string(&mut text)
        .await?;
    if read as u64 > RESULT_BYTES {
        return Err(io::Error::other(format!(
            "it is longer than {RESULT_BYTES} bytes"
        )));
    }
    Ok(text)
}

impl Job {
    /// Is it an instance, whose process is not meant to end by itself?
    fn lasts(&self) -> bool {
        self.kind() == Kind::Lrp
    }
}
