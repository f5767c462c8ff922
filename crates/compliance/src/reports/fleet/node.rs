//! One node: its configurations, its last run, and what follows of them.

use std::sync::Arc;

use crate::model::mode::ComplianceMode;
use crate::reports::decision::{Basis, ConfigTime, NodeFacts, RunConfig, UnixMillis};
use crate::reports::level::ComplianceLevel;
use crate::reports::matching::{Matcher, NodeExpected, Received, Types};
use crate::reports::runlog::RunLog;
use crate::reports::status::Status;

/// Configurations of a node that are held however long ago they ended.
pub const CONFIGS: usize = 4;
/// Configurations of a node that are held at most, however fast they follow each other; beside
/// them that of its last run, which may be older. A run with another counts as with an unknown
/// one.
pub const MOST_CONFIGS: usize = 16;

/// Reasons that are kept of why a run was given up, those that are looked at for them, and bytes of
/// each of their texts.
const ABORTS: usize = 16;
const ABORTS_READ: usize = 1_000;
const ABORT_BYTES: usize = 4 << 10;

/// The level of a directive that a rule brings to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectiveLevel {
    /// The rule's number.
    pub rule: u32,
    /// The directive's number.
    pub directive: u32,
    /// Reports that came of it.
    pub(super) received: u32,
    /// Was it expected?
    pub(super) expected: bool,
    /// Whose it is.
    pub types: Types,
    /// What is counted.
    pub level: ComplianceLevel,
}

impl DirectiveLevel {
    pub(super) fn key(&self) -> (u32, u32) {
        (self.rule, self.directive)
    }

    /// The same with all of its reports unexpected. What nobody expects is a user's, or what is
    /// shown would depend on whether the run came while its configuration was still held.
    fn unexpected(&self) -> Self {
        Self {
            expected: false,
            types: Types::USER,
            level: ComplianceLevel::of(Status::Unexpected, self.received),
            ..*self
        }
    }
}

/// A configuration that a node has or had.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) id: Box<str>,
    pub(super) begin: UnixMillis,
    pub(super) end: Option<UnixMillis>,
    pub(super) expected: NodeExpected,
}

impl Config {
    fn time(&self) -> ConfigTime {
        ConfigTime {
            begin: self.begin,
            interval: self.expected.interval,
        }
    }
}

/// Why an agent gave up a run before it applied its policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abort {
    /// A word for it, such as `unsupported_dryrun`.
    pub cause: Box<str>,
    /// What the agent says.
    pub message: Box<str>,
}

impl Abort {
    /// The reasons in a run's log, each once: at most 16, in 4 KB.
    pub(super) fn of(run: &RunLog<'_>) -> Arc<[Self]> {
        let mut aborts: Vec<Self> = Vec::new();
        let cut = |text: &str| text[..text.floor_char_boundary(ABORT_BYTES)].into();
        // A run may have as many as it has reports.
        for (cause, message) in run.aborts().take(ABORTS_READ) {
            let abort = Self {
                cause: cut(cause),
                message: cut(message),
            };
            if aborts.len() < ABORTS && !aborts.contains(&abort) {
                aborts.push(abort);
            }
        }
        aborts.into()
    }
}

/// The last run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) start: UnixMillis,
    pub(super) config_id: Option<Box<str>>,
    /// Was its configuration known when it came?
    pub(super) matched: bool,
    /// Why it was given up.
    pub(super) aborts: Arc<[Abort]>,
    /// By the run's own configuration; sorted.
    pub(super) levels: Arc<[DirectiveLevel]>,
}

/// A report and the numbers of its rule and directive.
pub(super) type Numbered<'a> = ((u32, u32), Received<'a>);

#[derive(Debug)]
pub(super) struct Node {
    pub(super) enabled: bool,
    /// How long the last compliance is kept when no report comes, in milliseconds.
    pub(super) keep_last: i64,
    /// From the oldest to the current one.
    pub(super) configs: Vec<Config>,
    pub(super) run: Option<Run>,
    pub(super) basis: Basis,
    pub(super) expires: Option<UnixMillis>,
    /// What is shown, sorted.
    pub(super) shown: Arc<[DirectiveLevel]>,
    pub(super) groups: Vec<u32>,
}

impl Node {
    pub(super) fn new() -> Self {
        Self {
            enabled: true,
            keep_last: 0,
            configs: Vec::new(),
            run: None,
            basis: Basis::NoRunNoExpectedReport,
            expires: None,
            shown: Arc::from([]),
            groups: Vec::new(),
        }
    }

