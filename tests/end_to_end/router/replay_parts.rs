//! The first recording: backends that speak TLS, the old status endpoints, the drain.

use nix::sys::signal::Signal;

use super::backends::Backend;
use super::replay::{compare, compare_log, start};
use super::rig::{APP, Rig, Wanted, exchange};
use super::site::{Authority, register_tls};
use super::transcript::{Differences, FIRST, SECOND, masked, section};

#[test]
fn backends_that_speak_tls() {
    let known = Authority::new();
    let authority = known.pem.replace('\n', "\n    ");
    let (mut rig, site) = start(&format!("ca_certs:\n  - |\n    {authority}\n"));
    let mut differences = Differences::default();
    let unknown = Authority::new();
    let backends: [(&str, Backend, &str); 4] = [
        ("tlsok", known.backend("inst-guid-1", false), "inst-guid-1"),
        ("tlsbad", known.backend("other-guid", false), "inst-guid-1"),
        ("tlsunt", known.backend("inst-guid-3", false), "inst-guid-1"),
        ("tlsreq", known.backend("inst-guid-1", true), "inst-guid-1"),
    ];
    for (name, backend, san) in &backends {
        register_tls(
            &mut rig,
            &format!("{name}.ex.com"),
            backend.port(),
            &format!("i-{name}"),
            san,
        );
    }
    let plain = site.echo.port();
    register_tls(
        &mut rig,
        "tlsplain.ex.com",
        plain,
        "i-tlsplain",
        "inst-guid-1",
    );
    let stranger = unknown.backend("inst-guid-1", false);
    register_tls(
        &mut rig,
        "stranger.ex.com",
        stranger.port(),
        "i",
        "inst-guid-1",
    );
    rig.settle();
    for name in ["tlsok", "tlsbad", "tlsunt", "tlsreq", "tlsplain"] {
        let host = format!("{name}.ex.com");
        compare(&mut differences, name, &rig.get(&host));
        compare_log(&mut differences, name, &rig.log_line(&host, ""));
    }
    for name in ["tlsok", "tlsbad"] {
        let title = format!("{name} again");
        compare(
            &mut differences,
            &title,
            &rig.get(&format!("{name}.ex.com")),
        );
    }
    let answer = rig.get("stranger.ex.com");
    let recorded = section(SECOND, "tlsunt");
    differences.compare("unknown authority", &answer, recorded, false);
}

#[test]
fn the_old_status_endpoints() {
    let mut rig = Rig::start(&Wanted {
        deprecated: true,
        metrics: true,
        ..Wanted::default()
    });
    let mut differences = Differences::default();
    let status = rig.address("status");
    for (title, path, authorization) in [
        ("status /health", "/health", ""),
        ("/healthz", "/healthz", ""),
        (
            "alive",
            "/is-process-alive-do-not-use-for-loadbalancing",
            "",
        ),
        ("/varz noauth", "/varz", ""),
    ] {
        let request = format!("GET {path} HTTP/1.1\nHost: x\n{authorization}\n");
        compare(&mut differences, title, &exchange(status, &request));
    }
    register_tls(&mut rig, "tlsok.ex.com", 9111, "i-tlsok", "inst-guid-1");
    register_tls(
        &mut rig,
        "tlsplain.ex.com",
        9101,
        "i-tlsplain",
        "inst-guid-1",
    );
    rig.settle();
    let request = "GET /routes HTTP/1.1\nHost: x\nAuthorization: Basic dTpw\n\n";
    compare(&mut differences, "/routes", &exchange(status, request));
    let answer = exchange(status, &request.replace("/routes", "/varz"));
    let keys = |document: &str| -> Vec<String> {
        let body = document.split("\n\n").nth(1).unwrap_or_default();
        let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
        body.as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect()
    };
    let mut recorded = keys(section(FIRST, "/varz"));
    // What is not counted here is not told.
    recorded.retain(|key| !matches!(key.as_str(), "tags" | "top10_app_requests"));
    let found = keys(&answer.replace('\r', ""));
    differences.holds(
        "/varz",
        found == recorded,
        &format!("{found:?}\n{recorded:?}"),
    );
    let (id, start) = rig.nats.message();
    differences.compare(
        "router.start",
        &format!("{} {start}", id.split(' ').next().unwrap_or_default()),
        r#"router.start {"id":"3-f1719c40-f649-4cf4-46d7-64cd4af30e59","hosts":["192.0.2.2"],"minimumRegisterIntervalInSeconds":1,"pruneThresholdInSeconds":6}"#,
        false,
    );
    let (subject, _) = rig.nats.message();
    differences.holds(
        "announcement",
        subject.starts_with("vcap.component.announce "),
        &subject,
    );
    let prometheus = exchange(rig.address("metrics"), "GET /metrics HTTP/1.1\nHost: x\n\n");
    let recorded = section(FIRST, "prom");
    let (head, page) = recorded.split_once("\n\n").expect("a head");
    let typed = masked(&prometheus).contains(head.lines().nth(1).expect("a type"));
    differences.holds("its type", typed, &prometheus);
    let lines: Vec<_> = page.lines().skip(1).collect();
    // The last line was cut; numbers differ.
    for line in lines.iter().rev().skip(1) {
        let wanted = match line.starts_with('#') {
            true => line,
            false => line.rsplit_once(' ').map_or(*line, |(name, _)| name),
        };
        let there = prometheus.lines().any(|found| found.starts_with(wanted));
        differences.holds(wanted, there, "no such line");
    }
}

#[test]
fn a_drain() {
    let (mut rig, site) = start("");
    let mut differences = Differences::default();
    let mut idle = rig.client();
    let answer = idle.ask("GET / HTTP/1.1\nHost: echo.ex.com\n\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let status = rig.address("status");
    rig.signal(Signal::SIGUSR1);
    let until = std::time::Instant::now() + super::PATIENCE;
    let mut health = String::new();
    while !health.starts_with("HTTP/1.1 503") {
        assert!(std::time::Instant::now() < until, "{health}");
        health = exchange(status, "GET /health HTTP/1.1\nHost: x\n\n");
    }
    compare(&mut differences, "drain +0.3s /health", &health);
    let served = rig.get("echo.ex.com");
    differences.holds(
        "served",
        served.starts_with("HTTP/1.1 200 OK\r\nCon"),
        &served,
    );
    differences.holds("idle connection", idle.end().is_empty(), "bytes");
    rig.register(&format!("{APP}.ex.com"), site.echo.port(), "late", &[]);
    assert_eq!(rig.router.exit_code(), Some(0));
}
