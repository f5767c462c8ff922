//! Compliance of the fleet, by node, rule, directive and group.

mod csv;
mod found;
mod groups;
mod schemas;
mod tree;
mod view;

use serde_json::{Value, json};

use super::answers::ApiError;
use super::route::{Answer, Call, Route, Work};
use super::schema::{Field, Schema};
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
.with_query(&[PRECISION, JSON_ALONE]);

/// A call whose answer may be long.
const fn long(path: &'static str, action: &'static str, summary: &'static str, of: Of) -> Route {
    let (output, asked, work) = of;
    Route::get(path, action, summary, output, work)
        .with_query(asked)
        .long()
}

/// Of what is in `data`, its key.
type Output = (&'static str, &'static Schema);

const NODES_OF: Output = ("nodes", &NODE_LIST);
const RULES_OF: Output = ("rules", &RULE_LIST);
const DIRECTIVES_OF: Output = ("directivesCompliance", &DIRECTIVE_LIST);
const DIRECTIVE_OF: Output = ("directiveCompliance", &DIRECTIVE);
const GROUPS_OF: Output = ("groupCompliance", &GROUP_LIST);

/// What a call answers, takes and does.
type Of = (Output, &'static [Field], Work);

macro_rules! shown_by {
    ($($name:ident = $output:expr, $asked:ident, $method:ident($($how:expr),*);)*) => {
        $(const $name: Of = (
            $output,
            $asked,
            Work::Later(|service, call| Box::pin(service.$method(call $(, $how)*))),
        );)*
    };
}

shown_by! {
    OF_NODES = NODES_OF, ASKED, all_nodes();
    OF_NODE = NODES_OF, FORMATTED, one_node(false);
    OF_NODE_SYSTEM = NODES_OF, FORMATTED, one_node(true);
    OF_RULES = RULES_OF, ASKED, all_rules();
    OF_RULE = RULES_OF, ASKED, one_rule(Part::Both);
    OF_RULE_BY_NODE = ("", &RULE), FORMATTED, one_rule(Part::Nodes);
    OF_RULE_BY_DIRECTIVE = ("", &RULE), FORMATTED, one_rule(Part::Others);
    OF_DIRECTIVES = DIRECTIVES_OF, ASKED, all_directives();
    OF_DIRECTIVE = DIRECTIVE_OF, FORMATTED, one_directive(Part::Both);
    OF_DIRECTIVE_BY_NODE = NODES_OF, FORMATTED, one_directive(Part::Nodes);
    OF_DIRECTIVE_BY_RULE = RULES_OF, FORMATTED, one_directive(Part::Others);
    OF_GROUP = GROUPS_OF, ASKED, one_group(false, Part::Both);
    OF_GROUP_BY_RULE = RULES_OF, FORMATTED, one_group(false, Part::Others);
    OF_GROUP_BY_NODE = NODES_OF, FORMATTED, one_group(false, Part::Nodes);
    OF_TARGETED = GROUPS_OF, ASKED, one_group(true, Part::Both);
    OF_TARGETED_BY_RULE = RULES_OF, FORMATTED, one_group(true, Part::Others);
    OF_TARGETED_BY_NODE = NODES_OF, FORMATTED, one_group(true, Part::Nodes);
}

const OF_GROUPS: Of = (
    ("groupCompliance", &GROUP_SUMMARIES),
    SUMMARISED,
    Work::Now(Service::all_groups),
);

macro_rules! calls {
    ($(
        $path:literal $action:literal $of:ident $summary:literal
        $(also $other:literal $named:literal)*;
    )*) => {
        &[
            GLOBAL_ROUTE,
            $(
                long($path, $action, $summary, $of),
                $(long($other, $named, concat!("As /", $path), $of),)*
            )*
        ]
    };
}

/// The calls of compliance: the path of each, its name and summary; then its other paths, with
/// their names.
pub(super) const ROUTES: &[Route] = calls! {
    "nodes/compliance" "getNodesCompliance" OF_NODES
        "Compliance of each node"
        also "compliance/nodes" "getNodesCompliance";
    "nodes/{id}/compliance" "getNodeComplianceId" OF_NODE
        "Compliance of a node, down to the message"
        also "compliance/nodes/{id}" "getNodeComplianceId";
    "nodes/{id}/compliance/system" "getNodeSystemCompliance" OF_NODE_SYSTEM
        "Compliance of a node with the server's own rules"
        also "compliance/nodes/{id}/system" "getNodeSystemCompliance";
    "rules/compliance" "getRulesCompliance" OF_RULES
        "Compliance of each rule"
        also "compliance/rules" "getRulesCompliance";
    "rules/{id}/compliance" "getRulesComplianceId" OF_RULE
        "Compliance of a rule by directive and by node"
        also "compliance/rules/{id}" "getRulesComplianceId";
    "rules/{id}/compliance/byNode" "getRuleComplianceByNode" OF_RULE_BY_NODE
        "Compliance of a rule by node";
    "rules/{id}/compliance/byDirective" "getRuleComplianceByDirective" OF_RULE_BY_DIRECTIVE
        "Compliance of a rule by directive";
    "directives/compliance" "getDirectivesCompliance" OF_DIRECTIVES
        "Compliance of each directive"
        also "compliance/directives" "getDirectivesCompliance";
    "directives/{id}/compliance" "getDirectiveComplianceId" OF_DIRECTIVE
        "Compliance of a directive by rule and by node"
        also "compliance/directives/{id}" "getDirectiveComplianceId";
    "directives/{id}/compliance/byNode" "getDirectiveComplianceByNodeId" OF_DIRECTIVE_BY_NODE
        "Compliance of a directive by node";
    "directives/{id}/compliance/byRule" "getDirectiveComplianceByRuleId" OF_DIRECTIVE_BY_RULE
        "Compliance of a directive by rule";
    "groups/compliance" "getNodeGroupCompliance" OF_GROUPS
        "Compliance of the nodes of groups: with the rules that target each, and with all"
        also "compliance/groups" "getNodeGroupCompliance"
        also "compliance/summary/groups" "getNodeGroupComplianceSummary";
    "groups/{id}/compliance/global" "getGlobalNodeGroupComplianceId" OF_GROUP
        "Compliance of a group's nodes with all rules"
        also "groups/{id}/compliance" "getGlobalNodeGroupComplianceId"
        also "compliance/groups/{id}" "getNodeGroupComplianceId";
    "groups/{id}/compliance/targeted" "getTargetedNodeGroupComplianceId" OF_TARGETED
        "Compliance of a group's nodes with the rules that target it"
        also "compliance/groups/{id}/target" "getNodeGroupComplianceTargetId";
    "groups/{id}/compliance/global/byRule" "getGlobalNodeGroupComplianceByRuleId" OF_GROUP_BY_RULE
        "Compliance of a group's nodes with all rules, by rule";
    "groups/{id}/compliance/global/byNode" "getGlobalNodeGroupComplianceByNodeId" OF_GROUP_BY_NODE
        "Compliance of a group's nodes with all rules, by node";
    "groups/{id}/compliance/targeted/byRule" "getTargetedNodeGroupComplianceByRuleId"
        OF_TARGETED_BY_RULE
        "Compliance of a group's nodes with the rules that target it, by rule";
    "groups/{id}/compliance/targeted/byNode" "getTargetedNodeGroupComplianceByNodeId"
        OF_TARGETED_BY_NODE
        "Compliance of a group's nodes with the rules that target it, by node";
};

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
