//! Start, drain and end of a router, and what its connections notice.

use nix::sys::signal::Signal;
use serde_json::json;

use super::backends::{Backend, Does};
use super::rig::{Rig, Wanted, exchange};
use super::transcript::Differences;
use crate::lab::wait_until;

fn start(wanted: &Wanted<'_>) -> (Rig, Backend) {
    let mut rig = Rig::start(wanted);
    let echo = Backend::start(Does::Echo(""));
    rig.register("echo.ex.com", echo.port(), "i", &[]);
    let hang = Backend::start(Does::Hang);
    rig.register("hang.ex.com", hang.port(), "i", &[]);
    rig.settle();
    (rig, echo)
}

#[test]
fn a_drain_lets_requests_end_and_closes_what_is_idle() {
    // The request lasts for longer than the drain waits before it lets nobody in.
    let (rig, _echo) = start(&Wanted {
        more: "http_1_endpoint_timeout: 8s\n",
        ..Wanted::default()
    });
    let (http, status) = (rig.address("http"), rig.address("status"));
    let mut under_way = rig.client();
    under_way.send("GET / HTTP/1.1\r\nHost: hang.ex.com\r\n\r\n");
    let mut idle = rig.client();
    assert!(
        idle.ask("GET / HTTP/1.1\nHost: echo.ex.com\n\n")
            .starts_with("HTTP/1.1 200 ")
    );
    rig.signal(Signal::SIGUSR1);
    rig.signal(Signal::SIGUSR1);
    let health = |path: &str| exchange(status, &format!("GET {path} HTTP/1.1\nHost: x\n\n"));
    wait_until("an unhealthy router", || {
        health("/health").starts_with("HTTP/1.1 503 ")
    });
    // Whoever restarts processes must not take a drain for a crash.
    let alive = health("/is-process-alive-do-not-use-for-loadbalancing");
    assert!(alive.starts_with("HTTP/1.1 200 OK\r\n"), "{alive}");
    // Balancers may still send requests.
    let served = rig.get("echo.ex.com");
    assert!(served.starts_with("HTTP/1.1 200 "), "{served}");
    let monitor = rig.ask("GET / HTTP/1.1\nHost: x\nUser-Agent: HTTP-Monitor/1.1\n\n");
    assert!(monitor.starts_with("HTTP/1.1 503 "), "{monitor}");
    assert_eq!(idle.end(), "");
    wait_until("a closed listener", || {
        std::net::TcpStream::connect(http).is_err()
    });
    // It was there for the whole of its time (`http_1_endpoint_timeout`).
    let answer = under_way.answer(false);
    assert!(
        answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"),
        "{answer}"
    );
    assert!(answer.contains("(context deadline exceeded)"), "{answer}");
    assert_eq!(rig.router.exit_code(), Some(0));
}

#[test]
fn to_be_told_to_end_is_to_end() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let (rig, _echo) = start(&Wanted::default());
        let mut under_way = rig.client();
        under_way.send("GET / HTTP/1.1\r\nHost: hang.ex.com\r\n\r\n");
        rig.signal(signal);
        assert_eq!(rig.router.exit_code(), Some(0));
    }
}

#[test]
fn a_component_is_found() {
    let mut rig = Rig::start(&Wanted {
        deprecated: true,
        ..Wanted::default()
    });
    let announced = [rig.nats.message(), rig.nats.message()];
    assert!(
        announced[1].0.starts_with("vcap.component.announce 2 "),
        "{announced:?}"
    );
    rig.nats
        .send("SUB inbox.2 7\r\nPUB vcap.component.discover 0\r\n\r\n");
    rig.nats
        .send("PUB vcap.component.discover inbox.2 0\r\n\r\n");
    let (subject, document) = rig.nats.message();
    assert!(subject.starts_with("inbox.2 7 "), "{subject}");
    let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(document["type"], "Router");
    assert_eq!(document["credentials"], json!(["u", "p"]));
    assert_eq!(
        document["ms_since_last_registry_update"],
        9_223_372_036_854_i64
    );
}

