//! Rules.

mod applied;

use serde_json::{Map, Value, json};

use super::categories::RULES_ROOT;
use super::managed::{self, MANAGED_BY, Managed, SOURCE, SYSTEM, Show, TAGS, named};
use super::route::{Route, Work};
use super::schema::{Schema, TEXT, Wrong, object};
use crate::definitions::Definitions;
use crate::model::mode::word_of_rule;
use crate::model::rule::{DIRECTIVES, Rule};
use crate::model::target::TARGETS;
use crate::server::service::Service;
use applied::Nodes;

/// Longest details of a status, in bytes: each directive of a rule may be named.
const DETAILS: usize = 16 << 20;

static TARGET_LIST: Schema = Schema::List(&Schema::Target, TARGETS);
static ANY_OF: Schema = object! { "AnyOf" needed "or": TARGET_LIST; };
static ALL_OF: Schema = object! { "AllOf" needed "and": TARGET_LIST; };
static UNION: Schema = Schema::Either(&[&ANY_OF, &ALL_OF]);
static COMPOSITE: Schema = object! { "CompositeTarget"
    needed "include": UNION;
    needed "exclude": UNION;
};
static TARGET: Schema = Schema::Either(&[&Schema::Target, &COMPOSITE]);

static RULE: Schema = object! { "Rule"
    may "id": Schema::Identity, "one is made if it is left out";
    may "displayName": Schema::Name, "needed to create it";
    may "shortDescription": TEXT;
    may "longDescription": TEXT;
    may "directives": Schema::List(&Schema::Identity, DIRECTIVES), "identities";
    may "targets": Schema::List(&TARGET, TARGETS);
    may "enabled": Schema::Flag;
    may "categoryId": TEXT, "rootRuleCategory if it is left out";
    may "category": TEXT, "as categoryId, which is what is shown";
    may "tags": TAGS;
    may "policyMode": Schema::Word(&["none", "audit", "enforce", "mixed"]),
        "only shown: of its nodes and directives as a whole";
    may "status": STATUS, "only shown";
    + SYSTEM;
    + SOURCE;
    + MANAGED_BY;
};
static STATUS: Schema = object! { "RuleStatus"
    needed "value": Schema::Word(&applied::WORDS);
    may "details": Schema::Text(DETAILS), "why it is not applied to all that it names";
};
static RULES: Schema = Schema::List(&RULE, usize::MAX);

/// The calls of rules.
pub(super) const ROUTES: &[Route] =
    managed::routes!(Rule, "rules", "Rule", "ruleDetails", &RULE, &RULES);

impl Managed for Rule {
    managed::kind!("rule", rules, Rule);

    const NEEDED: &'static [&'static str] = &["displayName"];

    fn wrong(&self, all: &Definitions) -> Vec<Wrong> {
        named(all.check_rule(self), "targets", |field| field)
    }

    fn users(_: &str, _: &Definitions) -> Vec<String> {
        Vec::new()
    }

    fn show<'s>(service: &'s Service, all: &'s Definitions) -> Show<'s, Self> {
        let nodes = Nodes::of(service);
        Box::new(move |rule, object| {
            let found = nodes.found(rule);
            let (global, directives) = (all.settings.policy_mode, all.modes_of(&rule.directives));
            let mode = word_of_rule(global, directives, found.modes);
            object.insert("policyMode".into(), mode.into());
            if rule.category_id.is_empty() {
                object.insert("categoryId".into(), RULES_ROOT.into());
            }
            let (value, details) = applied::status(rule, all, found.none);
            let mut status = Map::from_iter([("value".into(), json!(value))]);
            status.extend(details.map(|text| ("details".into(), Value::from(text))));
            object.insert("status".into(), status.into());
        })
    }

    fn complete(body: &mut Map<String, Value>, _: &Definitions) {
        body.remove("policyMode");
        body.remove("status");
        if let Some(category) = body.remove("category") {
            body.insert("categoryId".into(), category);
        }
    }
}
