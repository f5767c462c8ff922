//! What is expected of one node.

use std::collections::HashMap;
use std::sync::Arc;

use thiserror::Error;

use super::shape::OwnTexts;
use super::{Shape, ShapePool};
use crate::model::ID_BYTES;
use crate::model::mode::{ComplianceMode, PolicyMode};
use crate::reports::expected::ExpectedReports;
use crate::reports::status::Status;

/// Expected reports are larger than what can be held.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum CompileError {
    /// Blocks are nested too deep.
    #[error("holding expected reports: blocks are nested more than {limit} deep")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// More than 4 GB of text or 4 billion values.
    #[error("holding expected reports: more than 4,294,967,295 bytes or values of one node")]
    TooLong,
}

/// Numbers for identifiers of rules and directives, for as long as the process lives.
#[derive(Debug)]
pub struct Ids {
    numbers: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
    limit: usize,
    /// How many of them were only reported.
    strangers: usize,
}

impl Ids {
    /// The number of everything beyond the limit: nodes may report identifiers that nobody knows.
    pub const OTHER: u32 = 0;

    /// None yet, and at most `limit`.
    pub fn new(limit: usize) -> Self {
        let other: Arc<str> = Arc::from("(other)");
        Self {
            numbers: HashMap::new(),
            texts: vec![other],
            limit,
            strangers: 0,
        }
    }

    /// The number of an identifier that is defined.
    pub fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        match u32::try_from(self.texts.len()) {
            Ok(number) if self.texts.len() < self.limit => {
                let text: Arc<str> = Arc::from(text);
                self.texts.push(Arc::clone(&text));
                self.numbers.insert(text, number);
                number
            }
            _ => Self::OTHER,
        }
    }

    /// The number of an identifier that a node reports. Those that nobody defined get a tenth of
    /// all numbers, and none if they are longer than an identity may be: one node that makes them
    /// up leaves numbers for those that are defined later.
    pub fn reported(&mut self, text: &str) -> u32 {
        if let Some(number) = self.known(text) {
            return number;
        }
        if text.len() > ID_BYTES || self.strangers >= self.limit / 10 {
            return Self::OTHER;
        }
        self.strangers += 1;
        self.number(text)
    }

    /// The number of an identifier that has one.
    pub fn known(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    /// The identifier of a number.
    pub fn text(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", |text| text)
    }
}

impl Default for Ids {
    /// A million at most.
    fn default() -> Self {
        Self::new(1_000_000)
    }
}

/// The policy types of a directive: compliance is counted for each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Types(u8);

impl Types {
    /// A user's.
    pub const USER: Self = Self(1);
    /// The system's own.
    pub const SYSTEM: Self = Self(2);
    /// Of plugins.
    pub const OTHER: Self = Self(4);

    fn of_names(names: &[String]) -> Self {
        if names.is_empty() {
            return Self::USER;
        }
        Self(names.iter().fold(0, |types, name| {
            types
                | match &**name {
                    "rudderBase" => Self::USER.0,
                    "rudderSystem" => Self::SYSTEM.0,
                    _ => Self::OTHER.0,
                }
        }))
    }

    /// Are all of these among them?
    pub fn has(self, types: Self) -> bool {
        self.0 & types.0 == types.0
    }
}

/// A directive that a rule brings to a node: 24 bytes.
#[derive(Debug, Clone)]
pub struct DirectiveEntry {
    /// The rule's number in [`Ids`].
    pub rule: u32,
    /// The directive's number in [`Ids`].
    pub directive: u32,
    /// What is expected.
    pub shape: Arc<Shape>,
    /// The first of its own texts.
    first_own: u32,
    /// The mode in which it runs.
    pub policy_mode: PolicyMode,
    /// Whose it is.
    pub types: Types,
    /// Does it run by a schedule, so that most runs are without it?
    pub scheduled: bool,
}

/// A directive that gave way to another: nothing of it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    /// The rule's number in [`Ids`].
    pub rule: u32,
    /// The directive's number in [`Ids`].
    pub directive: u32,
    /// The number of the rule that brought what took its place.
    pub by_rule: u32,
}

/// What is expected of one node with one configuration.
#[derive(Debug, Clone)]
pub struct NodeExpected {
    /// Sorted by rule and directive.
    entries: Box<[DirectiveEntry]>,
    /// Directives that gave way to others.
    pub skipped: Box<[Skipped]>,
    text: Box<str>,
    ends: Box<[u32]>,
    /// Which reports the agent sends.
    pub compliance_mode: ComplianceMode,
    /// Seconds from run to run.
    pub interval: u32,
}

