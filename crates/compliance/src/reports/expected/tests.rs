use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Component, ExpectedReports, ExpectedValue, PolicyId};
use crate::model::mode::PolicyMode;
use crate::model::reporting::ReportingLogic;

const LIMIT: usize = 1 << 20;

const JSON: &str = r#"{
  "ms": {"gpm": {"m": "enforce", "o": true}, "npm": "audit", "gcm": "full-compliance",
         "gar": {"i": 5, "sm": 0, "sh": 0, "st": 4}, "nar": {"i": 10, "sm": 1, "sh": 2, "st": 3}},
  "rs": [{"rid": "rule", "ds": [{"did": "directive", "pm": "audit", "t": ["rudderSystem"],
    "cs": [
      {"vid": "Component", "vs": [[], ["v"], ["/home/me", "${home}"], {"id": "42", "v": "x"}]},
      {"bid": "Block", "id": "b1", "rl": "focus:Component", "scs": [
        {"bid": "Inner", "rl": "worst-case-weighted-one", "scs": []},
        {"vid": "Empty", "vs": []}
      ]}
    ]}]}],
  "os": [{"p": {"rid": "rule", "did": "other"}, "ob": {"rid": "rule2", "did": "third"}}]
}"#;

/// The JSON that expected reports were read from.
pub(crate) fn written(expected: &ExpectedReports) -> Value {
    let rules = expected.rules.iter().map(|rule| {
        let directives = rule.directives.iter().map(|one| {
            let mut json = json!({"did": one.id, "cs": components(&one.components)});
            if let Some(mode) = one.policy_mode {
                json["pm"] = json!(mode);
            }
            if !one.types.is_empty() {
                json["t"] = json!(one.types);
            }
            if let Some(schedule) = &one.schedule {
                json["sid"] = json!(schedule);
            }
            json
        });
        json!({"rid": rule.id, "ds": directives.collect::<Vec<_>>()})
    });
    let policy = |one: &PolicyId| json!({"rid": one.rule, "did": one.directive});
    let overrides = expected.overrides.iter();
    let overrides =
        overrides.map(|one| json!({"p": policy(&one.policy), "ob": policy(&one.overridden_by)}));
    let (rules, overrides): (Vec<_>, Vec<_>) = (rules.collect(), overrides.collect());
    json!({"ms": expected.modes, "rs": rules, "os": overrides})
}

fn components(list: &[Component]) -> Vec<Value> {
    let one = |component: &Component| match component {
        Component::Values { name, values } => {
            json!({"vid": name, "vs": values.iter().map(value).collect::<Vec<_>>()})
        }
        Component::Block {
            name,
            id,
            logic,
            components: inner,
        } => {
            let mut json = json!({"bid": name, "rl": logic, "scs": components(inner)});
            if let Some(id) = id {
                json["id"] = json!(id);
            }
            json
        }
    };
    list.iter().map(one).collect()
}

fn value(value: &ExpectedValue) -> Value {
    match value {
        ExpectedValue::Id { id, value } => json!({"id": id, "v": value}),
        ExpectedValue::Key {
            expanded,
            unexpanded,
        } if expanded != unexpanded => json!([expanded, unexpanded]),
        ExpectedValue::Key { expanded, .. } if expanded == "None" => json!([]),
        ExpectedValue::Key { expanded, .. } => json!([expanded]),
    }
}

#[test]
fn nothing_is_lost_in_reading() {
    let expected = ExpectedReports::from_json(JSON, LIMIT).unwrap();
    assert_eq!(
        written(&expected),
        serde_json::from_str::<Value>(JSON).unwrap()
    );
    assert_eq!(expected.modes.agent_run().interval, 10);
    let Component::Values { values, .. } = &expected.rules[0].directives[0].components[0] else {
        panic!("a component with values");
    };
    let none = "None".to_owned();
    let key = ExpectedValue::Key {
        expanded: none.clone(),
        unexpanded: none,
    };
    assert_eq!(values[0], key);
}

#[test]
fn other_json_is_refused_with_its_place() {
    for (from, to, problem) in [
        ("\"vid\": \"Component\",", "", "vid"),
        ("weighted-one", "weighted-two", "worst-case-weighted-two"),
        ("[\"v\"]", "[\"v\", \"v\", \"v\"]", "two texts"),
        ("\"enforce\"", "\"force\"", "line 2"),
        ("full-compliance", "full", "changes-only"),
    ] {
        let text = JSON.replace(from, to);
        let error = ExpectedReports::from_json(&text, LIMIT)
            .unwrap_err()
            .to_string();
        assert!(error.contains(problem), "{error}");
    }
    assert!(ExpectedReports::from_json(JSON, 10).is_err());
    let deep = JSON.replace(
        r#""scs": []"#,
        &r#""scs": [{"bid": "b", "scs": "#.repeat(100),
    );
    assert!(ExpectedReports::from_json(&deep, LIMIT).is_err());
}

#[test]
fn all_combinations_of_policy_modes() {
    use PolicyMode::{Audit, Enforce};
    let mut modes = ExpectedReports::from_json(JSON, LIMIT).unwrap().modes;
    let some = [None, Some(Audit), Some(Enforce)];
    for global in [Audit, Enforce] {
        for node in some {
            for directive in some {
                modes.global.mode = global;
                modes.node = node;
                modes.global.overridable = false;
                assert_eq!(modes.policy_mode(directive, false), global);
                modes.global.overridable = true;
                let expected = match (node, directive) {
                    (Some(Audit), _) | (_, Some(Audit)) => Audit,
                    (Some(Enforce), _) | (_, Some(Enforce)) => Enforce,
                    (None, None) => global,
                };
                assert_eq!(modes.policy_mode(directive, false), expected);
                assert_eq!(modes.policy_mode(directive, true), Enforce);
            }
        }
    }
}

proptest! {
    #[test]
    fn logics_and_values_come_back(
        name in "[a-z:]{0,8}", expanded in "[a-zN$]{1,5}", unexpanded in "[a-zN$]{0,5}",
    ) {
        let logic = ReportingLogic::Focus(name);
        let json = serde_json::to_string(&logic).unwrap();
        prop_assert_eq!(serde_json::from_str::<ReportingLogic>(&json).unwrap(), logic);
        let key = ExpectedValue::Key { expanded, unexpanded };
        prop_assert_eq!(serde_json::from_value::<ExpectedValue>(value(&key)).unwrap(), key);
    }
}
