//! Compliance in memory, as it follows of what is on the disk: runs are taken in once they are
//! durable, and all of it is found again when the server starts.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use commit::StoreError;

use super::packed;
use super::state::State;
use super::store::{Store, StoredConfig, StoredRun};
use crate::acceptance::NodeStatus;
use crate::cores::{self, Gathered};
use crate::model::node::NodeState;
use crate::policy::digest::Digest;
use crate::policy::node_policy::overridden_digest;
use crate::reports::changes::Changes;
use crate::reports::decision::UnixMillis;
use crate::reports::expected::ExpectedReports;
use crate::reports::fleet::{Fleet, RunOutcome};
use crate::reports::history::Histories;
use crate::reports::matching::LooseExpected;
use crate::reports::moment::Moment;
use crate::reports::run_info::RunInfo;
use crate::reports::runlog::{Limits, RunLog};
use crate::reports::signature::text_of_checked;

/// Bytes of expected reports that are read.
pub(crate) const EXPECTED_BYTES: usize = 256 << 20;
/// Hours of history that wait to be written, and of how many things: the fleet and its rules.
const HISTORY: (usize, usize) = (48, 10_000);

/// The identity of the whole fleet among histories.
pub(crate) const FLEET: &str = "";

/// The compliance of all nodes, and what goes with it.
pub(crate) struct FleetCompliance {
    pub(crate) fleet: Fleet,
    /// Repairs by rule.
    pub(crate) changes: Changes,
    /// Compliance hour by hour, of the fleet and by rule.
    pub(crate) histories: Histories<Arc<str>>,
    /// The number of the last run of each node that was taken in.
    last: HashMap<Arc<str>, i64>,
}

/// [Hashes](overridden_digest) of what does not hold, by the nodes that have it so.
pub(crate) type Overridden = HashMap<Arc<str>, Digest>;

/// The one copy of it.
pub(crate) struct Compliance(Mutex<FleetCompliance>);

impl Compliance {
    /// Finds all of it in the store, by so many threads.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn load(
        store: &Store,
        state: &State,
        now: UnixMillis,
        threads: usize,
    ) -> Result<(Self, Overridden), StoreError> {
        let mut all = FleetCompliance {
            fleet: Fleet::default(),
            changes: Changes::default(),
            histories: Histories::new(HISTORY.0, HISTORY.1),
            last: HashMap::new(),
        };
        for (id, record) in &state.nodes {
            if record.known.standing == NodeStatus::Accepted {
                all.fleet.add(id);
                let enabled = record.node.state != NodeState::Ignored;
                all.fleet.set_node(id, enabled, now);
            }
        }
        let mut overridden = HashMap::new();
        let mut configured = Gathered::new(|some: Vec<StoredConfig>| {
            let read = cores::shared(threads, &some, |config| expected_of(&config.expected));
            for (config, read) in some.iter().zip(read) {
                let (expected, of_overrides) =
                    read.map_err(|error| damaged("configurations", config.number, &*error))?;
                let (node, id, begin) = (&config.node, &config.config_id, config.begin);
                all.fleet.restore_config(node, id, begin, expected);
                // They come from the oldest to the current one.
                overridden.insert(Arc::clone(node), of_overrides);
            }
            Ok::<_, StoreError>(())
        });
        let each = store.configurations(|config| {
            let bytes = config.expected.len();
            configured.push(config, bytes);
            Ok(())
        });
        each.await?;
        configured.finish()?;
        let mut taken = Gathered::new(|some: Vec<(Arc<str>, StoredRun)>| {
            let wrong = |at: usize, error: StoredRunError| {
                let number = some.get(at).map_or(0, |(_, run)| run.number);
                damaged("runs", number, &error)
            };
            let texts = cores::shared(threads, &some, |(_, run)| stored_text(run));
            let texts: Vec<_> = some.iter().zip(texts).collect();
            let logs = cores::shared(threads, &texts, |((node, _), text)| {
                text.as_ref().map(|text| stored_log(node, text))
            });
            for (at, (log, (_, run))) in logs.into_iter().zip(&some).enumerate() {
                let log = log.map_err(|error| wrong(at, error.clone()))?;
                let log = log.map_err(|error| wrong(at, error))?;
                all.take_run(&log, run.number, now);
            }
            Ok::<_, StoreError>(())
        });
        let each = store.last_runs(|node, run| {
            let bytes = run.message.len();
            taken.push((node.into(), run), bytes);
            Ok(())
        });
        each.await?;
        taken.finish()?;
        all.fleet.settle(now);
        let repairs = store.repairs(Changes::oldest(now), |rule, at, repairs| {
            let rule = all.fleet.ids_mut().reported(rule);
            all.changes.count(rule, at, repairs);
        });
        repairs.await?;
        // Hours that are not over go on; the last of a thing comes first.
        for (thing, hour) in store.open_hours(now).await? {
            all.histories.resume(thing, hour);
        }
        Ok((Self(Mutex::new(all)), overridden))
    }

    /// Takes in a run that is durable under this number, if its node is still there: it may have
    /// been deleted since.
    pub(crate) fn run(
        &self,
        view: &commit::View<State>,
        log: &RunLog<'_>,
        number: i64,
        now: UnixMillis,
    ) {
        // In this order, as those who look at both do.
        let state = view.read();
        if state.nodes.contains_key(&*log.info.node_id) {
            self.lock().run(log, number, now);
        }
    }

    /// For a short time: uploads wait for it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, FleetCompliance> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FleetCompliance {
    /// Takes in a run that is durable under this number. An older one than the last that was
    /// taken in changes no compliance, in whatever order they become known.
    pub(crate) fn run(
        &mut self,
        log: &RunLog<'_>,
        number: i64,
        now: UnixMillis,
    ) -> Option<RunOutcome> {
        self.changes.count_run(log, self.fleet.ids_mut(), now);
        self.take_run(log, number, now)
    }

    /// The same without its repairs.
    fn take_run(&mut self, log: &RunLog<'_>, number: i64, now: UnixMillis) -> Option<RunOutcome> {
        let node = &*log.info.node_id;
        // It counts for nothing here, so that the run that it is a part of is not older.
        if !log.is_run() {
            return Some(RunOutcome::Partial);
        }
        match self.last.get_mut(node) {
            Some(last) if *last >= number => return None,
            Some(last) => *last = number,
            None => drop(self.last.insert(node.into(), number)),
        }
        Some(self.fleet.run(log, now))
    }

    /// Forgets a node.
    pub(crate) fn forget(&mut self, node: &str) {
        self.fleet.remove(node);
        self.last.remove(node);
    }

    /// Repairs of a rule by slots of six hours.
    pub(crate) fn repairs(&self, rule: &str, now: UnixMillis) -> Vec<(UnixMillis, u32)> {
        let number = self.fleet.ids().known(rule);
        let slots = number.map(|rule| self.changes.of_rule(rule, now).to_vec());
        slots.unwrap_or_default()
    }

    /// Lets what has expired expire, and takes what is shown into the histories.
    pub(crate) fn observe(&mut self, now: UnixMillis) {
        self.fleet.expire(now);
        let changed = self.fleet.take_changed();
        if !changed.nodes.is_empty() {
            let level = self.fleet.global();
            self.histories.observe(FLEET.into(), level, now);
        }
        for rule in changed.rules {
            let level = self.fleet.rule(&rule);
            self.histories.observe(rule.into(), &level, now);
        }
    }
}

