//! Who a node is: an identity and a key that it makes at its first start and keeps.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::AccessError;
use crate::policy::signature::PolicyKey;
use crate::reports::signature::{NodeCertificate, SigningKey};
use crate::trust::{Identity, ServerPin, TrustError, write_secret};

/// Files in a node's folder.
const ID: &str = "uuid";
const KEY: &str = "agent.key";
const CERTIFICATE: &str = "agent.pem";
const SERVER: &str = "server.pem";
const POLICY_KEY: &str = "policy.pem";
const SENT: &str = "inventory-sent";
/// Time from one inventory to the next.
const INVENTORY: Duration = Duration::from_secs(86_400);

/// A node's identity, ready to sign.
pub(crate) struct NodeIdentity {
    pub(crate) id: String,
    pub(crate) pems: Identity,
    pub(crate) key: SigningKey,
    pub(crate) certificate: NodeCertificate,
}

impl NodeIdentity {
    /// That of the node in this folder; `new_id` is the identity of one that is not there yet, whose
    /// certificate is for these names too.
    pub(crate) fn open(
        folder: &Path,
        names: &[String],
        new_id: impl FnOnce() -> String,
    ) -> Result<Self, AccessError> {
        crate::private::folder(folder).map_err(|cause| AccessError::Folder {
            path: folder.to_path_buf(),
            cause,
        })?;
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path).map_err(|error| TrustError::file("read", &path, error))
        };
        // It is written last: what stands beside it is whole.
        if !folder.join(ID).exists() {
            let id = new_id();
            let pems = Identity::make(Some(&id), names)?;
            write_secret(&folder.join(KEY), pems.key.as_bytes())?;
            write_secret(&folder.join(CERTIFICATE), pems.certificate.as_bytes())?;
            write_secret(&folder.join(ID), id.as_bytes())?;
        }
        let id = read(ID)?.trim().to_owned();
        let pems = Identity {
            key: read(KEY)?,
            certificate: read(CERTIFICATE)?,
        };
        let wrong = |name: &str, error: &dyn std::fmt::Display| {
            TrustError::file("use", &folder.join(name), error)
        };
        let key = SigningKey::from_pem(pems.key.as_bytes()).map_err(|error| wrong(KEY, &error))?;
        let certificate = NodeCertificate::from_pem(pems.certificate.as_bytes())
            .map_err(|error| wrong(CERTIFICATE, &error))?;
        Ok(Self {
            id,
            pems,
            key,
            certificate,
        })
    }
}

/// The key by which the server is known: told by a file, or seen before.
pub(crate) fn server_pin(folder: &Path, told: Option<&Path>) -> Result<ServerPin, TrustError> {
    let seen = folder.join(SERVER);
    let path = match told {
        Some(path) => path,
        None if seen.exists() => &seen,
        None => return Ok(ServerPin::default()),
    };
    let pem = std::fs::read(path).map_err(|error| TrustError::file("read", path, error))?;
    ServerPin::of_pem(&pem)
}

/// Keeps the key of the server that was seen first.
pub(crate) fn keep_pin(folder: &Path, pin: &Arc<ServerPin>) -> Result<(), TrustError> {
    let path = folder.join(SERVER);
    match pin.pem() {
        Some(pem) if !path.exists() => write_secret(&path, pem.as_bytes()),
        _ => Ok(()),
    }
}

/// The key by which policies are known as the server's: told by a file, or learnt before.
pub(crate) fn policy_key(
    folder: &Path,
    told: Option<&Path>,
) -> Result<Option<PolicyKey>, TrustError> {
    let learnt = folder.join(POLICY_KEY);
    let path = match told {
        Some(path) => path,
        None if learnt.exists() => &learnt,
        None => return Ok(None),
    };
    let pem = std::fs::read(path).map_err(|error| TrustError::file("read", path, error))?;
    let key = PolicyKey::from_pem(&pem).map_err(|error| TrustError::file("use", path, error))?;
    Ok(Some(key))
}

/// Keeps the key for policies that was learnt first.
pub(crate) fn keep_policy_key(folder: &Path, key: &PolicyKey) -> Result<(), TrustError> {
    write_secret(&folder.join(POLICY_KEY), key.to_pem().as_bytes())
}

/// Is the next inventory of the node in this folder due?
pub(crate) fn inventory_is_due(folder: &Path) -> bool {
    let sent = std::fs::metadata(folder.join(SENT)).and_then(|data| data.modified());
    let age = sent.map(|sent| sent.elapsed().unwrap_or_default());
    !age.is_ok_and(|age| age < INVENTORY)
}

/// Notes that an inventory was sent.
pub(crate) fn keep_sent(folder: &Path, now: Timestamp) -> Result<(), TrustError> {
    write_secret(&folder.join(SENT), now.to_string().as_bytes())
}

/// A random identity.
pub(crate) fn random_id() -> String {
    let mut bytes = [0; 16];
    // It fails on no machine that has started; identities of zeros would be refused as twins.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    uuid::Builder::from_random_bytes(bytes)
        .into_uuid()
        .to_string()
}
