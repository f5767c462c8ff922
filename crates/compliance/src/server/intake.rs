//! What nodes upload: unpacked, checked and read on whatever thread serves it, kept by the one
//! writer, and only then counted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::StatusCode;
use telemetry::{Fields, Logger};
use tokio::sync::{Semaphore, mpsc};

use super::fleet::Compliance;
use super::generator::Task;
use super::ledger::{Commands, Newcome, Refusal, Reply, Request};
use super::metrics::Metrics;
use super::packed;
use super::state::{Exception, NodeRecord, RefusedRecord, RunRecord, State};
use super::{Acceptance, now};
use crate::acceptance::{Arrival, Standing};
use crate::inventory::{self, InventorySignature, NodeFacts};
use crate::model::inventory::Inventory;
use crate::model::node::Node;
use crate::policy::generation::Change;
use crate::reports::run_info::{Packing, RunInfo};
use crate::reports::runlog::{Limits, ReportKind, RunLog};
use crate::reports::signature::verify;
use crate::reports::upload::unpack;

/// Uploads whose bodies are in memory at once; a further one is to come again.
const UPLOADS: usize = 256;
/// Bytes of a refused upload that are kept aside.
const ASIDE_BYTES: usize = 64 << 10;
/// Exceptions of one run that have rows; all reports stand in the run itself.
const EXCEPTIONS: usize = 10_000;
/// Bytes of an exception's message.
const MESSAGE_BYTES: usize = 4 << 10;
/// Halves of inventories that wait for the other, their bytes, and how long they wait.
const HALVES: (usize, usize, Duration) = (1_024, 64 << 20, Duration::from_secs(300));

/// Why an upload is not taken, and what it is answered.
#[derive(Debug)]
pub(crate) struct NotTaken {
    pub(crate) status: StatusCode,
    pub(crate) why: String,
}

impl NotTaken {
    pub(super) fn new(status: StatusCode, why: impl ToString) -> Self {
        let why = why.to_string();
        Self { status, why }
    }
}

impl From<Refusal> for NotTaken {
    fn from(refusal: Refusal) -> Self {
        let status = match &refusal {
            Refusal::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::UnknownNode(_) => StatusCode::NOT_FOUND,
            Refusal::Rejected(_) => StatusCode::FORBIDDEN,
            Refusal::Model(_) => StatusCode::BAD_REQUEST,
            _ => StatusCode::CONFLICT,
        };
        Self::new(status, refusal)
    }
}

/// What became of an upload.
pub(crate) type Taken = Result<(StatusCode, String), NotTaken>;

/// Takes uploads.
pub(crate) struct Intake {
    pub(crate) view: commit::View<State>,
    pub(crate) commands: Commands,
    pub(crate) compliance: Arc<Compliance>,
    pub(crate) tasks: mpsc::Sender<Task>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) acceptance: Acceptance,
    pub(crate) logger: Logger,
    pub(crate) places: Semaphore,
    pub(crate) halves: Mutex<HashMap<String, Half>>,
}

/// An inventory or a signature that waits for its other half.
pub(crate) struct Half {
    body: Bytes,
    packed: bool,
    signs: bool,
    since: Instant,
}

/// How many uploads there may be at once.
pub(crate) fn places() -> Semaphore {
    Semaphore::new(UPLOADS)
}

/// A signed run that was checked.
struct Checked {
    text: String,
    /// The message as it is kept.
    message: Bytes,
}

impl Intake {
    /// Takes a run log by its file's name. What is answered with success is on the disk.
    pub(crate) async fn report(&self, name: &str, body: Bytes) -> Taken {
        let start = Instant::now();
        let metrics = &self.metrics;
        metrics
            .bytes
            .add(u64::try_from(body.len()).unwrap_or(u64::MAX));
        let taken = self.checked_report(name, &body).await;
        metrics.report_nanoseconds.add_duration(start.elapsed());
        let Err(refused) = &taken else {
            return taken;
        };
        let counter = match refused.status {
            StatusCode::SERVICE_UNAVAILABLE => &metrics.failed,
            StatusCode::FORBIDDEN => &metrics.forged,
            _ => &metrics.invalid,
        };
        counter.add(1);
        if refused.status != StatusCode::SERVICE_UNAVAILABLE {
            self.set_aside(name, refused, &body).await;
        }
        taken
    }

