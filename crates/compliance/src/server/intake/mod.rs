//! What nodes upload: unpacked, checked and read on whatever thread serves it, kept by the one
//! writer, and only then counted.

mod inventories;

use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use http::StatusCode;
use net::{Incoming, Room};
use telemetry::{Fields, Logger};
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};

use super::fleet::Compliance;
use super::generator::Task;
use super::ledger::{Commands, Refusal, Reply, Request};
use super::metrics::Metrics;
use super::state::{Exception, NodeRecord, RefusedRecord, RunRecord, State};
use super::{Acceptance, now};
use crate::acceptance::NodeStatus;
use crate::reports::run_info::{Packing, RunInfo};
use crate::reports::runlog::{Limits, ReportKind, RunLog};
use crate::uploads::{
    Halves, HoldError, UploadRejection, UploadResult, aside, beside, check_report, half_of, hold,
    read_log, run_of,
};

pub(crate) use inventories::{StoredInventory, inventory_of};

/// Exceptions of one run that have rows; all reports stand in the run itself.
const EXCEPTIONS: usize = 10_000;
/// Bytes of each text of an exception.
const MESSAGE_BYTES: usize = 4 << 10;

/// A run of more reports takes longer to be counted than others should wait.
const LONG_REPORTS: usize = 4_000;

impl From<Refusal> for UploadRejection {
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
    pub(crate) checking: Semaphore,
    pub(crate) room: Room,
    pub(crate) halves: Mutex<Halves>,
}

impl Intake {
    /// Takes what a peer uploads to this folder under this name.
    pub(crate) async fn upload(
        &self,
        folder: &str,
        name: &str,
        body: Incoming,
        limits: &super::Limits,
    ) -> UploadResult {
        let reports = folder == "reports";
        let expected = match reports {
            true => self.named(name).map(drop),
            false => half_of(name).map(drop),
        };
        let (most, within) = (limits.upload_bytes, limits.body_within);
        let held = match hold(&self.room, body, expected, most, within).await {
            Ok(held) => held,
            Err(HoldError::Named(refused)) => {
                if reports {
                    self.refused_report(name, &refused, &Bytes::new()).await;
                }
                return Err(refused);
            }
            Err(HoldError::Body(refused)) => return Err(refused),
            Err(HoldError::NoRoom) => {
                if reports {
                    self.metrics.failed.add(1);
                }
                return Err(UploadRejection::busy());
            }
        };
        let body = held.body.clone();
        match reports {
            true => self.report(name, body).await,
            false => self.inventory(name, body).await,
        }
    }

    /// Takes a run log by its file's name. What is answered with success is on the disk.
    pub(crate) async fn report(&self, name: &str, body: Bytes) -> UploadResult {
        let start = Instant::now();
        let metrics = &self.metrics;
        metrics
            .bytes
            .add(u64::try_from(body.len()).unwrap_or(u64::MAX));
        let taken = self.checked_report(name, &body).await;
        metrics.report_nanoseconds.add_duration(start.elapsed());
        if let Err(refused) = &taken {
            self.refused_report(name, refused, &body).await;
        }
        taken
    }

    /// Counts a report that is refused and keeps it aside.
    async fn refused_report(&self, name: &str, refused: &UploadRejection, body: &Bytes) {
        let metrics = &self.metrics;
        let counter = match refused.status {
            StatusCode::SERVICE_UNAVAILABLE => &metrics.failed,
            StatusCode::FORBIDDEN => &metrics.forged,
            _ => &metrics.invalid,
        };
        counter.add(1);
        if refused.status != StatusCode::SERVICE_UNAVAILABLE {
            self.set_aside(name, refused, body).await;
        }
    }

    async fn set_aside(&self, name: &str, refused: &UploadRejection, body: &Bytes) {
        let fields = Fields::new().and("file", name).and("why", &refused.why);
        self.logger.info("upload-refused", fields);
        let record = RefusedRecord {
            at: now(),
            name: name.chars().take(256).collect(),
            why: refused.why.clone(),
            body: aside(body),
        };
        // It was refused whatever becomes of its copy.
        let _ = self.commands.run(Request::Refused(record)).await;
    }

    pub(super) fn node(&self, id: &str) -> Option<Arc<NodeRecord>> {
        self.view.read().nodes.get(id).cloned()
    }

