//! Each transition by itself.

use diego::models::MetricTagValue;
use diego::models::actual_lrp_net_info::PreferredAddress;
use diego::models::metric_tag_value::DynamicValue;

use super::*;

fn running() -> Heard {
    let mut heard = Heard::default();
    heard.desire(web(2, 0, &["a.x"]));
    heard.create(runs(0, 1, 0));
    heard
}

#[test]
fn an_instance_that_runs_is_registered_with_all_that_routers_want_to_know() {
    let mut heard = Heard::default();
    let json = r#"[{"hostnames":["a.x"],"port":8080,"route_service_url":"https://rs","isolation_segment":"seg",
        "protocol":"http2","options":{"loadbalancing":"least-connection"}}]"#;
    let value = |text: &str, dynamic: DynamicValue| MetricTagValue {
        r#static: text.into(),
        dynamic: dynamic.into(),
    };
    let mut lrp = process(2, 0, &[("cf-router", json)]);
    lrp.metric_tags = [
        ("source_id".into(), value("s", DynamicValue::Invalid)),
        ("instance_id".into(), value("", DynamicValue::Index)),
        (
            "process_instance_id".into(),
            value("", DynamicValue::InstanceGuid),
        ),
        ("component".into(), value("other", DynamicValue::Invalid)),
    ]
    .into();
    heard.desire(lrp);
    let claimed = with(runs(1, 1, 0), |lrp| lrp.state = "CLAIMED".into());
    let with_tls = with(runs(1, 1, 1), |lrp| {
        let net = lrp.actual_lrp_net_info.as_mut().unwrap();
        net.ports[0].container_tls_proxy_port = 61_001;
        net.ports[0].host_tls_proxy_port = 62_000;
    });
    let changes = heard.change(claimed, with_tls);
    assert!(changes.unregistered.is_empty());
    let [message] = &changes.registered[..] else {
        panic!("{changes:?}");
    };
    assert_eq!(
        String::from_utf8(http(message).json()).unwrap(),
        r#"{"host":"10.0.0.1","port":61001,"tls_port":62000,"uris":["a.x"],"protocol":"http2","app":"app","route_service_url":"https://rs","private_instance_id":"guid-1","private_instance_index":"1","server_cert_domain_san":"guid-1","isolation_segment":"seg","endpoint_updated_at_ns":77,"tags":{"component":"route-emitter","instance_id":"1","process_instance_id":"guid-1","source_id":"s"},"availability_zone":"z1","options":{"loadbalancing":"least-connection"}}"#
    );
    // A router that starts later is not told when the instance changed.
    let (page, next) = heard.table.page(Audience::External, None, 10);
    assert_eq!((http(&page[0]).endpoint_updated_at_ns, next), (0, None));
}

#[test]
fn one_that_is_not_running_or_not_routable_is_not_registered() {
    let mut heard = Heard::default();
    heard.desire(web(2, 0, &["a.x"]));
    for state in ["UNCLAIMED", "CLAIMED", "CRASHED"] {
        heard.create(with(runs(0, 1, 0), |lrp| lrp.state = state.into()));
    }
    heard.create(with(runs(0, 1, 1), |lrp| lrp.routable = Some(false)));
    assert!(heard.router.0.is_empty());
    // One of a rep from before that was known is.
    heard.create(with(runs(0, 1, 2), |lrp| lrp.routable = None));
    assert_eq!(heard.router.routes(), ["a.x 10.0.0.1:61001"]);
}

#[test]
fn whatever_ends_it_unregisters_it() {
    type End = fn(&mut Heard);
    let ends: [(&str, End); 6] = [
        ("removed", |heard| drop(heard.remove(runs(0, 1, 1)))),
        ("removed as it was", |heard| {
            drop(heard.remove(runs(0, 1, 0)))
        }),
        ("crashed", |heard| {
            let crashed = with(runs(0, 1, 1), |lrp| lrp.state = "CRASHED".into());
            heard.change(runs(0, 1, 0), crashed);
        }),
        ("claimed by another", |heard| {
            let claimed = with(runs(0, 1, 1), |lrp| lrp.state = "CLAIMED".into());
            heard.change(runs(0, 1, 0), claimed);
        }),
        ("not routable", |heard| {
            let unready = with(runs(0, 1, 1), |lrp| lrp.routable = Some(false));
            heard.change(runs(0, 1, 0), unready);
        }),
        ("not desired", |heard| {
            drop(heard.undesire(web(2, 0, &["a.x"])))
        }),
    ];
    for (what, end) in ends {
        let mut heard = running();
        assert_eq!(heard.router.routes().len(), 1);
        end(&mut heard);
        assert!(heard.router.0.is_empty(), "{what}");
        assert_eq!(heard.table.counts(), Counts::default(), "{what}");
    }
}

