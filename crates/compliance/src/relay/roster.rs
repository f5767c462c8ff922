//! Which nodes are behind this relay: as the upstream says, and said last while it is away.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::StatusCode;
use telemetry::{Fields, Logger};

use super::list::{Child, Children};
use super::upstream::Upstream;
use crate::spool::Folder;
use crate::uploads::UploadRejection;
use crate::upstream::ConditionalAnswer;

/// The list on the disk: its tag in the first line, then the JSON.
const LIST: &str = "nodes.json";
/// Shortest time between two questions.
const GAP: Duration = Duration::from_secs(1);

/// Who this relay is there for.
#[derive(Debug, Clone)]
pub(super) enum RelayScope {
    /// It has never heard.
    Unheard,
    /// The upstream does not know it, or as no relay; with what it said.
    Nobody {
        /// Is it not known at all?
        unknown: bool,
        /// What the upstream said.
        why: String,
    },
    /// These.
    Nodes(Arc<Children>),
}

/// The nodes behind this relay.
pub(super) struct Roster {
    id: String,
    folder: Folder,
    scope: Mutex<RelayScope>,
    /// When the upstream was last asked, and whether it answered.
    asked: tokio::sync::Mutex<Option<(Instant, bool)>>,
    logger: Logger,
}

impl Roster {
    /// As the upstream said last.
    pub(super) fn open(id: &str, place: PathBuf, logger: Logger) -> io::Result<Self> {
        let folder = Folder::open(place)?;
        let scope = folder.read(LIST).ok().and_then(|file| {
            let end = memchr::memchr(b'\n', &file)?;
            let tag = str::from_utf8(&file[..end]).ok()?;
            let children = Children::read(id, tag.to_owned(), &file[end + 1..]).ok()?;
            Some(RelayScope::Nodes(Arc::new(children)))
        });
        Ok(Self {
            id: id.to_owned(),
            folder,
            scope: Mutex::new(scope.unwrap_or(RelayScope::Unheard)),
            asked: tokio::sync::Mutex::default(),
            logger,
        })
    }

    /// Who this relay is there for.
    pub(super) fn scope(&self) -> RelayScope {
        let scope = self.scope.lock().unwrap_or_else(PoisonError::into_inner);
        scope.clone()
    }

    /// The nodes, if there are any.
    pub(super) fn children(&self) -> Option<Arc<Children>> {
        match self.scope() {
            RelayScope::Nodes(children) => Some(children),
            RelayScope::Unheard | RelayScope::Nobody { .. } => None,
        }
    }

    fn set(&self, scope: RelayScope) {
        *self.scope.lock().unwrap_or_else(PoisonError::into_inner) = scope;
    }

    /// Asks the upstream, unless it was asked since this moment; true if it answered. Two
    /// questions have a gap between them, so that those who wait at once have one answer.
    pub(super) async fn refresh(&self, upstream: &Upstream, since: Instant) -> bool {
        let mut asked = self.asked.lock().await;
        if let Some((at, answered)) = *asked {
            if at >= since {
                return answered;
            }
            tokio::time::sleep(GAP.saturating_sub(at.elapsed())).await;
        }
        let at = Instant::now();
        let answered = self.fetch_nodes(upstream).await;
        *asked = Some((at, answered));
        answered
    }

    /// Asks the upstream, unless somebody else does or did just now.
    pub(super) async fn refresh_if_free(&self, upstream: &Upstream) {
        let Ok(mut asked) = self.asked.try_lock() else {
            return;
        };
        if asked.is_none_or(|(at, _)| at.elapsed() >= GAP) {
            let at = Instant::now();
            *asked = Some((at, self.fetch_nodes(upstream).await));
        }
    }

    async fn fetch_nodes(&self, upstream: &Upstream) -> bool {
        let before = self.children();
        let known = before.as_ref().map(|children| children.tag.as_str());
        match upstream.request(upstream.wire.nodes(&self.id, known)).await {
            Ok(ConditionalAnswer::Same) => true,
            Ok(ConditionalAnswer::New(tag, json)) => self.take(tag, &json),
            Ok(ConditionalAnswer::None { status, why }) => {
                let unknown = status == StatusCode::NOT_FOUND;
                if !matches!(self.scope(), RelayScope::Nobody { why: told, .. } if told == why) {
                    let fields = Fields::new().and("why", &why);
                    self.logger.info("no-relay-yet", fields);
                }
                self.set(RelayScope::Nobody { unknown, why });
                // Its right may have been taken away: the disk forgets as well.
                let _ = self.folder.remove(LIST);
                true
            }
            Err(_) => false,
        }
    }

    fn take(&self, tag: String, json: &Bytes) -> bool {
        match Children::read(&self.id, tag, json) {
            Ok(children) => {
                let (direct, all) = children.counts(&self.id);
                let fields = Fields::new().and("direct", direct).and("all", all);
                self.logger.info("nodes-behind", fields);
                let parts = [children.tag.as_bytes(), b"\n", json];
                if let Err(error) = self.folder.put(LIST, &parts) {
                    // The next start asks for it again.
                    self.logger.error("list-not-kept", &error, Fields::new());
                }
                self.set(RelayScope::Nodes(Arc::new(children)));
                true
            }
            Err(error) => {
                self.logger.error("list-not-taken", &error, Fields::new());
                false
            }
        }
    }

    /// A node behind this relay. One that is not listed may have come since: the upstream is
    /// asked, and as long as it does not answer nothing is refused for good.
    pub(super) async fn child(
        &self,
        node: &str,
        upstream: &Upstream,
    ) -> Result<Arc<Child>, UploadRejection> {
        let found = |scope: &RelayScope| match scope {
            RelayScope::Nodes(children) => children.get(node).cloned(),
            _ => None,
        };
        if let Some(child) = found(&self.scope()) {
            return Ok(child);
        }
        let answered = self.refresh(upstream, Instant::now()).await;
        let scope = self.scope();
        if let Some(child) = found(&scope) {
            return Ok(child);
        }
        Err(match scope {
            RelayScope::Nodes(_) if answered => {
                let relay = &self.id;
                let why = format!(
                    "node {node} is not behind this relay; put it there with headroom compliance \
                     relays assign {relay} {node}"
                );
                UploadRejection::new(StatusCode::NOT_FOUND, why)
            }
            RelayScope::Nodes(_) => UploadRejection::later(format!(
                "the upstream is away, so that it is not known whether node {node} is behind this \
                 relay; send it again"
            )),
            RelayScope::Unheard => UploadRejection::later(
                "this relay has not heard from its upstream which nodes are behind it; send it again",
            ),
            RelayScope::Nobody { why, .. } => {
                UploadRejection::later(format!("this relay serves nobody yet: {why}"))
            }
        })
    }
}
