//! The server's key for policies, which a relay hands on: agents check by it what the relay keeps.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use telemetry::{Fields, Logger};
use tokio::sync::Mutex;

use super::upstream::{Upstream, UpstreamError};
use crate::policy::signature::PolicyKey;
use crate::spool::Folder;
use crate::uploads::UploadRejection;
use crate::upstream::WireError;

/// The key on the disk.
const KEY: &str = "policy.pem";
/// Shortest time between two questions.
const GAP: Duration = Duration::from_secs(15);

/// The key as the upstream said last.
pub(super) struct ServerKey {
    folder: Folder,
    known: Mutex<Known>,
    logger: Logger,
}

struct Known {
    key: Option<PolicyKey>,
    /// When the upstream last told it.
    told: Option<Instant>,
}

impl ServerKey {
    /// That in this folder.
    pub(super) fn open(place: PathBuf, logger: Logger) -> io::Result<Self> {
        let folder = Folder::open(place)?;
        let kept = folder.read(KEY).ok();
        let key = kept.and_then(|pem| PolicyKey::from_pem(&pem).ok());
        let known = Mutex::new(Known { key, told: None });
        Ok(Self {
            folder,
            known,
            logger,
        })
    }

    /// The key, PEM: the upstream is asked, and while it is away the key is the last one.
    pub(super) async fn get(&self, upstream: &Upstream) -> Result<String, UploadRejection> {
        // Those who ask at once have one answer.
        let mut known = self.known.lock().await;
        if let Some(key) = &known.key
            && known.told.is_some_and(|told| told.elapsed() < GAP)
        {
            return Ok(key.to_pem());
        }
        match upstream.request(upstream.wire.policy_key()).await {
            Ok(key) => {
                if known.key.as_ref() != Some(&key) {
                    let pem = key.to_pem();
                    if let Err(error) = self.folder.put(KEY, &[pem.as_bytes()]) {
                        // The next start asks for it again.
                        self.logger.error("key-not-kept", &error, Fields::new());
                    }
                }
                known.told = Some(Instant::now());
                Ok(known.key.insert(key).to_pem())
            }
            Err(UpstreamError::Wire(WireError::Refused { status, why })) => {
                Err(UploadRejection::new(status, why))
            }
            Err(error) => match &known.key {
                Some(key) => Ok(key.to_pem()),
                None => Err(UploadRejection::later(format!(
                    "the server's key for policies is not known here yet: {error}"
                ))),
            },
        }
    }
}
