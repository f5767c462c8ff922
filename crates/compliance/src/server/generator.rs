//! The one thread that makes policies: changes of nodes are gathered, changes of definitions are
//! tried on a copy first, and what comes of both is durable before any node can fetch it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use telemetry::{Fields, Logger};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::edit::MakeEdit;
use super::fleet::{Compliance, EXPECTED_BYTES, stored_log, stored_text};
use super::ledger::{Commands, Ledger, Request};
use super::metrics::Metrics;
use super::now;
use super::packed;
use super::plan::{DefineError, Plan};
use super::rest::ApiError;
use super::state::{PolicyRecord, ServedPolicy, State};
use crate::acceptance::NodeStatus;
use crate::definitions::Definitions;
use crate::model::expiration;
use crate::model::node_set::NodeSet;
use crate::model::target::{Target, named};
use crate::policy::generation::{Change, Engine, NodeUpdate, Outcome};
use crate::policy::node_policy::{ExpectedReports, NodePolicy, PolicyDocument};
use crate::reports::expected;

/// Changes that may wait; who brings more waits too.
pub(crate) const WAITING: usize = 4_096;
/// Changes of nodes that one generation takes.
const GATHERED: usize = 16_384;
/// Policies that one transaction takes: some 20 MB until they are packed.
const SAVED: usize = 32;
/// Policies after which memory is given back to the kernel that only making them took.
const MANY: usize = 1_000;
/// Wait until what could not be made durable is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Something to do.
#[derive(Debug)]
pub(crate) enum Task {
    /// Nodes are others.
    Nodes(Vec<Change>),
    /// What is set for an accepted node is another.
    Administered(String),
    /// All policies are made anew, and given out again.
    Anew,
    /// A single definition shall be another.
    Edit {
        /// What it shall be, of what there is.
        make: MakeEdit,
        answer: oneshot::Sender<Result<(), ApiError>>,
    },
    /// The thread ends.
    Stop,
    /// The definitions shall be these; with a base they are made so, without one only a plan.
    Define {
        definitions: Arc<Definitions>,
        /// The version of the definitions that the plan was made for.
        base: Option<i64>,
        answer: oneshot::Sender<Result<Plan, DefineError>>,
    },
}

/// What the thread works with.
pub(crate) struct Generator {
    pub(crate) engine: Engine,
    pub(crate) commands: Commands,
    pub(crate) view: commit::View<State>,
    pub(crate) compliance: Arc<Compliance>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) runtime: Handle,
    pub(crate) threads: usize,
    pub(crate) logger: Logger,
    /// Could policies not be made durable, so that they are due once more?
    pub(crate) owing: bool,
    /// The groups as compliance knows them.
    pub(crate) known_groups: HashMap<String, KnownGroup>,
}

/// A group as compliance knows it.
#[derive(Debug)]
pub(crate) struct KnownGroup {
    members: NodeSet,
    /// Rules that target it.
    rules: Vec<String>,
}

/// A policy as it is kept, and what is expected of it.
type Made = (
    Arc<PolicyRecord>,
    Option<Result<expected::ExpectedReports, expected::ExpectedError>>,
);

impl Generator {
    /// Works until it is told to stop, or nobody is left who could ask for anything.
    pub(crate) fn run(mut self, mut tasks: mpsc::Receiver<Task>) {
        let runtime = self.runtime.clone();
        loop {
            let first = match self.owing {
                false => tasks.blocking_recv(),
                true => match runtime.block_on(tokio::time::timeout(AGAIN, tasks.recv())) {
                    Ok(first) => first,
                    Err(_) => {
                        self.generate();
                        continue;
                    }
                },
            };
            let Some(first) = first else { break };
            let mut changes = Vec::new();
            let mut next = Some(first);
            while let Some(task) = next {
                match task {
                    Task::Stop => {
                        self.nodes(changes);
                        return;
                    }
                    Task::Nodes(more) => changes.extend(more),
                    Task::Anew => {
                        self.nodes(std::mem::take(&mut changes));
                        let nodes: Vec<_> = self.view.read().nodes.keys().cloned().collect();
                        self.engine.owe(nodes.iter().map(|node| &**node));
                        self.generate();
                    }
                    Task::Administered(id) => changes.extend(self.administered(&id)),
                    Task::Edit { make, answer } => {
                        self.nodes(std::mem::take(&mut changes));
                        let edited = self.edit(make);
                        let changed = edited.is_ok();
                        // As below.
                        let _ = answer.send(edited);
                        if changed {
                            self.gather();
                        }
                    }
                    Task::Define {
                        definitions,
                        base,
                        answer,
                    } => {
                        self.nodes(std::mem::take(&mut changes));
                        let defined = self.define(definitions, base);
                        let changed = base.is_some() && defined.is_ok();
                        // Who asked may have gone away.
                        let _ = answer.send(defined);
                        if changed {
                            self.gather();
                        }
                    }
                }
                let room = changes.len() < GATHERED;
                next = room.then(|| tasks.try_recv().ok()).flatten();
            }
            self.nodes(changes);
        }
    }

