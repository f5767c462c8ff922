//! What a node has and inherits, and from where.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::route::Answer;
use super::super::schema::{Schema, TEXT, object};
use super::{NodeStatus, Service};
use crate::model::group::Group;
use crate::model::property::{InheritMode, Property, merge};
use crate::policy::inheritance::{
    GroupLayer, Inherited, Modes, inherit, lay_own, mode_of, nearest_first,
};

static KIND: Schema = Schema::Word(&["global", "group", "node"]);
static LAYER: Schema = object! { "PropertyLayer"
    needed "kind": KIND;
    needed "value": Schema::Any, "what it says itself";
    may "resolvedValue": Schema::Any,
        "the same laid over what it inherits; not of the farthest, a global one";
    may "id": TEXT, "of a group or node";
    may "name": TEXT, "of a group or node";
    may "parent": LAYER, "the next one that is inherited from";
};
static TYPED_LAYER: Schema = object! { "TypedPropertyLayer"
    needed "kind": KIND;
    needed "valueType": Schema::Word(&TYPES);
    may "id": TEXT, "of a group or node";
    may "name": TEXT, "of a group or node";
    may "parent": TYPED_LAYER;
};
static PROPERTY: Schema = object! { "InheritedProperty"
    needed "name": TEXT;
    needed "value": Schema::Any, "null if it has none";
    may "description": TEXT, "of the global parameter";
    may "inheritMode": TEXT, "of the global parameter, if it is not moo";
    may "provider": TEXT, "inherited, overridden by the node's own, or whoever set the node's own";
    needed "hierarchy": LAYER,
        "whoever says it, the nearest outside; of more than 50 the nearest 49 and the farthest";
    needed "origval": Schema::Any, "what the nearest of these says itself";
    needed "hierarchyStatus": object! { "HierarchyStatus"
        needed "hasChildTypeConflicts": Schema::Flag, "are they of different types?";
        needed "fullHierarchy": TYPED_LAYER;
        may "errorMessage": TEXT, "what does not go together";
    };
};
pub(super) static INHERITED: Schema = Schema::List(
    &object! { "NodeInheritedProperties"
        needed "nodeId": Schema::Identity;
        needed "properties": Schema::List(&PROPERTY, usize::MAX);
    },
    1,
);

/// Layers of a property that are shown, one within the other: the nearest ones and the farthest.
/// Readers of JSON bound its depth.
const LAYERS: usize = 50;

/// Types of JSON, as Rudder names them.
const TYPES: [&str; 6] = ["Object", "List", "Number", "Boolean", "Null", "String"];

fn type_of(value: &Value) -> &'static str {
    let [object, list, number, boolean, null, string] = TYPES;
    match value {
        Value::Object(_) => object,
        Value::Array(_) => list,
        Value::Number(_) => number,
        Value::Bool(_) => boolean,
        Value::Null => null,
        Value::String(_) => string,
    }
}

/// Whoever says something about a property.
struct Layer<'a> {
    kind: &'static str,
    /// Its identity and name; a global parameter has none.
    of: Option<(&'a str, &'a str)>,
    value: &'a Value,
}

impl Layer<'_> {
    fn shown(&self) -> Value {
        let mut layer = json!({"kind": self.kind});
        if let Some((id, name)) = self.of {
            layer["id"] = id.into();
            layer["name"] = name.into();
        }
        layer
    }
}

impl Service {
    /// The properties that a node has in the end, as Rudder lists them: in a list with one node.
    pub(super) fn inherited(&self, id: &str) -> Answer {
        let record = self.record(id, NodeStatus::Accepted)?;
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
        let modes = all.parameters.values();
        let modes: Modes = modes
            .map(|one| (one.id.clone(), one.inherit_mode))
            .collect();
        let inherited = inherit(&layers, globals, &modes);
        let nearest = nearest_first(&layers);
        let own = &record.node.properties;
        let laid = lay_own(&inherited, own, &modes);
        let by_name: BTreeMap<&str, &Property> =
            own.iter().map(|one| (one.name.as_str(), one)).collect();
        let names: BTreeSet<&String> = inherited.keys().chain(laid.keys()).collect();
        let properties = names.into_iter().map(|name| {
            let own = by_name.get(name.as_str()).copied();
            let value = laid.get(name).or_else(|| inherited.get(name));
            let node = own.map(|own| Layer {
                kind: "node",
                of: Some((id, &record.node.hostname)),
                value: &own.value,
            });
            let parts = nearest.iter().map(|part| {
                let said = part.iter().filter_map(|&at| {
                    let group = groups[at];
                    let said = group.properties.iter().find(|one| one.name == *name)?;
                    Some(Layer {
                        kind: "group",
                        of: Some((&group.id, &group.display_name)),
                        value: &said.value,
                    })
                });
                said.collect::<Vec<_>>()
            });
            let mut parts = parts.filter(|part| !part.is_empty());
            // Groups that are not connected say the same if they agree.
            let of_groups: Vec<_> = match inherited.get(name) {
                Some(Inherited::Value(_)) => parts.next().unwrap_or_default(),
                _ => parts.flatten().collect(),
            };
            let parameter = all.parameters.get(name);
            let global = parameter.map(|one| Layer {
                kind: "global",
                of: None,
                value: &one.value,
            });
            let layers: Vec<_> = node.into_iter().chain(of_groups).chain(global).collect();
            let mode = mode_of(&modes, name);
            let mut property = shown((name, mode), value, own, &layers);
            if let Some(one) = parameter.filter(|one| !one.description.is_empty()) {
                property["description"] = one.description.as_str().into();
            }
            property
        });
        let properties: Vec<Value> = properties.collect();
        Ok(json!([{"nodeId": id, "properties": properties}]))
    }
}

