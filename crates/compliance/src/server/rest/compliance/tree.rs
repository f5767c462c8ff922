//! Components, values and messages of a node: found again from its last run, as it is stored,
//! for those who look at them.

use std::collections::{BTreeMap, HashMap, HashSet};

use commit::StoreError;
use serde_json::{Map, Value, json};

use super::super::answers::ApiError;
use super::super::shapes::with_level;
use crate::reports::decision::Basis;
use crate::reports::expected::ExpectedReports;
use crate::reports::level::{ComplianceLevel, FleetLevel, Precision};
use crate::reports::matching::{
    ComponentTree, Ids, Matcher, NodeExpected, Received, ShapePool, directive_tree,
};
use crate::reports::runlog::{Report, RunLog};
use crate::reports::status::Status;
use crate::server::fleet::{EXPECTED_BYTES, stored_log, stored_text};
use crate::server::packed;
use crate::server::service::Service;
use crate::server::store::StoredRun;

/// From these levels on values and reports are shown.
const VALUES: u8 = 5;
const REPORTS: u8 = 6;

/// A component or a block, as it is shown.
pub(super) struct Component {
    pub(super) level: FleetLevel,
    /// All but what is in the block.
    pub(super) object: Map<String, Value>,
    /// What is in the block.
    pub(super) within: Vec<Component>,
}

impl Component {
    /// All of it.
    pub(super) fn whole(&self) -> Map<String, Value> {
        let mut object = self.object.clone();
        if !self.within.is_empty() {
            let within = self.within.iter().map(Self::whole);
            object.insert("components".into(), within.collect());
        }
        object
    }
}

/// Components by rule and directive.
pub(super) type Trees = BTreeMap<(String, String), Vec<Component>>;

/// What the store has of a node, packed.
pub(super) struct Read {
    /// What is expected now.
    current: Option<Vec<u8>>,
    /// What the last run's configuration expected, while another one is pending.
    of_run: Option<Vec<u8>>,
    run: Option<StoredRun>,
}

/// Reads what the store has of a node: between two batches of the writer.
///
/// # Errors
/// The store cannot be read.
pub(super) async fn read(service: &Service, number: i64, basis: Basis) -> Result<Read, ApiError> {
    // Most runs are of the current configuration, and what it expects is large.
    let older = matches!(basis, Basis::PendingRun { .. });
    let read = service.looked_up("reading a node's last run", move |ledger| {
        Box::pin(async move {
            let store = &mut ledger.store;
            let run = store.last_run(number).await?;
            let config_id = run.as_ref().and_then(|run| run.config_id.as_deref());
            let of_run = match config_id {
                some @ Some(_) if older => store.expected(number, some).await?,
                _ => None,
            };
            Ok::<_, StoreError>((store.expected(number, None).await?, of_run, run))
        })
    });
    let (current, of_run, run) = read.await?;
    Ok(Read {
        current,
        of_run,
        run,
    })
}

fn expected_of(packed: &[u8]) -> Option<ExpectedReports> {
    let json = packed::unpack(packed).ok()?;
    ExpectedReports::from_json(str::from_utf8(&json).ok()?, EXPECTED_BYTES).ok()
}

