//! What registrations over NATS do, seen from outside: facts of gorouter a602bb6.

use serde_json::{Value, json};

use super::backends::{Backend, Does};
use super::rig::{APP, Rig, Wanted};
use super::site::register_tls;
use super::transcript::Differences;
use crate::lab::wait_until;

fn keys(rig: &Rig) -> Vec<String> {
    let routes: Value = serde_json::from_str(&rig.routes()).expect("JSON");
    let routes = routes.as_object().expect("an object");
    routes.keys().cloned().collect()
}

/// The instance that answered: each echoes the id that the router gave it.
fn instance(answer: &str) -> String {
    let id = answer.split("\r\nX-Cf-Instanceid: ").nth(1);
    let id = id.and_then(|rest| rest.split("\r\n").next());
    id.unwrap_or(answer).to_owned()
}

#[test]
fn routes_are_named_without_case_query_and_last_slash() {
    let mut rig = Rig::start(&Wanted::default());
    let echo = Backend::start(Does::Echo(""));
    for uri in [
        "OK.ex.com/Foo?x=1",
        "b.ex.com/",
        "*.Wild.ex.com",
        "two.ex.com/a/b",
    ] {
        rig.register(uri, echo.port(), "i", &[]);
    }
    // None of these is a registration.
    for (subject, payload) in [
        ("router.register", "{bad"),
        ("router.register", "[]"),
        ("router.register", ""),
        (
            "router.register",
            r#"{"host":"127.0.0.1","port":"x","uris":["no.ex.com"]}"#,
        ),
        (
            "router.register",
            r#"{"host":"127.0.0.1","port":70000,"uris":["no.ex.com"]}"#,
        ),
        (
            "router.register",
            r#"{"host":"127.0.0.1","port":1,"uris":["no.ex.com"],"route_service_url":"http://x"}"#,
        ),
        (
            "router.other",
            r#"{"host":"127.0.0.1","port":1,"uris":["no.ex.com"]}"#,
        ),
    ] {
        rig.nats.publish(subject, payload);
    }
    rig.settle();
    let found = keys(&rig);
    assert_eq!(
        found,
        [
            "*.wild.ex.com",
            "b.ex.com",
            "ok.ex.com/foo",
            "two.ex.com/a/b"
        ]
    );
    let mut differences = Differences::default();
    for (host, path, status) in [
        ("ok.ex.com", "/foo", 200),
        ("OK.EX.COM:80", "/FOO/x?y", 200),
        ("ok.ex.com", "/food", 404),
        ("ok.ex.com", "/", 404),
        ("b.ex.com", "/any/thing", 200),
        ("a.wild.ex.com", "/", 200),
        ("a.b.wild.ex.com", "/x", 200),
        ("wild.ex.com", "/", 404),
        ("two.ex.com", "/a%2Fb", 404),
        ("two.ex.com", "/a", 404),
        ("two.ex.com", "/a/b/c", 200),
        ("no.ex.com", "/", 404),
    ] {
        let answer = rig.ask(&format!("GET {path} HTTP/1.1\nHost: {host}\n\n"));
        let begin = format!("HTTP/1.1 {status} ");
        differences.holds(
            &format!("{host}{path}"),
            answer.starts_with(&begin),
            &answer,
        );
    }
    let said = rig.router.said("validation-error");
    differences.holds("payload", said["payload"] == "{bad", &said.to_string());
    differences.holds(
        "subject",
        said["subject"] == "router.register",
        &said.to_string(),
    );
}

