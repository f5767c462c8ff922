//! What calls about compliance take and answer.

use super::super::schema::{Field, Schema, TEXT, may, object, objects};

/// Shares of statuses, without those of which there is none.
pub(in super::super) static DETAILS: Schema = Schema::Map(&Schema::Share);
pub(super) static VALUES: Schema = objects! { "ComponentValue"
    needed "value": TEXT;
    may "reports": objects! { "Report"
        needed "status": TEXT;
        may "message": TEXT;
    };
};
pub(super) static COMPONENT: Schema = object! { "ComponentCompliance"
    needed "name": TEXT;
    needed "compliance": Schema::Share;
    needed "complianceDetails": DETAILS;
    may "components": COMPONENT_LIST, "of a block";
    may "values": VALUES;
    may "nodes": NODE_LIST, "of a rule and no block: the nodes that have it";
};
pub(super) static COMPONENT_LIST: Schema = Schema::List(&COMPONENT, usize::MAX);
static SKIPPED: Schema = object! { "SkippedDetails"
    needed "overridingRuleId": Schema::Identity;
    needed "overridingRuleName": TEXT;
};
pub(super) static DIRECTIVE: Schema = object! { "DirectiveCompliance"
    needed "id": Schema::Identity;
    needed "name": TEXT;
    needed "compliance": Schema::Share;
    needed "complianceDetails": DETAILS;
    needed "policyMode": TEXT;
    may "mode": TEXT;
    may "skippedDetails": SKIPPED, "if it gave way to another";
    may "components": COMPONENT_LIST;
    may "rules": RULE_LIST;
    may "nodes": NODE_LIST;
};
pub(super) static DIRECTIVE_LIST: Schema = Schema::List(&DIRECTIVE, usize::MAX);
pub(super) static RULE: Schema = object! { "RuleCompliance"
    needed "id": Schema::Identity;
    needed "name": TEXT;
    needed "compliance": Schema::Share;
    needed "complianceDetails": DETAILS;
    needed "policyMode": TEXT;
    may "mode": TEXT;
    may "skippedDetails": SKIPPED,
        "of a directive's rule, if the directive gave way on all its nodes";
    may "directives": DIRECTIVE_LIST;
    may "components": COMPONENT_LIST, "of a directive's rule";
    may "nodes": NODE_LIST;
};
pub(super) static RULE_LIST: Schema = Schema::List(&RULE, usize::MAX);
static ABORT: Schema = object! { "Abort"
    needed "cause": TEXT;
    needed "message": TEXT;
};
pub(super) static NODE: Schema = object! { "NodeCompliance"
    needed "id": Schema::Identity;
    needed "name": TEXT;
    needed "compliance": Schema::Share;
    needed "complianceDetails": DETAILS;
    needed "policyMode": TEXT;
    may "mode": TEXT;
    may "rules": RULE_LIST, "not of a rule's node";
    may "policyModeInconsistency": Schema::List(&ABORT, usize::MAX),
        "why the agent gave up its last run, if it did";
    may "directives": DIRECTIVE_LIST, "of a rule's node";
    may "values": VALUES;
};
pub(super) static NODE_LIST: Schema = Schema::List(&NODE, usize::MAX);
pub(super) static GROUP: Schema = object! { "GroupCompliance"
    needed "id": Schema::Identity;
    needed "name": TEXT;
    needed "compliance": Schema::Share;
    needed "complianceDetails": DETAILS;
    needed "mode": TEXT;
    may "rules": RULE_LIST;
    may "nodes": NODE_LIST;
};
pub(super) static GROUP_LIST: Schema = Schema::List(&GROUP, usize::MAX);
pub(super) static GROUP_SUMMARIES: Schema = objects! { "GroupSummary"
    needed "id": Schema::Identity;
    needed "targeted": GROUP, "with the rules that target it";
    needed "global": GROUP, "with all rules";
};
pub(super) static GLOBAL: Schema = object! { "GlobalCompliance"
    needed "compliance": Schema::Share, "-1 if nothing is reported yet";
    may "complianceDetails": DETAILS, "if anything is expected";
};

pub(super) const PRECISION: Field =
    may("precision", &Schema::Number(0, 5)).note("digits behind the point, 2 if it is left out");
const LEVEL: Field = may("level", &Schema::Number(0, 10))
    .note("1 rules, 2 directives, 3 components, 4 nodes of components, 5 values, 6 reports");
/// There is no table of what this call shows.
pub(super) const JSON_ALONE: Field = may("format", &Schema::Word(&["json"]))
    .note("tables are made of one node, directive, or part of a rule or group (byNode and others)");
const FORMAT: Field = may("format", &Schema::Word(&["json", "csv"]))
    .note("csv is a table of all messages, whatever the level");
const GROUPS: Field = may("groups", &TEXT)
    .note("groups and targets, separated by commas; all groups if it is left out");
pub(super) const ASKED: &[Field] = &[LEVEL, PRECISION, JSON_ALONE];
pub(super) const SUMMARISED: &[Field] = &[PRECISION, GROUPS, JSON_ALONE];
pub(super) const FORMATTED: &[Field] = &[LEVEL, PRECISION, FORMAT];