/// Makes the trees of a node. What cannot be unpacked is left out.
///
/// # Errors
/// What is stored cannot be read.
pub(super) fn trees(
    node: &str,
    basis: Basis,
    read: &Read,
    level: u8,
    precision: Precision,
) -> Result<Making, String> {
    let current = read.current.as_deref().and_then(expected_of);
    let of_run = read.of_run.as_deref().and_then(expected_of);
    let text = read.run.as_ref().and_then(|run| stored_text(run).ok());
    let log = text.as_deref().map(|text| stored_log(node, text));
    let log = log.transpose().map_err(|error| error.to_string())?;
    let mut making = Making {
        level,
        precision,
        trees: Trees::new(),
        values: log.as_ref().map_or(0, |log| log.reports.len()),
    };
    let current = current.as_ref();
    match basis {
        Basis::Ignored | Basis::NoRunNoExpectedReport => {}
        Basis::ReportsDisabled => making.uniform(current, Status::Disabled)?,
        Basis::NoReport { .. } => making.uniform(current, Status::NoAnswer)?,
        Basis::Pending { .. } => making.uniform(current, Status::Pending)?,
        Basis::NoExpectedReport => making.unexpected(log.as_ref()),
        Basis::UnexpectedNoVersion
        | Basis::UnexpectedUnknownVersion { .. }
        | Basis::UnexpectedVersion => {
            making.uniform(current, Status::Missing)?;
            making.unexpected(log.as_ref());
        }
        Basis::PendingRun { .. } => {
            making.uniform(current, Status::Pending)?;
            let pending: HashSet<_> = making.trees.keys().cloned().collect();
            if let (Some(expected), Some(log)) = (&of_run, &log) {
                making.matched(expected, log, |key| pending.contains(key))?;
            }
        }
        Basis::Compliance { .. } => {
            if let (Some(expected), Some(log)) = (current, &log) {
                making.matched(expected, log, |_| true)?;
                making.unexpected_beside(expected, log);
            }
        }
    }
    Ok(making)
}

/// The trees of a node.
pub(super) struct Making {
    level: u8,
    precision: Precision,
    pub(super) trees: Trees,
    /// How many reports and expected values there are in them.
    pub(super) values: usize,
}

/// Reports that count, by rule and directive.
#[derive(Default)]
struct ReceivedOfAll<'r> {
    places: HashMap<(&'r str, &'r str), usize>,
    all: Vec<Vec<Received<'r>>>,
}

/// Reports that count, with their places, by rule and directive. A run has as many of either as
/// its node makes up, so that it is gone through once.
fn received<'r>(log: &'r RunLog<'_>) -> ReceivedOfAll<'r> {
    let mut received = ReceivedOfAll::default();
    for (place, report) in (0_u32..).zip(&log.reports) {
        let Some(status) = Status::of_report(report.kind()) else {
            continue;
        };
        let key = (report.rule_id, report.directive_id);
        let of_directive = *received.places.entry(key).or_insert(received.all.len());
        if of_directive == received.all.len() {
            received.all.push(Vec::new());
        }
        if let Some(of_directive) = received.all.get_mut(of_directive) {
            of_directive.push(Received {
                report: place,
                report_id: report.report_id,
                component: &report.component,
                key: &report.key_value,
                status,
            });
        }
    }
    received
}

impl Making {
    /// All that is expected has one status.
    fn uniform(
        &mut self,
        expected: Option<&ExpectedReports>,
        status: Status,
    ) -> Result<(), String> {
        let Some(expected) = expected else {
            return Ok(());
        };
        self.each(expected, |_| None, Some(status))
    }

    /// What is expected, matched with a run; of those directives that are wanted.
    fn matched(
        &mut self,
        expected: &ExpectedReports,
        log: &RunLog<'_>,
        wanted: impl Fn(&(String, String)) -> bool,
    ) -> Result<(), String> {
        let received = received(log);
        let choose = |key: &(String, String)| {
            let place = received.places.get(&(&*key.0, &*key.1)).copied();
            let of_directive = place.and_then(|place| received.all.get(place));
            let of_directive = of_directive.map_or(&[][..], Vec::as_slice);
            wanted(key).then_some((of_directive, &log.reports[..]))
        };
        self.each(expected, choose, None)
    }

