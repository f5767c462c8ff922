//! Rules of the model, by example and by property.

use proptest::prelude::*;

use super::*;

fn mapping() -> TcpMapping {
    TcpMapping {
        router_group_guid: "group".into(),
        backend_port: 60000,
        backend_ip: "10.0.0.1".into(),
        instance_id: "instance".into(),
        port: 5200,
        ..TcpMapping::default()
    }
}

fn route() -> HttpRoute {
    HttpRoute {
        route: "app.example.com/path".into(),
        port: 8080,
        ip: "10.0.0.1".into(),
        ..HttpRoute::default()
    }
}

fn tcp_error(change: impl Fn(&mut TcpMapping)) -> String {
    let mut mapping = mapping();
    change(&mut mapping);
    mapping.check_upsert(120).unwrap_err().message
}

fn http_error(change: impl Fn(&mut HttpRoute)) -> ApiError {
    let mut route = route();
    change(&mut route);
    route.check_upsert(120).unwrap_err()
}

#[test]
fn a_good_mapping_passes_and_gets_the_longest_time_to_live() {
    let mut mapping = mapping();
    mapping.check_upsert(120).unwrap();
    assert_eq!(mapping.ttl, Some(120));
}

#[test]
fn each_rule_of_a_mapping_has_its_text() {
    let of = "RouteMapping=[group:5200<->10.0.0.1:60000]";
    assert_eq!(
        tcp_error(|mapping| mapping.router_group_guid.clear()),
        "Each tcp mapping requires a non empty router group guid. \
         RouteMapping=[:5200<->10.0.0.1:60000]"
    );
    assert_eq!(
        tcp_error(|mapping| mapping.port = 0),
        "Each tcp mapping requires a positive external port. \
         RouteMapping=[group:0<->10.0.0.1:60000]"
    );
    assert_eq!(
        tcp_error(|mapping| mapping.backend_ip.clear()),
        "Each tcp mapping requires a non empty backend ip. RouteMapping=[group:5200<->:60000]"
    );
    assert_eq!(
        tcp_error(|mapping| mapping.backend_port = 0),
        "Each tcp mapping requires a positive backend port. \
         RouteMapping=[group:5200<->10.0.0.1:0]"
    );
    assert_eq!(
        tcp_error(|mapping| mapping.backend_tls_port = 65536),
        format!(
            "Each tcp mapping with a backend TLS port requires that port to be less than or \
             equal to 65535. {of}"
        )
    );
    assert_eq!(
        tcp_error(|mapping| mapping.ttl = Some(121)),
        format!("Each tcp mapping requires TTL to be less than or equal to 120. {of}")
    );
    assert_eq!(
        tcp_error(|mapping| mapping.ttl = Some(0)),
        "Each tcp route mapping requires a ttl greater than 0"
    );
    assert_eq!(
        tcp_error(|mapping| mapping.alpns = "h2".into()),
        format!(
            "Each tcp mapping can define ALPNs only when TerminateFrontendTLS is enabled. {of}"
        )
    );
}

#[test]
fn a_backend_with_tls_needs_no_plain_port() {
    let mut mapping = TcpMapping {
        backend_port: 0,
        backend_tls_port: 61443,
        ..mapping()
    };
    mapping.check_upsert(120).unwrap();
}

#[test]
fn each_rule_of_a_route_has_its_name_and_text() {
    let cases: [(HttpRoute, ErrorName, &str); 8] = [
        (
            HttpRoute { port: 0, ..route() },
            ErrorName::RouteInvalidError,
            "Each route request requires a port greater than 0",
        ),
        (
            HttpRoute {
                route: String::new(),
                ..route()
            },
            ErrorName::RouteInvalidError,
            "Each route request requires a valid route",
        ),
        (
            HttpRoute {
                ip: String::new(),
                ..route()
            },
            ErrorName::RouteInvalidError,
            "Each route request requires an IP",
        ),
        (
            HttpRoute {
                ttl: Some(121),
                ..route()
            },
            ErrorName::RouteInvalidError,
            "Max ttl is 120",
        ),
        (
            HttpRoute {
                ttl: Some(-1),
                ..route()
            },
            ErrorName::RouteInvalidError,
            "Request requires a ttl greater than 0",
        ),
        (
            HttpRoute {
                route: "a.b/c?d".into(),
                ..route()
            },
            ErrorName::RouteInvalidError,
            "url cannot contain any of [?, #]",
        ),
        (
            HttpRoute {
                route_service_url: "http://a.b".into(),
                ..route()
            },
            ErrorName::RouteServiceUrlInvalidError,
            "Route service url must use HTTPS.",
        ),
        (
            HttpRoute {
                route_service_url: "https://a.b/c#d".into(),
                ..route()
            },
            ErrorName::RouteServiceUrlInvalidError,
            "url cannot contain any of [?, #]",
        ),
    ];
    for (route, name, text) in cases {
        let error = http_error(|wanted| *wanted = route.clone());
        assert_eq!((error.name, error.message.as_str()), (name, text));
    }
}