#[test]
fn what_is_old_has_no_effect() {
    let mut heard = running();
    heard.change(runs(0, 1, 0), runs(0, 1, 5));
    for changes in [
        heard.change(
            runs(0, 1, 3),
            with(runs(0, 1, 4), |lrp| lrp.state = "CLAIMED".into()),
        ),
        heard.remove(runs(0, 1, 4)),
        heard.create(with(runs(0, 1, 2), |lrp| {
            lrp.actual_lrp_net_info.as_mut().unwrap().address = "10.0.0.9".into();
        })),
        heard.desire(web(0, 0, &[])),
    ] {
        assert_eq!(changes, Changes::default());
    }
    heard.update(web(2, 0, &["a.x"]), web(2, 7, &["b.x"]));
    heard.undesire(web(2, 6, &["a.x"]));
    assert_eq!(heard.router.routes(), ["b.x 10.0.0.1:61001"]);
    // Another epoch is another record.
    heard.undesire(DesiredLrp {
        modification_tag: tag("again", 0),
        ..web(2, 0, &[])
    });
    assert!(heard.router.0.is_empty());
}

#[test]
fn routes_come_and_go_without_those_that_stay() {
    let mut heard = running();
    let changes = heard.update(web(2, 0, &["a.x"]), web(2, 1, &["a.x", "b.x"]));
    assert_eq!(
        (changes.registered.len(), changes.unregistered.len()),
        (1, 0)
    );
    assert_eq!(http(&changes.registered[0]).uris, ["b.x"]);
    assert_eq!(http(&changes.registered[0]).endpoint_updated_at_ns, 0);
    let changes = heard.update(web(2, 1, &["a.x", "b.x"]), web(2, 2, &["b.x"]));
    assert_eq!(
        (changes.registered.len(), changes.unregistered.len()),
        (0, 1)
    );
    assert_eq!(http(&changes.unregistered[0]).uris, ["a.x"]);
}