    fn each<'r>(
        &mut self,
        expected: &ExpectedReports,
        choose: impl Fn(&(String, String)) -> Option<(&'r [Received<'r>], &'r [Report<'r>])>,
        uniform: Option<Status>,
    ) -> Result<(), String> {
        let (mut ids, mut shapes) = (Ids::default(), ShapePool::default());
        let compiled = NodeExpected::compile(expected, &mut ids, &mut shapes);
        let compiled = compiled.map_err(|error| error.to_string())?;
        let mut matcher = Matcher::default();
        for rule in &expected.rules {
            for directive in &rule.directives {
                let key = (rule.id.clone(), directive.id.clone());
                let numbers = (ids.known(&rule.id), ids.known(&directive.id));
                let entries = compiled.entries();
                let place = entries.binary_search_by_key(&numbers, |entry| {
                    (Some(entry.rule), Some(entry.directive))
                });
                let Some(entry) = place.ok().and_then(|place| entries.get(place)) else {
                    continue;
                };
                self.values += entry.shape.value_count();
                let (matched, reports) = match (choose(&key), uniform) {
                    (Some((received, reports)), _) => {
                        (matcher.directive(&compiled, entry, received), reports)
                    }
                    (None, Some(status)) => (matcher.without_reports(entry, status), &[][..]),
                    (None, None) => continue,
                };
                let tree = directive_tree(directive, &entry.shape, matched.assigned, reports);
                let components = self.shown(&tree);
                self.trees.insert(key, components);
            }
        }
        Ok(())
    }

    /// Every report of a run, which nobody expected.
    fn unexpected(&mut self, log: Option<&RunLog<'_>>) {
        let reports = log.map_or(&[][..], |log| &log.reports);
        for report in reports {
            self.add_unexpected(report);
        }
    }

    /// Reports of directives that are not expected.
    fn unexpected_beside(&mut self, expected: &ExpectedReports, log: &RunLog<'_>) {
        let of_rule = expected.rules.iter().flat_map(|rule| {
            let directives = rule.directives.iter();
            directives.map(|one| (&*rule.id, &*one.id))
        });
        let known: HashSet<(&str, &str)> = of_rule.collect();
        let known = |report: &Report<'_>| known.contains(&(report.rule_id, report.directive_id));
        for report in log.reports.iter().filter(|report| !known(report)) {
            self.add_unexpected(report);
        }
    }

    fn add_unexpected(&mut self, report: &Report<'_>) {
        if Status::of_report(report.kind()).is_none() {
            return;
        }
        let key = (report.rule_id.to_owned(), report.directive_id.to_owned());
        let level = ComplianceLevel::of(Status::Unexpected, 1);
        let mut component = Map::new();
        component.insert("name".into(), json!(report.component));
        let mut component = with_level(component, &level.into(), self.precision);
        if self.level >= VALUES {
            let mut value = json!({"value": report.key_value});
            if self.level >= REPORTS {
                let status = Status::Unexpected.api_name();
                value["reports"] = json!([{"status": status, "message": report.msg}]);
            }
            component.insert("values".into(), json!([value]));
        }
        let component = Component {
            level: level.into(),
            object: component,
            within: Vec::new(),
        };
        self.trees.entry(key).or_default().push(component);
    }

    fn shown(&self, components: &[ComponentTree<'_>]) -> Vec<Component> {
        components.iter().map(|one| self.component(one)).collect()
    }

    fn component(&self, component: &ComponentTree<'_>) -> Component {
        let mut object = Map::new();
        object.insert("name".into(), component.name.into());
        let mut object = with_level(object, &component.level.into(), self.precision);
        if self.level >= VALUES && !component.values.is_empty() {
            let values = component.values.iter().map(|one| {
                let mut value = json!({"value": one.value});
                if self.level >= REPORTS {
                    let reports = one.messages.iter().map(|message| {
                        let mut shown = json!({"status": message.status.api_name()});
                        if let Some(text) = message.text {
                            shown["message"] = text.into();
                        }
                        shown
                    });
                    value["reports"] = reports.collect();
                }
                value
            });
            object.insert("values".into(), values.collect());
        }
        Component {
            level: component.level.into(),
            object,
            within: self.shown(&component.components),
        }
    }
}
