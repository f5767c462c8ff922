use proptest::prelude::*;

use super::*;

#[test]
fn root_file_systems_need_a_scheme() {
    for good in [
        "preloaded:cflinuxfs4",
        "docker:",
        "docker:///org/img#tag",
        "preloaded+layer:x?layer=y",
        "docker://registry:5000/x",
        "docker://registry:/x",
        "docker://user:pass@[::1]:5000/x",
        "docker://[::1]",
    ] {
        assert!(is_root_fs(good), "{good}");
    }
    for bad in [
        "",
        "cflinuxfs4",
        ":x",
        "1a:x",
        "a b:x",
        "docker:\u{1}",
        "docker:///%zz",
        "docker://registry:abc/x",
        "docker://re gistry/x",
        "docker://[::1]x/y",
    ] {
        assert!(!is_root_fs(bad), "{bad}");
    }
}

#[test]
fn each_destination_of_a_list_counts() {
    let rule = |destination: &str| diego::models::SecurityGroupRule {
        protocol: "all".into(),
        destinations: vec![destination.into()],
        ..Default::default()
    };
    for good in [
        "1.2.3.4",
        "10.0.0.0/8,192.168.0.0/16",
        "1.1.1.1-1.1.1.9",
        "::1",
        "fe80::/10",
    ] {
        assert!(egress::rule(&rule(good)).none(), "{good}");
    }
    for bad in [
        "",
        "1.2.3",
        "1.2.3.4/33",
        "1.1.1.9-1.1.1.1",
        "1.1.1.1,x",
        "1.1.1.1, 1.1.1.2",
        "1.1.1.1-::1",
        "1.2.3.4/+1",
    ] {
        assert!(!egress::rule(&rule(bad)).none(), "{bad}");
    }
}

#[test]
fn all_bad_destinations_of_a_rule_are_one_problem() {
    let text = |destinations: &[&str]| {
        let rule = diego::models::SecurityGroupRule {
            protocol: "all".into(),
            destinations: destinations.iter().map(|&text| text.to_owned()).collect(),
            ..Default::default()
        };
        egress::rule(&rule).0.join(", ")
    };
    assert_eq!(text(&["1.1.1.1", "1.1.1.1-1.1.1.2,::1"]), "");
    assert_eq!(
        text(&[]),
        "Invalid field: destinations [ Must have at least 1 destination ]"
    );
    assert_eq!(
        text(&["x,1.1.1.1", "1.1.1.1/33"]),
        "Invalid field: destinations [ Invalid IP, invalid CIDR address: 1.1.1.1/33 ]"
    );
    assert_eq!(
        text(&["1.1.1.0/24-1.1.1.1"]),
        "Invalid field: destinations [ invalid CIDR address: 1.1.1.0/24-1.1.1.1 ]"
    );
    assert_eq!(
        text(&["1.1.9.9-1.1.1.1"]),
        "Invalid field: destinations [ Invalid IP, Invalid IP ]"
    );
}

#[test]
fn each_rule_about_a_digest_names_its_field() {
    let named = |layer_type: i32, algorithm: i32, value: &str| {
        let layer = diego::models::ImageLayer {
            url: "u".into(),
            destination_path: "/d".into(),
            layer_type,
            media_type: 1,
            digest_algorithm: algorithm,
            digest_value: value.into(),
            ..Default::default()
        };
        let mut problems = Problems::new();
        parts::layers(&mut problems, &[layer], "user");
        problems.0.join(", ").replace("Invalid field: ", "")
    };
    const SHARED: i32 = 1;
    const EXCLUSIVE: i32 = 2;
    for (kind, algorithm, value, expected) in [
        (SHARED, 0, "", ""),
        (SHARED, 1, "v", ""),
        (EXCLUSIVE, 2, "v", ""),
        (
            SHARED,
            0,
            "v",
            "image_layer, digest_algorithm, digest_algorithm",
        ),
        (SHARED, 7, "v", "image_layer, digest_algorithm"),
        (SHARED, 7, "", "image_layer, digest_value"),
        (SHARED, 1, "", "image_layer, digest_value"),
        (
            EXCLUSIVE,
            0,
            "",
            "image_layer, digest_algorithm, digest_value",
        ),
    ] {
        assert_eq!(
            named(kind, algorithm, value),
            expected,
            "{kind} {algorithm} {value:?}"
        );
    }
}

