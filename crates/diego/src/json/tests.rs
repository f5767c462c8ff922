use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use prost::Message;

use super::shapes::*;
use super::*;
use crate::{locket, models};

/// Every shape that can be reached, by name.
fn all_shapes() -> BTreeMap<&'static str, &'static Shape> {
    const EVENTS: [&str; 13] = [
        "desired_lrp_created",
        "desired_lrp_changed",
        "desired_lrp_removed",
        "actual_lrp_created",
        "actual_lrp_changed",
        "actual_lrp_removed",
        "actual_lrp_instance_created",
        "actual_lrp_instance_changed",
        "actual_lrp_instance_removed",
        "actual_lrp_crashed",
        "task_created",
        "task_changed",
        "task_removed",
    ];
    let mut left: Vec<&'static Shape> = vec![
        &DESIRED_LRP_UPDATE,
        &DESIRED_LRP_SCHEDULING_INFO,
        &CELL_PRESENCE,
        &RESOURCE,
    ];
    left.extend(EVENTS.map(|name| of_event(name).unwrap()));
    let mut found = BTreeMap::new();
    while let Some(shape) = left.pop() {
        if found.insert(shape.name, shape).is_none() {
            let within = shape.fields.iter().filter_map(|field| match field.kind {
                Kind::Message(shape) => Some(shape),
                _ => None,
            });
            left.extend(within);
        }
    }
    found
}

/// The fields of each message of a file: number, and type with its label.
fn fields_of_file(text: &str) -> BTreeMap<String, BTreeSet<(u32, String)>> {
    let mut messages = BTreeMap::<String, BTreeSet<_>>::new();
    let (mut current, mut in_enum) = (String::new(), false);
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("message ") {
            current = rest.split([' ', '{']).next().unwrap().to_owned();
            messages.entry(current.clone()).or_default();
        } else if line.starts_with("enum ") {
            in_enum = true;
        } else if line == "}" && in_enum {
            in_enum = false;
        } else if let Some((left, right)) = line.split_once(" = ")
            && !in_enum
            && line.ends_with(';')
        {
            let number = right.split([' ', ';']).next().unwrap();
            let Ok(number) = number.parse() else { continue };
            let (kind, _) = left.rsplit_once(' ').unwrap();
            let fields = messages.get_mut(&current).unwrap();
            fields.insert((number, kind.to_owned()));
        }
    }
    messages
}

#[test]
fn shapes_have_the_fields_of_the_messages() {
    let mut messages = fields_of_file(include_str!("../../../../proto/bbs.proto"));
    messages.extend(fields_of_file(include_str!(
        "../../../../proto/locket.proto"
    )));
    let shapes = all_shapes();
    assert!(shapes.len() > 50, "only {} shapes", shapes.len());
    for (name, shape) in shapes {
        let fields = &messages[name];
        let numbers: BTreeSet<u32> = fields.iter().map(|(number, _)| *number).collect();
        let ours: BTreeSet<u32> = shape.fields.iter().map(|field| field.number).collect();
        assert_eq!(ours, numbers, "{name}");
        assert_eq!(ours.len(), shape.fields.len(), "{name} has a number twice");
        for field in shape.fields {
            let kind = match field.kind {
                Kind::Text => "string",
                Kind::Bool => "bool",
                Kind::Int32 => "int32",
                Kind::Int64 => "int64",
                Kind::Uint32 => "uint32",
                Kind::Uint64 => "uint64",
                Kind::Named(_) => "enum",
                Kind::Message(shape) => shape.name,
                Kind::Routes => "ProtoRoutes",
            };
            let expected = match field.form {
                Form::List | Form::ListOrNull => format!("repeated {kind}"),
                Form::Map | Form::MapAlways => format!("map<string, {kind}>"),
                Form::IfSent | Form::Within { .. } => format!("optional {kind}"),
                _ => kind.to_owned(),
            };
            let (_, found) = fields.iter().find(|(n, _)| *n == field.number).unwrap();
            let known = [
                "State",
                "Presence",
                "PreferredAddress",
                "UpdateStrategy",
                "TypeCode",
                "ActualLRP.Presence",
                "Type",
                "MediaType",
                "DigestAlgorithm",
                "DynamicValue",
                "ImageLayer.Type",
            ];
            let is_enum = known.contains(&found.as_str());
            let printed = match field.kind {
                // As names, or as numbers.
                Kind::Named(_) | Kind::Int32 if is_enum => continue,
                _ => found,
            };
            assert_eq!(&expected, printed, "{name}.{}", field.key);
        }
    }
}