/// The groups that a group inherits from: of one that lists its nodes, none, whatever query it has.
fn parents(group: &Group) -> Vec<String> {
    let query = group.query.as_ref().filter(|_| group.dynamic);
    let parents = query.map(|query| query.parents().map(str::to_owned).collect());
    parents.unwrap_or_default()
}

/// A property with its layers, the nearest first.
fn shown(
    (name, mode): (&str, InheritMode),
    value: Option<&Inherited>,
    own: Option<&Property>,
    layers: &[Layer<'_>],
) -> Value {
    let mut property = json!({"name": name, "value": null});
    if !mode.is_usual() {
        property["inheritMode"] = json!(mode);
    }
    let mixed = layers
        .windows(2)
        .any(|pair| type_of(pair[0].value) != type_of(pair[1].value));
    let mut status = json!({"hasChildTypeConflicts": mixed});
    let why = match value {
        Some(Inherited::Value(value)) => {
            property["value"] = value.clone();
            mixed.then(|| "its values are of different types".to_owned())
        }
        Some(Inherited::Conflict(groups)) => Some(format!(
            "groups give it different values: {}",
            groups.join(", ")
        )),
        Some(Inherited::Circle(groups)) => Some(format!(
            "groups inherit from each other in a circle: {}",
            groups.join(", ")
        )),
        None => None,
    };
    if let Some(why) = why {
        status["errorMessage"] = why.into();
    }
    let provider = match own {
        Some(own) if layers.len() < 2 => own.provider.clone(),
        Some(_) => Some("overridden".to_owned()),
        None => Some("inherited".to_owned()),
    };
    if let Some(provider) = provider {
        property["provider"] = provider.into();
    }
    let settled = matches!(value, Some(Inherited::Value(_)));
    let (mut hierarchy, mut types, mut resolved) = (Value::Null, Value::Null, Value::Null);
    for (place, layer) in layers.iter().enumerate().rev() {
        resolved = merge(&resolved, layer.value, mode);
        if place >= LAYERS - 1 && place + 1 < layers.len() {
            continue;
        }
        let (mut outer, mut outer_types) = (layer.shown(), layer.shown());
        outer["value"] = layer.value.clone();
        outer_types["valueType"] = type_of(layer.value).into();
        if settled && layer.of.is_some() {
            outer["resolvedValue"] = resolved.clone();
        }
        if !hierarchy.is_null() {
            outer["parent"] = hierarchy;
            outer_types["parent"] = types;
        }
        (hierarchy, types) = (outer, outer_types);
    }
    status["fullHierarchy"] = types;
    property["hierarchy"] = hierarchy;
    property["hierarchyStatus"] = status;
    property["origval"] = layers.first().map_or(Value::Null, |one| one.value.clone());
    property
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::query::{Criterion, Query};

    #[test]
    fn a_query_that_says_nothing_of_members_says_nothing_of_parents() {
        let query = Query::all_of([Criterion::in_group("parent")]);
        let mut group = Group::of_query("child", "Child", query);
        assert_eq!(parents(&group), ["parent"]);
        group.dynamic = false;
        assert_eq!(parents(&group), [""; 0]);
    }

    #[test]
    fn very_many_layers_are_shown_by_the_nearest_and_the_farthest() {
        let mode = InheritMode::default();
        let values: Vec<Value> = (0..3 * LAYERS)
            .map(|at| json!({at.to_string(): at}))
            .collect();
        for count in [1, 2, LAYERS, LAYERS + 1, values.len()] {
            let layers: Vec<_> = values[..count]
                .iter()
                .map(|value| Layer {
                    kind: "group",
                    of: Some(("g", "G")),
                    value,
                })
                .collect();
            let whole = Value::Object(Default::default());
            let whole = values[..count]
                .iter()
                .rev()
                .fold(whole, |all, one| merge(&all, one, mode));
            let shown = shown(
                ("p", mode),
                Some(&Inherited::Value(whole.clone())),
                None,
                &layers,
            );
            let mut found = Vec::new();
            let mut layer = &shown["hierarchy"];
            assert_eq!(layer["resolvedValue"], whole);
            while layer.is_object() {
                found.push(&layer["value"]);
                layer = &layer["parent"];
            }
            let near = values[..count].iter().take(LAYERS - 1);
            let far = values[..count].iter().skip(LAYERS - 1).last();
            assert_eq!(found, near.chain(far).collect::<Vec<_>>(), "{count}");
        }
    }
}