    /// A place among the uploads that are in memory.
    fn place(&self) -> Result<SemaphorePermit<'_>, UploadRejection> {
        self.places
            .try_acquire()
            .map_err(|_| UploadRejection::busy())
    }

    /// What a file's name tells, and the accepted node that it names.
    fn named(&self, name: &str) -> Result<(RunInfo, Packing, Arc<NodeRecord>), UploadRejection> {
        let (info, packing) = run_of(name)?;
        let node = self.node(&info.node_id);
        match node.filter(|node| node.known.standing == NodeStatus::Accepted) {
            Some(node) => Ok((info, packing, node)),
            None => Err(Refusal::UnknownNode(info.node_id).into()),
        }
    }

    async fn checked_report(&self, name: &str, body: &Bytes) -> UploadResult {
        let (info, packing, node) = self.named(name)?;
        let _place = self.place()?;
        let checked = {
            // It is never closed.
            let _turn = self.checking.acquire().await;
            check_report(body.clone(), packing, node.known.key.clone()).await?
        };
        let log = read_log(info, &checked.text);
        let log = log.map_err(|error| UploadRejection::new(StatusCode::BAD_REQUEST, error))?;
        self.keep_run(&log, checked.message, checked.digest, true)
            .await
    }

    /// Keeps a run, and counts it once it is on the disk.
    pub(super) async fn keep_run(
        &self,
        log: &RunLog<'_>,
        message: Bytes,
        digest: i64,
        signed: bool,
    ) -> UploadResult {
        let file = log.info.file_name();
        let left_out = LeftOut::of(log);
        let long = log.reports.len() > LONG_REPORTS;
        let record = beside(long, || run_record(log, message, digest, signed));
        let reports = record.reports;
        match self.commands.run(Request::Run(Box::new(record))).await? {
            Reply::Kept(number) => {
                let count = || self.compliance.run(&self.view, log, number, now());
                beside(long, count);
                let fields = Fields::new().and("run", file.trim_end_matches(".log"));
                left_out.log(&self.logger, fields.clone());
                self.logger
                    .debug("run-kept", fields.and("reports", reports));
                self.metrics.runs.add(1);
                self.metrics.reports.add(reports.into());
                self.metrics.broken_lines.add(left_out.broken);
                self.metrics.cut_messages.add(left_out.cut);
                let told = format!("{reports} reports are kept{left_out}\n");
                Ok((StatusCode::CREATED, told))
            }
            _ => {
                let fields = Fields::new().and("run", file.trim_end_matches(".log"));
                self.logger.debug("run-known", fields);
                self.metrics.duplicates.add(1);
                Ok((StatusCode::OK, "it was kept before\n".into()))
            }
        }
    }
}

/// What of a run's log is not among its reports; the log itself is kept as it came.
struct LeftOut {
    broken: u64,
    cut: u64,
}

impl LeftOut {
    fn of(log: &RunLog<'_>) -> Self {
        Self {
            broken: log.broken as u64,
            cut: log.cut as u64,
        }
    }

    fn log(&self, logger: &Logger, fields: Fields) {
        if self.broken + self.cut > 0 {
            let fields = fields.and("broken-lines", self.broken);
            logger.info("run-kept-in-part", fields.and("cut-messages", self.cut));
        }
    }
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Limits {
            field_bytes,
            message_bytes,
            ..
        } = Limits::default();
        if self.broken > 0 {
            write!(
                f,
                "; {} lines are no reports and left out, as they are not written like one or their \
                 fields have more than {field_bytes} bytes",
                self.broken
            )?;
        }
        if self.cut > 0 {
            let cut = self.cut;
            write!(f, "; {cut} messages are cut after {message_bytes} bytes")?;
        }
        Ok(())
    }
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MESSAGE_BYTES)].to_owned()
}

fn run_record(log: &RunLog<'_>, message: Bytes, digest: i64, signed: bool) -> RunRecord {
    use ReportKind as K;
    let telling = log.reports.iter().filter(|report| {
        matches!(
            report.kind(),
            K::ResultRepaired | K::ResultError | K::AuditNonCompliant | K::AuditError | K::Unknown
        )
    });
    let exceptions = telling.take(EXCEPTIONS).map(|report| Exception {
        rule: cut(report.rule_id),
        directive: cut(report.directive_id),
        component: cut(&report.component),
        key: cut(&report.key_value),
        kind: report.kind().name(),
        message: cut(report.msg.as_ref()),
    });
    RunRecord {
        node: log.info.node_id.as_str().into(),
        start: log.start().unix_millis(),
        received: now(),
        config_id: log.config_id.clone(),
        whole: log.is_run(),
        digest,
        reports: u32::try_from(log.reports.len()).unwrap_or(u32::MAX),
        exceptions: exceptions.collect(),
        message,
        signed,
    }
}

#[cfg(test)]
mod tests {
    use commit::Ledger as _;

    use super::*;
    use crate::server::ledger::Ledger;

    #[test]
    fn what_a_run_weighs_is_what_its_exceptions_hold() {
        let node = "3f2f0a32-0f0b-4c43-9d0d-6a5f6f8f1c11";
        let line = "2026-03-01T12:00:00+00:00";
        let run = "2026-03-01 12:00:00+00:00";
        let long = "é".repeat(10_000);
        let marker = |part: &str| {
            format!("{line} R: @@Common@@control@@rudder@@run@@0@@{part}@@c@@{run}##{node}@#x\n")
        };
        let report = format!(
            "{line} R: @@T@@result_error@@r@@d@@0@@{long}@@{long}@@{run}##{node}@#{long}\n"
        );
        let text = marker("start") + &report.repeat(100) + &marker("end");
        let name = format!("{node}_{line}.log.gz");
        let (info, _) = RunInfo::from_file_name(&name).unwrap();
        let log = RunLog::parse(info, &text, &Limits::default()).unwrap();
        let record = run_record(&log, Bytes::new(), 1, true);
        assert_eq!(record.exceptions.len(), 100);
        let mut held = 0;
        for one in &record.exceptions {
            for text in [&one.component, &one.key, &one.message] {
                assert_eq!(text.len(), MESSAGE_BYTES);
                held += text.len();
            }
        }
        let weight = Ledger::weight(&Request::Run(Box::new(record)));
        assert!((held..2 * held).contains(&weight), "{weight} of {held}");
    }
}
