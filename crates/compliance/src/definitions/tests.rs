use super::{Became, Definitions};
use crate::model::property::GlobalParameter;
use crate::model::rule::Rule;
use crate::policy::generation::{Change, Settings};

fn some() -> Definitions {
    let mut all = Definitions::default();
    for id in ["a", "b"] {
        all.rules.insert(id.into(), Rule::new(id, id));
    }
    let parameter = GlobalParameter {
        id: "p".into(),
        value: 1.into(),
        description: String::new(),
    };
    all.parameters.insert("p".into(), parameter);
    all
}

#[test]
fn what_differs_is_named_and_leads_there() {
    let old = some();
    let mut new = old.clone();
    new.rules.remove("a");
    new.rules.insert("c".into(), Rule::new("c", "c"));
    new.parameters.get_mut("p").unwrap().value = 2.into();
    new.settings.instance_id = "here".into();
    let found = old.to(&new);
    let told: Vec<_> = found
        .objects
        .iter()
        .map(|one| (&*one.kind, &*one.id, one.became))
        .collect();
    let expected = [
        ("settings", "", Became::Changed),
        ("parameter", "p", Became::Changed),
        ("rule", "a", Became::Removed),
        ("rule", "c", Became::Added),
    ];
    assert_eq!(told, expected);
    assert_eq!(found.changes[2], Change::RemoveRule("a".into()));
    assert_eq!(found.changes.len(), 4);
}

#[test]
fn equal_definitions_differ_in_nothing() {
    assert!(some().to(&some()).is_empty());
    let json = serde_json::to_string(&some()).unwrap();
    let read: Definitions = serde_json::from_str(&json).unwrap();
    assert!(some().to(&read).is_empty());
    let settings = Change::SetSettings(Settings::default());
    assert_eq!(some().changes().last(), Some(&settings));
}
