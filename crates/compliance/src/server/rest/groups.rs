//! Groups.

use serde_json::{Map, Value, json};

use super::categories::GROUPS_ROOT;
use super::managed::{self, MANAGED_BY, Managed, SOURCE, SYSTEM, Show, named};
use super::route::{Route, Work, routes};
use super::schema::{Schema, TEXT, Wrong, object};
use crate::definitions::Definitions;
use crate::model::group::{Group, NODES};
use crate::model::property::{PROPERTIES, removes};
use crate::model::query::{CRITERIA, VALUE_BYTES};
use crate::model::target::Target;
use crate::server::service::Service;

/// Kinds of objects that a query asks about.
pub(super) const OBJECT_TYPES: &[&str] = &[
    "node",
    "software",
    "networkInterfaceLogicalElement",
    "fileSystemLogicalElement",
    "process",
    "virtualMachineLogicalElement",
    "environmentVariable",
    "serializedNodeProperty",
    "machine",
    "processorPhysicalElement",
    "memoryPhysicalElement",
    "storagePhysicalElement",
    "biosPhysicalElement",
    "controllerPhysicalElement",
    "portPhysicalElement",
    "slotPhysicalElement",
    "soundCardPhysicalElement",
    "videoCardPhysicalElement",
    "group",
];
/// How they are compared.
pub(super) const COMPARATORS: &[&str] = &[
    "exists",
    "notExists",
    "eq",
    "notEq",
    "regex",
    "notRegex",
    "gt",
    "lt",
    "gteq",
    "lteq",
    "hasKey",
    "jsonSelect",
];

static CRITERION: Schema = object! { "Criterion"
    needed "objectType": Schema::Word(OBJECT_TYPES);
    needed "attribute": TEXT;
    needed "comparator": Schema::Word(COMPARATORS);
    may "value": Schema::Text(VALUE_BYTES);
};
static CONDITIONS: Schema = Schema::List(&CONDITION, CRITERIA);
static CONDITION: Schema = Schema::Either(&[
    &object! { "And" needed "and": CONDITIONS; },
    &object! { "Or" needed "or": CONDITIONS; },
    &object! { "Not" needed "not": CONDITION; },
    &CRITERION,
]);
static QUERY: Schema = object! { "Query"
    may "select": Schema::Word(&["node", "nodeAndPolicyServer"]);
    may "composition": Schema::Word(&["and", "or"]);
    may "transform": Schema::Word(&["identity", "invert"]);
    needed "where": CONDITIONS;
};
static PROPERTY: Schema = object! { "Property"
    needed "name": Schema::PropertyName;
    needed "value": Schema::Any, "any JSON";
    may "provider": TEXT, "where it comes from, if not from a person";
};
/// Properties of a group or node.
pub(super) static PROPERTY_LIST: Schema = Schema::List(&PROPERTY, PROPERTIES);

static GROUP: Schema = object! { "Group"
    may "id": Schema::Identity, "one is made if it is left out";
    may "displayName": Schema::Name, "needed to create it";
    may "description": TEXT;
    may "category": TEXT, "GroupRoot if it is left out";
    may "dynamic": Schema::Flag,
        "does the query say who belongs to it? if it is left out: is there one";
    may "query": QUERY, "who belongs to it, if it is dynamic";
    may "nodeIds": Schema::List(&Schema::Identity, NODES),
        "who belongs to it; of a dynamic group only shown, and kept if it is dynamic no more";
    may "enabled": Schema::Flag;
    may "properties": PROPERTY_LIST,
        "what its members inherit; a change leaves those that it does not name, and null or an \
         empty text removes one";
    may "target": Schema::Target, "only shown: how rules name it";
    may "groupClass": Schema::List(&TEXT, 2), "only shown: what agents know its members by";
    + SYSTEM;
    + SOURCE;
    + MANAGED_BY;
};
static GROUPS: Schema = Schema::List(&GROUP, usize::MAX);

/// The calls of groups.
pub(super) const ROUTES: &[Route] =
    managed::routes!(Group, "groups", "Group", "groupDetails", &GROUP, &GROUPS);

/// What groups have beside these.
pub(super) const MORE_ROUTES: &[Route] = routes! {
    get "groups/{id}/reload" "reloadGroup" "A group; who belongs to it is always current"
        => "groups": GROUPS, Now(managed::one::<Group>);
};

impl Managed for Group {
    managed::kind!("group", groups, Group);

    const NEEDED: &'static [&'static str] = &["displayName"];

    fn wrong(&self, all: &Definitions) -> Vec<Wrong> {
        // Of what is left to check only these two say nothing of their places.
        let whole = if self.dynamic && self.query.is_none() {
            "query"
        } else {
            "properties"
        };
        named(all.check_group(self), whole, |field| field)
    }

    fn users(id: &str, all: &Definitions) -> Vec<String> {
        let rules = all.rules.values();
        let named = rules.filter(|rule| {
            let mut targets = rule.targets.iter().flat_map(|target| target.simple());
            targets.any(|target| matches!(target, Target::Group(group) if group == id))
        });
        let rules = named.map(|rule| format!("rule \"{}\"", rule.id));
        let groups = all.groups.values().filter(|group| {
            let query = group.query.as_ref().filter(|_| group.id != id);
            query.is_some_and(|query| query.groups().contains(&id))
        });
        let groups = groups.map(|group| format!("group \"{}\"", group.id));
        rules.chain(groups).collect()
    }

    fn show<'s>(service: &'s Service, _: &'s Definitions) -> Show<'s, Self> {
        Box::new(|group, object| {
            let id = &group.id;
            if group.dynamic {
                let members = service.compliance.lock().fleet.members(id);
                object.insert("nodeIds".into(), json!(members));
            }
            object.insert("target".into(), format!("group:{id}").into());
            object.insert("groupClass".into(), json!(group.conditions()));
            object.insert("system".into(), false.into());
            if group.category.is_empty() {
                object.insert("category".into(), GROUPS_ROOT.into());
            }
        })
    }

    /// One that is dynamic no more keeps its members.
    fn carry_over(service: &Service, id: &str, body: &mut Map<String, Value>) {
        if body.get("dynamic") != Some(&Value::Bool(false)) || body.contains_key("nodeIds") {
            return;
        }
        let was = service.view.read().definitions.groups.get(id).cloned();
        if was.is_some_and(|group| group.dynamic) {
            let members = service.compliance.lock().fleet.members(id);
            body.insert("nodeIds".into(), json!(members));
        }
    }

    /// Properties that are not named stay.
    fn keep(&self, body: &mut Map<String, Value>) {
        let named = body.get_mut("properties").and_then(Value::as_array_mut);
        let Some(named) = named else {
            return;
        };
        let kept = self.properties.iter();
        let kept = kept.filter(|one| named.iter().all(|other| other["name"] != *one.name));
        let mut all: Vec<Value> = kept.map(|one| json!(one)).collect();
        all.extend(named.drain(..).filter(|one| !removes(&one["value"])));
        *named = all;
    }

    fn complete(body: &mut Map<String, Value>, _: &Definitions) {
        body.remove("target");
        body.remove("groupClass");
        let query = body.contains_key("query");
        let dynamic = body.entry("dynamic").or_insert(query.into());
        if *dynamic == true {
            // A query finds them.
            body.remove("nodeIds");
        }
    }
}
