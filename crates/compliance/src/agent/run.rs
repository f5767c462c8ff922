//! One run of a policy.

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Map, Value};

use super::condition::{canonify, end_of_variable, holds};
use super::policy::{AgentPolicy, Call, DirectivePolicy};
use super::{Applied, Invocation, Methods, Outcome, key_of};
use crate::model::methods::of;
use crate::model::mode::{ComplianceMode, PolicyMode};
use crate::model::property::{text_of, within};
use crate::reports::moment::Moment;
use crate::reports::run_info::RunInfo;
use crate::reports::runlog::{Report, ReportKind, write_report};

/// Bytes of a message that are reported.
const MESSAGE_BYTES: usize = 4_096;
/// Bytes of a key that are reported: of a report whose fields are longer than servers take nothing
/// would be kept.
const KEY_BYTES: usize = 32 << 10;
/// Bytes of a parameter with the values of properties in it.
const EXPANDED: usize = 16 << 20;
/// What a variable begins with that the server leaves to the agent to look up.
pub const PROPERTY: &str = "${node.properties";

/// How a run goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSettings {
    /// How long it may take: no call starts later, and what it had reported is missing.
    pub budget: Duration,
    /// Audit everything, whatever the policy says.
    pub force_audit: bool,
    /// Campaigns whose windows are open: directives of others are left out.
    pub open_schedules: HashSet<String>,
}

impl Default for RunSettings {
    /// Four minutes, which ends before the next run of every five.
    fn default() -> Self {
        Self {
            budget: Duration::from_secs(240),
            force_audit: false,
            open_schedules: HashSet::new(),
        }
    }
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutcome {
    /// Node and start of the run, by which its file is named.
    pub info: RunInfo,
    /// The run log.
    pub log: String,
    /// Calls by how they ended, in the order of [`Outcome`].
    pub counts: [u64; 5],
    /// Calls that were not made because the time was over.
    pub skipped: u64,
    /// Reports in the run log, its markers among them.
    pub reports: u64,
}

impl RunOutcome {
    /// How many calls ended so.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.counts[outcome as usize]
    }
}

/// Runs a policy. `elapsed` tells the time since `start`.
pub fn run(
    policy: &AgentPolicy,
    methods: &mut impl Methods,
    settings: &RunSettings,
    start: Moment,
    mut elapsed: impl FnMut() -> Duration,
) -> RunOutcome {
    let mut known: HashSet<String> = methods.conditions().into_iter().collect();
    known.extend(policy.conditions.iter().cloned());
    let mut log = Log {
        policy,
        start,
        now: start,
        text: String::new(),
        reports: 0,
    };
    let asked = asks_for_conditions(policy);
    let (mut counts, mut skipped) = ([0; 5], 0);
    log.marker("start", "Start execution");
    for directive in &policy.policies {
        let closed = |schedule| !settings.open_schedules.contains(schedule);
        if directive.schedule.as_ref().is_some_and(closed) {
            continue;
        }
        for call in &directive.calls {
            let time = elapsed();
            log.now = at(start, time);
            if time >= settings.budget {
                skipped += 1;
                continue;
            }
            let mode = if settings.force_audit {
                PolicyMode::Audit
            } else {
                call.mode.unwrap_or(directive.mode)
            };
            let params = expanded(methods, &policy.properties, &call.params);
            let invocation = Invocation {
                id: &call.id,
                method: &call.method,
                params: &params,
                known: &known,
                properties: &policy.properties,
            };
            let key = key_of(&call.method, &params);
            let condition = named(methods, &policy.properties, &call.condition);
            let applied = match holds(&condition, &known) {
                Ok(true) => methods.apply(&invocation, mode),
                Ok(false) => Applied::new(Outcome::NotApplicable, "its condition does not hold"),
                Err(error) => Applied::new(Outcome::Error, error.to_string()),
            };
            if asked {
                record_outcome(&mut known, (&call.method, key), applied.outcome);
            }
            known.extend(applied.conditions.iter().map(|name| canonify(name)));
            counts[applied.outcome as usize] += 1;
            log.now = at(start, elapsed());
            if call.reported {
                log.call(
                    directive,
                    (call, key),
                    applied.outcome.report(mode),
                    &applied.message,
                );
            }
        }
    }
    log.now = at(start, elapsed());
    log.marker("end", "End execution");
    let info = RunInfo {
        node_id: policy.node_id.clone(),
        timestamp: start,
    };
    RunOutcome {
        info,
        log: log.text,
        counts,
        skipped,
        reports: log.reports,
    }
}

