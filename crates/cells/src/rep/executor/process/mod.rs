//! An executor that runs a child process per container.
//!
//! What it gives: a folder per container, the environment of the platform, a key and a
//! certificate where the operator has an authority for that, output kept and logged,
//! processes that end with their container and with the rep.
//!
//! What it does not give: any isolation. Processes have the rep's file system, and its
//! user unless that is root and the action names another one ([`users`]); egress rules, root
//! file systems and volume mounts are ignored. Memory, processes and networks are
//! kept apart on demand. A container's own
//! folder stands for its file system: see [`place`]. `disk_mb` bounds what a download
//! brings there, and nothing else.
//!
//! Without networks of their own there is no port translation either: a process must
//! listen on its host port, which is why `PORT` is made it.

mod environment;
mod identity;
mod leaves;
mod leftovers;
mod limits;
mod log_limit;
mod mounted;
mod networks;
mod output;
mod place;
mod probe;
mod spawn;
#[cfg(test)]
mod tests;
mod transfer;
mod users;

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use diego::models::{CachedDependency, DownloadAction, EnvironmentVariable};
use futures_util::future::try_join_all;
use net::Shutdown;
use nix::sys::stat::{Mode, umask};
use processes::{Account, Reaper, RunTag};
use telemetry::{Fields, Logger};
use tokio::io::AsyncReadExt;

use super::super::config::ProcessSettings;
use super::super::container::Completion;
use super::super::metrics::Metrics;
use super::super::settings::Error;
use super::super::steps::{Failure, Monitoring, Plan, Sign, Steps, byte_size};
use super::{Definition, End, Executor, Job, Network};
use crate::pool::Pool;
use identity::Identities;
use leaves::Container;
use leftovers::{Folder, Leftovers, RemovedContainer, make_folder};
use limits::Limits;
use networks::Networks;
use spawn::Spawner;
pub use transfer::unpack_archive;
use transfer::{TransferError, Transfers, download_of};

/// What is taken from the modes of files that containers make, and that are made for them: 022, as runc
/// starts those of Diego. What is the rep's own has a mode of its own.
const CONTAINERS_UMASK: Mode = Mode::S_IWGRP.union(Mode::S_IWOTH);
/// Longest result file that is read; a longer one fails its task.
const RESULT_BYTES: u64 = 51_200;

/// Runs a child process per container.
pub(in crate::rep) struct Process {
    folder: Folder,
    settings: ProcessSettings,
    spawner: Spawner,
    transfers: Transfers,
    monitoring: Monitoring,
    networks: Option<Networks>,
    limits: Option<Arc<Limits>>,
    identities: Option<Arc<Identities>>,
    /// The machine's folder of certificates of which a container that asks for them is told.
    trusted_certificates: Option<PathBuf>,
    leftovers: Leftovers,
    metrics: Arc<Metrics>,
    logger: Logger,
    /// When it was made, in ns since 1970: part of its containers' tags.
    made_unix_ns: i64,
    /// Ends, when this process is gone, what carries the tag.
    reaper: Option<(Reaper, RunTag)>,
}

impl Process {
    /// Must be called within a runtime.
    ///
    /// # Errors
    /// When the folder cannot be made, the thread that starts processes or the reaper cannot
    /// run, or the authority of certificates cannot be used.
    pub(in crate::rep) fn new(
        settings: ProcessSettings,
        metrics: Arc<Metrics>,
        logger: &Logger,
    ) -> Result<Self, Error> {
        // That of whoever started the rep may be stricter, and then containers of other users would not
        // find their way through folders that the rep makes for them.
        umask(CONTAINERS_UMASK);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        let made_unix_ns = i64::try_from(now).unwrap_or(i64::MAX);
        let identities = settings.identity.as_ref().map(Identities::open);
        let identities = identities.transpose()?.map(Arc::new);
        let trusted_certificates = settings.trusted_certificates.as_deref();
        let trusted_certificates = trusted_certificates.map(trusted_folder).transpose()?;
        let folder = Folder::make(settings.root.as_deref(), made_unix_ns)?;
        let reaper = match settings.reaper.as_slice() {
            [] => None,
            command => {
                let reaper = Reaper::start(command)?;
                let tag = RunTag::new("rep", made_unix_ns);
                reaper.tag(&tag)?;
                reaper.folder(&folder.path)?;
                Some((reaper, tag))
            }
        };
        if let Some((reaper, _)) = &reaper
            && (settings.networks > 0 || settings.limits)
        {
            reaper.limits(std::process::id())?;
        }
        let networks = match settings.networks {
            0 => None,
            count => Some(Networks::make(count)?),
        };
        let limits = match settings.limits {
            false => None,
            true => Some(Arc::new(Limits::open()?)),
        };
        // Several reps may share the root, and each counts its files from 0.
        let cache = folder.path.join(".cache");
        let monitoring = Monitoring {
            healthy: settings.healthy_interval,
            unhealthy: settings.unhealthy_interval,
            pool: Pool::new("monitors", settings.monitors),
        };
        let transfers = Transfers::new(cache, settings.transfers.clone())?;
        let spawner = Spawner::start(settings.spawns)?;
        let leftovers = Leftovers::start(limits.clone())?;
        let mut pools = vec![monitoring.pool.clone(), spawner.pool().clone()];
        pools.extend(transfers.pools().cloned());
        metrics.add_pools(pools);
        Ok(Self {
            reaper,
            transfers,
            monitoring,
            networks,
            limits,
            identities,
            trusted_certificates,
            leftovers,
            spawner,
            metrics,
            made_unix_ns,
            logger: logger.session("executor.run-container.run.output"),
            folder,
            settings,
        })
    }

