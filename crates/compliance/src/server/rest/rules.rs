//! Rules.

use std::collections::{BTreeMap, BTreeSet};

use super::managed::{self, MANAGED_BY, Managed, SYSTEM, TAGS, named};
use super::route::{Route, Verb, Work};
use super::schema::{Schema, TEXT, Wrong, may, needed};
use crate::definitions::{Definitions, Made, Object};
use crate::model::rule::{DIRECTIVES, Rule};
use crate::model::target::TARGETS;
use crate::server::state::Access;

static TARGET_LIST: Schema = Schema::List(&Schema::Target, TARGETS);
static ANY_OF: Schema = Schema::Object("AnyOf", &[needed("or", &TARGET_LIST, "")]);
static ALL_OF: Schema = Schema::Object("AllOf", &[needed("and", &TARGET_LIST, "")]);
static UNION: Schema = Schema::Either(&[&ANY_OF, &ALL_OF]);
static COMPOSITE: Schema = Schema::Object(
    "CompositeTarget",
    &[needed("include", &UNION, ""), needed("exclude", &UNION, "")],
);
static TARGET: Schema = Schema::Either(&[&Schema::Target, &COMPOSITE]);

static RULE: Schema = Schema::Object(
    "Rule",
    &[
        may("id", &Schema::Identity, "one is made if it is left out"),
        may("displayName", &Schema::Name, "needed to create it"),
        may("shortDescription", &TEXT, ""),
        may("longDescription", &TEXT, ""),
        may(
            "directives",
            &Schema::List(&Schema::Identity, DIRECTIVES),
            "identities",
        ),
        may("targets", &Schema::List(&TARGET, TARGETS), ""),
        may("enabled", &Schema::Flag, ""),
        may("categoryId", &TEXT, ""),
        may("tags", &TAGS, ""),
        SYSTEM,
        MANAGED_BY,
    ],
);
static RULES: Schema = Schema::List(&RULE, usize::MAX);

/// The calls of rules.
pub(super) const ROUTES: &[Route] = managed::routes!(Rule, "rules", "Rule", &RULE, &RULES);

impl Managed for Rule {
    const KIND: &'static str = "rule";
    const LIST: &'static str = "rules";
    const NEEDED: &'static [&'static str] = &["displayName"];

    fn table(all: &Definitions) -> &BTreeMap<String, Self> {
        &all.rules
    }

    fn made(made: &Made) -> &BTreeSet<String> {
        &made.rules
    }

    fn object(self) -> Object {
        Object::Rule(self)
    }

    fn wrong(&self, all: &Definitions) -> Vec<Wrong> {
        named(all.check_rule(self), "targets", |field| field)
    }

    fn users(_: &str, _: &Definitions) -> Vec<String> {
        Vec::new()
    }
}