    /// Takes changes of nodes, each for itself.
    fn nodes(&mut self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        for change in changes {
            let Some(change) = self.as_it_stands(change) else {
                continue;
            };
            if matches!(change, Change::RemoveNode(_)) {
                // Compliance has forgotten it: it may come again before policies are made.
                self.known_groups.clear();
            }
            if let Err(error) = self.engine.apply(vec![change]) {
                self.logger.error("node-not-taken", &error, Fields::new());
            }
        }
        self.generate();
    }

    /// A change of a node, with the node as it is now: what an inventory brought may be told after
    /// what was set later. None of a node that is not accepted any more.
    fn as_it_stands(&self, change: Change) -> Option<Change> {
        let id = match &change {
            Change::SetNode(node) => node.id.as_str(),
            Change::SetInventory { node, .. } => node.as_str(),
            _ => return Some(change),
        };
        let state = self.view.read();
        let record = state.nodes.get(id);
        let record = record.filter(|record| record.known.standing == NodeStatus::Accepted)?;
        Some(match change {
            Change::SetNode(_) => Change::SetNode(Arc::clone(&record.node)),
            other => other,
        })
    }

    /// Makes policies and keeps them.
    pub(crate) fn generate(&mut self) {
        self.owing = false;
        let outcome = generate(&mut self.engine, self.threads);
        self.count(&outcome);
        for (node, failure) in self.engine.failures() {
            let fields = Fields::new().and("node", node);
            self.logger.error("policy-not-made", failure, fields);
        }
        self.save(outcome.updates);
        self.groups();
        self.expirations();
    }

    /// Has compliance know how long what nodes last reported is kept.
    pub(super) fn expirations(&self) {
        let values = self.engine.values_of(expiration::PROPERTY);
        let keep_last = |node: &str| values.get(node).map_or(0, expiration::keep_last);
        self.compliance.lock().fleet.set_keep_last(keep_last, now());
    }

    pub(super) fn count(&self, outcome: &Outcome) {
        let all = outcome.steps.iter().filter(|step| !step.summed);
        let took: Duration = all.map(|step| step.duration).sum();
        self.metrics.generations.add(1);
        self.metrics.generation_nanoseconds.add_duration(took);
        for step in &outcome.steps {
            self.metrics.generation_steps.add(step.name, step.duration);
        }
        self.metrics
            .policies
            .add(u64::try_from(outcome.updates.len()).unwrap_or(u64::MAX));
        self.metrics
            .computed
            .add(u64::try_from(outcome.generated).unwrap_or(u64::MAX));
        let fields = Fields::new()
            .and("generated", outcome.generated)
            .and("changed", outcome.updates.len())
            .and("milliseconds", took.as_millis());
        self.logger.debug("generated", fields);
    }

    /// Keeps policies, and has compliance expect what they ask. What cannot be kept is given out
    /// again by the next generation. Documents are held of one transaction at a time, as those of
    /// a fleet are gigabytes.
    pub(crate) fn save(&mut self, updates: Vec<NodeUpdate>) {
        let many = updates.len() > MANY;
        let mut rest = updates.into_iter();
        loop {
            let part: Vec<NodeUpdate> = rest.by_ref().take(SAVED).collect();
            if part.is_empty() {
                break;
            }
            let made = self.made(&part);
            let records = made.iter().map(|(record, _)| Arc::clone(record)).collect();
            let request = Request::Policies(records);
            if let Err(error) = self.runtime.block_on(self.commands.run(request)) {
                self.logger
                    .error("policies-not-kept", &error, Fields::new());
                let all: Vec<_> = part.into_iter().chain(rest).collect();
                self.owe(&all);
                break;
            }
            for (record, expected) in made {
                if let Some(expected) = expected {
                    self.expect(&record, expected);
                }
            }
        }
        if many {
            processes::give_back_freed_memory();
        }
    }

    /// Policies as they are kept and sent; made by all threads.
    fn made(&mut self, updates: &[NodeUpdate]) -> Vec<Made> {
        let begin = now();
        let made = self
            .engine
            .of_whole(updates, self.threads, |update, whole| {
                made(update, whole, begin)
            });
        let lost = updates.iter().zip(&made).filter(|(_, made)| made.is_none());
        let lost: Vec<_> = lost.map(|(update, _)| update.clone()).collect();
        if !lost.is_empty() {
            self.owe(&lost);
        }
        made.into_iter().flatten().collect()
    }