#[test]
fn a_route_that_says_something_else_is_registered_and_never_unregistered() {
    let mut heard = running();
    let mut before = web(2, 0, &["a.x"]);
    for (index, more) in [
        r#""route_service_url":"https://rs""#,
        r#""route_service_url":"https://rs","options":{"loadbalancing":"hash"}"#,
        r#""isolation_segment":"s""#,
    ]
    .into_iter()
    .enumerate()
    {
        let json = format!(r#"[{{"hostnames":["a.x"],"port":8080,{more}}}]"#);
        let after = process(2, 1 + index as u32, &[("cf-router", &json)]);
        let changes = heard.update(before, after.clone());
        assert_eq!(
            (changes.registered.len(), changes.unregistered.len()),
            (1, 0),
            "{more}"
        );
        before = after;
    }
}

#[test]
fn an_evacuation_never_leaves_a_gap() {
    let mut heard = running();
    // The instance moves to a record of its own: routers have nothing to learn.
    let changes = heard.change(runs(0, 1, 0), evacuating(runs(0, 1, 0)));
    assert_eq!(changes, Changes::default());
    // Its replacement starts elsewhere, and only then does it end.
    heard.change(
        with(runs(0, 2, 0), |lrp| lrp.state = "CLAIMED".into()),
        runs(0, 2, 1),
    );
    assert_eq!(
        heard.router.routes(),
        ["a.x 10.0.0.1:61001", "a.x 10.0.0.1:61002"]
    );
    heard.remove(evacuating(runs(0, 1, 0)));
    assert_eq!(heard.router.routes(), ["a.x 10.0.0.1:61002"]);
}

#[test]
fn records_of_an_evacuation_may_come_in_any_order() {
    let mut heard = running();
    heard.create(evacuating(runs(0, 1, 0)));
    assert_eq!(heard.remove(runs(0, 1, 0)), Changes::default());
    assert_eq!(heard.router.routes(), ["a.x 10.0.0.1:61001"]);
    heard.remove(evacuating(runs(0, 1, 0)));
    assert!(heard.router.0.is_empty());
}

#[test]
fn a_copy_without_an_address_is_not_registered() {
    let mut heard = running();
    heard.create(with(evacuating(runs(1, 2, 0)), |lrp| {
        lrp.actual_lrp_net_info = Some(ActualLrpNetInfo::default());
    }));
    assert_eq!(heard.router.routes(), ["a.x 10.0.0.1:61001"]);
}

#[test]
fn a_suspect_stays_registered() {
    let mut heard = running();
    let suspect = with(runs(0, 1, 1), |lrp| lrp.presence = Presence::Suspect.into());
    assert_eq!(
        heard.change(runs(0, 1, 0), suspect.clone()),
        Changes::default()
    );
    assert_eq!(heard.change(suspect, runs(0, 1, 2)), Changes::default());
}

#[test]
fn what_is_scaled_down_is_unregistered_before_it_ends() {
    let mut heard = running();
    heard.create(runs(1, 2, 0));
    assert_eq!(heard.table.counts().http, 2);
    heard.update(web(2, 0, &["a.x"]), web(1, 1, &["a.x"]));
    assert_eq!(heard.router.routes(), ["a.x 10.0.0.1:61001"]);
    // One that starts all the same is not wanted.
    heard.create(runs(3, 3, 0));
    assert_eq!(heard.table.counts().http, 1);
}

#[test]
fn an_instance_that_moves_is_registered_before_it_is_unregistered() {
    let mut heard = running();
    let moved = with(runs(0, 1, 1), |lrp| {
        lrp.actual_lrp_net_info.as_mut().unwrap().address = "10.0.0.2".into();
    });
    let changes = heard.change(runs(0, 1, 0), moved);
    assert_eq!(http(&changes.registered[0]).host, "10.0.0.2");
    assert_eq!(http(&changes.unregistered[0]).host, "10.0.0.1");
}

#[test]
fn a_port_that_is_given_to_another_instance_keeps_its_route() {
    let mut heard = running();
    // The end of the first is told after the start of the second, at the same port.
    let second = with(runs(1, 2, 0), |lrp| {
        lrp.actual_lrp_net_info = runs(0, 1, 0).actual_lrp_net_info;
    });
    assert_eq!(heard.create(second).collisions, 1);
    let changes = heard.remove(runs(0, 1, 0));
    assert!(changes.unregistered.is_empty(), "{changes:?}");
    // Routers may believe that the first one is there.
    assert_eq!(http(&changes.registered[0]).private_instance_id, "guid-2");
}

#[test]
fn addresses_of_containers_are_used_when_asked_for_or_preferred() {
    let settings = TableSettings {
        direct_instance_routes: true,
        ..TableSettings::default()
    };
    let prefers = |preferred: PreferredAddress| {
        with(runs(0, 1, 0), |lrp| {
            lrp.actual_lrp_net_info.as_mut().unwrap().preferred_address = preferred.into();
        })
    };
    let (host, container) = ("a.x 10.0.0.1:61001", "a.x 10.255.0.1:8080");
    for (settings, preferred, expected) in [
        (settings, PreferredAddress::Unknown, container),
        (settings, PreferredAddress::Host, host),
        (TableSettings::default(), PreferredAddress::Unknown, host),
        (
            TableSettings::default(),
            PreferredAddress::Instance,
            container,
        ),
    ] {
        let mut heard = Heard::new(settings);
        heard.desire(web(1, 0, &["a.x"]));
        heard.create(prefers(preferred));
        assert_eq!(heard.router.routes(), [expected]);
    }
}

#[test]
fn tcp_routes_lead_to_ports_with_or_without_tls() {
    let json = r#"[{"router_group_guid":"g","external_port":1883,"container_port":8080,"backend_sni_hostname":"s.x"}]"#;
    let with_tls = with(runs(0, 1, 0), |lrp| {
        lrp.actual_lrp_net_info.as_mut().unwrap().ports[0].host_tls_proxy_port = 62_000;
    });
    for (tcp_tls, tls_port, instance_id) in [(false, -1, ""), (true, 62_000, "guid-1")] {
        let mut heard = Heard::new(TableSettings {
            tcp_tls,
            ..TableSettings::default()
        });
        heard.desire(process(1, 0, &[("tcp-router", json)]));
        let changes = heard.create(with_tls.clone());
        let expected = crate::route_emitter::registration::TcpMapping {
            router_group_guid: "g".into(),
            external_port: 1883,
            backend_ip: "10.0.0.1".into(),
            backend_port: 61_001,
            backend_tls_port: tls_port,
            instance_id: instance_id.into(),
            backend_sni_hostname: Some("s.x".into()),
        };
        assert_eq!(changes.registered, [Registration::Tcp(expected)]);
        assert_eq!(heard.table.counts().tcp, 1);
        let changes = heard.remove(with_tls.clone());
        assert_eq!(changes.unregistered.len(), 1);
    }
}

#[test]
fn service_discovery_is_told_of_containers_by_name_and_by_index() {
    let mut heard = Heard::default();
    let json = r#"[{"hostname":"a.apps.internal"}]"#;
    heard.desire(process(3, 0, &[("internal-router", json)]));
    let changes = heard.create(runs(2, 1, 0));
    let [Registration::Internal(message)] = &changes.registered[..] else {
        panic!("{changes:?}");
    };
    assert_eq!(
        String::from_utf8(message.json()).unwrap(),
        r#"{"host":"10.255.0.1","port":0,"uris":["a.apps.internal","2.a.apps.internal"],"app":"app","private_instance_index":"2","endpoint_updated_at_ns":77,"tags":{"component":"route-emitter"}}"#
    );
    assert!(heard.table.page(Audience::External, None, 9).0.is_empty());
    assert_eq!(heard.table.page(Audience::Internal, None, 9).0.len(), 1);
}

#[test]
fn a_process_that_nobody_has_told_of_is_to_be_asked_for() {
    let mut heard = Heard::default();
    let changes = heard.create(runs(0, 1, 0));
    assert_eq!(changes.unknown_process.as_deref(), Some("p"));
    assert!(heard.router.0.is_empty());
    let info = Desired::of(&web(1, 0, &["a.x"])).unwrap();
    let changes = heard.table.apply(Event::Desired(info));
    heard.hear(&changes);
    assert_eq!(heard.router.routes(), ["a.x 10.0.0.1:61001"]);
    assert_eq!(heard.create(runs(0, 2, 0)).unknown_process, None);
}

#[test]
fn routes_that_cannot_be_read_leave_those_that_are_known() {
    let mut heard = running();
    let event = DesiredLrpChangedEvent {
        after: Some(process(2, 1, &[("cf-router", "{")])),
        ..DesiredLrpChangedEvent::default()
    };
    let error = events_of("desired_lrp_changed", &event.encode_to_vec()).unwrap_err();
    assert!(error.to_string().contains("process p"), "{error}");
    let mut snapshot = Snapshot::new(["d".into()], None);
    snapshot.instance(Instance::of(&runs(0, 1, 0)).unwrap());
    assert!(Desired::of(&process(2, 1, &[("cf-router", "{")])).is_err());
    snapshot.unreadable("p");
    assert_eq!(heard.sync(snapshot), Changes::default());
    assert_eq!(heard.router.routes(), ["a.x 10.0.0.1:61001"]);
}

#[test]
fn a_walk_in_pages_sees_each_registration_once() {
    let mut heard = Heard::default();
    heard.desire(web(10, 0, &["a.x", "b.x", "c.x"]));
    for number in 0..10 {
        heard.create(runs(number, number.unsigned_abs(), 0));
    }
    for most in [1, 3, 4, 29, 30, 31] {
        let (mut seen, mut behind) = (Vec::new(), None);
        loop {
            let (page, next) = heard.table.page(Audience::External, behind.as_ref(), most);
            assert!(page.len() < most + 3);
            seen.extend(page.iter().map(Registration::key));
            behind = next;
            if behind.is_none() {
                break;
            }
        }
        seen.sort();
        let all: Vec<_> = heard.router.0.keys().cloned().collect();
        assert_eq!(seen, all, "{most}");
    }
}
