use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::groups::{COMPARATORS, OBJECT_TYPES};
use super::super::routes;
use super::*;
use crate::model::attributes::{Comparator, ObjectType};

static LEAF: Schema = object! { "Leaf"
    needed "name": Schema::Name;
    may "priority": Schema::Number(0, 10);
    may "mode": Schema::Word(&["audit", "enforce"]);
    may "on": Schema::Flag;
    may "within": LEAVES;
    may "target": EITHER;
    may "pair": Schema::Pair(&TEXT, &Schema::Any);
};
static LEAVES: Schema = Schema::List(&LEAF, 2);
static EITHER: Schema = Schema::Either(&[
    &Schema::Target,
    &object! { "Or" needed "or": Schema::List(&Schema::Target, 3); },
]);

fn fields(value: &Value) -> Vec<String> {
    let wrong = LEAF.check(value);
    wrong.into_iter().map(|one| one.field).collect()
}

#[test]
fn every_wrong_field_is_named_at_its_place() {
    let good = json!({"name": "a", "priority": 10, "mode": "audit", "on": false,
        "target": "group:a", "pair": ["a", {}], "within": [{"name": "b", "target": {"or": ["special:all"]}}]});
    assert_eq!(LEAF.check(&good), []);
    for (value, expected) in [
        (json!([]), ""),
        (json!({}), "name"),
        (json!({"name": ""}), "name"),
        (json!({"name": "a", "priority": 11}), "priority"),
        (json!({"name": "a", "priority": 1.5}), "priority"),
        (json!({"name": "a", "mode": "other"}), "mode"),
        (json!({"name": "a", "on": "true"}), "on"),
        (json!({"name": "a", "what": 1}), "what"),
        (json!({"name": "a", "target": "special:none"}), "target"),
        (
            json!({"name": "a", "target": {"or": ["a", "special:none"]}}),
            "target.or[1]",
        ),
        (json!({"name": "a", "target": 7}), "target"),
        (json!({"name": "a", "pair": ["one"]}), "pair"),
        (json!({"name": "a", "pair": {"one": 1}}), "pair"),
        (json!({"name": "a", "pair": [1, 2]}), "pair[0]"),
        (
            json!({"name": "a", "within": [{"name": "b"}, {"name": 1}]}),
            "within[1].name",
        ),
    ] {
        assert_eq!(fields(&value), [expected], "{value}");
    }
    let long = json!({"name": "a", "within": [{"name": "b"}, {"name": "c"}, {"name": "d"}]});
    assert_eq!(fields(&long), ["within"]);
    let both = json!({"priority": -1, "on": 1});
    assert_eq!(fields(&both), ["on", "priority", "name"]);
}

#[test]
fn what_an_address_has_is_read_as_what_it_should_be() {
    let level = Schema::Number(0, 10);
    assert_eq!(level.check_text("level", "10"), []);
    for wrong in ["11", "x", "", "1.0"] {
        assert_eq!(
            level.check_text("level", wrong)[0].field,
            "level",
            "{wrong}"
        );
    }
}

#[test]
fn words_are_those_of_the_model() {
    for word in OBJECT_TYPES {
        let read: ObjectType = serde_json::from_value(json!(word)).unwrap();
        assert_eq!(read.name(), *word);
    }
    for word in COMPARATORS {
        let read: Comparator = serde_json::from_value(json!(word)).unwrap();
        assert_eq!(read.name(), *word);
    }
}

#[test]
fn an_object_within_itself_ends_in_a_reference() {
    let mut documents = Documents::default();
    let root = documents.of(&LEAF);
    assert_eq!(root, json!({"$ref": "#/components/schemas/Leaf"}));
    let all = documents.into_json();
    let within = &all["Leaf"]["properties"]["within"];
    assert_eq!(within["items"], root);
    assert_eq!(all["Leaf"]["required"], json!(["name"]));
}

#[test]
fn calls_are_unambiguous_and_objects_of_one_name_are_the_same() {
    let mut calls = std::collections::BTreeSet::new();
    for route in routes() {
        let call = (route.method.name(), route.path);
        assert!(calls.insert(call), "{call:?} is there twice");
        let arguments = route.path.split('/').filter(|part| part.starts_with('{'));
        let path: Vec<&str> = route.path.split('/').collect();
        let found = route.arguments(&path).map(|found| found.len());
        assert_eq!(found, Some(arguments.count()), "{}", route.path);
    }
    let mut known: std::collections::HashMap<&str, &Schema> = Default::default();
    let mut waiting: Vec<&'static Schema> = routes().map(|route| route.output.1).collect();
    while let Some(schema) = waiting.pop() {
        match schema {
            Schema::List(of, _) | Schema::Map(of) => waiting.push(of),
            Schema::Pair(first, second) => waiting.extend([*first, *second]),
            Schema::Either(forms) => waiting.extend(forms.iter()),
            Schema::Object(name, fields) => match known.insert(name, schema) {
                Some(other) => assert!(std::ptr::eq(other, schema), "two are called {name}"),
                None => waiting.extend(fields.iter().map(|field| field.schema)),
            },
            _ => {}
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let keys = prop_oneof![
            Just("name".to_owned()),
            Just("within".to_owned()),
            Just("target".to_owned()),
            Just("or".to_owned()),
            "[a-z]{1,4}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever comes, what is wrong has the name of a field that is there or is missing.
    #[test]
    fn anything_can_be_checked(value in any_json()) {
        for wrong in LEAF.check(&value) {
            prop_assert!(!wrong.message.is_empty());
            let root = wrong.field.split(['.', '[']).next().unwrap_or_default().to_owned();
            let known = ["", "name", "priority", "mode", "on", "within", "target", "pair"];
            let there = value.get(&root).is_some();
            prop_assert!(there || known.contains(&root.as_str()), "{}", wrong.field);
        }
    }
}