    fn owe(&mut self, updates: &[NodeUpdate]) {
        self.engine.owe(updates.iter().map(|update| &*update.node));
        self.owing = true;
    }

    fn expect(
        &self,
        record: &PolicyRecord,
        expected: Result<expected::ExpectedReports, expected::ExpectedError>,
    ) {
        let Some(served) = &record.served else {
            return;
        };
        let logged = |error: &dyn std::fmt::Display| {
            let fields = Fields::new().and("node", &*record.node);
            self.logger.error("not-expected", error, fields);
        };
        let expected = match expected {
            Ok(expected) => expected,
            Err(error) => return logged(&error),
        };
        let (id, begin) = (&served.config_id, record.begin);
        let configured = {
            // Both at once: a node that goes now is not made anew.
            let state = self.view.read();
            let Some(node) = state.nodes.get(&record.node) else {
                return;
            };
            let mut all = self.compliance.lock();
            let configured = all
                .fleet
                .configure(&record.node, id, begin, &expected, now());
            configured.map(|configured| configured.wants_run.then_some(node.number))
        };
        match configured {
            Err(error) => logged(&error),
            Ok(Some(number)) => self.match_again(&record.node, number),
            Ok(None) => {}
        }
    }

    /// Gives the last run of a node again, whose configuration was not known when it came.
    fn match_again(&self, node: &str, number: i64) {
        let look = self.commands.look(move |ledger: &mut Ledger| {
            Box::pin(async move { ledger.store.last_run(number).await })
        });
        let Some(Ok(Some(run))) = self.runtime.block_on(look) else {
            return;
        };
        let text = stored_text(&run).unwrap_or_default();
        if let Ok(log) = stored_log(node, &text) {
            let state = self.view.read();
            // Not of a node that went meanwhile, nor of another that came under its name.
            if state
                .nodes
                .get(node)
                .is_some_and(|node| node.number == number)
            {
                self.compliance.lock().fleet.run(&log, now());
            }
        }
    }

    /// Has compliance know who belongs to which group, and which rules target it. Those of
    /// which nothing has changed are left alone: a large group is thousands of sums.
    pub(super) fn groups(&mut self) {
        let definitions = Arc::clone(&self.view.read().definitions);
        let mut rules_of: HashMap<&str, Vec<&str>> = HashMap::new();
        for rule in definitions.rules.values() {
            for target in named(&rule.targets) {
                if let Target::Group(group) = target {
                    rules_of.entry(group).or_default().push(&rule.id);
                }
            }
        }
        for id in definitions.groups.keys() {
            let Some(members) = self.engine.member_set(id) else {
                continue;
            };
            let rules = rules_of.remove(id.as_str()).unwrap_or_default();
            let known = self.known_groups.get(id);
            if known.is_some_and(|known| {
                known.rules == rules && known.members.difference(members).is_empty()
            }) {
                continue;
            }
            let known = KnownGroup {
                members: members.clone(),
                rules: rules.iter().map(ToString::to_string).collect(),
            };
            let names = self.engine.members(id);
            self.compliance.lock().fleet.set_group(id, names, rules);
            self.known_groups.insert(id.clone(), known);
        }
    }
}

pub(super) fn generate(engine: &mut Engine, threads: usize) -> Outcome {
    let start = Instant::now();
    engine.generate(now() / 1_000, threads, &|| start.elapsed())
}

fn made(update: &NodeUpdate, policy: Option<&NodePolicy>, begin: i64) -> Made {
    // What is serialised holds nothing that JSON has not.
    let json = |json: serde_json::Result<Vec<u8>>| json.unwrap_or_default();
    let expected = policy.map(|policy| json(serde_json::to_vec(&ExpectedReports(policy))));
    let record = PolicyRecord {
        node: Arc::clone(&update.node),
        begin,
        served: policy.map(|policy| ServedPolicy {
            config_id: Arc::clone(&policy.config_id),
            digest: policy.digest,
            document: packed::pack(&json(serde_json::to_vec(&PolicyDocument(policy)))).into(),
        }),
        expected: expected.as_deref().map_or_else(Vec::new, packed::pack),
    };
    let read = expected.map(|json| {
        let text = String::from_utf8_lossy(&json);
        expected::ExpectedReports::from_json(&text, EXPECTED_BYTES)
    });
    (Arc::new(record), read)
}
