use proptest::prelude::*;
use serde_json::json;

use super::{Definitions, Delta, Edit, Object, ObjectOutcome};
use crate::model::directive::Directive;
use crate::model::group::Group;
use crate::model::property::GlobalParameter;
use crate::model::rule::Rule;
use crate::model::technique::Technique;
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
        inherit_mode: Default::default(),
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
        ("settings", "", ObjectOutcome::Changed),
        ("parameter", "p", ObjectOutcome::Changed),
        ("rule", "a", ObjectOutcome::Removed),
        ("rule", "c", ObjectOutcome::Added),
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

fn rule(id: &str, name: &str) -> Object {
    Object::Rule(Rule::new(id, name))
}

fn technique(id: &str, name: &str) -> Technique {
    let technique = json!({"id": id, "version": "1.0", "name": name,
        "body": {"methods": {"items": []}}});
    serde_json::from_value(technique).unwrap()
}

#[test]
fn what_was_made_by_itself_stays_until_the_folder_has_it() {
    let mut before = some();
    before.edit(&Edit::Put(rule("mine", "Mine")));
    before.edit(&Edit::Put(rule("taken", "Taken")));
    before.edit(&Edit::Put(Object::Technique(technique("t", "Mine"))));
    let mut folder = some();
    folder
        .rules
        .insert("taken".into(), Rule::new("taken", "Other"));
    let told = folder.keep_made(&before);
    let told: Vec<_> = told.iter().map(|one| (&*one.id, one.became)).collect();
    let expected = [
        ("t/1.0", ObjectOutcome::Kept),
        ("mine", ObjectOutcome::Kept),
        ("taken", ObjectOutcome::Taken),
    ];
    assert_eq!(told, expected);
    assert_eq!(folder.techniques, before.techniques);
    assert_eq!(folder.rules["mine"], before.rules["mine"]);
    assert_eq!(folder.rules["taken"].display_name, "Other");
    assert_eq!(folder.made.rules, ["mine".to_owned()].into());
    // Whatever a folder says of itself that it made counts for nothing.
    let mut liar = some();
    liar.made.rules.insert("a".into());
    assert!(liar.keep_made(&some()).is_empty());
    assert!(liar.made.is_empty());
}

/// Definitions of some random bytes: each kind of object, few identities, few values.
fn drawn(objects: &[(u8, u8, u8)], instance: u8) -> Definitions {
    let mut all = Definitions::default();
    for &(kind, id, value) in objects {
        let (id, name) = (format!("o{}", id % 4), format!("name {}", value % 3));
        match kind % 5 {
            0 => all.edit(&Edit::Put(Object::Rule(Rule::new(&id, &name)))),
            1 => drop(all.rules.insert(id.clone(), Rule::new(&id, &name))),
            2 => {
                let group = Group::of_nodes(&id, &name, vec![name.clone()]);
                all.groups.insert(id, group);
            }
            3 => {
                let directive = Directive::new(&id, &name, ("t", "1.0"));
                all.directives.insert(id, directive);
            }
            _ => {
                let technique = technique(&id, &name);
                all.techniques.insert(technique.key(), technique);
            }
        }
    }
    all.settings.instance_id = format!("{}", instance % 2);
    all
}

proptest! {
    /// What differs is all that has to be kept to have the other definitions again.
    #[test]
    fn what_differs_leads_there(
        old in prop::collection::vec(any::<(u8, u8, u8)>(), 0..12),
        new in prop::collection::vec(any::<(u8, u8, u8)>(), 0..12),
        instances in any::<(u8, u8)>(),
    ) {
        let (mut old, new) = (drawn(&old, instances.0), drawn(&new, instances.1));
        let delta = Delta::between(&old, &new);
        let found = old.to(&new).objects.into_iter();
        prop_assert_eq!(delta.len(), found.filter(|one| one.kind != "settings").count());
        prop_assert_eq!(Delta::between(&new, &new), Delta::default());
        let edit = Edit::Folder(Box::new(delta));
        let kept = serde_json::to_string(&edit).unwrap();
        old.edit(&serde_json::from_str(&kept).unwrap());
        prop_assert_eq!(old, new);
    }

    /// Changes lead where they say, and each is what the engine is told.
    #[test]
    fn changes_lead_where_they_say(edits in prop::collection::vec((0..8_u8, any::<bool>()), 0..16)) {
        let mut all = some();
        for (number, put) in edits {
            let id = format!("o{number}");
            let object = match number % 2 {
                0 => rule(&id, "x"),
                _ => Object::Technique(technique(&id, "x")),
            };
            let edit = if put { Edit::Put(object) } else { Edit::Remove(object) };
            let before = all.clone();
            all.edit(&edit);
            let changes = before.to(&all).changes;
            prop_assert!(changes.is_empty() || changes == Vec::from_iter(edit.change()));
            let json = serde_json::to_string(&edit).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Edit>(&json).unwrap(), &edit);
            prop_assert!(all.made.rules.iter().all(|id| all.rules.contains_key(id)));
            let made = &all.made.techniques;
            prop_assert!(made.iter().all(|key| all.techniques.contains_key(key)));
        }
    }
}
