//! Directives.

use serde_json::{Map, Value};

use super::managed::{self, MANAGED_BY, Managed, SOURCE, SYSTEM, TAGS, named};
use super::route::{Route, Work, routes};
use super::schema::{Schema, TEXT, Wrong, object};
use crate::definitions::Definitions;
use crate::model::directive::{Directive, VALUE_BYTES, VALUES};

static VARIABLE: Schema = object! { "Variable"
    needed "var": object! { "VariableValue"
        needed "name": TEXT;
        needed "value": Schema::Text(VALUE_BYTES);
    };
};
static SECTION: Schema = object! { "Section" needed "section": VALUES_OF; };
static VALUES_OF: Schema = object! { "SectionValues"
    needed "name": TEXT, "sections, at the root";
    may "vars": Schema::List(&VARIABLE, VALUES);
    may "sections": Schema::List(&SECTION, VALUES);
};

static DIRECTIVE: Schema = object! { "Directive"
    may "id": Schema::Identity, "one is made if it is left out";
    may "displayName": Schema::Name, "needed to create it";
    may "shortDescription": TEXT;
    may "longDescription": TEXT;
    may "techniqueName": Schema::Identity, "needed to create it";
    may "techniqueVersion": Schema::Identity, "the newest if it is left out";
    may "parameters": SECTION, "values of the technique's variables";
    may "priority": Schema::Number(0, 10), "0 is the highest";
    may "enabled": Schema::Flag;
    may "policyMode": Schema::Word(&["default", "audit", "enforce"]);
    may "tags": TAGS;
    may "scheduleId": Schema::Identity;
    + SYSTEM;
    + SOURCE;
    + MANAGED_BY;
};
pub(super) static LIST: Schema = Schema::List(&DIRECTIVE, usize::MAX);

/// The calls of directives.
pub(super) const ROUTES: &[Route] = managed::routes!(
    Directive,
    "directives",
    "Directive",
    "directiveDetails",
    &DIRECTIVE,
    &LIST
);

/// What directives have beside these.
pub(super) const MORE_ROUTES: &[Route] = routes! {
    post "directives/{id}/check" "checkDirective"
        "What a directive would be with these fields; nothing changes"
        => "directives": LIST, Now(managed::check::<Directive>), takes(&DIRECTIVE);
};

impl Managed for Directive {
    managed::kind!("directive", directives, Directive);

    const NEEDED: &'static [&'static str] = &["displayName", "techniqueName"];

    fn wrong(&self, all: &Definitions) -> Vec<Wrong> {
        named(
            all.check_directive(self),
            "parameters",
            |field| match field {
                "technique" => "techniqueName",
                "params" => "parameters",
                other => other,
            },
        )
    }

    fn users(id: &str, all: &Definitions) -> Vec<String> {
        let rules = all.rules.values();
        let named = rules.filter(|rule| rule.directives.iter().any(|one| one == id));
        named.map(|rule| format!("rule \"{}\"", rule.id)).collect()
    }

    fn complete(body: &mut Map<String, Value>, all: &Definitions) {
        if body.contains_key("techniqueVersion") {
            return;
        }
        let name = body.get("techniqueName").and_then(Value::as_str);
        let numbers = |version: &str| -> Vec<u64> {
            let parts = version.split('.').map(str::parse);
            parts.map(Result::unwrap_or_default).collect()
        };
        let known = all.techniques.values();
        let known = known.filter(|one| Some(one.id.as_str()) == name);
        let newest = known.max_by_key(|one| numbers(&one.version));
        let newest = newest.map_or("1.0", |technique| &technique.version);
        body.insert("techniqueVersion".into(), newest.into());
    }
}
