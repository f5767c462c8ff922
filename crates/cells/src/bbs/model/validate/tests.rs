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
        "1.1.1.1-::1",
        "1.2.3.4/+1",
    ] {
        assert!(!egress::rule(&rule(bad)).none(), "{bad}");
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
        CachedDependency, CheckDefinition, DesireLrpRequest, DesiredLrp, ImageLayer, LogRateLimit,
        MetricTagValue, SecurityGroupRule, Sidecar, VolumeMount,
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
        "invalid action type",
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
}
