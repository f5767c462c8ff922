//! Probes of systems whose behaviour is known: what they say is what was planted.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

use crate::postgres_cluster::Cluster;
use crate::support::{events, run};
use http_body_util::BodyExt;
use lab_runner::Finished;
use lab_store::{Event, EventKind, Outcome, ProbeSample, ProbeSummary};

/// So many copies of the server in `data/probed.py`, of which the one with this index says that
/// it leads.
fn server(copies: u32, leader: &str) -> String {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/probed.py");
    format!(
        r#"
[[system]]
name = "web"
run = "python3 '{program}' {{port}} {{index}} {leader}"
ready = "http /"
count = {copies}
"#
    )
}

#[track_caller]
fn passed(finished: &Finished) {
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:#?}");
}

fn tries(finished: &Finished, probe: &str) -> Vec<ProbeSample> {
    let all: Vec<ProbeSample> = finished.folder.records().unwrap();
    all.into_iter().filter(|one| one.probe == probe).collect()
}

fn summary<'f>(finished: &'f Finished, probe: &str) -> &'f ProbeSummary {
    let mut all = finished.verdict.probes.iter();
    all.find(|summary| summary.name == probe).unwrap()
}

#[test]
fn every_kind_says_what_was_planted() {
    let (_folder, finished) = run(&format!(
        r#"{}
[[probe]]
name = "count"
http = "GET http://{{web.addr}}/count"
assert = ["status 200", "body contains name"]
value = "json /count"
every = "50ms"
within = "10s"
[[probe]]
name = "whose"
http = "http://{{web.addr}}/count"
value = "json /name"
every = "200ms"
within = "10s"
[[probe]]
name = "bad"
http = "http://{{web.addr}}/bad"
every = "100ms"
within = "10s"
[[probe]]
name = "open"
tcp = "tcp://{{web.addr}}"
every = "100ms"
[[probe]]
name = "answer"
command = "sh -c 'echo the answer is 42'"
value = "regex is ([0-9]+)"
every = "200ms"
within = "10s"
[[probe]]
name = "status"
command = "sh -c 'exit 3'"
value = "exit"
every = "200ms"
[[probe]]
name = "broken"
command = "sh -c 'echo it is bad >&2; exit 4'"
every = "200ms"
[[probe]]
name = "work"
prom = "http://{{web.addr}}/metrics"
metric = "work_total"
labels = {{ kind = "a" }}
value = "rate"
every = "500ms"
within = "10s"
[[probe]]
name = "both"
prom = "http://{{web.addr}}/metrics"
metric = "work_total"
every = "250ms"
[[probe]]
name = "ticks"
log = "web"
pattern = "/^tick$/"
every = "100ms"
[[step]]
name = "first"
hold = "1s"
[[step]]
name = "second"
wait = {{ until = "count.value >= 5 and whose.value == 'web.0' and ticks.value >= 15", at_most = "20s" }}
[[step]]
name = "third"
hold = "1s"
while = {{ always = ["count.ok == 100%", "answer.value == 42"] }}
[[expect]]
that = "probe.count.ok == 100% and probe.whose.value == 'web.0' and whose.value != 'web.1'"
[[expect]]
that = "probe.bad.ok == 0% and open.ok == 100%"
[[expect]]
that = "answer.value min == 42 and answer.value max == 42 and status.value == 3 and broken.ok == 0%"
[[expect]]
that = "work.value p50 > 45 and work.value p50 < 55 and both.value >= 57"
[[expect]]
that = "ticks.value >= 15 and 'third': count.value min > 5 and count.latency p50 < 10s"
"#,
        server(1, "0")
    ));
    passed(&finished);
    let counts: Vec<f64> = tries(&finished, "count")
        .iter()
        .filter_map(|one| one.value)
        .collect();
    assert!(
        counts.windows(2).all(|pair| pair[0] < pair[1]),
        "{counts:?}"
    );
    assert!(
        tries(&finished, "bad")
            .iter()
            .all(|one| one.error == "status 503")
    );
    let broken = summary(&finished, "broken");
    assert!(broken.error.contains("status 4: it is bad"), "{broken:?}");
    assert!(
        broken.tries > 0 && broken.failed == broken.tries,
        "{broken:?}"
    );
    // Two probes were never answered well; the others were, and are not accused.
    let silent = finished
        .verdict
        .notes
        .iter()
        .filter(|note| note.contains("never answered"));
    assert_eq!(silent.count(), 2, "{:?}", finished.verdict.notes);
    assert!(events(&finished, EventKind::Measured).contains(&"count".to_owned()));
}