/// What is expected of one node, made without what it will share with others: on any thread.
#[derive(Debug)]
pub struct LooseExpected {
    directives: Vec<LooseEntry>,
    /// Rule and directive, and the rule that brought what took the place.
    skipped: Vec<[String; 3]>,
    own: OwnTexts,
    compliance_mode: ComplianceMode,
    interval: u32,
}

#[derive(Debug)]
struct LooseEntry {
    rule: String,
    directive: String,
    shape: Shape,
    first_own: u32,
    policy_mode: PolicyMode,
    types: Types,
    scheduled: bool,
}

impl LooseExpected {
    /// Makes it of expected reports.
    ///
    /// # Errors
    /// They are nested too deep or too long.
    pub fn compile(expected: &ExpectedReports) -> Result<Self, CompileError> {
        let mut own = OwnTexts::default();
        let mut directives = Vec::new();
        for rule in &expected.rules {
            for directive in &rule.directives {
                let types = Types::of_names(&directive.types);
                let system = types.has(Types::SYSTEM);
                let first_own = u32::try_from(own.ends.len()).map_err(|_| CompileError::TooLong)?;
                directives.push(LooseEntry {
                    rule: rule.id.clone(),
                    directive: directive.id.clone(),
                    shape: Shape::compile(&directive.components, &mut own)?,
                    first_own,
                    policy_mode: expected.modes.policy_mode(directive.policy_mode, system),
                    types,
                    scheduled: directive.schedule.is_some(),
                });
            }
        }
        let skipped = expected.overrides.iter().map(|one| {
            let (policy, by) = (&one.policy, &one.overridden_by);
            [&policy.rule, &policy.directive, &by.rule].map(String::clone)
        });
        Ok(Self {
            directives,
            skipped: skipped.collect(),
            own,
            compliance_mode: expected.modes.compliance,
            interval: u32::from(expected.modes.agent_run().interval) * 60,
        })
    }
}

impl NodeExpected {
    /// Makes it of expected reports.
    ///
    /// # Errors
    /// They are nested too deep or too long.
    pub fn compile(
        expected: &ExpectedReports,
        ids: &mut Ids,
        shapes: &mut ShapePool,
    ) -> Result<Self, CompileError> {
        Ok(Self::join(LooseExpected::compile(expected)?, ids, shapes))
    }

    /// Has it share what other nodes have too.
    pub fn join(loose: LooseExpected, ids: &mut Ids, shapes: &mut ShapePool) -> Self {
        let entries = loose.directives.into_iter().map(|one| DirectiveEntry {
            rule: ids.number(&one.rule),
            directive: ids.number(&one.directive),
            shape: shapes.share(one.shape),
            first_own: one.first_own,
            policy_mode: one.policy_mode,
            types: one.types,
            scheduled: one.scheduled,
        });
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|entry| (entry.rule, entry.directive));
        entries.dedup_by_key(|entry| (entry.rule, entry.directive));
        let skipped = loose.skipped.iter();
        let skipped = skipped.map(|[rule, directive, by_rule]| Skipped {
            rule: ids.number(rule),
            directive: ids.number(directive),
            by_rule: ids.number(by_rule),
        });
        Self {
            entries: entries.into(),
            skipped: skipped.collect(),
            text: loose.own.text.into(),
            ends: loose.own.ends.into(),
            compliance_mode: loose.compliance_mode,
            interval: loose.interval,
        }
    }

    /// Directives, sorted by rule and directive.
    pub fn entries(&self) -> &[DirectiveEntry] {
        &self.entries
    }

    /// A text of a directive that is the node's own.
    pub(super) fn own(&self, entry: &DirectiveEntry, number: u32) -> &str {
        let at = entry.first_own as usize + number as usize;
        let end = |at: usize| self.ends.get(at).map_or(0, |end| *end as usize);
        let start = at.checked_sub(1).map_or(0, end);
        self.text.get(start..end(at)).unwrap_or_default()
    }

    /// What no report of a value means, in a run with some or no reports of its directive. What
    /// runs by a schedule is in few runs; Rudder shows it as pending, or as it last was.
    pub fn missing(&self, entry: &DirectiveEntry, some: bool) -> Status {
        if entry.scheduled && !some {
            return Status::Pending;
        }
        match (self.compliance_mode, entry.policy_mode) {
            (ComplianceMode::FullCompliance, _) => Status::Missing,
            (ComplianceMode::ChangesOnly, PolicyMode::Enforce) => Status::EnforceSuccess,
            (ComplianceMode::ChangesOnly, PolicyMode::Audit) => Status::AuditCompliant,
            (ComplianceMode::ReportsDisabled, _) => Status::Disabled,
        }
    }

    /// Bytes of memory, without shapes and those of allocation.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.entries) + self.text.len() + size_of_val(&*self.ends)
    }
}
