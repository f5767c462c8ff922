//! Redis: a real server, and ones whose truth is known because they do nothing else.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::free_port::free_port;
use crate::redis_server::RedisServer;
use crate::workload::{closed, failures, open, plain, refusal, run};
use lab_generator::Local;
use lab_load::arrivals::Process;
use lab_load::recording::Phase;
use lab_load::request::{Assertion, Body, Journey, Mix, Step};
use lab_load::{Flow, Generate as _, Protocol, Workload};

fn step(name: &str, command: &str, assertions: &[&str]) -> Step {
    let mut step = Step::new(name, "", "");
    step.body = Body::Template(command.to_owned());
    let assertions = assertions
        .iter()
        .map(|text| Assertion::parse(text).unwrap());
    step.assertions = assertions.collect();
    step
}

/// So many connections, each with so many commands at a time.
fn redis(address: SocketAddr, connections: u32, pipeline: u32, step: Step) -> Workload {
    let mut workload = plain(address, connections);
    workload.target.protocol = Protocol::Redis;
    workload.connections.streams = pipeline;
    workload.mix = Mix::of(step);
    workload
}

/// Journeys of one request each, with their weights.
fn kinds(steps: Vec<(f64, Step)>) -> Mix {
    let journey = |(weight, step): (f64, Step)| Journey {
        name: step.name.clone(),
        weight,
        steps: vec![step],
    };
    Mix {
        journeys: steps.into_iter().map(journey).collect(),
        ..Mix::default()
    }
}

/// A server that gets each connection's commands, parsed as far as needed: how many are whole.
fn fake(serve: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

/// A command as it is on the wire.
const PING: &str = "*1\r\n$4\r\nPING\r\n";

/// Reads so many commands `PING`; `None` at the end.
fn pings(stream: &mut TcpStream, number: usize) -> Option<()> {
    let mut bytes = vec![0; PING.len() * number];
    stream.read_exact(&mut bytes).ok()?;
    assert_eq!(bytes, PING.repeat(number).as_bytes());
    Some(())
}

#[test]
fn every_acknowledged_write_is_there_and_no_other() {
    let server = RedisServer::start();
    for (pipeline, connections) in [(1, 4), (16, 2)] {
        let list = format!("list{pipeline}");
        let push = step("push", &format!("RPUSH {list} value-{{seq}}"), &[]);
        let mut workload = redis(server.address, connections, pipeline, push);
        workload.threads = 2;
        workload.share.threads = 2;
        let total = run(workload, &closed(2_000)).total;
        let seen = total.requests();
        assert_eq!(
            (seen.answered, seen.refused, seen.failed()),
            (2_000, 0, 0),
            "{:?}",
            seen.errors
        );
        assert_eq!(server.ask(&format!("LLEN {list}")), ":2000");
        // Each arrival has written its own value, once.
        let mut values: Vec<u64> = server
            .ask(&format!("LRANGE {list} 0 -1"))
            .lines()
            .filter_map(|line| line.strip_prefix("value-")?.parse().ok())
            .collect();
        values.sort_unstable();
        assert_eq!(values, (0..2_000).collect::<Vec<_>>());
        assert_eq!(total.connections.open, u64::from(connections));
        assert_eq!(total.connections.reused, 2_000 - u64::from(connections));
    }
}

#[test]
fn the_share_that_fails_is_told_by_its_code() {
    let server = RedisServer::start();
    server.ask("SET text abc");
    let mix = kinds(vec![
        (
            3.0,
            step("read", "GET text", &["body is abc", "rows 1", "size 3"]),
        ),
        (1.0, step("wrong", "LPUSH text x", &[])),
        (1.0, step("absent", "GET nothing", &["rows 0"])),
        (1.0, step("demanding", "GET nothing", &["rows 1"])),
        (1.0, step("unknown", "NOSUCH {seq}", &[])),
    ]);
    let mut workload = redis(server.address, 3, 4, step("x", "PING", &[]));
    workload.mix = mix;
    let total = run(workload, &closed(700)).total;
    let sent: Vec<u64> = total.kinds.iter().map(|kind| kind.sent).collect();
    let refused: Vec<u64> = total.kinds.iter().map(|kind| kind.refused).collect();
    assert!(sent.iter().all(|sent| *sent > 40), "{sent:?}");
    assert_eq!(refused, [0, sent[1], 0, sent[3], sent[4]]);
    let seen = total.requests();
    let expected = [
        ("error ERR", sent[4]),
        ("error WRONGTYPE", sent[1]),
        ("rows 1", sent[3]),
    ];
    let found: Vec<(&str, u64)> = seen
        .refusals
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    assert_eq!(found, expected);
    assert_eq!((seen.answered, seen.failed()), (700, 0));
    assert_eq!(seen.good(), 700 - sent[1] - sent[3] - sent[4]);
}

#[test]
fn no_error_is_ever_good() {
    let address = fake(|mut stream| {
        let replies = [
            "-MOVED 3999 127.0.0.1:6381\r\n",
            "-LOADING Redis is loading the dataset in memory\r\n",
            "*2\r\n+OK\r\n-OOM command not allowed\r\n",
            "+PONG\r\n",
        ];
        for reply in replies.iter().cycle() {
            if pings(&mut stream, 1).is_none() || stream.write_all(reply.as_bytes()).is_err() {
                return;
            }
        }
    });
    let seen = run(redis(address, 1, 1, step("ping", "PING", &[])), &closed(40))
        .total
        .requests();
    let found: Vec<(&str, u64)> = seen
        .refusals
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    assert_eq!(
        found,
        [
            ("error LOADING", 10),
            ("error MOVED", 10),
            ("error OOM", 10)
        ]
    );
    assert_eq!((seen.answered, seen.good(), seen.failed()), (40, 10, 0));
}

#[test]
fn a_pipeline_has_as_many_commands_under_way_as_it_says() {
    // Answers only when it has eight commands, so fewer would wait for ever.
    let address = fake(|mut stream| {
        while pings(&mut stream, 8).is_some() {
            for _ in 0..8 {
                if stream.write_all(b"+PONG\r\n").is_err() {
                    return;
                }
            }
        }
    });
    let ping = || step("ping", "PING", &["body is PONG"]);
    let seen = run(redis(address, 1, 8, ping()), &closed(160))
        .total
        .requests();
    assert_eq!(
        (seen.answered, seen.good()),
        (160, 160),
        "{:?}",
        seen.errors
    );
    let mut fewer = redis(address, 1, 7, ping());
    fewer.timeout = Duration::from_millis(100);
    let seen = run(fewer, &closed(7)).total.requests();
    assert_eq!(seen.answered, 0);
}

#[test]
fn each_command_of_a_pipeline_has_its_own_latency() {
    const STEP: Duration = Duration::from_millis(20);
    let address = fake(|mut stream| {
        while pings(&mut stream, 4).is_some() {
            for _ in 0..4 {
                std::thread::sleep(STEP);
                if stream.write_all(b"+PONG\r\n").is_err() {
                    return;
                }
            }
        }
    });
    let seen = run(redis(address, 1, 4, step("ping", "PING", &[])), &closed(4))
        .total
        .requests();
    assert_eq!(seen.answered, 4);
    // None is earlier than the server's truth: 20, 40, 60 and 80 ms.
    let at_least = |quantile: f64, steps: u32| {
        let told = seen.actual.quantile(quantile).unwrap();
        assert!(told >= STEP * steps * 99 / 100, "{quantile}: {told:?}");
    };
    at_least(0.25, 1);
    at_least(0.5, 2);
    at_least(0.75, 3);
    at_least(1.0, 4);
}

#[test]
fn a_stall_is_in_the_latency_of_all_that_fell_due_in_it() {
    let server = RedisServer::start();
    let address = server.address;
    let workload = redis(address, 1, 1, step("ping", "PING", &[]));
    let mut local = Local::start(workload).unwrap();
    let stall = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        server.ask("DEBUG SLEEP 0.5");
        server
    });
    let segment = open(Process::Constant, 200.0, 2.0);
    let seen = local
        .run(&segment, &mut |_| Flow::Continue)
        .unwrap()
        .total
        .requests();
    drop(stall.join().unwrap());
    assert_eq!(
        (seen.answered, seen.failed()),
        (400, 0),
        "{:?}",
        seen.errors
    );
    // Those of the stall's first half waited for at least the other half: 50 of 400.
    let told = seen.intended.quantile(1.0 - 49.0 / 400.0).unwrap();
    assert!(told >= Duration::from_millis(247), "{told:?}");
}