/// Answers gRPC's health checks: so many times SERVING, then NOT_SERVING.
struct Health(AtomicU32);

impl net::Handler for Health {
    async fn handle(&self, request: http::Request<net::Incoming>) -> http::Response<net::Body> {
        let is_check = request.uri().path() == "/grpc.health.v1.Health/Check";
        let left = self
            .0
            .fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        let (message, status) = match (is_check, left) {
            (false, _) => (&[0, 0, 0, 0, 0][..], "12"),
            (true, Ok(_)) => (&[0, 0, 0, 0, 2, 8, 1][..], "0"),
            (true, Err(_)) => (&[0, 0, 0, 0, 2, 8, 2][..], "0"),
        };
        let trailers = http::HeaderMap::from_iter([(
            http::HeaderName::from_static("grpc-status"),
            http::HeaderValue::from_static(status),
        )]);
        let body = http_body_util::Full::new(bytes::Bytes::from_static(message));
        let body = body.with_trailers(async { Some(Ok(trailers)) });
        http::Response::new(body.boxed_unsync())
    }
}

#[test]
fn the_health_of_a_grpc_server_is_what_it_says() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime
        .block_on(net::bind("127.0.0.1:0".parse().unwrap()))
        .unwrap();
    let port = listener.local_addr().unwrap().port();
    let (stop, shutdown) = net::shutdown();
    let health = Arc::new(Health(AtomicU32::new(5)));
    let serving = net::serve_http2(listener, None, net::Limits::default(), health, shutdown);
    let serving = runtime.spawn(serving);
    let (_folder, finished) = run(&format!(
        r#"
[[probe]]
name = "health"
grpc = "grpc://127.0.0.1:{port}/shop.Cart"
every = "20ms"
within = "10s"
[[step]]
name = "until it is ill"
wait = {{ until = "health.ok == 0%", at_most = "60s" }}
"#
    ));
    stop.send(true).unwrap();
    runtime.block_on(serving).unwrap();
    passed(&finished);
    let tries = tries(&finished, "health");
    let (well, ill) = tries.split_at(5);
    assert!(well.iter().all(|one| one.value == Some(1.0)), "{tries:?}");
    assert!(
        !ill.is_empty() && ill.iter().all(|one| one.error == "it says NOT_SERVING"),
        "{ill:?}"
    );
}

#[test]
fn an_outage_is_found_where_it_was_planted_and_a_healthy_server_has_none() {
    // The healthy one is the kernel alone: a server that is late to accept lets five wait, and the next one's
    // handshake is tried again after a second.
    let (_folder, finished) = run(&format!(
        r#"{}
[[system]]
name = "other"
run = '''python3 -c "import socket, time; s = socket.create_server(('127.0.0.1', {{port}}), backlog=1024); time.sleep(60)"'''
ready = "tcp"
[[probe]]
name = "alive"
http = "http://{{web.addr}}/"
every = "20ms"
within = "5s"
[[probe]]
name = "healthy"
tcp = "tcp://{{other.addr}}"
every = "20ms"
within = "5s"
[[step]]
name = "kill it"
hold = "3500ms"
fault = {{ kill = "web", at = "3s", for = "1500ms" }}
[[step]]
name = "back"
hold = "3s"
[[expect]]
that = "recovery(alive.ok) >= 1500ms and depth(alive) == 100% and lost(probe.alive.ok) > 0 and detection(alive.ok) < 10s"
[[expect]]
that = "recovery(healthy.ok) == 0 and depth(healthy.ok) == 0% and lost(healthy) == 0 and healthy.ok == 100%"
[[expect]]
that = "alive.ok < 100% and 'back': alive.ok == 100%"
"#,
        server(1, "0")
    ));
    passed(&finished);
    let fault = &finished.folder.faults().unwrap()[0];
    let effects: Vec<&str> = fault.effects.iter().map(|effect| &*effect.of).collect();
    assert_eq!(effects, ["probe.alive.ok", "probe.healthy.ok"]);
    // The outage is where no try went well, known to the time between two of them.
    let recovery_s = fault.effects[0].recovery_s.unwrap();
    let tries = tries(&finished, "alive");
    let back = tries
        .iter()
        .find(|one| one.t_s > fault.begin_s + 0.5 && one.is_ok())
        .unwrap();
    let told_s = fault.begin_s + recovery_s;
    assert!((told_s - back.t_s).abs() < 0.1, "{told_s} {back:?}");
}

