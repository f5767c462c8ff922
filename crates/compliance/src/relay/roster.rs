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
use crate::uploads::NotTaken;
use crate::upstream::Asked;

/// The list on the disk: its tag in the first line, then the JSON.
const LIST: &str = "nodes.json";
/// Shortest time between two questions.
const GAP: Duration = Duration::from_secs(1);

/// Who this relay is there for.
#[derive(Debug, Clone)]
pub(super) enum Charge {
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
    charge: Mutex<Charge>,
    /// When the upstream was last asked, and whether it answered.
    asked: tokio::sync::Mutex<Option<(Instant, bool)>>,
    logger: Logger,
}

impl Roster {
    /// As the upstream said last.
    pub(super) fn open(id: &str, place: PathBuf, logger: Logger) -> io::Result<Self> {
        let folder = Folder::open(place)?;
        let charge = folder.read(LIST).ok().and_then(|file| {
            let end = memchr::memchr(b'\n', &file)?;
            let tag = str::from_utf8(&file[..end]).ok()?;
            let children = Children::read(id, tag.to_owned(), &file[end + 1..]).ok()?;
            Some(Charge::Nodes(Arc::new(children)))
        });
        Ok(Self {
            id: id.to_owned(),
            folder,
            charge: Mutex::new(charge.unwrap_or(Charge::Unheard)),
            asked: tokio::sync::Mutex::default(),
            logger,
        })
    }

    /// Who this relay is there for.
    pub(super) fn charge(&self) -> Charge {
        let charge = self.charge.lock().unwrap_or_else(PoisonError::into_inner);
        charge.clone()
    }

    /// The nodes, if there are any.
    pub(super) fn children(&self) -> Option<Arc<Children>> {
        match self.charge() {
            Charge::Nodes(children) => Some(children),
            Charge::Unheard | Charge::Nobody { .. } => None,
        }
    }

    fn set(&self, charge: Charge) {
        *self.charge.lock().unwrap_or_else(PoisonError::into_inner) = charge;
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
        let answered = self.ask(upstream).await;
        *asked = Some((at, answered));
        answered
    }

    /// Asks the upstream, unless somebody else does or did just now.
    pub(super) async fn glance(&self, upstream: &Upstream) {
        let Ok(mut asked) = self.asked.try_lock() else {
            return;
        };
        if asked.is_none_or(|(at, _)| at.elapsed() >= GAP) {
            let at = Instant::now();
            *asked = Some((at, self.ask(upstream).await));
        }
    }

    async fn ask(&self, upstream: &Upstream) -> bool {
        let before = self.children();
        let known = before.as_ref().map(|children| children.tag.as_str());
        match upstream.ask(upstream.wire.nodes(&self.id, known)).await {
            Ok(Asked::Same) => true,
            Ok(Asked::New(tag, json)) => self.take(tag, &json),
            Ok(Asked::None { status, why }) => {
                let unknown = status == StatusCode::NOT_FOUND;
                if !matches!(self.charge(), Charge::Nobody { why: told, .. } if told == why) {
                    let fields = Fields::new().and("why", &why);
                    self.logger.info("no-relay-yet", fields);
                }
                self.set(Charge::Nobody { unknown, why });
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
                self.set(Charge::Nodes(Arc::new(children)));
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
    ) -> Result<Arc<Child>, NotTaken> {
        let found = |charge: &Charge| match charge {
            Charge::Nodes(children) => children.get(node).cloned(),
            _ => None,
        };
        if let Some(child) = found(&self.charge()) {
            return Ok(child);
        }
        let answered = self.refresh(upstream, Instant::now()).await;
        let charge = self.charge();
        if let Some(child) = found(&charge) {
            return Ok(child);
        }
        Err(match charge {
            Charge::Nodes(_) if answered => {
                let relay = &self.id;
                let why = format!(
                    "node {node} is not behind this relay; put it there with headroom compliance \
                     relays assign {relay} {node}"
                );
                NotTaken::new(StatusCode::NOT_FOUND, why)
            }
            Charge::Nodes(_) => NotTaken::later(format!(
                "the upstream is away, so that it is not known whether node {node} is behind this \
                 relay; send it again"
            )),
            Charge::Unheard => NotTaken::later(
                "this relay has not heard from its upstream which nodes are behind it; send it again",
            ),
            Charge::Nobody { why, .. } => {
                NotTaken::later(format!("this relay serves nobody yet: {why}"))
            }
        })
    }
}
