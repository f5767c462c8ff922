//! What nodes behind a relay upload: checked as the server checks it, durable in the spool before
//! it is answered with success.

use std::sync::Arc;
use std::sync::Mutex;

use bytes::Bytes;
use http::StatusCode;
use net::{Incoming, Room};
use telemetry::{Fields, Logger};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::item::Head;
use super::list::Child;
use super::metrics::{Metrics, Uploads};
use super::quarantine::Quarantine;
use super::roster::Roster;
use super::spool::{Spool, SpoolError};
use super::upstream::Upstream;
use crate::reports::run_info::{Packing, RunInfo};
use crate::reports::signature::NodeCertificate;
use crate::server::{self, now, pack};
use crate::uploads::{
    CheckedInventory, CheckedReport, Half, Halves, HoldError, UploadRejection, UploadResult, aside,
    check_inventory, check_report, first_half, half_of, hold, paired, read_log, read_report,
    run_of,
};

/// Takes uploads.
pub(super) struct Intake {
    pub(super) spool: Arc<Spool>,
    pub(super) roster: Arc<Roster>,
    pub(super) upstream: Arc<Upstream>,
    pub(super) metrics: Arc<Metrics>,
    /// What is refused on its way in.
    pub(super) refused: Arc<Quarantine>,
    pub(super) places: Semaphore,
    pub(super) checking: Semaphore,
    pub(super) room: Room,
    pub(super) halves: Mutex<Halves>,
    pub(super) limits: server::Limits,
    pub(super) logger: Logger,
}

/// A run by its file's name, and its node; none if a relay brings it that has checked it.
type Named = (RunInfo, Packing, Option<Arc<Child>>);

impl Intake {
    /// Takes what a peer uploads to this folder under this name; it came over these relays.
    pub(super) async fn upload(
        &self,
        folder: &str,
        name: &str,
        relays: &str,
        peer: Option<&NodeCertificate>,
        body: Incoming,
    ) -> UploadResult {
        let reports = folder == "reports";
        let (named, expected) = match reports {
            true => match self.named(name, peer).await {
                Ok(named) => (Some(named), Ok(())),
                Err(refused) => (None, Err(refused)),
            },
            false => (None, half_of(name).map(drop)),
        };
        let again = expected
            .as_ref()
            .err()
            .map(|one| UploadRejection::new(one.status, &one.why));
        let (most, within) = (self.limits.upload_bytes, self.limits.body_within);
        let (taken, body) = match hold(&self.room, body, expected, most, within).await {
            Err(HoldError::Named(refused)) => (Err(refused), Bytes::new()),
            Err(HoldError::Body(refused)) => return Err(refused),
            Err(HoldError::NoRoom) => (Err(UploadRejection::busy()), Bytes::new()),
            Ok(held) => {
                let body = held.body.clone();
                let taken = match (again, named) {
                    (Some(refused), _) => Err(refused),
                    (None, Some(named)) => self.report(named, body.clone(), relays).await,
                    (None, None) => self.inventory(name, body.clone(), relays).await,
                };
                (taken, body)
            }
        };
        let uploads = match reports {
            true => &self.metrics.reports,
            false => &self.metrics.inventories,
        };
        if let Err(refused) = &taken {
            self.refused(uploads, name, refused, &body).await;
        }
        taken
    }

    /// Counts what is refused, and keeps it aside if it is refused for good.
    async fn refused(
        &self,
        uploads: &Uploads,
        name: &str,
        refused: &UploadRejection,
        body: &Bytes,
    ) {
        let counter = match refused.status {
            status if status.is_server_error() => return uploads.failed.add(1),
            StatusCode::FORBIDDEN => &uploads.forged,
            StatusCode::NOT_FOUND => &uploads.foreign,
            _ => &uploads.invalid,
        };
        counter.add(1);
        let fields = Fields::new().and("file", name).and("why", &refused.why);
        self.logger.info("upload-refused", fields);
        let (keep, name, why) = (
            Arc::clone(&self.refused),
            name.to_owned(),
            refused.why.clone(),
        );
        let body = aside(body);
        let kept = tokio::task::spawn_blocking(move || keep.add(&name, &why, &body)).await;
        // It was refused whatever becomes of its copy.
        if let Ok(Err(error)) = kept {
            self.logger.error("refused-not-kept", &error, Fields::new());
        }
    }