/// Does any call ask what holds? Where none does nobody need remember how calls ended, which is most
/// of the work of a hollow agent.
fn asks_for_conditions(policy: &AgentPolicy) -> bool {
    let mut calls = policy.policies.iter().flat_map(|one| &one.calls);
    calls.any(|call| {
        let method = call.method.as_str();
        let reads = matches!(method, "condition_from_expression" | "report_if_condition");
        !call.condition.is_empty() || reads || method.starts_with("file_from_")
    })
}

/// Notes how a call ended, by the method's name and by what Rudder's library has in its place.
fn record_outcome(known: &mut HashSet<String>, (method, key): (&str, &str), outcome: Outcome) {
    let prefix = of(method).map_or(method, |known| known.prefix);
    let own = (prefix != method).then_some(prefix);
    for name in [Some(method), own].into_iter().flatten() {
        let name = canonify(&format!("{name}_{key}"));
        let endings = outcome.conditions().iter();
        known.extend(endings.map(|ending| format!("{name}_{ending}")));
    }
}

/// A condition with the values of variables in it, each as a part of a name.
fn named<'c>(
    methods: &impl Methods,
    properties: &Map<String, Value>,
    condition: &'c str,
) -> Cow<'c, str> {
    if !condition.contains('$') {
        return Cow::Borrowed(condition);
    }
    let filled = filled(condition, "$", |variable, _| {
        let value = match property(variable, properties) {
            Some(value) => text_of(value).into_owned(),
            None => methods.expanded(variable).into_owned(),
        };
        (value != variable).then(|| canonify(&value).into())
    });
    Cow::Owned(filled)
}

/// Parameters with the values of variables in them.
fn expanded<'p>(
    methods: &impl Methods,
    properties: &Map<String, Value>,
    params: &'p [(String, String)],
) -> Cow<'p, [(String, String)]> {
    let mut found = Cow::Borrowed(params);
    for (place, (_, text)) in params.iter().enumerate() {
        let text = with_properties(text, properties);
        match (methods.expanded(&text), &text) {
            (Cow::Owned(value), _) => found.to_mut()[place].1 = value,
            (_, Cow::Owned(value)) => found.to_mut()[place].1.clone_from(value),
            _ => {}
        }
    }
    found
}

/// A text with the values of properties that the policy leaves to the node to look up. One that is
/// not there stays as it is.
fn with_properties<'t>(text: &'t str, properties: &Map<String, Value>) -> Cow<'t, str> {
    if properties.is_empty() || !text.contains(PROPERTY) {
        return Cow::Borrowed(text);
    }
    // What begins behind the last brace never ends: to look for its end each time takes long.
    let (closed, rest) = text.split_at(text.rfind('}').map_or(0, |at| at + 1));
    let mut out = filled(closed, PROPERTY, |variable, length| {
        let value = property(variable, properties).map(text_of);
        value.filter(|value| length + value.len() <= EXPANDED)
    });
    out.push_str(rest);
    Cow::Owned(out)
}

/// The text in which variables that begin so have the values that are told; one without stays as it
/// is. Told are the variable, and the bytes of the text so far.
fn filled<'v>(
    text: &str,
    begin: &str,
    value: impl Fn(&str, usize) -> Option<Cow<'v, str>>,
) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(begin) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let end = end_of_variable(from).map_or(1, |end| end + 1);
        let (variable, after) = from.split_at(end);
        match value(variable, out.len()) {
            Some(value) => out.push_str(&value),
            None => out.push_str(variable),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The value that `${node.properties[NAME][KEY] | node}` stands for.
fn property<'v>(variable: &str, properties: &'v Map<String, Value>) -> Option<&'v Value> {
    let keys = variable.strip_prefix(PROPERTY)?.strip_suffix('}')?;
    // A name may have the sign too.
    let keys = match keys.rsplit_once('|') {
        Some((keys, who)) if who.trim().eq_ignore_ascii_case("node") => keys,
        _ => keys,
    };
    let keys = keys.trim().strip_suffix(']')?;
    let mut keys = keys.split(']').map(|key| key.trim_matches([' ', '[']));
    let first = properties.get(keys.next()?)?;
    keys.try_fold(first, within)
}