#[test]
fn answers_of_every_framing() {
    let mut rig = Rig::start(&Wanted::default());
    let added = "X-Added: v1\nX-Vcap-Request-Id: 95f359da-4bdd-4360-6ec6-672711217192\nDate: *\n";
    let cases = [
        (
            Does::SaysAndCloses("HTTP/1.0 200 OK\r\nServer: old\r\n\r\nabc"),
            format!("HTTP/1.1 200 OK\nServer: old\n{added}Transfer-Encoding: chunked\n\n3\nabc\n0\n\n"),
        ),
        (
            Does::Says("HTTP/1.1 204 No Content\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n\r\n"),
            format!("HTTP/1.1 204 No Content\n{added}\n"),
        ),
        (
            Does::Says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nx-vcap-request-id: own\r\nX-added: no\r\nDate: then\r\n\r\n"),
            "HTTP/1.1 200 OK\nContent-Length: 0\nDate: then\nX-Added: no\nX-Vcap-Request-Id: own\n\n".to_owned(),
        ),
        (
            Does::Says("HTTP/1.1 299 Strange Things\r\nContent-Length: 1\r\n\r\nx"),
            format!("HTTP/1.1 299 status code 299\nContent-Length: 1\n{added}\nx"),
        ),
        (
            Does::Says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
            format!("HTTP/1.1 200 OK\n{added}Transfer-Encoding: chunked\n\n5\nhello\n0\n\n"),
        ),
    ];
    let mut hosts = Vec::new();
    for (index, (does, _)) in cases.iter().enumerate() {
        let host = format!("case-{index}.ex.com");
        rig.register(&host, Backend::start(*does).port(), "i", &[]);
        hosts.push(host);
    }
    let cut = Does::SaysAndCloses("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
    rig.register("cut.ex.com", Backend::start(cut).port(), "i", &[]);
    let garbage = Does::SaysAndCloses("nonsense\r\n\r\n");
    rig.register("garbage.ex.com", Backend::start(garbage).port(), "i", &[]);
    let half = Does::SaysAndCloses("HTTP/1.1 200 OK\r\nContent-Le");
    rig.register("half.ex.com", Backend::start(half).port(), "i", &[]);
    rig.settle();
    let mut differences = Differences::default();
    for ((_, expected), host) in cases.iter().zip(&hosts) {
        differences.compare(host, &rig.get(host), expected, false);
    }
    // HTTP/1.0 knows no chunks: the end of the connection is the end of the body.
    let mut old = rig.client();
    let answer = old.ask("GET / HTTP/1.0\nHost: case-4.ex.com\n\n");
    let expected = format!("HTTP/1.0 200 OK\n{added}\nhello");
    differences.compare("HTTP/1.0 and chunks", &answer, &expected, false);
    let mut kept = rig.client();
    let request = "GET / HTTP/1.0\nHost: case-3.ex.com\nConnection: keep-alive\n\n";
    let expected = format!(
        "HTTP/1.0 299 status code 299\nContent-Length: 1\n{added}Connection: keep-alive\n\nx"
    );
    for _ in 0..2 {
        differences.compare("HTTP/1.0 kept", &kept.ask(request), &expected, false);
    }
    let garbage = rig.get("garbage.ex.com");
    let text = "transport connection broken: malformed HTTP response \"nonsense\")\r\n";
    differences.holds("garbage", garbage.contains(text), &garbage);
    let half = rig.get("half.ex.com");
    // Go reads what there is of a line as a line.
    let text = "transport connection broken: malformed MIME header: missing colon: \"Content-Le\")";
    differences.holds("half a head", half.contains(text), &half);
    // What was promised and does not come is told by closing.
    let mut client = rig.client();
    client.send("GET / HTTP/1.1\r\nHost: cut.ex.com\r\n\r\n");
    let rest = client.end();
    differences.holds("cut off", rest.ends_with("\r\n\r\nabc"), &rest);
}