    async fn set_aside(&self, name: &str, refused: &NotTaken, body: &Bytes) {
        let fields = Fields::new().and("file", name).and("why", &refused.why);
        self.logger.info("upload-refused", fields);
        let record = RefusedRecord {
            at: now(),
            name: name.chars().take(256).collect(),
            why: refused.why.clone(),
            body: body.slice(..body.len().min(ASIDE_BYTES)),
        };
        // It was refused whatever becomes of its copy.
        let _ = self.commands.run(Request::Refused(record)).await;
    }

    pub(super) fn node(&self, id: &str) -> Option<Arc<NodeRecord>> {
        self.view.read().nodes.get(id).cloned()
    }

    async fn checked_report(&self, name: &str, body: &Bytes) -> Taken {
        let bad = |error: &dyn std::fmt::Display| NotTaken::new(StatusCode::BAD_REQUEST, error);
        let (info, packing) = RunInfo::from_file_name(name).map_err(|error| bad(&error))?;
        let node = self.node(&info.node_id);
        let accepted = node.filter(|node| node.known.standing == Standing::Accepted);
        let Some(node) = accepted else {
            return Err(Refusal::UnknownNode(info.node_id).into());
        };
        let busy = |_| {
            let why = "too many uploads at once; send it again";
            NotTaken::new(StatusCode::SERVICE_UNAVAILABLE, why)
        };
        let _place = self.places.try_acquire().map_err(busy)?;
        let checked = check(body.clone(), packing, node).await?;
        let log = RunLog::parse(info, &checked.text, &Limits::default());
        let log = log.map_err(|error| bad(&error))?;
        self.keep_run(&log, checked.message, true).await
    }

    /// Keeps a run, and counts it once it is on the disk.
    pub(super) async fn keep_run(&self, log: &RunLog<'_>, message: Bytes, signed: bool) -> Taken {
        let file = log.info.file_name();
        let record = run_record(log, message, signed);
        let reports = record.reports;
        match self.commands.run(Request::Run(Box::new(record))).await? {
            Reply::Kept(number) => {
                self.compliance.lock().run(log, number, now());
                let fields = Fields::new().and("run", file.trim_end_matches(".log"));
                self.logger
                    .debug("run-kept", fields.and("reports", reports));
                self.metrics.runs.add(1);
                self.metrics.reports.add(reports.into());
                Ok((StatusCode::CREATED, format!("{reports} reports are kept\n")))
            }
            _ => {
                let fields = Fields::new().and("run", file.trim_end_matches(".log"));
                self.logger.debug("run-known", fields);
                self.metrics.duplicates.add(1);
                Ok((StatusCode::OK, "it was kept before\n".into()))
            }
        }
    }

    /// Takes half of an inventory by its file's name: the second half that comes is answered for
    /// both.
    pub(crate) async fn inventory(&self, name: &str, body: Bytes) -> Taken {
        let (stem, signs) = match name.strip_suffix(".sign") {
            Some(stem) => (stem, true),
            None => (name, false),
        };
        let (stem, packed) = match stem.strip_suffix(".gz") {
            Some(stem) => (stem, true),
            None => (stem, false),
        };
        if !stem.ends_with(".ocs") {
            let why =
                format!("the file is {name:?}; expected NAME.ocs, NAME.ocs.gz or NAME.ocs.sign");
            return Err(NotTaken::new(StatusCode::BAD_REQUEST, why));
        }
        let half = Half {
            body,
            packed,
            signs,
            since: Instant::now(),
        };
        let Some((whole, signature)) = self.other_half(stem, half)? else {
            let told = "it waits for its other half\n";
            return Ok((StatusCode::ACCEPTED, told.into()));
        };
        let taken = self.whole_inventory(whole, signature.body).await;
        match &taken {
            Ok(_) => self.metrics.inventories.add(1),
            Err(refused) => {
                self.metrics.refused_inventories.add(1);
                let fields = Fields::new().and("file", name).and("why", &refused.why);
                self.logger.info("inventory-refused", fields);
            }
        }
        taken
    }

