//! Who is heard over syslog, and what is kept of them.

use http::StatusCode;

use super::super::intake::Intake;
use super::super::ledger::Refusal;
use super::super::packed;
use super::super::state::NodeRecord;
use crate::acceptance::NodeStatus;
use crate::model::property::Property;
use crate::reports::moment::Moment;
use crate::reports::run_info::RunInfo;
use crate::reports::runlog::{Limits, RunLog};
use crate::reports::syslog::runs::OverRun;
use crate::uploads::{UploadRejection, UploadResult, digest_of};

/// The property of a node that says how its reports come, and its value for syslog.
const REPORT_PROTOCOL: &str = "reportProtocol";
const SYSLOG: &str = "SYSLOG";

impl Intake {
    /// Takes a run that came over syslog. Who it is of is only what its reports say.
    pub(super) async fn unsigned_run(&self, run: &OverRun) -> UploadResult {
        let node = self.node(&run.node);
        if !node.is_some_and(|node| is_heard_over_syslog(&node)) {
            return Err(Refusal::UnknownNode(run.node.clone()).into());
        }
        let info = RunInfo {
            node_id: run.node.clone(),
            // Its reports tell the start.
            timestamp: Moment::utc(jiff::Timestamp::now()),
        };
        let log = RunLog::parse(info, &run.text, &Limits::default());
        let log = log.map_err(|error| UploadRejection::new(StatusCode::BAD_REQUEST, error))?;
        let message = packed::pack(run.text.as_bytes()).into();
        self.keep_run(&log, message, digest_of(run.text.as_bytes()), false)
            .await
    }

    /// May reports of this node come over syslog?
    pub(super) fn accepts_syslog(&self, node: &str) -> bool {
        let state = self.view.read();
        let node = state.nodes.get(node);
        node.is_some_and(|node| is_heard_over_syslog(node))
    }
}

/// Is the node accepted, and did an administrator let it report over syslog? A property that the
/// node's own inventory brings does not do that.
fn is_heard_over_syslog(node: &NodeRecord) -> bool {
    let set = |one: &Property| {
        one.name == REPORT_PROTOCOL && one.value == SYSLOG && one.provider.is_none()
    };
    node.known.standing == NodeStatus::Accepted && node.node.properties.iter().any(set)
}