#[test]
fn urls_pass_if_nothing_in_them_needs_an_escape() {
    for good in [
        "app.example.com",
        "*.example.com/a%20b/c",
        "app.example.com:8080/x",
        "https://user@host.com:443/path",
        "a_b.c/~d;e=f@g",
    ] {
        assert_eq!(url::check(good), Ok(()), "{good}");
    }
    let invalid = "url cannot contain invalid characters";
    for (bad, text) in [
        ("a.b/ c", invalid),
        ("a.b/é", invalid),
        ("HTTPS://a.b", invalid),
        (":a", "parse \":a\": missing protocol scheme"),
        ("a.b/%zz", "parse \"a.b/%zz\": invalid URL escape \"%zz\""),
        (
            "https://a:b/c",
            "parse \"https://a:b/c\": invalid port \":b\" after host",
        ),
        (
            "1a:2/c",
            "parse \"1a:2/c\": first path segment in URL cannot contain colon",
        ),
    ] {
        assert_eq!(url::check(bad), Err(text.to_owned()), "{bad}");
    }
}

#[test]
fn each_rule_of_ports_has_its_text() {
    for (ports, text) in [
        ("1023", "port must be between 1024 and 65535"),
        ("65536", "port must be between 1024 and 65535"),
        ("+2000", "port must be between 1024 and 65535"),
        ("", "port must be between 1024 and 65535"),
        ("1024,", "port must be between 1024 and 65535"),
        ("-2000", "range (-2000) requires a starting port"),
        ("2000-", "range (2000-) requires an ending port"),
        (
            "2001-2000",
            "range (2001-2000) must be in ascending numeric order",
        ),
        ("1-2-3", "range (1-2-3) has too many '-' separators"),
        ("1100-1200,1200", "Overlapping values: [1100-1200] and 1200"),
    ] {
        assert_eq!(
            ReservablePorts::parse(ports),
            Err(text.to_owned()),
            "{ports}"
        );
    }
}

#[test]
fn each_rule_of_groups_has_its_text() {
    let group = |name: &str, kind: &str, ports: &str| RouterGroup {
        guid: String::new(),
        name: name.into(),
        kind: kind.into(),
        reservable_ports: ports.into(),
    };
    for (group, text) in [
        (group("", "tcp", "2000"), "missing name in router group"),
        (group("a", "", "2000"), "missing type in router group"),
        (
            group("a", "tcp", ""),
            "missing reservable_ports in router group: a",
        ),
        (
            group("a", "http", "2000"),
            "reservable ports are not supported for router groups of type http",
        ),
    ] {
        assert_eq!(group.check(), Err(text.to_owned()));
    }
    assert_eq!(group("a", "http", "").check(), Ok(()));
    assert_eq!(group("a", "tcp", "1024-65535").check(), Ok(()));
}

#[test]
fn json_reads_as_routing_api_writes_it() {
    let mapping = TcpMapping {
        ttl: Some(60),
        modification_tag: ModificationTag {
            guid: "g".into(),
            index: 2,
        },
        ..mapping()
    };
    assert_eq!(
        serde_json::to_string(&mapping).unwrap(),
        r#"{"router_group_guid":"group","backend_port":60000,"backend_tls_port":0,"backend_ip":"10.0.0.1","instance_id":"instance","port":5200,"modification_tag":{"guid":"g","index":2},"ttl":60,"isolation_segment":""}"#
    );
    assert_eq!(
        serde_json::to_string(&route()).unwrap(),
        r#"{"route":"app.example.com/path","port":8080,"ip":"10.0.0.1","ttl":null,"log_guid":"","modification_tag":{"guid":"","index":0}}"#
    );
}