/// What a configuration expects, and the hash of what does not hold in it.
fn expected_of(
    packed: &[u8],
) -> Result<(LooseExpected, Digest), Box<dyn std::error::Error + Send + Sync>> {
    let json = packed::unpack(packed)?;
    let expected = ExpectedReports::from_json(str::from_utf8(&json)?, EXPECTED_BYTES)?;
    let overrides = expected.overrides.iter().map(|one| {
        let (policy, by) = (&one.policy, &one.overridden_by);
        [&*policy.rule, &*policy.directive, &*by.rule, &*by.directive]
    });
    let overridden = overridden_digest(overrides);
    Ok((LooseExpected::compile(&expected)?, overridden))
}

/// A row of a table that cannot be read.
fn damaged(table: &'static str, id: i64, cause: &dyn std::error::Error) -> StoreError {
    StoreError::Damaged {
        table,
        id,
        cause: cause.to_string(),
    }
}

/// Why a stored run cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("reading a stored run: {0}")]
pub(crate) struct StoredRunError(String);

/// The text of a run.
///
/// # Errors
/// It is damaged.
pub(crate) fn stored_text(run: &StoredRun) -> Result<String, StoredRunError> {
    let wrong = |error: &dyn std::fmt::Display| StoredRunError(error.to_string());
    let message = packed::unpack(&run.message).map_err(|error| wrong(&error))?;
    let text = match run.signed {
        true => text_of_checked(&message).map_err(|error| wrong(&error))?,
        false => Cow::Borrowed(&message[..]),
    };
    Ok(match String::from_utf8_lossy(&text) {
        Cow::Borrowed(text) => text.to_owned(),
        Cow::Owned(text) => text,
    })
}

/// The reports of such a text.
///
/// # Errors
/// It is damaged.
pub(crate) fn stored_log<'t>(node: &str, text: &'t str) -> Result<RunLog<'t>, StoredRunError> {
    let info = RunInfo {
        node_id: node.to_owned(),
        // The reports tell the start.
        timestamp: Moment::utc(jiff::Timestamp::UNIX_EPOCH),
    };
    RunLog::parse(info, text, &Limits::default()).map_err(|error| StoredRunError(error.to_string()))
}