#[test]
fn the_leader_is_hit_and_nobody_else() {
    let (_folder, finished) = run(&format!(
        r#"{}
[[probe]]
name = "leads"
http = "http://{{addr}}/leader"
of = "web"
value = "json /leader"
every = "50ms"
[[step]]
name = "kill the leader"
wait = {{ until = "leads.value sum == 1 and leads.ok == 100%", at_most = "20s" }}
while = {{ always = "leads.value sum <= 1" }}
fault = {{ kill = "web", pick = {{ probe = "leads" }}, at = "500ms", for = "500ms" }}
[[step]]
name = "afterwards"
hold = "3s"
[[expect]]
that = "leads.value max == 1 and leads.value min == 0 and recovery(leads.value) > 0"
"#,
        server(3, "1")
    ));
    passed(&finished);
    // Three copies are looked at in turns, each of them every 50 ms: no change is known better.
    let fault = &finished.folder.faults().unwrap()[0];
    let mut effects = fault.effects.iter();
    let sum = effects
        .find(|effect| effect.of == "probe.leads.value")
        .unwrap();
    assert!(sum.resolution_s.unwrap() >= 0.05, "{sum:?}");
    let began: Vec<Event> = finished.folder.records().unwrap();
    let began = began
        .iter()
        .find(|event| event.kind == EventKind::FaultBegan)
        .unwrap();
    assert_eq!(began.text, "kill web.1");
    let asked: std::collections::BTreeSet<String> = tries(&finished, "leads")
        .into_iter()
        .map(|one| one.of)
        .collect();
    assert_eq!(
        asked.into_iter().collect::<Vec<_>>(),
        ["web.0", "web.1", "web.2"]
    );
}

#[test]
fn where_nobody_leads_the_run_says_who_answered_what() {
    let (_folder, finished) = run(&format!(
        r#"{}
[[probe]]
name = "leads"
http = "http://{{addr}}/leader"
of = "web"
value = "json /leader"
every = "50ms"
[[step]]
name = "kill the leader"
fault = {{ kill = "web", pick = {{ probe = "leads", within = "700ms" }}, for = "500ms" }}
"#,
        server(2, "nobody")
    ));
    assert_eq!(finished.verdict.outcome, Outcome::Error);
    let reason = finished.verdict.reason.unwrap();
    for said in [
        "leads picked no copy that is up within",
        "web.0 answered 0",
        "web.1 answered 0",
    ] {
        assert!(reason.contains(said), "{said}: {reason}");
    }
}