fn printed(shape: &'static Shape, message: &impl Message) -> String {
    print(shape, &message.encode_to_vec()).unwrap()
}

#[test]
fn what_did_not_come_is_printed_as_go_prints_it() {
    let lrp = models::ActualLrp::default();
    let expected = r#"{"process_guid":"","index":0,"domain":"","instance_guid":"","cell_id":"","address":"","ports":null,"preferred_address":"UNKNOWN","crash_count":0,"state":"","since":0,"modification_tag":{"epoch":"","index":0},"presence":"ORDINARY","OptionalRoutable":null,"availability_zone":""}"#;
    assert_eq!(printed(&ACTUAL_LRP, &lrp), expected);
    let task = printed(&TASK, &models::Task::default());
    assert!(
        task.starts_with(r#"{"task_guid":"","domain":"","created_at":0"#),
        "{task}"
    );
    let info = models::DesiredLrpSchedulingInfo::default();
    let info = printed(&DESIRED_LRP_SCHEDULING_INFO, &info);
    assert!(
        info.contains(r#""max_pids":0,"routes":null,"epoch":"","index":0}"#),
        "{info}"
    );
    let cell = printed(&CELL_PRESENCE, &models::CellPresence::default());
    assert!(
        cell.ends_with(r#""rep_url":"","annotations":{}}"#),
        "{cell}"
    );
    assert_eq!(printed(&RESOURCE, &locket::Resource::default()), "{}");
}

#[test]
fn routes_tell_none_from_empty_and_stay_as_they_were_written() {
    let mut lrp = models::DesiredLrp::default();
    assert!(!printed(&DESIRED_LRP, &lrp).contains("routes"));
    lrp.routes = Some(models::ProtoRoutes::default());
    assert!(printed(&DESIRED_LRP, &lrp).contains(r#""routes":{},"#));
    let text = br#"[ { "b" : 1.50e3, "a" : "x \" <y" } ]"#.to_vec();
    lrp.routes = Some(models::ProtoRoutes {
        routes: [("z".to_owned(), b"1".to_vec()), ("a".to_owned(), text)].into(),
    });
    let found = printed(&DESIRED_LRP, &lrp);
    let expected = r#""routes":{"a":[{"b":1.50e3,"a":"x \" \u003cy"}],"z":1}"#;
    assert!(found.contains(expected), "{found}");
    lrp.routes = Some(models::ProtoRoutes {
        routes: [("a".to_owned(), b"{".to_vec())].into(),
    });
    let error = print(&DESIRED_LRP, &lrp.encode_to_vec()).unwrap_err();
    assert!(
        error.to_string().contains("a route's value is not JSON"),
        "{error}"
    );
}

#[test]
fn letters_are_escaped_as_go_escapes_them() {
    let mut out = String::new();
    quote("a\"\\\n\r\t\u{8}\u{c}\u{1}<>&\u{2028}\u{2029}ü", &mut out);
    let expected = r#""a\"\\\n\r\t\b\f\u0001\u003c\u003e\u0026\u2028\u2029ü""#;
    assert_eq!(out, expected);
}

#[test]
fn bytes_that_are_no_message_are_refused() {
    // A text where a message belongs, a group, a length beyond the end, a number for a text.
    for bytes in [
        &b"\x0a\x01\xff"[..],
        b"\x0b",
        b"\x0a\x05a",
        b"\x12\x80",
        b"\x10\x01",
    ] {
        print(&TASK, bytes).unwrap_err();
    }
    // What a later version may send is skipped.
    let later = b"\x99\x06\x01\x02\x03\x04\x05\x06\x07\x08\x9d\x06\x01\x02\x03\x04\x98\x06\x07";
    assert_eq!(print(&TASK, later).unwrap(), print(&TASK, b"").unwrap());
}

/// An action within so many others.
fn nested(depth: usize) -> String {
    let run = r#"{"run":{"path":"p","user":"u"}}"#;
    let (before, after) = (r#"{"try":{"action":"#, "}}");
    format!("{}{run}{}", before.repeat(depth), after.repeat(depth))
}

#[test]
fn what_is_nested_too_deep_is_refused_both_ways() {
    let text = |depth| format!(r#"{{"action":{}}}"#, nested(depth));
    let bytes = read(&DESIRED_LRP, &text(40)).unwrap();
    print(&DESIRED_LRP, &bytes).unwrap();
    let error = read(&DESIRED_LRP, &text(2000)).unwrap_err().to_string();
    assert!(error.contains("nested more than 100 deep"), "{error}");
    let mut bytes = Vec::new();
    for _ in 0..200 {
        // Field 1 of a try action, in field 6 of an action.
        let mut action = vec![0x0a];
        prost::encoding::encode_varint(bytes.len() as u64, &mut action);
        action.append(&mut bytes);
        bytes.push(0x32);
        prost::encoding::encode_varint(action.len() as u64, &mut bytes);
        bytes.append(&mut action);
    }
    let mut lrp = vec![0x3a];
    prost::encoding::encode_varint(bytes.len() as u64, &mut lrp);
    lrp.append(&mut bytes);
    let error = print(&DESIRED_LRP, &lrp).unwrap_err().to_string();
    assert!(error.contains("more than 100 deep"), "{error}");
}

#[test]
fn every_kind_of_wrong_value_is_told_with_its_place() {
    for (text, expected) in [
        ("nothing", "expected ident at line 1 column 2"),
        ("", "EOF while parsing a value at line 1 column 0"),
        ("[]", "expected an object, found []"),
        ("{} {}", "trailing characters at line 1 column 4"),
        (
            r#"{"process_guid":1}"#,
            "process_guid: expected a text, found 1",
        ),
        (
            r#"{"instances":"4"}"#,
            "instances: expected a whole number from -2147483648 to 2147483647, found \"4\"",
        ),
        (
            r#"{"instances":2147483648}"#,
            "instances: expected a whole number from -2147483648 to 2147483647, found 2147483648",
        ),
        (
            r#"{"instances":1.0}"#,
            "instances: expected a whole number from -2147483648 to 2147483647, found 1.0",
        ),
        (
            r#"{"cpu_weight":-1}"#,
            "cpu_weight: expected a whole number from 0 to 4294967295, found -1",
        ),
        (
            r#"{"start_timeout_ms":1e3}"#,
            "start_timeout_ms: expected a whole number of 64 bits, found 1e3",
        ),
        (
            r#"{"check_definition":{"checks":[{"tcp_check":{"interval_ms":-1}}]}}"#,
            "check_definition.checks[0].tcp_check.interval_ms: expected a whole number from 0 on, of 64 bits, found -1",
        ),
        (
            r#"{"privileged":"yes"}"#,
            "privileged: expected true or false, found \"yes\"",
        ),
        (
            r#"{"env":{"a":"b"}}"#,
            r#"env: expected a list, found {"a":"b"}"#,
        ),
        (
            r#"{"env":[{},{"name":[]}]}"#,
            "env[1].name: expected a text, found []",
        ),
        (
            r#"{"env":[null]}"#,
            "env[0]: expected an object, found null",
        ),
        (
            r#"{"action":"run"}"#,
            "action: expected an object, found \"run\"",
        ),
        (
            r#"{"metric_tags":[]}"#,
            "metric_tags: expected an object, found []",
        ),
        (
            r#"{"metric_tags":{"a":{"dynamic":"index"}}}"#,
            "metric_tags.a.dynamic: expected one of DynamicValueInvalid, INDEX, INSTANCE_GUID, found \"index\"",
        ),
        (
            r#"{"routes":{"cf-router":null}}"#,
            "routes.cf-router: expected any JSON but null, found null",
        ),
        (r#"{"routes":[]}"#, "routes: expected an object, found []"),
    ] {
        assert_eq!(
            read(&DESIRED_LRP, text).unwrap_err().to_string(),
            expected,
            "{text}"
        );
    }
    let long = format!(r#"{{"domain":[{}1]}}"#, "1,".repeat(100));
    let error = read(&DESIRED_LRP, &long).unwrap_err().to_string();
    assert!(
        error.ends_with("1,1,1,…") || error.ends_with("1,1,1…"),
        "{error}"
    );
}

#[test]
fn keys_are_read_as_go_reads_them() {
    let text = r#"{"Instances":1,"instances":3,"instances":2,"unknown":[{}],"domain":null,"ANNOTATION":"a","routes":{"r": [ 1 ]}}"#;
    let lrp = models::DesiredLrp::decode(&*read(&DESIRED_LRP, text).unwrap()).unwrap();
    assert_eq!(
        (lrp.instances, &*lrp.annotation, &*lrp.domain),
        (2, "a", "")
    );
    assert_eq!(lrp.routes.unwrap().routes["r"], b"[ 1 ]");
    // Absent, there and empty, and zero are three things in an update.
    let update = |text| {
        let bytes = read(&DESIRED_LRP_UPDATE, text).unwrap();
        models::DesiredLrpUpdate::decode(&*bytes).unwrap()
    };
    assert_eq!(update("{}"), models::DesiredLrpUpdate::default());
    let found = update(r#"{"instances":0,"routes":{},"annotation":""}"#);
    assert_eq!(
        (found.instances, found.annotation.as_deref()),
        (Some(0), Some(""))
    );
    assert!(found.routes.unwrap().routes.is_empty());
}

fn names() -> impl Strategy<Value = String> {
    proptest::string::string_regex("(?s).{0,6}").unwrap()
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(
        texts in any::<[String; 3]>(),
        numbers in any::<[i32; 3]>(),
        wide in any::<i64>(),
        ports in proptest::collection::vec(any::<u32>(), 0..4),
        tags in proptest::collection::hash_map(names(), 0..3i32, 0..3),
        routes in proptest::option::of(proptest::collection::hash_map(names(), any::<i64>(), 0..3)),
        limits in any::<Option<u64>>(),
        bit in any::<bool>(),
    ) {
        let [process_guid, annotation, path] = texts;
        let lrp = models::DesiredLrp {
            process_guid,
            annotation: annotation.clone(),
            instances: numbers[0],
            memory_mb: numbers[1],
            update_strategy: numbers[2].rem_euclid(2),
            start_timeout_ms: wide,
            privileged: bit,
            ports,
            routes: routes.map(|routes| models::ProtoRoutes {
                routes: routes.into_iter().map(|(k, v)| (k, v.to_string().into_bytes())).collect(),
            }),
            metric_tags: tags
                .into_iter()
                .map(|(key, dynamic)| {
                    let r#static = annotation.clone();
                    (key, models::MetricTagValue { r#static, dynamic })
                })
                .collect(),
            action: Some(models::Action {
                run_action: Some(models::RunAction {
                    path,
                    resource_limits: limits.map(|nofile| models::ResourceLimits {
                        nofile: Some(nofile),
                        nproc: None,
                    }),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            ..Default::default()
        };
        let text = printed(&DESIRED_LRP, &lrp);
        let bytes = read(&DESIRED_LRP, &text).unwrap();
        prop_assert_eq!(models::DesiredLrp::decode(&*bytes).unwrap(), lrp);
    }

    #[test]
    fn any_bytes_are_an_error_or_json(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        for shape in [&DESIRED_LRP, &TASK, &ACTUAL_LRP, &CELL_PRESENCE] {
            if let Ok(text) = print(shape, &bytes) {
                let _: serde_json::Value = serde_json::from_str(&text).unwrap();
            }
        }
    }

    #[test]
    fn what_was_read_once_is_printed_and_read_the_same_for_ever(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let spec = r#"{"process_guid":"p","env":[{"name":"a","value":"b"}],"routes":{"r":[1],"s":{}},"ports":[1,2],
            "metric_tags":{"a":{"static":"x"},"b":{"dynamic":"INDEX"}},"network":{"properties":{"k":"v","l":"w"}},
            "image_layers":[{"url":"u","layer_type":"SHARED"}],"volume_mounts":[{"driver":"d"}],
            "action":{"serial":{"actions":[{"try":{"action":{"run":{"path":"p","resource_limits":{"nofile":0}}}}}]}}}"#;
        let mut bytes = read(&DESIRED_LRP, spec).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(first) = print(&DESIRED_LRP, &bytes)
            && let Ok(bytes) = read(&DESIRED_LRP, &first)
        {
            let once = print(&DESIRED_LRP, &bytes).unwrap();
            let again = read(&DESIRED_LRP, &once).unwrap();
            prop_assert_eq!(print(&DESIRED_LRP, &again).unwrap(), once);
        }
    }

    #[test]
    fn any_text_is_an_error_or_bytes(text in "[\\[\\]{}\",:0-9a-z_ ]{0,60}") {
        let _ = read(&DESIRED_LRP, &text);
    }
}