    /// By which the processes of a container are found, wherever they have gone.
    fn tag_of(&self, job: &Job) -> RunTag {
        // In tags all signs are hyphens: `a_b` and `a-b` must not have the same.
        let name = job.name().replace('-', "--").replace('_', "-u");
        RunTag::new(&name, self.made_unix_ns)
    }

    fn folder_of(&self, job: &Job) -> Result<PathBuf, String> {
        // The guid comes from a request: it must be a name, not a way out.
        let name = Path::new(&job.guid).components().collect::<Vec<_>>();
        match name.as_slice() {
            [std::path::Component::Normal(_)] if !job.guid.starts_with('.') => {
                Ok(self.folder.path.join(job.name()))
            }
            _ => Err(format!("the guid {:?} cannot name a folder", job.guid)),
        }
    }
}

/// A folder of the machine, wherever a program starts that is told of it.
fn trusted_folder(path: &Path) -> Result<PathBuf, Error> {
    let found = path.canonicalize();
    let problem = match found {
        Ok(found) if found.is_dir() => return Ok(found),
        Ok(_) => "no folder".into(),
        Err(cause) => cause.to_string(),
    };
    Err(Error::Setting {
        setting: "the path of trusted system certificates",
        found: format!("{}: {problem}", path.display()),
        expected: "a folder",
    })
}

impl Process {
    /// Variables that the cell gives to every program of a container.
    fn variables(&self, job: &Job, folder: &Path) -> Vec<EnvironmentVariable> {
        let variable = |name: &str, path: &Path| EnvironmentVariable {
            name: name.to_owned(),
            value: path.display().to_string(),
        };
        let trusted = self.trusted_certificates.as_deref();
        let trusted = trusted.filter(|_| job.wants_trusted_certificates());
        let trusted = trusted.map(|path| variable("CF_SYSTEM_CERT_PATH", path));
        let identities = self.identities.as_ref();
        let identity = identities.map(|_| identity::variables(folder));
        let identity = identity.into_iter().flatten();
        let identity = identity.map(|(name, file)| variable(name, &file));
        trusted.into_iter().chain(identity).collect()
    }

    /// Brings an archive into a container's folder, where what is in it may take so many bytes,
    /// and says how many came over the network for it.
    async fn fetch_archive(
        &self,
        wanted: &DownloadAction,
        folder: &Path,
        room: u64,
    ) -> Result<u64, TransferError> {
        let brought = async {
            let archive = self.transfers.fetch(wanted).await?;
            let fetched = archive.fetched;
            let account = users::account(&wanted.user).map_err(TransferError::User)?;
            if let Some(account) = &account {
                self.let_in(account, folder).map_err(TransferError::User)?;
            }
            let transfers = &self.transfers;
            transfers
                .unpack(archive, folder, wanted, room, account)
                .await?;
            Ok(fetched)
        };
        let brought = brought.await;
        let counters = &self.metrics.counters;
        match &brought {
            Ok(bytes) => {
                counters.downloads.add(1);
                counters.downloaded_bytes.add(*bytes as usize);
            }
            Err(_) => counters.failed_downloads.add(1),
        }
        brought
    }

    /// Makes the folder of a container an account's, and lets it in. The error says what failed.
    fn let_in(&self, account: &Account, folder: &Path) -> Result<(), String> {
        let opened = users::let_in(account, &self.folder.path, folder);
        opened.map_err(|cause| format!("let the user {} in: {cause}", account.uid))
    }

    /// Brings what the container depends on. What has a name is told of in the container's log.
    async fn depend(&self, job: &Job, folder: &Path, on: &CachedDependency) -> Result<(), ()> {
        let _place = self.transfers.place_to_download().await;
        let fields = || Fields::new().and("container-guid", &job.guid);
        let (logger, name) = (&self.logger, on.name.as_str());
        let source = match on.log_source.as_str() {
            "" => job.log_source(),
            source => source,
        };
        let say = |line: &str| {
            if !name.is_empty() {
                logger.debug("line", fields().and("source", source).and("line", line));
            }
        };
        say(&format!("Downloading {name}..."));
        match self.fetch_archive(&download_of(on), folder, 0).await {
            Ok(0) => say(&format!("Downloaded {name}")),
            Ok(bytes) => say(&format!("Downloaded {name} ({})", byte_size(bytes))),
            Err(error) => {
                let fields = fields().and("to", &on.to);
                logger.error("failed-to-fetch-cached-dependency", &error, fields);
                say(&format!("Downloading {name} failed"));
                return Err(());
            }
        }
        Ok(())
    }
}

