//! Compliance of the fleet, by node, rule, directive and group.

mod csv;
mod found;
mod schemas;
mod tree;
mod view;

use serde_json::{Value, json};

use super::answers::ApiError;
use super::route::{Answer, Call, Route, Work};
use crate::server::service::Service;
use found::Part;
use schemas::{
    ASKED, DIRECTIVE, DIRECTIVE_LIST, FORMATTED, GLOBAL, GROUP_LIST, NODE_LIST, PRECISION,
    RULE_LIST,
};

pub(super) use schemas::DETAILS;

/// Levels of detail, as Rudder numbers them.
const DIRECTIVES: u8 = 2;
const COMPONENTS: u8 = 3;
const NODES: u8 = 4;
/// The deepest: values and messages are shown too.
const DEEPEST: u8 = 10;

const GLOBAL_ROUTE: Route = Route::get(
    "compliance",
    "getGlobalCompliance",
    "Compliance of all nodes",
    ("globalCompliance", &GLOBAL),
    Work::Now(Service::global),
)
.asks(&[PRECISION]);

/// A call that shows all of a kind.
const fn all(path: &'static str, action: &'static str, summary: &'static str, of: Of) -> Route {
    let (output, work) = match of {
        Of::Nodes => (
            ("nodes", &NODE_LIST),
            Work::Later(|service, call| Box::pin(service.all_nodes(call))),
        ),
        Of::Rules => (
            ("rules", &RULE_LIST),
            Work::Later(|service, call| Box::pin(service.all_rules(call))),
        ),
        Of::Directives => (
            ("directivesCompliance", &DIRECTIVE_LIST),
            Work::Later(|service, call| Box::pin(service.all_directives(call))),
        ),
        Of::Groups => (
            ("groupCompliance", &GROUP_LIST),
            Work::Now(Service::all_groups),
        ),
    };
    Route::get(path, action, summary, output, work)
        .asks(ASKED)
        .long()
}

/// A call that shows one of a kind.
const fn one(path: &'static str, action: &'static str, summary: &'static str, of: One) -> Route {
    let (output, work) = match of {
        One::Node => (
            ("nodes", &NODE_LIST),
            Work::Later(|service, call| Box::pin(service.one_node(call, false))),
        ),
        One::NodeSystem => (
            ("nodes", &NODE_LIST),
            Work::Later(|service, call| Box::pin(service.one_node(call, true))),
        ),
        One::Rule => (
            ("rules", &RULE_LIST),
            Work::Later(|service, call| Box::pin(service.one_rule(call, Part::Both))),
        ),
        One::RuleByNode => (
            ("rules", &RULE_LIST),
            Work::Later(|service, call| Box::pin(service.one_rule(call, Part::Nodes))),
        ),
        One::RuleByDirective => (
            ("rules", &RULE_LIST),
            Work::Later(|service, call| Box::pin(service.one_rule(call, Part::Others))),
        ),
        One::Directive => (
            ("directiveCompliance", &DIRECTIVE),
            Work::Later(|service, call| Box::pin(service.one_directive(call, Part::Both))),
        ),
        One::DirectiveByNode => (
            ("directiveCompliance", &DIRECTIVE),
            Work::Later(|service, call| Box::pin(service.one_directive(call, Part::Nodes))),
        ),
        One::DirectiveByRule => (
            ("directiveCompliance", &DIRECTIVE),
            Work::Later(|service, call| Box::pin(service.one_directive(call, Part::Others))),
        ),
        One::Group => (
            ("groupCompliance", &GROUP_LIST),
            Work::Later(|service, call| Box::pin(service.one_group(call, false, Part::Both))),
        ),
        One::GroupByRule => (
            ("groupCompliance", &GROUP_LIST),
            Work::Later(|service, call| Box::pin(service.one_group(call, false, Part::Others))),
        ),
        One::GroupByNode => (
            ("groupCompliance", &GROUP_LIST),
            Work::Later(|service, call| Box::pin(service.one_group(call, false, Part::Nodes))),
        ),
        One::Targeted => (
            ("groupCompliance", &GROUP_LIST),
            Work::Later(|service, call| Box::pin(service.one_group(call, true, Part::Both))),
        ),
        One::TargetedByRule => (
            ("groupCompliance", &GROUP_LIST),
            Work::Later(|service, call| Box::pin(service.one_group(call, true, Part::Others))),
        ),
        One::TargetedByNode => (
            ("groupCompliance", &GROUP_LIST),
            Work::Later(|service, call| Box::pin(service.one_group(call, true, Part::Nodes))),
        ),
    };
    let asked = match of {
        One::Directive | One::DirectiveByNode | One::DirectiveByRule => FORMATTED,
        _ => ASKED,
    };
    Route::get(path, action, summary, output, work)
        .asks(asked)
        .long()
}

#[derive(Clone, Copy)]
enum Of {
    Nodes,
    Rules,
    Directives,
    Groups,
}