    /// Puts a configuration in the place of the current one.
    pub(super) fn configure(&mut self, config: Config) {
        if let Some(last) = self.configs.last_mut() {
            last.end.get_or_insert(config.begin);
        }
        // Exactly: a fleet has many of these.
        self.configs.reserve_exact(1);
        self.configs.push(config);
    }

    /// Lets go of configurations that no run is awaited of. They go by their age: five changes
    /// within one interval are an ordinary hour, and what an agent did before them still counts.
    pub(super) fn forget_configs(&mut self) {
        let Some(now) = self.configs.last().map(|current| current.begin) else {
            return;
        };
        let run = self.run.as_ref().and_then(|run| run.config_id.as_deref());
        let of_run = run.and_then(|run| self.configs.iter().rposition(|one| *one.id == *run));
        let mut newer = self.configs.len();
        let mut place = 0;
        self.configs.retain(|config| {
            // A run may start a validity after the end, and come a validity after its start.
            let last = |end: UnixMillis| end.saturating_add(2 * config.time().validity());
            let awaited = config.end.is_none_or(|end| last(end) >= now);
            newer -= 1;
            let held = newer < CONFIGS || awaited && newer < MOST_CONFIGS;
            let held = held || of_run == Some(place);
            place += 1;
            held
        });
        if self.configs.capacity() > 2 * self.configs.len() {
            self.configs.shrink_to_fit();
        }
    }

    pub(super) fn config(&self, id: &str) -> Option<&Config> {
        // An agent may get a configuration again that it had.
        self.configs.iter().rev().find(|config| *config.id == *id)
    }

    fn current(&self) -> Option<&Config> {
        self.configs.last().filter(|config| config.end.is_none())
    }

    pub(super) fn facts(&self) -> NodeFacts {
        let current = self.current();
        let run = self.run.as_ref().map(|run| {
            let config = match &run.config_id {
                None => RunConfig::NoId,
                Some(id) => match self.config(id) {
                    None => RunConfig::Unknown,
                    Some(config) => match config.end {
                        Some(end) => RunConfig::Ended {
                            config: config.time(),
                            end,
                        },
                        None => RunConfig::Open(config.time()),
                    },
                },
            };
            (run.start, config)
        });
        NodeFacts {
            enabled: self.enabled,
            reports_disabled: current.is_some_and(|config| {
                config.expected.compliance_mode == ComplianceMode::ReportsDisabled
            }),
            current: current.map(Config::time),
            oldest: self.configs.first().map(Config::time),
            run,
        }
    }

    /// Decides anew: what the compliance rests on, until when, and what is shown.
    pub(super) fn evaluate(
        &self,
        now: UnixMillis,
        matcher: &mut Matcher,
    ) -> (Basis, Option<UnixMillis>, Arc<[DirectiveLevel]>) {
        let basis = Basis::decide(&self.facts(), now);
        if let Basis::NoReport { since } = basis {
            let until = since.saturating_add(self.keep_last);
            if until >= now && self.keep_last > 0 {
                return (basis, Some(until), self.levels_at(since, matcher));
            }
        }
        // A run without a configuration's identifier is judged by its own time, not by the clock.
        let until = basis.until().filter(|until| *until >= now);
        (basis, until, self.levels(basis, matcher))
    }

    /// What was shown at a time, found again: it does not depend on who was there to see it.
    fn levels_at(&self, then: UnixMillis, matcher: &mut Matcher) -> Arc<[DirectiveLevel]> {
        match Basis::decide(&self.facts(), then) {
            // A run without a configuration's identifier was late when it came.
            Basis::NoReport { .. } => Arc::clone(&self.shown),
            basis => self.levels(basis, matcher),
        }
    }

    fn levels(&self, basis: Basis, matcher: &mut Matcher) -> Arc<[DirectiveLevel]> {
        let run: &[DirectiveLevel] = self.run.as_ref().map_or(&[], |run| &run.levels);
        match basis {
            Basis::Ignored | Basis::NoRunNoExpectedReport => Arc::from([]),
            Basis::ReportsDisabled => self.uniform(Status::Disabled, matcher),
            Basis::NoReport { .. } => self.uniform(Status::NoAnswer, matcher),
            Basis::Pending { .. } => self.uniform(Status::Pending, matcher),
            Basis::NoExpectedReport => received(run).collect(),
            Basis::UnexpectedNoVersion
            | Basis::UnexpectedUnknownVersion { .. }
            | Basis::UnexpectedVersion => {
                let missing = self.uniform(Status::Missing, matcher);
                merged(&missing, received(run))
            }
            Basis::PendingRun { .. } => {
                let mut levels = self.uniform(Status::Pending, matcher);
                for level in Arc::make_mut(&mut levels) {
                    let place = run.binary_search_by_key(&level.key(), DirectiveLevel::key);
                    let known = place.ok().and_then(|place| run.get(place));
                    if let Some(known) = known.filter(|known| known.expected) {
                        *level = DirectiveLevel {
                            types: level.types,
                            ..*known
                        };
                    }
                }
                levels
            }
            Basis::Compliance { .. } => {
                let run = self.run.as_ref();
                run.map_or_else(|| Arc::from([]), |run| Arc::clone(&run.levels))
            }
        }
    }