#[test]
fn an_outage_is_seen_in_full() {
    let mut server = RedisServer::start();
    for outage in [true, false] {
        let workload = redis(server.address, 4, 2, step("ping", "PING", &[]));
        let mut local = Local::start(workload).unwrap();
        let crash = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(500));
            if outage {
                server.kill();
                std::thread::sleep(Duration::from_millis(700));
                server.restart();
            }
            server
        });
        let segment = open(Process::Constant, 200.0, 2.0);
        let total = local.run(&segment, &mut |_| Flow::Continue).unwrap().total;
        server = crash.join().unwrap();
        let seen = total.requests();
        assert_eq!(seen.answered + seen.failed(), 400, "{:?}", seen.errors);
        if !outage {
            assert_eq!(
                (seen.failed(), total.connections.opened),
                (0, 4),
                "{:?}",
                seen.errors
            );
            continue;
        }
        // Due while nobody listened: 140 of 400, and none of them was sent again in secret.
        assert!((130..=400).contains(&seen.failed()), "{:?}", seen.errors);
        let phases: Vec<Phase> = failures(&seen).iter().map(|(phase, ..)| *phase).collect();
        assert!(phases.contains(&Phase::Connect), "{phases:?}");
        assert!(total.connections.opened > 4 && total.connections.closed >= 1);
    }
}

