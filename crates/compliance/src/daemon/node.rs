//! One agent on this machine.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::machine;
use super::policies;
use super::spool::Spool;
use super::{Config, Error};
use crate::agent::{
    AgentPolicy, Applied, Disk, Invocation, Methods, OnSystem, Outcome, RunLock, RunOutcome,
    RunSettings, RunTimes, Site, run,
};
use crate::model::mode::PolicyMode;
use crate::policy::signature::{IssueNumber, PolicyKey};
use crate::policy::system::is_reserved;
use crate::private;
use crate::reports::moment::Moment;
use crate::reports::runlog::{Limits, ReportKind, RunLog};
use crate::reports::signature::sign;
use crate::trust::{ServerPin, write_secret};
use crate::upstream::{
    ConditionalAnswer, NodeIdentity, Wire, WireError, inventory_is_due, keep_pin, keep_policy_key,
    keep_sent, policy_key, random_id, server_pin,
};

/// Bytes of a policy.
const POLICY_BYTES: usize = 256 << 20;
/// Longest that a command of a method takes.
const COMMAND: Duration = Duration::from_secs(60);
/// The policy that the agent has.
const POLICY: &str = "policy.json.gz";
/// When the last run started.
const LAST: &str = "last-run";
/// What stands in the place of the method of a component that is of Rudder's own agent.
const NOT_HERE: &str = "part_of_another_agent";

/// What a round did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Round {
    /// The node.
    pub node: String,
    /// The configuration that it has; none while nobody has accepted it.
    pub config_id: Option<String>,
    /// Was a policy run?
    pub ran: bool,
    /// Calls that were made.
    pub calls: u64,
    /// Calls that changed something.
    pub repaired: u64,
    /// What is not as it should be, or was not.
    pub events: Vec<Event>,
    /// Runs that the server has taken.
    pub sent: usize,
    /// Runs that wait for the server.
    pub waiting: usize,
    /// Runs that were dropped because too many waited, or that the server refuses.
    pub dropped: usize,
    /// Policies that were not the server's, or older than the one that the agent has, and were not
    /// taken.
    pub refused: usize,
    /// What did not work; all else went on.
    pub problems: Vec<String>,
}

/// A report of something that was repaired, failed or does not comply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The type of report.
    pub kind: &'static str,
    /// The directive.
    pub directive: String,
    /// The component.
    pub component: String,
    /// Its value.
    pub key: String,
    /// What it says.
    pub message: String,
}

/// An agent.
pub(super) struct Agent {
    config: Config,
    identity: NodeIdentity,
    pin: Arc<ServerPin>,
    wire: Wire,
    spool: Spool,
    /// The server's key for policies, once it is known.
    key: Option<PolicyKey>,
    policy: Option<(AgentPolicy, IssueNumber)>,
    /// The policy in its folder, until it is checked.
    kept: Option<Vec<u8>>,
}

impl Agent {
    /// Opens the agent in its folder, or makes it.
    pub(super) fn open(config: Config) -> Result<Self, Error> {
        let folder = &config.data;
        let identity = NodeIdentity::open(folder, &[], random_id)?;
        let pin = Arc::new(server_pin(folder, config.server_certificate.as_deref())?);
        let wire = Wire::new(&config.server, Arc::clone(&pin), &identity, 1)?;
        let spool = Spool::open(folder.join("spool")).map_err(|cause| Error::Folder {
            path: folder.clone(),
            cause,
        })?;
        let key = policy_key(folder, config.policy_key.as_deref())?;
        let kept = std::fs::read(folder.join(POLICY)).ok();
        Ok(Self {
            config,
            identity,
            pin,
            wire,
            spool,
            key,
            policy: None,
            kept,
        })
    }

    /// Its node.
    pub(super) fn id(&self) -> &str {
        &self.identity.id
    }

    /// Time to its next run, by its policy.
    pub(super) fn until_next(&self) -> Duration {
        let default = RunTimes {
            interval: 5,
            first_run: 0,
        };
        let times = self
            .policy
            .as_ref()
            .map_or(default, |(policy, _)| policy.schedule);
        Duration::from_secs(times.until_next(Timestamp::now().as_second()))
    }

