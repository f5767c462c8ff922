//! Compliance of the fleet, by node, rule, directive and group.

mod csv;
mod found;
mod groups;
mod schemas;
mod tree;
mod view;

use serde_json::{Value, json};

use super::answers::ApiError;
use super::route::{Answer, Call, Parameter, Route, Work};
use super::schema::Schema;
use crate::server::service::Service;
use found::Part;
use schemas::{
    ASKED, DIRECTIVE, DIRECTIVE_LIST, FORMATTED, GLOBAL, GROUP_LIST, GROUP_SUMMARIES, JSON_ALONE,
    NODE_LIST, PRECISION, RULE, RULE_LIST, SUMMARISED,
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
.asks(&[PRECISION, JSON_ALONE]);

/// A call whose answer may be long.
const fn long(
    path: &'static str,
    action: &'static str,
    summary: &'static str,
    of: (Output, &'static [Parameter], Work),
) -> Route {
    let (output, asked, work) = of;
    Route::get(path, action, summary, output, work)
        .asks(asked)
        .long()
}

/// Of what is in `data`, its key.
type Output = (&'static str, &'static Schema);

const NODES_OF: Output = ("nodes", &NODE_LIST);
const RULES_OF: Output = ("rules", &RULE_LIST);
const GROUPS_OF: Output = ("groupCompliance", &GROUP_LIST);

/// What a call shows: of all of a kind, or of one of them.
#[derive(Clone, Copy)]
enum Of {
    Nodes,
    Node,
    NodeSystem,
    Rules,
    Rule,
    RuleByNode,
    RuleByDirective,
    Directives,
    Directive,
    DirectiveByNode,
    DirectiveByRule,
    Groups,
    Group,
    GroupByRule,
    GroupByNode,
    Targeted,
    TargetedByRule,
    TargetedByNode,
}

/// A call about these.
const fn call(path: &'static str, action: &'static str, summary: &'static str, of: Of) -> Route {
    long(path, action, summary, done(of))
}

/// What such a call answers, takes and does.
const fn done(of: Of) -> (Output, &'static [Parameter], Work) {
    match of {
        Of::Nodes => (
            NODES_OF,
            ASKED,
            Work::Later(|service, call| Box::pin(service.all_nodes(call))),
        ),
        Of::Node => (
            NODES_OF,
            FORMATTED,
            Work::Later(|service, call| Box::pin(service.one_node(call, false))),
        ),
        Of::NodeSystem => (
            NODES_OF,
            FORMATTED,
            Work::Later(|service, call| Box::pin(service.one_node(call, true))),
        ),
        Of::Rules => (
            RULES_OF,
            ASKED,
            Work::Later(|service, call| Box::pin(service.all_rules(call))),
        ),
        Of::Rule => (
            RULES_OF,
            ASKED,
            Work::Later(|service, call| Box::pin(service.one_rule(call, Part::Both))),
        ),
        Of::RuleByNode => (
            ("", &RULE),
            FORMATTED,
            Work::Later(|service, call| Box::pin(service.one_rule(call, Part::Nodes))),
        ),
        Of::RuleByDirective => (
            ("", &RULE),
            FORMATTED,
            Work::Later(|service, call| Box::pin(service.one_rule(call, Part::Others))),
        ),
        Of::Directives => (
            ("directivesCompliance", &DIRECTIVE_LIST),
            ASKED,
            Work::Later(|service, call| Box::pin(service.all_directives(call))),
        ),
        Of::Directive => (
            ("directiveCompliance", &DIRECTIVE),
            FORMATTED,
            Work::Later(|service, call| Box::pin(service.one_directive(call, Part::Both))),
        ),
        Of::DirectiveByNode => (
            NODES_OF,
            FORMATTED,
            Work::Later(|service, call| Box::pin(service.one_directive(call, Part::Nodes))),
        ),
        Of::DirectiveByRule => (
            RULES_OF,
            FORMATTED,
            Work::Later(|service, call| Box::pin(service.one_directive(call, Part::Others))),
        ),
        Of::Groups => (
            ("groupCompliance", &GROUP_SUMMARIES),
            SUMMARISED,
            Work::Now(Service::all_groups),
        ),
        Of::Group => (
            GROUPS_OF,
            ASKED,
            Work::Later(|service, call| Box::pin(service.one_group(call, false, Part::Both))),
        ),
        Of::GroupByRule => (
            RULES_OF,
            FORMATTED,
            Work::Later(|service, call| Box::pin(service.one_group(call, false, Part::Others))),
        ),
        Of::GroupByNode => (
            NODES_OF,
            FORMATTED,
            Work::Later(|service, call| Box::pin(service.one_group(call, false, Part::Nodes))),
        ),
        Of::Targeted => (
            GROUPS_OF,
            ASKED,
            Work::Later(|service, call| Box::pin(service.one_group(call, true, Part::Both))),
        ),
        Of::TargetedByRule => (
            RULES_OF,
            FORMATTED,
            Work::Later(|service, call| Box::pin(service.one_group(call, true, Part::Others))),
        ),
        Of::TargetedByNode => (
            NODES_OF,
            FORMATTED,
            Work::Later(|service, call| Box::pin(service.one_group(call, true, Part::Nodes))),
        ),
    }
}

/// The calls of compliance.
pub(super) const ROUTES: &[Route] = &[
    GLOBAL_ROUTE,
    call(
        "nodes/compliance",
        "getNodesCompliance",
        "Compliance of each node",
        Of::Nodes,
    ),
    call(
        "nodes/{id}/compliance",
        "getNodeComplianceId",
        "Compliance of a node, down to the message",
        Of::Node,
    ),
    call(
        "nodes/{id}/compliance/system",
        "getNodeSystemCompliance",
        "Compliance of a node with the server's own rules",
        Of::NodeSystem,
    ),
    call(
        "rules/compliance",
        "getRulesCompliance",
        "Compliance of each rule",
        Of::Rules,
    ),
    call(
        "rules/{id}/compliance",
        "getRulesComplianceId",
        "Compliance of a rule by directive and by node",
        Of::Rule,
    ),
    call(
        "rules/{id}/compliance/byNode",
        "getRuleComplianceByNode",
        "Compliance of a rule by node",
        Of::RuleByNode,
    ),
    call(
        "rules/{id}/compliance/byDirective",
        "getRuleComplianceByDirective",
        "Compliance of a rule by directive",
        Of::RuleByDirective,
    ),
    call(
        "directives/compliance",
        "getDirectivesCompliance",
        "Compliance of each directive",
        Of::Directives,
    ),
    call(
        "directives/{id}/compliance",
        "getDirectiveComplianceId",
        "Compliance of a directive by rule and by node",
        Of::Directive,
    ),
    call(
        "directives/{id}/compliance/byNode",
        "getDirectiveComplianceByNodeId",
        "Compliance of a directive by node",
        Of::DirectiveByNode,
    ),
    call(
        "directives/{id}/compliance/byRule",
        "getDirectiveComplianceByRuleId",
        "Compliance of a directive by rule",
        Of::DirectiveByRule,
    ),
    call(
        "groups/compliance",
        "getNodeGroupCompliance",
        "Compliance of the nodes of groups: with the rules that target each, and with all",
        Of::Groups,
    ),
    call(
        "groups/{id}/compliance",
        "getGlobalNodeGroupComplianceId",
        "As /groups/{id}/compliance/global",
        Of::Group,
    ),
    call(
        "groups/{id}/compliance/global",
        "getGlobalNodeGroupComplianceId",
        "Compliance of a group's nodes with all rules",
        Of::Group,
    ),
    call(
        "groups/{id}/compliance/targeted",
        "getTargetedNodeGroupComplianceId",
        "Compliance of a group's nodes with the rules that target it",
        Of::Targeted,
    ),
    call(
        "groups/{id}/compliance/global/byRule",
        "getGlobalNodeGroupComplianceByRuleId",
        "Compliance of a group's nodes with all rules, by rule",
        Of::GroupByRule,
    ),
    call(
        "groups/{id}/compliance/global/byNode",
        "getGlobalNodeGroupComplianceByNodeId",
        "Compliance of a group's nodes with all rules, by node",
        Of::GroupByNode,
    ),
    call(
        "groups/{id}/compliance/targeted/byRule",
        "getTargetedNodeGroupComplianceByRuleId",
        "Compliance of a group's nodes with the rules that target it, by rule",
        Of::TargetedByRule,
    ),
    call(
        "groups/{id}/compliance/targeted/byNode",
        "getTargetedNodeGroupComplianceByNodeId",
        "Compliance of a group's nodes with the rules that target it, by node",
        Of::TargetedByNode,
    ),
];

/// The older names of the same.
pub(super) const OLDER_ROUTES: &[Route] = &[
    call(
        "compliance/nodes",
        "getNodesCompliance",
        "As /nodes/compliance",
        Of::Nodes,
    ),
    call(
        "compliance/nodes/{id}",
        "getNodeComplianceId",
        "As /nodes/{id}/compliance",
        Of::Node,
    ),
    call(
        "compliance/nodes/{id}/system",
        "getNodeSystemCompliance",
        "As /nodes/{id}/compliance/system",
        Of::NodeSystem,
    ),
    call(
        "compliance/rules",
        "getRulesCompliance",
        "As /rules/compliance",
        Of::Rules,
    ),
    call(
        "compliance/rules/{id}",
        "getRulesComplianceId",
        "As /rules/{id}/compliance",
        Of::Rule,
    ),
    call(
        "compliance/directives",
        "getDirectivesCompliance",
        "As /directives/compliance",
        Of::Directives,
    ),
    call(
        "compliance/directives/{id}",
        "getDirectiveComplianceId",
        "As /directives/{id}/compliance",
        Of::Directive,
    ),
    call(
        "compliance/groups",
        "getNodeGroupCompliance",
        "As /groups/compliance",
        Of::Groups,
    ),
    call(
        "compliance/summary/groups",
        "getNodeGroupComplianceSummary",
        "As /groups/compliance",
        Of::Groups,
    ),
    call(
        "compliance/groups/{id}",
        "getNodeGroupComplianceId",
        "As /groups/{id}/compliance/global",
        Of::Group,
    ),
    call(
        "compliance/groups/{id}/target",
        "getNodeGroupComplianceTargetId",
        "As /groups/{id}/compliance/targeted",
        Of::Targeted,
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
