//! Whether a rule is applied to nodes, and why not, in Rudder's words.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::acceptance::NodeStatus;
use crate::definitions::Definitions;
use crate::model::directive::Directive;
use crate::model::ids::NodeIx;
use crate::model::mode::{ModesSet, PolicyMode};
use crate::model::node_set::NodeSet;
use crate::model::rule::Rule;
use crate::model::target::{RuleTarget, Target, nodes_of};
use crate::server::service::Service;

/// What the status of a rule may be.
pub(super) const WORDS: [&str; 4] = [APPLIED, PARTIALLY, NOT_APPLIED, DISABLED];
const APPLIED: &str = "In application";
const PARTIALLY: &str = "Partially applied";
const NOT_APPLIED: &str = "Not applied";
const DISABLED: &str = "Disabled";

/// A rule's status and, unless it is applied wholly, why. `none`: it has no nodes.
pub(super) fn status(rule: &Rule, all: &Definitions, none: bool) -> (&'static str, Option<String>) {
    let mut seen = BTreeSet::new();
    let named = rule.directives.iter().filter(|id| seen.insert(*id));
    let named: Vec<Option<&Directive>> = named.map(|id| all.directives.get(id)).collect();
    let disabled: Vec<_> = named.iter().flatten().filter(|one| !one.enabled).collect();
    let of_disabled = disabled
        .iter()
        .map(|one| format!("Directive '{}' disabled", one.display_name));
    let off = rule.targets.iter().any(|target| match target {
        RuleTarget::Simple(Target::Group(id)) => {
            all.groups.get(id).is_some_and(|group| !group.enabled)
        }
        _ => false,
    });
    let whole = !rule.targets.is_empty() && !rule.directives.is_empty();
    if rule.enabled && whole && !none && !off && disabled.len() < named.len() {
        let why: Vec<_> = of_disabled.collect();
        return match why.is_empty() {
            true => (APPLIED, None),
            false => (PARTIALLY, Some(why.join(", "))),
        };
    }
    let reasons = [
        (!rule.enabled, "This rule is disabled. "),
        (rule.enabled && !whole, "Rule unapplied"),
        (named.iter().flatten().next().is_none(), "No policy defined"),
        (off, "Group disabled"),
        // Nobody asks who would belong to a group that is disabled.
        (none && !off, "Empty groups"),
    ];
    let reasons = reasons.iter().filter(|(holds, _)| *holds);
    let reasons = reasons.map(|(_, reason)| (*reason).to_owned());
    let why: Vec<_> = reasons.chain(of_disabled).collect();
    let word = if rule.enabled { NOT_APPLIED } else { DISABLED };
    (word, Some(why.join(", ")))
}

/// What the nodes of a rule come to.
pub(super) struct Found {
    /// Has it none?
    pub(super) none: bool,
    /// The modes that they set.
    pub(super) modes: ModesSet,
}

/// Accepted nodes, as rules target them: looked up once for as many rules as are shown.
pub(super) struct Nodes<'s> {
    service: &'s Service,
    places: HashMap<Arc<str>, NodeIx>,
    every: NodeSet,
    servers: NodeSet,
    /// Nodes by the mode that they set.
    by_mode: [(Option<PolicyMode>, NodeSet); 3],
    groups: RefCell<HashMap<String, NodeSet>>,
}

impl<'s> Nodes<'s> {
    pub(super) fn of(service: &'s Service) -> Self {
        let modes = [None, Some(PolicyMode::Audit), Some(PolicyMode::Enforce)];
        let mut nodes = Self {
            service,
            places: HashMap::new(),
            every: NodeSet::default(),
            servers: NodeSet::default(),
            by_mode: modes.map(|mode| (mode, NodeSet::default())),
            groups: RefCell::default(),
        };
        let state = service.view.read();
        let accepted = state.nodes.iter();
        let accepted = accepted.filter(|(_, record)| record.known.standing == NodeStatus::Accepted);
        for ((id, record), place) in accepted.zip(0..) {
            let (place, node) = (NodeIx(place), &record.node);
            nodes.places.insert(Arc::clone(id), place);
            nodes.every.insert(place);
            nodes.servers.set(place, node.kind.is_policy_server());
            for (mode, having) in &mut nodes.by_mode {
                having.set(place, *mode == node.policy_mode);
            }
        }
        nodes
    }

    /// What the nodes of a rule's targets come to, whether it is enabled or not.
    pub(super) fn found(&self, rule: &Rule) -> Found {
        let nodes = nodes_of(&rule.targets, &|target| self.of_target(target));
        let modes = self.by_mode.iter().filter_map(|(mode, having)| {
            let mut these = nodes.clone();
            these.intersect_with(having);
            (!these.is_empty()).then_some(*mode)
        });
        Found {
            none: nodes.is_empty(),
            modes: modes.collect(),
        }
    }

    fn of_target(&self, target: &Target) -> NodeSet {
        match target {
            Target::All => self.every.clone(),
            Target::AllExceptPolicyServers => {
                let mut nodes = self.every.clone();
                nodes.subtract(&self.servers);
                nodes
            }
            Target::AllPolicyServers => self.servers.clone(),
            Target::PolicyServer(id) => {
                let place = self.places.get(&**id).copied();
                let server = place.filter(|place| self.servers.contains(*place));
                server.into_iter().collect()
            }
            Target::Group(id) => {
                let mut groups = self.groups.borrow_mut();
                let group = groups.entry(id.clone()).or_insert_with(|| {
                    let members = self.service.compliance.lock().fleet.members(id);
                    let places = members.iter().filter_map(|member| self.places.get(member));
                    places.copied().collect()
                });
                group.clone()
            }
        }
    }
}