#[test]
fn routes_are_json_of_any_kind() {
    let routes = |value: &[u8]| diego::models::ProtoRoutes {
        routes: [
            ("r".to_owned(), value.to_vec()),
            ("s".into(), b"{}".to_vec()),
        ]
        .into(),
    };
    assert!(desired::routes_are_json(None).is_ok());
    for good in ["null", " [1e400, {\"a\":\"\\ud800\"}]\n", "\"x\""] {
        assert!(
            desired::routes_are_json(Some(&routes(good.as_bytes()))).is_ok(),
            "{good}"
        );
    }
    for bad in ["", "bad", "{", "[] []", "'x'", "01"] {
        let error = desired::routes_are_json(Some(&routes(bad.as_bytes()))).unwrap_err();
        assert_eq!(error.message, "the request received is invalid", "{bad}");
    }
}

#[test]
fn credentials_of_an_update_are_given_together_also_when_they_are_empty() {
    let named = |username: Option<&str>, password: Option<&str>| {
        let update = diego::models::DesiredLrpUpdate {
            image_username: username.map(str::to_owned),
            image_password: password.map(str::to_owned),
            ..Default::default()
        };
        let request = diego::models::UpdateDesiredLrpRequest {
            process_guid: "p".into(),
            update: Some(update),
        };
        request.validate().map_err(|error| error.message)
    };
    for both in [
        (None, None),
        (Some(""), Some("")),
        (Some(""), Some("pw")),
        (Some("u"), Some("")),
    ] {
        assert_eq!(named(both.0, both.1), Ok(()), "{both:?}");
    }
    for given in ["", "x"] {
        let error = Err("Invalid field: image_password".to_owned());
        assert_eq!(named(Some(given), None), error);
        let error = Err("Invalid field: image_username".to_owned());
        assert_eq!(named(None, Some(given)), error);
    }
}

#[test]
fn long_names_get_the_general_text() {
    let request = UpsertDomainRequest {
        domain: "ü".repeat(256),
        ttl: 0,
    };
    assert_eq!(
        request.validate().unwrap_err().message,
        "the request received is invalid"
    );
    let request = UpsertDomainRequest {
        domain: "ü".repeat(255),
        ttl: 0,
    };
    assert!(request.validate().is_ok());
}

#[test]
fn a_metric_tag_is_static_or_dynamic_and_unknown_dynamic_values_are_none() {
    let tag = |text: &str, dynamic: i32| {
        let value = diego::models::MetricTagValue {
            r#static: text.into(),
            dynamic,
        };
        parts::metric_tags(&[("t".to_owned(), value)].into(), "").none()
    };
    for (text, dynamic, good) in [
        ("x", 0, true),
        ("", 1, true),
        ("", 2, true),
        ("x", 7, true),
        ("", 0, false),
        ("", 7, false),
        ("x", 1, false),
        ("x", 2, false),
    ] {
        assert_eq!(tag(text, dynamic), good, "{text:?} {dynamic}");
    }
}

#[test]
fn the_key_of_an_instance_to_remove_is_only_compared() {
    let request = diego::models::RemoveActualLrpRequest {
        process_guid: "p".into(),
        index: 0,
        actual_lrp_instance_key: Some(Default::default()),
    };
    assert!(request.validate().is_ok());
}

proptest! {
    #[test]
    fn guids_are_what_the_pattern_says(guid in "\\PC{0,12}") {
        let expected = !guid.is_empty()
            && guid.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        prop_assert_eq!(is_guid(&guid), expected);
    }
}