#[derive(Clone, Copy)]
enum One {
    Node,
    NodeSystem,
    Rule,
    RuleByNode,
    RuleByDirective,
    Directive,
    DirectiveByNode,
    DirectiveByRule,
    Group,
    GroupByRule,
    GroupByNode,
    Targeted,
    TargetedByRule,
    TargetedByNode,
}

/// The calls of compliance.
pub(super) const ROUTES: &[Route] = &[
    GLOBAL_ROUTE,
    all(
        "nodes/compliance",
        "getNodesCompliance",
        "Compliance of each node",
        Of::Nodes,
    ),
    one(
        "nodes/{id}/compliance",
        "getNodeCompliance",
        "Compliance of a node, down to the message",
        One::Node,
    ),
    one(
        "nodes/{id}/compliance/system",
        "getNodeSystemCompliance",
        "Compliance of a node with the server's own rules",
        One::NodeSystem,
    ),
    all(
        "rules/compliance",
        "getRulesCompliance",
        "Compliance of each rule",
        Of::Rules,
    ),
    one(
        "rules/{id}/compliance",
        "getRuleCompliance",
        "Compliance of a rule by directive and by node",
        One::Rule,
    ),
    one(
        "rules/{id}/compliance/byNode",
        "getRuleCompliance",
        "Compliance of a rule by node",
        One::RuleByNode,
    ),
    one(
        "rules/{id}/compliance/byDirective",
        "getRuleCompliance",
        "Compliance of a rule by directive",
        One::RuleByDirective,
    ),
    all(
        "directives/compliance",
        "getDirectivesCompliance",
        "Compliance of each directive",
        Of::Directives,
    ),
    one(
        "directives/{id}/compliance",
        "getDirectiveCompliance",
        "Compliance of a directive by rule and by node",
        One::Directive,
    ),
    one(
        "directives/{id}/compliance/byNode",
        "getDirectiveCompliance",
        "Compliance of a directive by node",
        One::DirectiveByNode,
    ),
    one(
        "directives/{id}/compliance/byRule",
        "getDirectiveCompliance",
        "Compliance of a directive by rule",
        One::DirectiveByRule,
    ),
    all(
        "groups/compliance",
        "getGroupsCompliance",
        "Compliance of the nodes of each group",
        Of::Groups,
    ),
    one(
        "groups/{id}/compliance",
        "getGroupCompliance",
        "Compliance of a group's nodes with all rules",
        One::Group,
    ),
    one(
        "groups/{id}/compliance/global",
        "getGroupCompliance",
        "Compliance of a group's nodes with all rules",
        One::Group,
    ),
    one(
        "groups/{id}/compliance/targeted",
        "getGroupCompliance",
        "Compliance of a group's nodes with the rules that target it",
        One::Targeted,
    ),
    one(
        "groups/{id}/compliance/global/byRule",
        "getGroupCompliance",
        "Compliance of a group's nodes with all rules, by rule",
        One::GroupByRule,
    ),
    one(
        "groups/{id}/compliance/global/byNode",
        "getGroupCompliance",
        "Compliance of a group's nodes with all rules, by node",
        One::GroupByNode,
    ),
    one(
        "groups/{id}/compliance/targeted/byRule",
        "getGroupCompliance",
        "Compliance of a group's nodes with the rules that target it, by rule",
        One::TargetedByRule,
    ),
    one(
        "groups/{id}/compliance/targeted/byNode",
        "getGroupCompliance",
        "Compliance of a group's nodes with the rules that target it, by node",
        One::TargetedByNode,
    ),
];

/// The older names of the same.
pub(super) const OLDER_ROUTES: &[Route] = &[
    all(
        "compliance/nodes",
        "getNodesCompliance",
        "As /nodes/compliance",
        Of::Nodes,
    ),
    one(
        "compliance/nodes/{id}",
        "getNodeCompliance",
        "As /nodes/{id}/compliance",
        One::Node,
    ),
    all(
        "compliance/rules",
        "getRulesCompliance",
        "As /rules/compliance",
        Of::Rules,
    ),
    one(
        "compliance/rules/{id}",
        "getRuleCompliance",
        "As /rules/{id}/compliance",
        One::Rule,
    ),
    all(
        "compliance/directives",
        "getDirectivesCompliance",
        "As /directives/compliance",
        Of::Directives,
    ),
    one(
        "compliance/directives/{id}",
        "getDirectiveCompliance",
        "As /directives/{id}/compliance",
        One::Directive,
    ),
    all(
        "compliance/groups",
        "getGroupsCompliance",
        "As /groups/compliance",
        Of::Groups,
    ),
    one(
        "compliance/groups/{id}",
        "getGroupCompliance",
        "As /groups/{id}/compliance",
        One::Group,
    ),
];

impl Service {
    fn global(&self, call: &Call<'_>) -> Answer {
        let view = self.view_of(call, 0)?;
        let level = *self.compliance.lock().fleet.global();
        let percent = level.global_percent().map_or(-1, i64::from);
        let details = super::shapes::details(&level, view.precision);
        let mut global = json!({"compliance": percent});
        if level.total() > 0 {
            global["complianceDetails"] = details.into();
        }
        Ok(json!({"globalCompliance": global}))
    }
}