    /// Inventory if it is due, policy, run, reports. No two of one folder go on at once.
    pub(super) async fn round(&mut self) -> Result<Round, Error> {
        let _lock = RunLock::take(&self.config.data)?;
        let mut round = Round {
            node: self.identity.id.clone(),
            ..Round::default()
        };
        let mut facts = machine::facts(
            &self.config.root,
            &self.identity.id,
            self.config.hostname.as_deref(),
            &self.identity.pems.certificate,
            Timestamp::now(),
        );
        let conditions = machine::conditions(&facts);
        let due = inventory_is_due(&self.config.data);
        if due {
            self.send_inventory(&mut facts, &mut round).await;
        }
        self.fetch(&mut round).await;
        if self.policy.is_none() && !due {
            // The server may not know this node any more.
            self.send_inventory(&mut facts, &mut round).await;
        }
        if let Some((policy, number)) = self.policy.take() {
            let start = self.next_start().await;
            round.config_id = Some(policy.config_id.clone());
            let settings = RunSettings {
                force_audit: self.config.force_audit,
                ..RunSettings::default()
            };
            let site = Site::with_folder(&self.config.data);
            let mut methods = OnSystem::new(Disk::new(&self.config.root, site), COMMAND);
            methods.conditions = conditions;
            methods.node.clone_from(&self.identity.id);
            methods.now = Timestamp::now().to_zoned(TimeZone::system()).datetime();
            let work = move || run_here(policy, methods, &settings, start);
            match tokio::task::spawn_blocking(work).await {
                Ok((policy, outcome)) => {
                    self.policy = Some((policy, number));
                    self.keep_run(&outcome, &mut round);
                }
                Err(error) => round.problems.push(format!("the run ended: {error}")),
            }
        }
        self.send_runs(&mut round).await;
        Ok(round)
    }

    /// When a run starts, in whole seconds: with the node that is its identity, so one of the
    /// second of the last run waits for the next.
    async fn next_start(&self) -> Moment {
        let path = self.config.data.join(LAST);
        let last = std::fs::read_to_string(&path).unwrap_or_default();
        if start_of_run().to_string() == last {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let start = start_of_run();
        // Without it a run of the same second would be taken for this one, and be lost.
        let _ = private::write(&path, start.to_string().as_bytes());
        start
    }

    async fn send_inventory(&self, facts: &mut crate::inventory::NodeFacts, round: &mut Round) {
        let now = Timestamp::now();
        match self.wire.enrol(&self.identity, facts, now).await {
            Err(error) => round.problems.push(format!("send the inventory: {error}")),
            Ok(_) => {
                let sent = keep_sent(&self.config.data, now);
                let kept = keep_pin(&self.config.data, &self.pin);
                for error in [sent.err(), kept.err()].into_iter().flatten() {
                    round.problems.push(error.to_string());
                }
            }
        }
    }

    /// The server's key for policies: that which is known, and otherwise the first that is told.
    async fn policy_key(&mut self, round: &mut Round) -> Option<PolicyKey> {
        if self.key.is_none() {
            match self.wire.policy_key().await {
                Ok(key) => {
                    if let Err(error) = keep_policy_key(&self.config.data, &key) {
                        round.problems.push(error.to_string());
                    }
                    self.key = Some(key);
                }
                Err(error) => round.problems.push(format!(
                    "ask for the server's key for policies, without which none is done: {error}"
                )),
            }
        }
        self.key.clone()
    }

    async fn fetch(&mut self, round: &mut Round) {
        let Some(key) = self.policy_key(round).await else {
            return;
        };
        if let Some(packed) = self.kept.take() {
            match policies::read(&key, &self.identity.id, &packed, None) {
                Ok(policy) => self.policy = Some(policy),
                Err(why) => {
                    round.refused += 1;
                    round.problems.push(format!("do the kept policy: {why}"));
                }
            }
        }
        let known = self.policy.as_ref();
        let held = known.map(|(_, number)| *number);
        let known = known.map(|(policy, _)| policy.config_id.as_str());
        let node = &self.identity.id;
        match self.wire.policy(node, known).await {
            Ok(ConditionalAnswer::Same) => {}
            Ok(ConditionalAnswer::New(_, packed)) => {
                match policies::read(&key, node, &packed, held) {
                    // The old one stays until the new one is known to be whole, and the server's.
                    Ok(policy) => {
                        let kept = write_secret(&self.config.data.join(POLICY), &packed);
                        if let Err(error) = kept {
                            round.problems.push(error.to_string());
                        }
                        self.policy = Some(policy);
                    }
                    Err(why) => {
                        round.refused += 1;
                        round.problems.push(format!("take the new policy: {why}"));
                    }
                }
            }
            // What it was asked to be still holds.
            Ok(ConditionalAnswer::None { why, .. }) if self.policy.is_some() => {
                round.problems.push(why)
            }
            Ok(ConditionalAnswer::None { .. }) => {}
            Err(error) => round.problems.push(format!("ask for the policy: {error}")),
        }
    }

    fn keep_run(&self, outcome: &RunOutcome, round: &mut Round) {
        round.ran = true;
        round.calls = outcome.counts.iter().sum();
        round.repaired = outcome.count(Outcome::Repaired);
        if outcome.skipped > 0 {
            let skipped = outcome.skipped;
            let told = format!("{skipped} calls were not made: the run's time was over");
            round.problems.push(told);
        }
        round.events = events(outcome);
        match signed(outcome, &self.identity) {
            Err(why) => round.problems.push(why),
            Ok((name, message)) => match self.spool.add(&name, &message) {
                Ok(dropped) => round.dropped += dropped,
                Err(error) => round.problems.push(format!("keep the run {name}: {error}")),
            },
        }
    }

    /// Sends what waits, from the oldest, until the server takes no more.
    async fn send_runs(&self, round: &mut Round) {
        let names = self.spool.waiting();
        round.waiting = names.len();
        for name in names {
            let Ok(message) = self.spool.read(&name) else {
                continue;
            };
            match self
                .wire
                .put(&format!("/reports/{name}"), message.into())
                .await
            {
                Ok(_) => {
                    self.spool.remove(&name);
                    round.sent += 1;
                }
                Err(error @ WireError::Refused { .. }) => {
                    self.spool.remove(&name);
                    round.dropped += 1;
                    round.problems.push(format!("send the run {name}: {error}"));
                }
                Err(error) => {
                    round.problems.push(format!("send the run {name}: {error}"));
                    return;
                }
            }
            round.waiting -= 1;
        }
    }
}

/// Reads a packed policy of this node.
pub(super) fn policy_of(packed: &[u8], node: &str) -> Result<AgentPolicy, String> {
    let json = crate::server::unpack(packed).map_err(|error| error.to_string())?;
    let json = str::from_utf8(&json).map_err(|error| error.to_string())?;
    let mut policy =
        AgentPolicy::from_json(json, POLICY_BYTES).map_err(|error| error.to_string())?;
    if policy.node_id != node {
        return Err(format!("it is of node {}, this is {node}", policy.node_id));
    }
    for directive in policy
        .policies
        .iter_mut()
        .filter(|one| is_reserved(&one.rule))
    {
        for call in &mut directive.calls {
            call.method = NOT_HERE.into();
        }
    }
    Ok(policy)
}

/// Methods, but for what only Rudder's own agent has.
pub(super) struct LocalMethods<M>(pub(super) M);

impl<M: Methods> Methods for LocalMethods<M> {
    fn apply(&mut self, call: &Invocation<'_>, mode: PolicyMode) -> Applied {
        if call.method == NOT_HERE {
            return Applied::new(Outcome::NotApplicable, "this agent has no such part");
        }
        self.0.apply(call, mode)
    }