    /// Everything that is expected has one status.
    fn uniform(&self, status: Status, matcher: &mut Matcher) -> Arc<[DirectiveLevel]> {
        let entries = self
            .current()
            .map_or(&[][..], |config| config.expected.entries());
        let levels = entries.iter().map(|entry| DirectiveLevel {
            rule: entry.rule,
            directive: entry.directive,
            received: 0,
            expected: true,
            types: entry.types,
            level: matcher.uniform(&entry.shape, status),
        });
        levels.collect()
    }

    /// Bytes of memory, without shapes and those of allocation.
    pub(super) fn bytes(&self) -> usize {
        let configs = self.configs.iter().map(|config| {
            size_of::<Config>() - size_of::<NodeExpected>()
                + config.id.len()
                + config.expected.bytes()
        });
        let run = self.run.as_ref().map(|run| &run.levels);
        let levels = |levels: &Arc<[DirectiveLevel]>| size_of_val(&**levels);
        let shared = run.is_some_and(|run| Arc::ptr_eq(run, &self.shown));
        size_of::<Self>()
            + configs.sum::<usize>()
            + run.map_or(0, levels)
            + if shared { 0 } else { levels(&self.shown) }
            + size_of_val(&*self.groups)
    }
}

fn received(run: &[DirectiveLevel]) -> impl Iterator<Item = DirectiveLevel> {
    let received = run.iter().filter(|level| level.received > 0);
    received.map(DirectiveLevel::unexpected)
}

/// Both, each directive once.
fn merged(
    missing: &[DirectiveLevel],
    received: impl Iterator<Item = DirectiveLevel>,
) -> Arc<[DirectiveLevel]> {
    let mut all: Vec<DirectiveLevel> = missing.iter().copied().chain(received).collect();
    all.sort_by_key(DirectiveLevel::key);
    all.dedup_by(|later, kept| {
        let same = later.key() == kept.key();
        if same {
            kept.level += &later.level;
        }
        same
    });
    all.into()
}

/// The levels of a run by its configuration. Reports are sorted by rule and directive.
pub(super) fn run_levels(
    config: Option<&Config>,
    reports: &[Numbered<'_>],
    matcher: &mut Matcher,
) -> Arc<[DirectiveLevel]> {
    let received: Vec<Received<'_>> = reports.iter().map(|(_, received)| *received).collect();
    let entries = config.into_iter().flat_map(|config| {
        let entries = config.expected.entries().iter();
        entries.map(|entry| (&config.expected, entry))
    });
    let mut levels = Vec::new();
    let unexpected = |key: (u32, u32), count: usize| DirectiveLevel {
        rule: key.0,
        directive: key.1,
        received: u32::try_from(count).unwrap_or(u32::MAX),
        expected: false,
        types: Types::USER,
        level: ComplianceLevel::of(Status::Unexpected, u32::try_from(count).unwrap_or(u32::MAX)),
    };
    let mut at = 0;
    let group_from = |at: usize, key: (u32, u32)| {
        let rest = reports.get(at..).unwrap_or_default();
        rest.iter().take_while(|(other, _)| *other == key).count()
    };
    for (expected, entry) in entries {
        let key = (entry.rule, entry.directive);
        while let Some((other, _)) = reports.get(at).filter(|(other, _)| *other < key) {
            let count = group_from(at, *other);
            levels.push(unexpected(*other, count));
            at += count;
        }
        let count = group_from(at, key);
        let group = received.get(at..at + count).unwrap_or_default();
        at += count;
        levels.push(DirectiveLevel {
            expected: true,
            types: entry.types,
            level: matcher.directive(expected, entry, group).level,
            ..unexpected(key, count)
        });
    }
    while let Some((other, _)) = reports.get(at) {
        let count = group_from(at, *other);
        levels.push(unexpected(*other, count));
        at += count;
    }
    levels.into()
}
