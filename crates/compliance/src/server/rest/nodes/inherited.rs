//! What a node has and inherits, and from where.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::route::Answer;
use super::super::schema::{Schema, TEXT, may, needed};
use super::{Service, Standing};
use crate::model::group::Group;
use crate::model::property::Property;
use crate::policy::inheritance::{GroupLayer, Inherited, inherit, lay_own, nearest_first};

static LAYER: Schema = Schema::Object(
    "PropertyLayer",
    &[
        needed("kind", &Schema::Word(&["global", "group"]), ""),
        needed("value", &Schema::Any, "what it says itself"),
        may("id", &TEXT, "of a group"),
        may("name", &TEXT, "of a group"),
    ],
);
static PROPERTY: Schema = Schema::Object(
    "InheritedProperty",
    &[
        needed("name", &TEXT, ""),
        needed("value", &Schema::Any, "null if it has none"),
        may(
            "provider",
            &TEXT,
            "inherited, overridden by the node's own, or whoever set the node's own",
        ),
        may(
            "hierarchy",
            &Schema::List(&LAYER, usize::MAX),
            "whom it is inherited from, the nearest first",
        ),
        may("origval", &Schema::Any, "what the farthest of these says"),
        may(
            "hierarchyStatus",
            &Schema::Object(
                "HierarchyStatus",
                &[needed("errorMessage", &TEXT, "why it has no value")],
            ),
            "",
        ),
    ],
);
pub(super) static INHERITED: Schema = Schema::List(
    &Schema::Object(
        "NodeInheritedProperties",
        &[
            needed("nodeId", &Schema::Identity, ""),
            needed("properties", &Schema::List(&PROPERTY, usize::MAX), ""),
        ],
    ),
    1,
);

impl Service {
    /// The properties that a node has in the end, as Rudder lists them: in a list with one node.
    pub(super) fn inherited(&self, id: &str) -> Answer {
        let record = self.record(id, Standing::Accepted)?;
        let all = Arc::clone(&self.view.read().definitions);
        let groups: Vec<&Group> = {
            let compliance = self.compliance.lock();
            let mine = |group: &&Group| compliance.fleet.is_member(&group.id, id);
            all.groups.values().filter(mine).collect()
        };
        let parents: Vec<Vec<String>> = groups.iter().map(|group| parents(group)).collect();
        let layers: Vec<GroupLayer<'_>> = groups
            .iter()
            .zip(&parents)
            .map(|(group, parents)| GroupLayer {
                id: &group.id,
                properties: &group.properties,
                parents,
            })
            .collect();
        let globals = all.parameters.values();
        let globals = globals.map(|one| (one.id.clone(), one.value.clone()));
        let inherited = inherit(&layers, globals);
        let nearest = nearest_first(&layers);
        let own = &record.node.properties;
        let laid = lay_own(&inherited, own);
        let by_name: BTreeMap<&str, &Property> =
            own.iter().map(|one| (one.name.as_str(), one)).collect();
        let names: BTreeSet<&String> = inherited.keys().chain(laid.keys()).collect();
        let properties = names.into_iter().map(|name| {
            let own = by_name.get(name.as_str()).copied();
            let value = laid.get(name).or_else(|| inherited.get(name));
            let mut hierarchy: Vec<Value> = nearest
                .iter()
                .filter_map(|&at| {
                    let group = groups[at];
                    let said = group.properties.iter().find(|one| one.name == *name)?;
                    let (id, name, value) = (&group.id, &group.display_name, &said.value);
                    Some(json!({"kind": "group", "name": name, "id": id, "value": value}))
                })
                .collect();
            let global = all.parameters.get(name);
            hierarchy.extend(global.map(|one| json!({"kind": "global", "value": one.value})));
            shown(name, value, own, hierarchy)
        });
        let properties: Vec<Value> = properties.collect();
        Ok(json!([{"nodeId": id, "properties": properties}]))
    }
}

/// The groups that a group inherits from.
fn parents(group: &Group) -> Vec<String> {
    let query = group.query.as_ref();
    let parents = query.map(|query| query.parents().map(str::to_owned).collect());
    parents.unwrap_or_default()
}

fn shown(
    name: &str,
    value: Option<&Inherited>,
    own: Option<&Property>,
    hierarchy: Vec<Value>,
) -> Value {
    let mut property = json!({"name": name, "value": null});
    match value {
        Some(Inherited::Value(value)) => property["value"] = value.clone(),
        Some(Inherited::Conflict(groups)) => {
            let why = format!("groups give it different values: {}", groups.join(", "));
            property["hierarchyStatus"] = json!({"errorMessage": why});
        }
        Some(Inherited::Circle(groups)) => {
            let why = format!(
                "groups inherit from each other in a circle: {}",
                groups.join(", ")
            );
            property["hierarchyStatus"] = json!({"errorMessage": why});
        }
        None => {}
    }
    let provider = match (own, hierarchy.is_empty()) {
        (Some(own), true) => own.provider.clone(),
        (Some(_), false) => Some("overridden".to_owned()),
        (None, _) => Some("inherited".to_owned()),
    };
    if let Some(provider) = provider {
        property["provider"] = provider.into();
    }
    if let Some(farthest) = hierarchy.last() {
        property["origval"] = farthest["value"].clone();
        property["hierarchy"] = hierarchy.into();
    }
    property
}