    /// Both halves, the inventory first, if this is the second.
    fn other_half(&self, stem: &str, half: Half) -> Result<Option<(Half, Half)>, NotTaken> {
        let (most, most_bytes, within) = HALVES;
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        halves.retain(|_, half| half.since.elapsed() < within);
        if let Some(other) = halves.remove(stem)
            && other.signs != half.signs
        {
            return Ok(Some(match half.signs {
                true => (other, half),
                false => (half, other),
            }));
        }
        let bytes: usize = halves.values().map(|half| half.body.len()).sum();
        if halves.len() >= most || bytes + half.body.len() > most_bytes {
            let why = "too many inventories wait for their other halves; send it again";
            return Err(NotTaken::new(StatusCode::SERVICE_UNAVAILABLE, why));
        }
        halves.insert(stem.to_owned(), half);
        Ok(None)
    }

    async fn whole_inventory(&self, whole: Half, signature: Bytes) -> Taken {
        let bad = |error: &dyn std::fmt::Display| NotTaken::new(StatusCode::BAD_REQUEST, error);
        let forbidden = |error: &dyn std::fmt::Display| NotTaken::new(StatusCode::FORBIDDEN, error);
        let limits = inventory::Limits::default();
        let name = if whole.packed { ".gz" } else { "" };
        let xml = inventory::unpack(name, &whole.body, &limits).map_err(|error| bad(&error))?;
        let facts = NodeFacts::read(&xml, &limits).map_err(|error| bad(&error))?;
        facts
            .check_date(jiff::Timestamp::now())
            .map_err(|error| bad(&error))?;
        let id = facts.node.id.clone();
        let known = self.node(&id);
        let certified = |node: &&Arc<NodeRecord>| {
            node.known.key_status == crate::acceptance::KeyStatus::Certified
        };
        let known = known.as_ref().filter(certified).map(|node| &node.known.key);
        let key = InventorySignature::parse(&signature)
            .and_then(|signature| signature.verify(&xml, &facts, known))
            .map_err(|error| forbidden(&error))?;
        let elements = serde_json::to_vec(&facts.inventory).map_err(|error| bad(&error))?;
        let newcome = Newcome {
            node: facts.node,
            key,
            certificate: facts.certificate,
            received: now(),
            inventory: packed::pack(&elements),
        };
        let request = Request::Inventory(Box::new(newcome));
        let Reply::Arrived(arrival, node) = self.commands.run(request).await? else {
            return Ok((StatusCode::OK, "it is kept\n".into()));
        };
        self.logger
            .debug("inventory-kept", Fields::new().and("node", &id));
        match arrival {
            Arrival::Updated => {
                self.update(node, facts.inventory).await;
                Ok((StatusCode::CREATED, format!("node {id} is accepted\n")))
            }
            Arrival::NewPending | Arrival::StillPending => {
                if self.acceptance == Acceptance::All {
                    self.accept(&id).await?;
                    return Ok((StatusCode::CREATED, format!("node {id} is accepted\n")));
                }
                if arrival == Arrival::NewPending {
                    let fields = Fields::new().and("node", &id);
                    let fields = fields.and("hostname", &node.hostname);
                    self.logger.info("node-pending", fields);
                }
                Ok((StatusCode::CREATED, format!("node {id} is pending\n")))
            }
        }
    }

    async fn accept(&self, id: &str) -> Result<(), NotTaken> {
        let nodes = vec![id.to_owned()];
        for decided in self.decide(nodes, true).await? {
            decided.map_err(|error| NotTaken::new(StatusCode::CONFLICT, error))?;
        }
        Ok(())
    }