    fn conditions(&self) -> Vec<String> {
        self.0.conditions()
    }

    fn expanded<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.0.expanded(text)
    }
}

/// The time now, in whole seconds: with the node it is a run's identity.
pub(super) fn start_of_run() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.unwrap_or_default().as_secs();
    let seconds = i64::try_from(seconds).unwrap_or_default();
    Moment::utc(Timestamp::from_second(seconds).unwrap_or_default())
}

fn run_here(
    policy: AgentPolicy,
    methods: OnSystem<Disk>,
    settings: &RunSettings,
    start: Moment,
) -> (AgentPolicy, RunOutcome) {
    let mut methods = LocalMethods(methods);
    let begin = Instant::now();
    let outcome = run(&policy, &mut methods, settings, start, || begin.elapsed());
    (policy, outcome)
}

/// The name of a run's file, and the signed and packed message.
pub(super) fn signed(
    outcome: &RunOutcome,
    identity: &NodeIdentity,
) -> Result<(String, Vec<u8>), String> {
    let now = Timestamp::now();
    let (key, certificate) = (&identity.key, &identity.certificate);
    let message = sign(outcome.log.as_bytes(), key, certificate, now);
    let message = message.map_err(|error| error.to_string())?;
    let name = format!("{}.gz", outcome.info.file_name());
    Ok((name, crate::server::pack(&message)))
}

fn events(outcome: &RunOutcome) -> Vec<Event> {
    use ReportKind as K;
    let limits = Limits::default();
    let Ok(log) = RunLog::parse(outcome.info.clone(), &outcome.log, &limits) else {
        return Vec::new();
    };
    let telling = log.reports.iter().filter(|report| {
        matches!(
            report.kind(),
            K::ResultRepaired | K::ResultError | K::AuditNonCompliant | K::AuditError
        )
    });
    let events = telling.map(|report| Event {
        kind: report.kind().name(),
        directive: report.directive_id.to_owned(),
        component: report.component.to_string(),
        key: report.key_value.to_string(),
        message: report.msg.to_string(),
    });
    events.take(1_000).collect()
}