#[test]
fn endpoints_are_known_by_host_and_port() {
    let mut rig = Rig::start(&Wanted::default());
    let echo = [(); 3].map(|()| Backend::start(Does::Echo("")));
    for (index, backend) in echo.iter().enumerate() {
        rig.register("rr.ex.com", backend.port(), &format!("i-{index}"), &[]);
    }
    rig.settle();
    let seen: Vec<_> = (0..6).map(|_| instance(&rig.get("rr.ex.com"))).collect();
    assert_eq!(seen[..3], seen[3..], "round robin");
    let mut different = seen[..3].to_vec();
    different.sort();
    assert_eq!(different, ["i-0", "i-1", "i-2"]);
    // The latest word of the same endpoint counts.
    let other = ("options", json!({"loadbalancing": "least-connection"}));
    rig.register("rr.ex.com", echo[0].port(), "i-new", &[other]);
    // Nothing but uris, host and port matters here.
    rig.unregister("RR.ex.com/", echo[1].port());
    rig.unregister("rr.ex.com", 1);
    rig.unregister("unknown.ex.com", echo[2].port());
    rig.settle();
    let routes = rig.routes();
    assert_eq!(routes.matches("\"address\"").count(), 2, "{routes}");
    assert!(
        routes.contains("i-new") && routes.contains("i-2"),
        "{routes}"
    );
    assert!(
        routes.contains(r#""load_balancing_algorithm":"least-connection""#),
        "{routes}"
    );
    rig.unregister("rr.ex.com", echo[0].port());
    rig.unregister("rr.ex.com", echo[2].port());
    rig.settle();
    assert_eq!(rig.routes(), "{}\n");
    assert!(rig.get("rr.ex.com").starts_with("HTTP/1.1 404 "));
}

#[test]
fn stale_routes_are_pruned_but_those_with_tls() {
    let mut rig = Rig::start(&Wanted {
        prune: "50ms",
        stale: "4s",
        ..Wanted::default()
    });
    rig.register("stale.ex.com", 1, "i", &[]);
    // Longer than the router's own is cut to it.
    let long = ("stale_threshold_in_seconds", json!(1000));
    rig.register("long.ex.com", 1, "i", &[long]);
    register_tls(&mut rig, "tls.ex.com", 1, "i", "x");
    rig.settle();
    let routes = rig.routes();
    assert_eq!(routes.matches(r#""ttl":4,"#).count(), 3, "{routes}");
    wait_until("pruning", || keys(&rig) == ["tls.ex.com"]);
    assert!(rig.get("stale.ex.com").starts_with("HTTP/1.1 404 "));
}

#[test]
fn an_endpoint_that_does_not_speak_tls_leaves() {
    let mut rig = Rig::start(&Wanted {
        prune: "700ms",
        ..Wanted::default()
    });
    let plain = Does::Blurts("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let plain = Backend::start(plain);
    let gone = super::backends::dead_port();
    for (host, port, status, error) in [
        (
            "gone.ex.com",
            gone,
            "502 Bad Gateway",
            "connect: connection refused",
        ),
        (
            "plain.ex.com",
            plain.port(),
            "525 status code 525",
            "tls: first record does not look like a TLS handshake",
        ),
    ] {
        register_tls(&mut rig, host, port, "i", "x");
        rig.settle();
        let first = rig.get(host);
        let begin = format!("HTTP/1.1 {status}\r\n");
        assert!(
            first.starts_with(&begin) && first.contains(error),
            "{first}"
        );
        wait_until("the route's end", || {
            let answer = rig.get(host);
            let no_endpoints = answer.contains("\r\nX-Cf-Routererror: no_endpoints\r\n");
            let not_found = answer.starts_with("HTTP/1.1 404 ");
            assert!(no_endpoints || not_found, "{answer}");
            not_found
        });
    }
}

#[test]
fn only_the_segments_of_the_router_are_served() {
    let mut rig = Rig::start(&Wanted {
        more: "routing_table_sharding_mode: segments\nisolation_segments: [mine, ours]\n",
        ..Wanted::default()
    });
    for (uri, segment) in [
        ("mine.ex.com", "mine"),
        ("shared.ex.com", ""),
        ("theirs.ex.com", "theirs"),
        ("ours.ex.com", "ours"),
    ] {
        rig.register(uri, 1, "i", &[("isolation_segment", json!(segment))]);
    }
    // The marker is of no segment, so that it cannot tell: this one can.
    wait_until("the last registration", || {
        rig.routes().contains("ours.ex.com")
    });
    assert_eq!(keys(&rig), ["mine.ex.com", "ours.ex.com"]);
    assert!(rig.routes().contains(r#""isolation_segment":"mine""#));
}

#[test]
fn what_routes_tells_of_an_endpoint() {
    let mut rig = Rig::start(&Wanted::default());
    let message = json!({
        "uris": ["full.ex.com"], "host": "10.0.0.1", "port": 80, "tls_port": 443, "app": APP,
        "private_instance_id": "i<&>", "protocol": "http2", "server_cert_domain_san": "san",
        "availability_zone": "z1", "isolation_segment": "", "stale_threshold_in_seconds": 3,
        "tags": {"b": "2", "a": "\"1\""}, "unknown": [1, {"x": null}],
        "options": {"loadbalancing": "hash", "hash_header": "X-Key", "hash_balance": 1.5},
    });
    rig.nats.publish("router.register", &message.to_string());
    rig.nats.publish(
        "router.register",
        r#"{"uris":["bare.ex.com"],"host":"h","port":1}"#,
    );
    rig.settle();
    let bare = r#""bare.ex.com":[{"address":"h:1","availability_zone":"","protocol":"http1","tls":false,"ttl":6,"tags":null}]"#;
    let full = r#""full.ex.com":[{"address":"10.0.0.1:443","availability_zone":"z1","protocol":"http2","tls":true,"ttl":3,"tags":{"a":"\"1\"","b":"2"},"private_instance_id":"i\u003c\u0026\u003e","server_cert_domain_san":"san","load_balancing_algorithm":"hash","hash_header":"X-Key","hash_balance":1.5}]"#;
    assert_eq!(rig.routes(), format!("{{{bare},{full}}}\n"));
}
