//! What a container proves with who it is: a key, and a certificate of it that the operator's authority
//! signed. Both are replaced before the certificate ends.

mod certificate;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::available_parallelism;
use std::time::{Duration, Instant, SystemTime};

use nix::fcntl::OFlag;
use processes::Account;
use telemetry::Fields;
use tokio::sync::Semaphore;

use super::super::super::config::IdentitySettings;
use super::super::super::settings::Error;
use super::super::super::steps::Failure;
use super::super::Job;
use super::Process;
use super::place::put_file;
use super::transfer::{AbandonOnDrop, folder_within};
use super::users;
use certificate::{Authority, Holder};
#[cfg(test)]
pub(super) use tests::rsa_authority;

/// The folder of both within that of a container.
const FOLDER: &str = "etc/cf-instance-credentials";
const CERTIFICATE_NAME: &str = "instance.crt";
const KEY_NAME: &str = "instance.key";

/// Variables that say where both are, with their places on the machine.
pub(super) fn variables(folder: &Path) -> [(&'static str, PathBuf); 2] {
    [
        ("CF_INSTANCE_CERT", CERTIFICATE_NAME),
        ("CF_INSTANCE_KEY", KEY_NAME),
    ]
    .map(|(variable, name)| (variable, folder.join(FOLDER).join(name)))
}

/// Makes the keys and certificates of all containers.
pub(super) struct Identities {
    authority: Authority,
    validity: Duration,
    /// Keys that are looked for at once, one per processor: a rep may begin hundreds of containers at a time.
    turns: Arc<Semaphore>,
}

impl Identities {
    /// Fails where the authority cannot sign.
    pub(super) fn open(settings: &IdentitySettings) -> Result<Self, Error> {
        Ok(Self {
            authority: Authority::read(&settings.authority, &settings.key)?,
            validity: settings.validity,
            turns: Arc::new(Semaphore::new(
                available_parallelism().map_or(1, usize::from),
            )),
        })
    }

    /// Makes a key and a certificate for a container, and puts them into its folder unless that is
    /// `given_up`. Blocks for as long as it takes to find a key. The error says what failed.
    fn put(&self, job: &Job, into: &IdentityFolder, given_up: &AtomicBool) -> Result<(), String> {
        let holder = Holder {
            guid: &job.guid,
            address: job.address.parse().ok(),
            organizational_units: job.organizational_units(),
        };
        let now = SystemTime::now();
        let made = self.authority.issue(&holder, now, self.validity);
        let made = made.map_err(|cause| cause.to_string())?;
        // The container may have ended meanwhile, and its folder be another one's.
        if given_up.load(Relaxed) {
            return Err("nobody wants it any more".into());
        }
        let account = owner(job);
        for (name, text, mode) in [
            (KEY_NAME, &made.key, 0o600),
            (CERTIFICATE_NAME, &made.certificates, 0o644),
        ] {
            let put = put_file(&into.path(name), text.as_bytes(), mode, account.as_ref());
            put.map_err(|cause| format!("write {FOLDER}/{name}: {cause}"))?;
        }
        Ok(())
    }
}

/// The folder of a container's key and certificate. It stays open: the container may put another one in its
/// place, or a link that leads elsewhere, and the rep may write where the container may not.
pub(super) struct IdentityFolder(File);

impl IdentityFolder {
    /// Opens that in the folder of a container, none of whose programs has run yet.
    fn open(folder: &Path) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true);
        options.custom_flags((OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW).bits());
        options.open(folder.join(FOLDER)).map(Self)
    }

    /// The path of a file in it, wherever it is by now.
    fn path(&self, name: &str) -> PathBuf {
        format!("/proc/self/fd/{}/{name}", self.0.as_raw_fd()).into()
    }
}

/// Time from one certificate to the next, as Diego has it: half an hour before it ends, or when an eighth
/// of its time is left if that is at most four hours.
fn renewed_after(validity: Duration) -> Duration {
    match validity > Duration::from_secs(4 * 3600) {
        true => validity - Duration::from_secs(30 * 60),
        false => validity - validity / 8,
    }
}

/// Whose the files are: the user of the container's program. Where the machine has none of that name,
/// starting the program reports it.
fn owner(job: &Job) -> Option<Account> {
    users::account(job.user()).ok().flatten()
}

impl Process {
    /// Makes the folder in which a container finds its key and its certificate, if it gets any.
    pub(super) fn make_identity_folder(&self, job: &Job, folder: &Path) -> Result<(), String> {
        if self.identities.is_none() {
            return Ok(());
        }
        let made = folder_within(folder, Path::new(FOLDER)).map_err(|cause| cause.to_string())?;
        let Some(account) = owner(job) else {
            return Ok(());
        };
        self.let_in(&account, folder)?;
        users::change_owner(&account, &made).map_err(|cause| cause.to_string())
    }

    /// Gives a container its first key and certificate, if it gets any, and says where they are.
    pub(super) async fn identify(
        &self,
        job: &Arc<Job>,
        folder: &Path,
    ) -> Result<Option<Arc<IdentityFolder>>, Failure> {
        let Some(identities) = &self.identities else {
            return Ok(None);
        };
        let into = IdentityFolder::open(folder);
        let into =
            into.map_err(|cause| self.unidentified(job, &format!("open {FOLDER}: {cause}")))?;
        let into = Arc::new(into);
        self.issue(identities, job, &into).await?;
        Ok(Some(into))
    }

    /// Replaces a container's key and certificate in time, until that fails.
    pub(super) async fn keep_identified(
        &self,
        job: &Arc<Job>,
        into: Option<&Arc<IdentityFolder>>,
    ) -> Failure {
        let (Some(identities), Some(into)) = (&self.identities, into) else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep(renewed_after(identities.validity)).await;
            if let Err(failure) = self.issue(identities, job, into).await {
                return failure;
            }
        }
    }

    async fn issue(
        &self,
        identities: &Arc<Identities>,
        job: &Arc<Job>,
        into: &Arc<IdentityFolder>,
    ) -> Result<(), Failure> {
        // Nobody closes the semaphore, so there always is one.
        let turn = Arc::clone(&identities.turns).acquire_owned().await.ok();
        let began = Instant::now();
        let (identities, container) = (Arc::clone(identities), Arc::clone(job));
        let into = Arc::clone(into);
        // Set when nobody waits for it any more.
        let waits = AbandonOnDrop::default();
        let given_up = Arc::clone(&waits.0);
        let put = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            identities.put(&container, &into, &given_up)
        });
        let put = put.await.map_err(|cause| cause.to_string()).flatten();
        let counters = &self.metrics.counters;
        match put {
            Ok(()) => {
                counters.certificates.add(1);
                counters.certificate_time.add(began.elapsed());
                Ok(())
            }
            Err(cause) => Err(self.unidentified(job, &cause)),
        }
    }

    fn unidentified(&self, job: &Job, cause: &str) -> Failure {
        self.metrics.counters.failed_certificates.add(1);
        let event = "failed-to-generate-instance-identity-credentials";
        let fields = Fields::new().and("container-guid", &job.guid);
        self.logger.error(event, &cause, fields);
        Failure::plain(format!("cred-manager-runner exited: {cause}"))
    }
}