fn at(start: Moment, elapsed: Duration) -> Moment {
    let later = SignedDuration::try_from(elapsed)
        .ok()
        .and_then(|elapsed| start.instant().checked_add(elapsed).ok());
    later.map_or(start, Moment::utc)
}

struct Log<'p> {
    policy: &'p AgentPolicy,
    start: Moment,
    now: Moment,
    text: String,
    reports: u64,
}

impl Log<'_> {
    fn marker(&mut self, component: &str, message: &str) {
        let config_id = self.policy.config_id.clone();
        self.write(&Report {
            start_datetime: self.start,
            execution_datetime: self.now,
            rule_id: "rudder",
            directive_id: "run",
            component: component.into(),
            key_value: config_id.into(),
            event_type: ReportKind::Control.name(),
            msg: message.into(),
            policy: "Common",
            node_id: &self.policy.node_id,
            report_id: "0",
        });
    }

    fn call(
        &mut self,
        directive: &DirectivePolicy,
        (call, key): (&Call, &str),
        kind: ReportKind,
        message: &str,
    ) {
        use ReportKind as K;
        let fine = matches!(
            kind,
            K::ResultSuccess | K::ResultNotApplicable | K::AuditCompliant | K::AuditNotApplicable
        );
        match self.policy.compliance_mode {
            ComplianceMode::FullCompliance => {}
            ComplianceMode::ChangesOnly if !fine => {}
            ComplianceMode::ChangesOnly | ComplianceMode::ReportsDisabled => return,
        }
        let key = match key {
            "" => "None",
            key => &key[..key.floor_char_boundary(KEY_BYTES)],
        };
        self.write(&Report {
            start_datetime: self.start,
            execution_datetime: self.now,
            rule_id: &directive.rule,
            directive_id: &directive.directive,
            component: call.component.as_str().into(),
            key_value: key.into(),
            event_type: kind.name(),
            msg: message[..message.floor_char_boundary(MESSAGE_BYTES)].into(),
            policy: &directive.technique,
            node_id: &self.policy.node_id,
            report_id: if call.id.is_empty() { "0" } else { &call.id },
        });
    }

    /// Writes a report; one that could not be read as it is loses what stands in the way.
    fn write(&mut self, report: &Report<'_>) {
        if write_report(&mut self.text, report).is_ok() {
            self.reports += 1;
            return;
        }
        let [component, key, message, technique, id] = [
            &*report.component,
            &*report.key_value,
            &*report.msg,
            report.policy,
            report.report_id,
        ]
        .map(harmless);
        let harmless = Report {
            component: component.into(),
            key_value: key.into(),
            msg: message.into(),
            policy: &technique,
            report_id: &id,
            ..report.clone()
        };
        // Identities of rules, directives and nodes are checked where they are defined.
        if write_report(&mut self.text, &harmless).is_ok() {
            self.reports += 1;
        }
    }
}

/// The text in one line, without what delimits fields.
fn harmless(text: &str) -> String {
    let mut line = text.replace(['\r', '\n'], " ");
    for mark in ["@@", "##", "@#"] {
        let (first, second) = mark.split_at(1);
        while line.contains(mark) {
            line = line.replace(mark, &format!("{first} {second}"));
        }
    }
    if line.ends_with(['@', '#']) {
        line.push(' ');
    }
    // It may begin like a line of the agent's log, or like the time of one.
    if line.starts_with(|c: char| c.is_ascii_digit() || " CRr".contains(c)) {
        line.insert_str(0, "- ");
    }
    line
}