#[test]
fn one_probe_may_name_the_copy_that_is_hit() {
    let (_folder, finished) = run(r#"
[[system]]
name = "many"
run = "sleep 600"
count = 3
[[probe]]
name = "who"
command = "echo many.2"
every = "100ms"
[[step]]
name = "pause it"
fault = { pause = "many", pick = { probe = "who" }, for = "200ms" }
"#);
    passed(&finished);
    assert_eq!(finished.folder.faults().unwrap()[0].targets, ["many.2"]);
}

#[test]
fn a_slow_answer_skips_ticks_and_is_given_up_in_time() {
    let (_folder, finished) = run(&format!(
        r#"{}
[[probe]]
name = "slow"
http = "http://{{web.addr}}/slow"
every = "100ms"
within = "30s"
[[probe]]
name = "given-up"
http = "http://{{web.addr}}/slow"
every = "100ms"
within = "150ms"
[[probe]]
name = "hangs"
command = "sh -c 'sleep 600 & sleep 600'"
every = "100ms"
within = "200ms"
[[step]]
name = "hold"
hold = "2s"
[[expect]]
that = "slow.ok == 100% and slow.latency p50 >= 350ms and slow.skipped > 3"
[[expect]]
that = "given-up.ok == 0% and hangs.ok == 0%"
[[expect]]
that = "given-up.latency p50 < 1s"
"#,
        server(1, "0")
    ));
    let outcomes: Vec<Outcome> = finished
        .verdict
        .expectations
        .iter()
        .map(|one| one.outcome)
        .collect();
    // Of a probe that was never answered nothing is known, and that is no pass.
    assert_eq!(
        outcomes,
        [Outcome::Pass, Outcome::Pass, Outcome::Inconclusive]
    );
    let note = &finished.verdict.expectations[2].note;
    assert!(
        note.contains("never answered") && note.contains("no answer within 150 ms"),
        "{note}"
    );
    let tries = tries(&finished, "slow");
    assert!(
        tries
            .windows(2)
            .all(|pair| pair[1].t_s >= pair[0].t_s + pair[0].latency_s),
        "{tries:?}"
    );
    assert_eq!(
        finished
            .notes
            .iter()
            .filter(|note| note.contains("could not"))
            .count(),
        0
    );
}

#[test]
fn an_invariant_ends_the_step_at_once_with_the_moment_and_the_value() {
    let (_folder, finished) = run(&format!(
        r#"{}
[[probe]]
name = "count"
http = "http://{{web.addr}}/count"
value = "json /count"
every = "20ms"
[[step]]
name = "count up"
hold = "600s"
while = {{ always = "count.value < 25" }}
"#,
        server(1, "0")
    ));
    assert_eq!(finished.verdict.outcome, Outcome::Fail);
    let reason = finished.verdict.reason.unwrap();
    let said =
        reason.contains("count.value < 25 did not hold") && reason.ends_with("step began: 25");
    assert!(said, "{reason}");
}

#[test]
fn an_invariant_that_nobody_could_tell_has_not_held() {
    let (_folder, finished) = run(r#"
[[probe]]
name = "nobody"
command = "sh -c 'exit 1'"
every = "50ms"
[[step]]
name = "hold"
hold = "300ms"
while = { always = "nobody.value <= 1" }
"#);
    assert_eq!(finished.verdict.outcome, Outcome::Fail);
    let reason = finished.verdict.reason.unwrap();
    assert!(
        reason.contains("nothing known of probe.nobody.value"),
        "{reason}"
    );
}

#[test]
fn a_run_without_probes_has_no_file_of_them() {
    let (_folder, finished) = run("[[step]]\nname = \"hold\"\nhold = \"50ms\"\n");
    passed(&finished);
    assert!(!finished.folder.path().join("series/probes.csv").exists());
    assert_eq!(finished.verdict.probes, []);
}

#[test]
fn a_database_says_what_its_tables_hold_and_is_found_again_after_a_crash() {
    let mut server = Cluster::start_on_port();
    let url = format!("postgres://postgres@{}/postgres", server.address());
    server.ask("CREATE TABLE jobs (id int, name text); INSERT INTO jobs SELECT generate_series(1, 7), 'mend'");
    let probe = |name: &str, sql: &str| {
        format!(
            "[[probe]]\nname = {name:?}\npostgres = {url:?}\nsql = {sql:?}\nevery = \"50ms\"\nwithin = \"10s\"\n"
        )
    };
    let probes = [
        probe("count", "SELECT count(*), 99 FROM jobs"),
        probe("first", "SELECT name FROM jobs ORDER BY id"),
        probe("leads", "SELECT NOT pg_is_in_recovery()"),
        probe("nobody", "SELECT id FROM jobs WHERE false"),
        probe("wrong", "SELECT id FROM orders"),
    ]
    .concat();
    let (_folder, finished) = run(&format!(
        r#"{probes}
[[step]]
name = "all is well"
hold = "1s"
[[expect]]
that = "count.value == 7 and count.ok == 100% and leads.value == 1"
[[expect]]
that = "first.value == 'mend' and nobody.ok == 100% and wrong.ok == 0%"
"#
    ));
    passed(&finished);
    let why = &summary(&finished, "wrong").error;
    assert!(why.contains("does not exist (42P01)"), "{why}");

    let count = probe("count", "SELECT count(*) FROM jobs");
    let text = format!(
        r#"{count}
[[step]]
name = "it goes"
wait = {{ until = "count.ok < 100%", at_most = "20s" }}
[[step]]
name = "it comes back"
wait = {{ until = "count.value == 7", at_most = "30s" }}
[[expect]]
that = "count.value == 7"
"#
    );
    // The server dies with the thread that starts it.
    let run = std::thread::spawn(move || run(&text));
    std::thread::sleep(std::time::Duration::from_secs(1));
    server.crash();
    std::thread::sleep(std::time::Duration::from_secs(1));
    server.resume();
    let (_folder, finished) = run.join().unwrap();
    passed(&finished);
}

/// Answers everybody who got in.
struct Inside;

impl net::Handler for Inside {
    async fn handle(&self, _: http::Request<net::Incoming>) -> http::Response<net::Body> {
        let body = "left 7\n";
        let body = http_body_util::Full::new(bytes::Bytes::from_static(body.as_bytes()));
        http::Response::new(body.map_err(|never| match never {}).boxed_unsync())
    }
}

/// Certificates of a server and a client, and of the authority that made them.
fn certificates(folder: &std::path::Path) -> net::tls::Files {
    let key = || rcgen::KeyPair::generate().unwrap();
    let authority_key = key();
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = authority.self_signed(&authority_key).unwrap();
    let file = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let own = key();
    let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let signed = params.signed_by(&own, &issuer).unwrap();
    net::tls::Files {
        authority: file("authority.pem", certificate.pem()),
        certificate: file("own.pem", signed.pem()),
        key: file("own.key", own.serialize_pem()),
    }
}

#[test]
fn a_server_behind_tls_is_asked_by_whom_it_knows() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tls = net::tls::server(&certificates(folder.path())).unwrap();
    let listener = runtime
        .block_on(net::bind("127.0.0.1:0".parse().unwrap()))
        .unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, shutdown) = net::shutdown();
    let limits = net::Limits::default();
    let serving = net::serve(listener, Some(tls), limits, Arc::new(Inside), shutdown);
    let serving = runtime.spawn(serving);
    let files = folder.path().display();
    let own = format!("certificate = '{files}/own.pem', key = '{files}/own.key'");
    let known = format!("tls = {{ authority = '{files}/authority.pem', {own} }}");
    let (_folder, finished) = run(&format!(
        r#"
[[probe]]
name = "inside"
http = "https://{address}/"
value = "regex left ([0-9]+)"
{known}
every = "100ms"
within = "10s"
[[probe]]
name = "counted"
prom = "https://{address}/metrics"
metric = "left"
{known}
every = "100ms"
within = "10s"
[[probe]]
name = "stranger"
http = "https://{address}/"
tls = {{ authority = '{files}/authority.pem' }}
every = "100ms"
within = "10s"
[[probe]]
name = "doubter"
http = "https://{address}/"
tls = {{ {own} }}
every = "100ms"
within = "10s"
[[probe]]
name = "anyone"
http = "https://{address}/"
tls = {{ insecure = true, {own} }}
every = "100ms"
within = "10s"
[[step]]
name = "ask"
http = {{ request = "https://{address}/", {known}, keep = {{ left = "regex left ([0-9]+)" }} }}
[[step]]
name = "watch"
hold = "1s"
[[expect]]
that = "kept.left == 7 and inside.value == 7 and counted.value == 7 and anyone.ok == 100%"
[[expect]]
that = "stranger.ok == 0% and doubter.ok == 0%"
"#
    ));
    passed(&finished);
    stop.send(true).unwrap();
    runtime.block_on(serving).unwrap();
}