    /// Accepts or refuses pending nodes; policies of accepted ones follow.
    pub(crate) async fn decide(
        &self,
        nodes: Vec<String>,
        accept: bool,
    ) -> Result<Vec<Result<Arc<Node>, crate::acceptance::DecisionError>>, Refusal> {
        let reply = self.commands.run(Request::Decide { nodes, accept }).await?;
        let Reply::Decided(decided) = reply else {
            return Ok(Vec::new());
        };
        let mut answers = Vec::with_capacity(decided.len());
        for one in decided {
            if let Ok(one) = &one
                && accept
            {
                self.compliance.lock().fleet.add(&one.node.id);
                let inventory = inventory_of(&one.inventory).unwrap_or_default();
                self.update(Arc::clone(&one.node), inventory).await;
            }
            answers.push(one.map(|one| one.node));
        }
        Ok(answers)
    }

    /// Deletes an accepted node.
    pub(crate) async fn delete(&self, id: &str) -> Result<(), Refusal> {
        self.commands.run(Request::Delete(id.to_owned())).await?;
        self.compliance.lock().forget(id);
        let task = Task::Nodes(vec![Change::RemoveNode(id.to_owned())]);
        // The thread is gone only when the server stops; it starts anew from the store.
        let _ = self.tasks.send(task).await;
        Ok(())
    }

    async fn update(&self, node: Arc<Node>, inventory: Inventory) {
        let id = node.id.clone();
        let changes = vec![
            Change::SetNode(Box::new(Node::clone(&node))),
            Change::SetInventory {
                node: id,
                inventory,
            },
        ];
        // As above.
        let _ = self.tasks.send(Task::Nodes(changes)).await;
    }
}

/// Reads a packed inventory.
pub(crate) fn inventory_of(packed: &[u8]) -> Option<Inventory> {
    serde_json::from_slice(&packed::unpack(packed).ok()?).ok()
}

/// Unpacks and checks a message; some milliseconds of a core.
async fn check(body: Bytes, packing: Packing, node: Arc<NodeRecord>) -> Result<Checked, NotTaken> {
    let check = move || {
        let limit = Limits::default().text_bytes;
        let message = unpack(&body, packing, limit)
            .map_err(|error| NotTaken::new(StatusCode::BAD_REQUEST, error))?;
        let text = verify(&message, &node.known.key)
            .map_err(|error| NotTaken::new(StatusCode::FORBIDDEN, error))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        // Most come as they are kept.
        let message = match packing {
            Packing::Gzip => body.clone(),
            Packing::Plain | Packing::Zip => packed::pack(&message).into(),
        };
        Ok(Checked { text, message })
    };
    let checked = tokio::task::spawn_blocking(check).await;
    checked.unwrap_or_else(|error| Err(NotTaken::new(StatusCode::INTERNAL_SERVER_ERROR, error)))
}

fn run_record(log: &RunLog<'_>, message: Bytes, signed: bool) -> RunRecord {
    use ReportKind as K;
    let telling = log.reports.iter().filter(|report| {
        matches!(
            report.kind(),
            K::ResultRepaired | K::ResultError | K::AuditNonCompliant | K::AuditError | K::Unknown
        )
    });
    let exceptions = telling.take(EXCEPTIONS).map(|report| Exception {
        rule: report.rule_id.to_owned(),
        directive: report.directive_id.to_owned(),
        component: report.component.to_string(),
        key: report.key_value.to_string(),
        kind: report.kind().name(),
        message: report.msg[..report.msg.floor_char_boundary(MESSAGE_BYTES)].to_owned(),
    });
    RunRecord {
        node: log.info.node_id.as_str().into(),
        start: log.start().unix_millis(),
        received: now(),
        config_id: log.config_id.clone(),
        whole: log.is_run(),
        reports: u32::try_from(log.reports.len()).unwrap_or(u32::MAX),
        exceptions: exceptions.collect(),
        message,
        signed,
    }
}