/// The order in which the original's code names them; recordings have parts of it.
#[test]
fn fields_of_a_desired_lrp_are_named_in_the_order_of_the_original() {
    use diego::models::{
        CachedDependency, CheckDefinition, DesireLrpRequest, DesiredLrp, EnvironmentVariable, File,
        ImageLayer, LogRateLimit, MetricTagValue, SecurityGroupRule, Sidecar, VolumeMount,
    };
    let tag = MetricTagValue::default();
    let lrp = DesiredLrp {
        instances: -1,
        memory_mb: -1,
        disk_mb: -1,
        max_pids: -1,
        log_rate_limit: Some(LogRateLimit {
            bytes_per_second: -2,
        }),
        annotation: "a".repeat(ANNOTATION_BYTES + 1),
        metric_tags: [("x".to_owned(), tag)].into(),
        environment_variables: vec![
            EnvironmentVariable::default(),
            EnvironmentVariable {
                name: "PATH".into(),
                ..EnvironmentVariable::default()
            },
        ],
        monitor: Some(diego::models::Action::default()),
        volume_mounted_files: vec![File {
            content: "x".repeat(1 + (1 << 20)),
            ..File::default()
        }],
        egress_rules: vec![SecurityGroupRule::default()],
        cached_dependencies: vec![CachedDependency::default()],
        image_layers: vec![ImageLayer::default()],
        sidecars: vec![Sidecar::default()],
        volume_mounts: vec![VolumeMount {
            mode: "r".into(),
            ..VolumeMount::default()
        }],
        image_username: "u".into(),
        check_definition: Some(CheckDefinition {
            checks: vec![diego::models::Check::default()],
            ..CheckDefinition::default()
        }),
        ..DesiredLrp::default()
    };
    let request = DesireLrpRequest {
        desired_lrp: Some(lrp),
    };
    let text = request.validate().unwrap_err().message;
    let named = text.replace("Invalid field: ", "");
    let outer = [
        "volumeMountedFiles",
        "domain",
        "rootfs",
        "rootfs",
        "instances",
        "memory_mb",
        "disk_mb",
        "log_rate_limit_bytes_per_second",
        "annotation",
        "max_pids",
        "metric_tags",
        "domain",
        "process_guid",
        "volumeMountedFiles",
        "invalid action type",
        "monitor",
        "inner-action",
        "invalid field: name cannot be blank",
        "egress_rules",
        "cached_dependency",
        "image_layer",
        "sidecars",
        "invalid volume_mount driver",
        "image_password",
        "check_definition",
        "log_rate_limit",
    ];
    let mut names = named.split(", ");
    for name in outer {
        assert!(names.any(|named| named == name), "{name} in {named}");
    }
    assert_eq!(text.matches("name cannot be blank").count(), 1);
}

#[test]
fn fields_of_a_task_are_named_in_the_order_of_the_original() {
    use diego::models::{CachedDependency, DesireTaskRequest, LogRateLimit, TaskDefinition};
    let request = DesireTaskRequest {
        task_guid: "t".into(),
        domain: "d".into(),
        task_definition: Some(TaskDefinition {
            memory_mb: -1,
            disk_mb: -1,
            max_pids: -1,
            log_rate_limit: Some(LogRateLimit {
                bytes_per_second: -2,
            }),
            image_password: "p".into(),
            cached_dependencies: vec![CachedDependency::default()],
            ..TaskDefinition::default()
        }),
    };
    assert_eq!(
        request.validate().unwrap_err().message,
        "Invalid field: rootfs, invalid action type, Invalid field: memory_mb, \
         Invalid field: disk_mb, Invalid field: log_rate_limit, Invalid field: max_pids, \
         Invalid field: image_username, Invalid field: cached_dependency, \
         Invalid field: from, Invalid field: to"
    );
}

#[test]
fn sidecars_are_named_once_before_the_problems_of_all() {
    let sidecar = |memory_mb: i32| diego::models::Sidecar {
        memory_mb,
        ..Default::default()
    };
    let mut problems = Problems::new();
    parts::sidecars(&mut problems, &[]);
    assert!(problems.none());
    parts::sidecars(&mut problems, &[sidecar(0), sidecar(-1)]);
    let expected = [
        "Invalid field: sidecars",
        "invalid action type",
        "invalid action type",
        "Invalid field: memory_mb",
    ];
    assert_eq!(problems.0, expected);
}