impl Executor for Process {
    fn network(&self, name: &str) -> Network {
        match &self.networks {
            None => Network::Shared,
            Some(networks) => networks.take(name),
        }
    }

    async fn create(&self, job: Arc<Job>) -> Result<(), String> {
        let folder = self.folder_of(&job)?;
        self.leftovers.wait_removed(&job.name()).await;
        let delay = self.settings.create.draw(&mut rand::rng());
        tokio::time::sleep(delay).await;
        let made = folder.clone();
        let (limits, limited) = (self.limits.clone(), Arc::clone(&job));
        let made = tokio::task::spawn_blocking(move || {
            make_folder(&made).map_err(|cause| cause.to_string())?;
            limits.map_or(Ok(()), |limits| limits.make(&limited))
        });
        let made = made.await.map_err(|cause| cause.to_string()).flatten();
        made.map_err(|cause| format!("failed to create container: {cause}"))?;
        // How many are under way at once is bounded for all containers together.
        let all = job.cached_dependencies().iter();
        let brought = try_join_all(all.map(|on| self.depend(&job, &folder, on))).await;
        brought.map_err(|()| "failed to download cached artifacts")?;
        for (made, reason) in [
            (
                self.make_identity_folder(&job, &folder),
                "failed to create credentials directory",
            ),
            (
                mounted::put(&job, &folder),
                "failed to create volume mounted files",
            ),
        ] {
            made.map_err(|cause| {
                let fields = Fields::new().and("container-guid", &job.guid);
                self.logger.error("container-setup-failed", &cause, fields);
                reason
            })?;
        }
        Ok(())
    }

    async fn run(
        &self,
        job: Arc<Job>,
        signs: impl Fn(Sign) + Send + Sync,
        mut stop: Shutdown,
    ) -> End {
        let folder = match self.folder_of(&job) {
            Ok(folder) => folder,
            Err(reason) => return ended(Err(Failure::plain(reason)), None),
        };
        let identified = tokio::select! {
            biased;
            // The steps hear of it.
            () = stop.requested() => Ok(None),
            identified = self.identify(&job, &folder) => identified,
        };
        let identity = match identified {
            Ok(identity) => identity,
            Err(failure) => return ended(Err(failure), None),
        };
        let container = Container::new(self, &job, &folder);
        let steps = Steps {
            leaves: &container,
            monitoring: &self.monitoring,
        };
        let plan = match &job.definition {
            Definition::Lrp(desired, _) => Plan::of(desired),
            Definition::Task(task) => Plan::task(task.action.as_ref()),
        };
        let (ask, asked) = net::shutdown();
        let mut contained = pin!(steps.contain(&plan, job.log_source(), &signs, asked));
        let failed = async {
            tokio::select! {
                biased;
                () = stop.requested() => None,
                failure = self.keep_identified(&job, identity.as_ref()) => Some(failure),
            }
        };
        let outcome = tokio::select! {
            // First, as what was asked to stop begins nothing.
            biased;
            failure = failed => {
                // It is heard for as long as steps are performed.
                let _ = ask.send(true);
                let outcome = contained.as_mut().await;
                failure.map_or(outcome, Err)
            }
            outcome = &mut contained => outcome,
        };
        let exit_status = container.exit_status();
        let mut end = ended(outcome, exit_status);
        if let Definition::Task(task) = &job.definition
            && !task.result_file.is_empty()
        {
            match read_result(&place::found(&folder, &task.result_file)).await {
                Ok(result) => end.completion.result = result,
                // What failed before keeps its reason.
                Err(_) if end.completion.failed => {}
                Err(cause) => {
                    let logger = &self.logger;
                    logger.error("failed-to-read-result", &cause, container.fields());
                    let failure = Failure::plain("failed to fetch result");
                    end = ended(Err(failure), exit_status);
                }
            }
        }
        end
    }

    fn forget(&self, job: &Job) {
        // At once: another container may be waiting for it.
        if let Some(networks) = &self.networks {
            networks.give_back(&job.name());
        }
        self.leftovers.remove(RemovedContainer {
            tag: self.tag_of(job),
            folder: self.folder_of(job).ok(),
            name: job.name(),
        });
    }
}

/// What is told about the end; one that says nothing of itself is no failure.
fn ended(outcome: Result<(), Failure>, exit_status: Option<i32>) -> End {
    let reason = outcome.err().map(|failure| failure.text().to_owned());
    let reason = reason.unwrap_or_default();
    End {
        completion: Completion {
            failed: !reason.is_empty(),
            reason,
            ..Completion::default()
        },
        exit_status,
    }
}

/// Reads a result file; a relative name lies in the container's folder.
async fn read_result(path: &Path) -> io::Result<String> {
    // Whoever opens a pipe would wait for its writer.
    let mut how = tokio::fs::OpenOptions::new();
    let file = how
        .read(true)
        .custom_flags(nix::libc::O_NONBLOCK)
        .open(path)
        .await?;
    if !file.metadata().await?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
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