#[test]
fn a_command_without_an_answer_takes_those_behind_it_with_it() {
    let address = fake(|mut stream| {
        if pings(&mut stream, 3).is_some() {
            let _ = stream.write_all(b"+PONG\r\n");
            // The next two are never answered.
            let _ = stream.read(&mut [0; 1]);
        }
    });
    let mut workload = redis(address, 1, 3, step("ping", "PING", &[]));
    workload.timeout = Duration::from_millis(200);
    let total = run(workload, &closed(3)).total;
    let seen = total.requests();
    assert_eq!(seen.answered, 1);
    let mut found = failures(&seen);
    found.sort_unstable_by_key(|(.., count)| *count);
    assert_eq!(
        found,
        [
            (Phase::Read, "behind a time-out", 1),
            (Phase::Timeout, "timeout", 1)
        ]
    );
}

#[test]
fn connections_are_replaced_after_as_many_commands_as_asked() {
    let server = RedisServer::start();
    for (each, pipeline) in [(1, 1), (10, 1), (10, 4)] {
        let mut workload = redis(server.address, 2, pipeline, step("ping", "PING", &[]));
        workload.connections.requests_each = Some(each);
        let total = run(workload, &open(Process::Constant, 200.0, 0.5)).total;
        let seen = total.requests();
        assert_eq!(
            (seen.answered, seen.failed()),
            (100, 0),
            "{each} {pipeline}: {:?}",
            seen.errors
        );
        assert!(
            total.connections.reused <= 100 - 100 / each,
            "{each} {pipeline}"
        );
    }
}

#[test]
fn what_is_no_resp_breaks_the_request_and_nothing_else() {
    let address = fake(|mut stream| {
        if pings(&mut stream, 1).is_some() {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let seen = run(redis(address, 1, 1, step("ping", "PING", &[])), &closed(5))
        .total
        .requests();
    assert_eq!(failures(&seen), [(Phase::Protocol, "bad resp type", 5)]);
}

#[test]
fn the_login_comes_first_and_is_never_shown() {
    let server = RedisServer::start_with(&["--requirepass", "s3cret"]);
    let mut workload = redis(server.address, 2, 1, step("set", "SET a {seq}", &[]));
    let seen = run(workload.clone(), &closed(5)).total.requests();
    assert_eq!(seen.refusals.keys().collect::<Vec<_>>(), ["error NOAUTH"]);
    workload.target.login.password = "s3cret".to_owned();
    workload.target.login.database = "3".to_owned();
    assert!(!format!("{workload:?}").contains("s3cret"));
    let seen = run(workload.clone(), &closed(20)).total.requests();
    assert_eq!((seen.good(), seen.failed()), (20, 0), "{:?}", seen.refusals);
    workload.target.login.password = "wr0ng".to_owned();
    let said = refusal(workload.clone());
    assert!(
        said.starts_with(&format!("log in to {}: login refused", server.address)),
        "{said}"
    );
    assert!(
        said.contains("REDISCLI_AUTH") && !said.contains("wr0ng"),
        "{said}"
    );
    workload.target.login.password = "s3cret".to_owned();
    workload.target.login.user = "nobody".to_owned();
    assert!(refusal(workload).contains("login refused"));
    // In database 3, and nowhere else.
    let asked = |database: &str| {
        let mut check = redis(
            server.address,
            1,
            1,
            step("get", "EXISTS a", &["body is 1"]),
        );
        check.target.login.password = "s3cret".to_owned();
        check.target.login.database = database.to_owned();
        run(check, &closed(1)).total.requests().refused
    };
    assert_eq!((asked("3"), asked("")), (0, 1));
}

#[test]
fn within_tls() {
    let folder = tempfile::tempdir().unwrap();
    let signer = rcgen::KeyPair::generate().unwrap();
    let made = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let made = made.self_signed(&signer).unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (certificate, key) = (path("crt"), path("key"));
    std::fs::write(&certificate, made.pem()).unwrap();
    std::fs::write(&key, signer.serialize_pem()).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let _server = RedisServer::start_with(&[
        "--tls-port",
        &address.port().to_string(),
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &certificate,
        "--tls-auth-clients",
        "no",
    ]);
    let mut workload = redis(
        address,
        2,
        8,
        step("echo", "ECHO {random 4000}", &["size 4000"]),
    );
    workload.target.tls = true;
    workload.tls.authorities = made.pem();
    let seen = run(workload, &closed(400)).total.requests();
    assert_eq!(
        (seen.good(), seen.failed()),
        (400, 0),
        "{:?} {:?}",
        seen.errors,
        seen.refusals
    );
}

#[test]
fn replies_larger_than_any_buffer() {
    let server = RedisServer::start();
    server.ask("SETRANGE big 3000000 x");
    let read = step("read", "GET big", &["size 3000001"]);
    let seen = run(redis(server.address, 2, 3, read), &closed(12))
        .total
        .requests();
    assert_eq!(
        (seen.good(), seen.failed()),
        (12, 0),
        "{:?} {:?}",
        seen.errors,
        seen.refusals
    );
    // What is searched has a bound, and says so.
    let search = step("search", "GET big", &["body contains x"]);
    let seen = run(redis(server.address, 1, 1, search), &closed(2))
        .total
        .requests();
    assert_eq!(
        seen.refusals.keys().collect::<Vec<_>>(),
        ["body above 1 MiB, not searched"]
    );
}