    /// A place among the uploads that are in memory.
    fn place(&self) -> Result<SemaphorePermit<'_>, UploadRejection> {
        self.places
            .try_acquire()
            .map_err(|_| UploadRejection::busy())
    }

    /// What a file's name tells, and the node that it names. A run that a relay behind this one has
    /// acknowledged goes on also when its node was put elsewhere since: the server knows it.
    async fn named(
        &self,
        name: &str,
        peer: Option<&NodeCertificate>,
    ) -> Result<Named, UploadRejection> {
        let (info, packing) = run_of(name)?;
        let refused = match self.roster.child(&info.node_id, &self.upstream).await {
            Ok(child) => return Ok((info, packing, Some(child))),
            Err(refused) => refused,
        };
        let children = self.roster.children();
        let checked = children
            .zip(peer)
            .is_some_and(|(children, peer)| children.is_relay(peer));
        match checked && refused.status == StatusCode::NOT_FOUND {
            true => Ok((info, packing, None)),
            false => Err(refused),
        }
    }

    async fn report(&self, named: Named, body: Bytes, relays: &str) -> UploadResult {
        let (info, packing, child) = named;
        let _place = self.place()?;
        let checked = self.checked(&info, packing, child, &body).await?;
        let file = info.file_name();
        let log = read_log(info, &checked.text);
        let log = log.map_err(|error| UploadRejection::new(StatusCode::BAD_REQUEST, error))?;
        let head = Head {
            node: log.info.node_id.clone(),
            path: format!("/reports/{file}.gz"),
            arrived: now(),
            run: Some(log.start().unix_millis()),
            digest: checked.digest,
            signature: None,
            relays: relays.to_owned(),
            bytes: checked.message.len() as u64,
        };
        let run = file.trim_end_matches(".log").to_owned();
        drop(log);
        let fields = Fields::new().and("run", &run);
        match self.keep(head, checked.message).await? {
            true => {
                self.logger.debug("run-spooled", fields);
                self.metrics.reports.kept.add(1);
                Ok((StatusCode::CREATED, "it waits for the server\n".into()))
            }
            false => {
                self.logger.debug("run-known", fields);
                self.metrics.reports.duplicates.add(1);
                Ok((StatusCode::OK, "it waits for the server already\n".into()))
            }
        }
    }

    /// Checks a message with the key of its node, which may have another since.
    async fn checked(
        &self,
        info: &RunInfo,
        packing: Packing,
        child: Option<Arc<Child>>,
        body: &Bytes,
    ) -> Result<CheckedReport, UploadRejection> {
        let Some(child) = child else {
            // It is never closed.
            let _turn = self.checking.acquire().await;
            return read_report(body.clone(), packing).await;
        };
        let unreadable = || {
            let why = "the certificate that the upstream lists of this node cannot be read";
            UploadRejection::later(why)
        };
        let key = child.key.clone().ok_or_else(unreadable)?;
        let check = async |key| {
            let _turn = self.checking.acquire().await;
            check_report(body.clone(), packing, key).await
        };
        let checked = check(key).await;
        if !matches!(&checked, Err(refused) if refused.status == StatusCode::FORBIDDEN) {
            return checked;
        }
        self.roster.refresh_if_free(&self.upstream).await;
        let now = self.roster.children();
        let now = now.and_then(|children| children.get(&info.node_id).cloned());
        match now {
            Some(now) if now.listed.certificate != child.listed.certificate => {
                let key = now.key.clone().ok_or_else(unreadable)?;
                check(key).await
            }
            _ => checked,
        }
    }

    async fn inventory(&self, name: &str, body: Bytes, relays: &str) -> UploadResult {
        let Some((whole, signature)) = paired(&self.halves, name, body)? else {
            return Ok(first_half());
        };
        let _place = self.place()?;
        let children = self.roster.children();
        let known = |id: &str| {
            let child = children.as_ref()?.get(id)?;
            let certified = !child.listed.key_undefined;
            child.key.clone().filter(|_| certified)
        };
        let CheckedInventory { facts, .. } = check_inventory(&whole, &signature.body, known)?;
        let (node, arrived) = (facts.node.id, now());
        let Half { body, packed, .. } = whole;
        let content = if packed { body } else { pack(&body).into() };
        let head = Head {
            path: format!("/inventories/{node}_{arrived}.ocs"),
            node,
            arrived,
            run: None,
            digest: 0,
            signature: Some(String::from_utf8_lossy(&signature.body).into_owned()),
            relays: relays.to_owned(),
            bytes: content.len() as u64,
        };
        let told = format!("the inventory of node {} waits for the server\n", head.node);
        let fields = Fields::new().and("node", &head.node);
        self.keep(head, content).await?;
        self.logger.debug("inventory-spooled", fields);
        self.metrics.inventories.kept.add(1);
        Ok((StatusCode::CREATED, told))
    }

    /// Has an upload wait in the spool, durably. False if the same run does already.
    async fn keep(&self, head: Head, content: Bytes) -> Result<bool, UploadRejection> {
        let spool = Arc::clone(&self.spool);
        let add = move || spool.add(&head, &content, now());
        let kept = tokio::task::spawn_blocking(add).await;
        let kept =
            kept.map_err(|error| UploadRejection::new(StatusCode::INTERNAL_SERVER_ERROR, error))?;
        kept.map_err(|error| {
            if let SpoolError::Disk(cause) = &error {
                self.logger.error("not-spooled", cause, Fields::new());
            }
            UploadRejection::later(format!("{error}; send it again"))
        })
    }
}