#[test]
fn nulls_unknown_fields_and_what_follows_are_taken_as_go_takes_them() {
    let body = br#"[{"port":1,"backend_ip":null,"modification_tag":null,"new":[1]}] more"#;
    let list: Vec<TcpMapping> = read_list(body).unwrap();
    assert_eq!(list[0].port, 1);
    assert_eq!(read_list::<TcpMapping>(b"null").unwrap(), []);
    for bad in [&b"{}"[..], b"", b"[1]", b"[{\"port\":65536}]"] {
        let error = read_list::<TcpMapping>(bad).unwrap_err();
        assert_eq!(error.name, ErrorName::ProcessRequestError);
        assert!(error.message.starts_with("Cannot process request: "));
    }
}

proptest! {
    #[test]
    fn any_mapping_survives_json(
        guid in ".{0,8}", ip in ".{0,8}", sni in proptest::option::of(".{0,8}"),
        port in any::<u16>(), tls in any::<i64>(), ttl in proptest::option::of(any::<i64>()),
        flags in any::<(bool, bool)>(), index in any::<u32>(),
    ) {
        let mapping = TcpMapping {
            router_group_guid: guid.clone(),
            backend_ip: ip,
            backend_sni_hostname: sni,
            port,
            backend_tls_port: tls,
            ttl,
            terminate_frontend_tls: flags.0,
            enable_backend_mtls: flags.1,
            modification_tag: ModificationTag { guid, index },
            ..mapping()
        };
        let text = serde_json::to_vec(&[&mapping]).unwrap();
        prop_assert_eq!(read_list::<TcpMapping>(&text).unwrap(), [mapping]);
    }

    #[test]
    fn a_port_is_reservable_if_some_range_names_it(
        starts in proptest::collection::vec((1024u16..65000, 0u16..500), 1..5),
        port in 1024u16..65535,
    ) {
        let text: Vec<_> = starts.iter().map(|(first, more)| format!("{first}-{}", first + more)).collect();
        let covers = starts.iter().filter(|(first, more)| (*first..=first + more).contains(&port)).count();
        match ReservablePorts::parse(&text.join(",")) {
            Ok(ports) => {
                prop_assert!(covers <= 1);
                prop_assert_eq!(ports.contains(port), covers == 1);
            }
            Err(error) => prop_assert!(error.starts_with("Overlapping values: "), "{}", error),
        }
    }

    #[test]
    fn any_text_is_a_url_or_an_error(text in "\\PC{0,20}") {
        let _ = url::check(&text);
    }

    #[test]
    fn any_ports_are_ports_or_an_error(text in "[-,0-9a ]{0,16}") {
        let _ = ReservablePorts::parse(&text);
    }

    #[test]
    fn renewing_keeps_the_key_and_raises_the_index(ttl in 1i64..120, segment in ".{0,4}") {
        let row = TcpMapping { ttl: Some(5), alpns: "h2".into(), ..mapping() };
        let wanted = TcpMapping { ttl: Some(ttl), isolation_segment: segment.clone(), ..mapping() };
        let renewed = row.renewed(&wanted);
        prop_assert_eq!(renewed.key(), row.key());
        prop_assert_eq!(renewed.modification_tag.index, 1);
        prop_assert_eq!((renewed.ttl, renewed.isolation_segment), (Some(ttl), segment));
        prop_assert_eq!(renewed.alpns, "h2");
    }
}

#[test]
fn texts_that_a_database_cannot_keep_are_refused() {
    for bad in ["10.0.0.1\r\nx", "a\0b", &"a".repeat(MOST_TEXT + 1)] {
        let expected =
            "Each tcp mapping requires texts of at most 255 bytes without control characters";
        assert_eq!(
            tcp_error(|mapping| mapping.backend_ip = bad.into()),
            expected
        );
        assert_eq!(
            tcp_error(|mapping| mapping.instance_id = bad.into()),
            expected
        );
        let sni = |mapping: &mut TcpMapping| mapping.backend_sni_hostname = Some(bad.into());
        assert_eq!(tcp_error(sni), expected);
        let error = http_error(|route| route.ip = bad.into());
        assert_eq!(error.name, ErrorName::RouteInvalidError);
        assert!(
            error.message.contains("at most 255 bytes"),
            "{}",
            error.message
        );
    }
}
