use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::fields::Fields;

/// The texts of the wanted paths, from `data` and from the top.
fn read_all(json: &[u8], paths: &[&str]) -> Option<Vec<(Option<String>, Option<String>)>> {
    let mut fields = Fields::new();
    let ids: Vec<usize> = paths.iter().map(|path| fields.register(path).0).collect();
    let mut top = vec![Slot::default(); fields.len()];
    let mut data = top.clone();
    read(json, 0, &fields.root, &mut top, &mut data)?;
    let text = |slot: Slot| match slot.kind {
        Kind::Absent => None,
        Kind::Plain => Some(String::from_utf8_lossy(slot.raw(json)).into_owned()),
        Kind::Escaped => Some(String::from_utf8(unescape(slot.raw(json))).unwrap()),
    };
    Some(
        ids.iter()
            .map(|id| (text(data[*id]), text(top[*id])))
            .collect(),
    )
}

fn top(json: &str, path: &str) -> Option<String> {
    read_all(json.as_bytes(), &[path]).unwrap().remove(0).1
}

fn refused(json: &str) {
    assert_eq!(read_all(json.as_bytes(), &["a"]), None, "{json}");
}

#[test]
fn finds_values_of_every_kind() {
    assert_eq!(top(r#"{"a":"x"}"#, "a").as_deref(), Some("x"));
    assert_eq!(
        top(r#" { "b" : [1,{"a":2}] , "a" : -1.50e3 } "#.trim(), "a").as_deref(),
        Some("-1.50e3")
    );
    assert_eq!(top(r#"{"a":true}"#, "a").as_deref(), Some("true"));
    assert_eq!(top(r#"{"a":""}"#, "a").as_deref(), Some(""));
    assert_eq!(top(r#"{"a":null}"#, "a"), None);
    assert_eq!(top(r#"{"a":{"b":1}}"#, "a"), None);
    assert_eq!(top(r#"{"a":[1]}"#, "a"), None);
    assert_eq!(top("{}", "a"), None);
    assert_eq!(top(r#"{"a":1,"a":2}"#, "a").as_deref(), Some("2"));
}

#[test]
fn follows_paths_and_dotted_names() {
    assert_eq!(
        top(r#"{"a":{"x":{"b":9},"b":{"c":7}}}"#, "a.b.c").as_deref(),
        Some("7")
    );
    assert_eq!(top(r#"{"a.b.c":7}"#, "a.b.c").as_deref(), Some("7"));
    assert_eq!(top(r#"{"a":"leaf"}"#, "a.b"), None);
    let both = read_all(
        br#"{"a":{"b":1},"data":{"a":{"b":2}}}"#,
        &["a.b", "data.a.b"],
    )
    .unwrap();
    assert_eq!(both[0], (Some("2".into()), Some("1".into())));
    assert_eq!(both[1], (None, Some("2".into())));
}

#[test]
fn decodes_escapes() {
    let value = r#"{"a":"q\" b\\ s\/ n\n t\t r\r \b\f \u00e9 \ud83d\ude00 end"}"#;
    let expected = "q\" b\\ s/ n\n t\t r\r \u{8}\u{c} é 😀 end";
    assert_eq!(top(value, "a").as_deref(), Some(expected));
    assert_eq!(top(r#"{"\u0061":"x"}"#, "a").as_deref(), Some("x"));
    assert_eq!(top(r#"{"a":"\ud83d!"}"#, "a").as_deref(), Some("\u{fffd}!"));
    assert_eq!(
        top(r#"{"a":"\ud83d\u0041"}"#, "a").as_deref(),
        Some("\u{fffd}A")
    );
    assert_eq!(top(r#"{"a":"\u12"}"#, "a").as_deref(), Some("\u{fffd}12"));
}

#[test]
fn refuses_what_is_no_object() {
    for json in [
        "",
        "{",
        "}",
        "[]",
        "1",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1"#,
        r#"{"a":1,}"#,
        r#"{a:1}"#,
        r#"{"a":x}"#,
        r#"{"a":"x}"#,
        r#"{"a":"x\"}"#,
        r#"{"a":"x\"#,
        r#"{"a":[1}"#,
        r#"{"a":1}}"#,
        r#"{"a":1} {"a":2}"#,
        r#"{"a":1 "b":2}"#,
    ] {
        refused(json);
    }
}

#[test]
fn deep_nesting_costs_no_stack() {
    let depth = 200_000;
    let deep = format!(
        r#"{{"x":{}{},"a":1}}"#,
        "[".repeat(depth),
        "]".repeat(depth)
    );
    assert_eq!(top(&deep, "a").as_deref(), Some("1"));
    let deep = format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    let path = "a.".repeat(1000) + "a";
    assert_eq!(top(&deep, &path), None);
}

fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[ab]{0,2}", ".{0,8}", "[\"\\\\/\u{e9}\u{1f600}\n\t]{0,4}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        let name = prop_oneof![Just("data".to_owned()), text.clone()];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            object(name, inner),
        ]
    })
}

fn object(
    name: impl Strategy<Value = String>,
    value: impl Strategy<Value = Value>,
) -> impl Strategy<Value = Value> {
    let members = prop::collection::vec((name, value), 0..6);
    members.prop_map(|members| Value::Object(members.into_iter().collect()))
}

fn lookup(value: &Value, path: &str) -> Option<String> {
    match path
        .split('.')
        .try_fold(value, |value, name| value.as_object()?.get(name))?
    {
        Value::String(text) => Some(text.clone()),
        value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string()),
        _ => None,
    }
}

/// Writes the value with escapes where none are needed, and with space.
fn obfuscated(value: &Value) -> String {
    let text = |text: &str| {
        let units = text.encode_utf16().map(|unit| format!("\\u{unit:04X}"));
        format!("\"{}\"", units.collect::<String>())
    };
    match value {
        Value::String(inner) => text(inner),
        Value::Array(inner) => {
            format!(
                "[ {} ]",
                inner.iter().map(obfuscated).collect::<Vec<_>>().join(" , ")
            )
        }
        Value::Object(inner) => {
            let member = |(name, value): (&String, &Value)| {
                format!("{} :\t{}", text(name), obfuscated(value))
            };
            format!(
                "{{ {} }}",
                inner.iter().map(member).collect::<Vec<_>>().join(" , ")
            )
        }
        other => other.to_string(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn agrees_with_serde_json(members in prop::collection::vec(("a|b|ab|data|.{0,3}", any_json()), 0..6)) {
        let value = Value::Object(members.into_iter().collect());
        let paths = ["a", "b", "ab", "a.b", "a.a.b", "b.a", "ab.ab", "data.a"];
        let expected: Vec<_> = paths
            .iter()
            .map(|path| (value.get("data").and_then(|data| lookup(data, path)), lookup(&value, path)))
            .collect();
        for json in [value.to_string(), obfuscated(&value)] {
            prop_assert_eq!(read_all(json.as_bytes(), &paths), Some(expected.clone()), "{}", json);
        }
    }

    #[test]
    fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        read_all(&bytes, &["a", "a.b", "data.x"]);
        unescape(&bytes);
    }

    #[test]
    fn never_panics_on_what_looks_like_json(text in r#"\{("(a|b|data|\\u00)"|[:,\[\]{}1-3 "\\]){0,30}"#) {
        read_all(text.as_bytes(), &["a", "a.b", "data.x"]);
    }

    /// Whatever serde_json accepts as an object, this reader accepts.
    #[test]
    fn refuses_no_valid_object(text in r#"\{("(a|b)":("x"|1|\[\]|\{\}|\[1,2\]|\{"a":1\}),?){0,3}\}"#) {
        if serde_json::from_str::<Value>(&text).is_ok() {
            prop_assert!(read_all(text.as_bytes(), &["a", "a.b"]).is_some(), "{}", text);
        }
    }
}
