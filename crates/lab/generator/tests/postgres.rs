//! PostgreSQL: a real server whose truth is known, because its statements say it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use crate::postgres_cluster::Cluster;
use crate::workload::{closed, failures, open, plain, refusal, run};
use lab_generator::Local;
use lab_load::arrivals::Process;
use lab_load::recording::{Phase, Recording};
use lab_load::request::{Assertion, Body, Journey, Mix, Step};
use lab_load::{Flow, Generate as _, Protocol, Workload};

fn step(name: &str, sql: &str, assertions: &[&str]) -> Step {
    let mut step = Step::new(name, "", "");
    step.body = Body::Template(sql.to_owned());
    let assertions = assertions
        .iter()
        .map(|text| Assertion::parse(text).unwrap());
    step.assertions = assertions.collect();
    step
}

fn postgres(address: SocketAddr, connections: u32, journeys: Vec<(f64, Vec<Step>)>) -> Workload {
    let mut workload = plain(address, connections);
    workload.target.protocol = Protocol::Postgres;
    workload.target.login.user = "postgres".to_owned();
    let journey = |(weight, steps): (f64, Vec<Step>)| Journey {
        name: steps[0].name.clone(),
        weight,
        steps,
    };
    workload.mix = Mix {
        journeys: journeys.into_iter().map(journey).collect(),
        ..Mix::default()
    };
    workload
}

fn one(address: SocketAddr, connections: u32, step: Step) -> Workload {
    postgres(address, connections, vec![(1.0, vec![step])])
}

fn refusals(seen: &Recording) -> Vec<(&str, u64)> {
    seen.refusals
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect()
}

#[test]
fn every_acknowledged_row_is_there_and_no_other() {
    let server = Cluster::start_on_port();
    server.ask("CREATE TABLE seen (number bigint, text text)");
    // A value that would end the statement, if it were a part of its text.
    let insert = step(
        "insert",
        "INSERT INTO seen VALUES ({seq}, {line t.text})",
        &["rows 1"],
    );
    let mut workload = one(server.address(), 4, insert);
    let table = lab_load::request::Table {
        columns: vec!["text".to_owned()],
        rows: vec![vec!["'); DROP TABLE seen; --".to_owned()]],
    };
    workload.mix.tables.insert("t".to_owned(), table);
    workload.threads = 2;
    workload.share.threads = 2;
    let total = run(workload, &closed(1_000)).total;
    let seen = total.requests();
    assert_eq!(
        (seen.good(), seen.failed()),
        (1_000, 0),
        "{:?} {:?}",
        seen.errors,
        seen.refusals
    );
    let asked =
        "SELECT count(*), count(DISTINCT number), min(number), max(number), min(text) FROM seen";
    assert_eq!(server.ask(asked), "1000|1000|0|999|'); DROP TABLE seen; --");
    assert_eq!(total.connections.reused, 1_000 - 4);
}

#[test]
fn the_share_that_fails_is_told_by_its_sqlstate() {
    let server = Cluster::start_on_port();
    server.ask("CREATE TABLE t (id int PRIMARY KEY, v text)");
    server.ask("INSERT INTO t VALUES (1, 'one'), (2, NULL)");
    let read = "SELECT id, v FROM t ORDER BY id";
    let mix = vec![
        (
            3.0,
            vec![step(
                "read",
                read,
                &["rows 2", "body is 1\tone\n2\t", "size 5"],
            )],
        ),
        (
            1.0,
            vec![step("twice", "INSERT INTO t VALUES (1, {random 4})", &[])],
        ),
        (
            1.0,
            vec![step("zero", "SELECT 1 / {uniform 0 0}::int", &[])],
        ),
        (
            1.0,
            vec![step(
                "unknown",
                "SELECT nothing FROM t WHERE id = {seq}",
                &[],
            )],
        ),
        (
            1.0,
            vec![step(
                "none",
                "SELECT id FROM t WHERE id = {uniform 9 9}",
                &["rows 1"],
            )],
        ),
    ];
    let total = run(postgres(server.address(), 3, mix), &closed(700)).total;
    let sent: Vec<u64> = total.kinds.iter().map(|kind| kind.sent).collect();
    let refused: Vec<u64> = total.kinds.iter().map(|kind| kind.refused).collect();
    assert!(sent.iter().all(|sent| *sent > 40), "{sent:?}");
    assert_eq!(refused, [0, sent[1], sent[2], sent[3], sent[4]]);
    let seen = total.requests();
    let expected = [
        ("error 22012", sent[2]),
        ("error 23505", sent[1]),
        ("error 42703", sent[3]),
        ("rows 1", sent[4]),
    ];
    assert_eq!(refusals(&seen), expected);
    assert_eq!((seen.answered, seen.failed()), (700, 0));
    assert_eq!(total.connections.opened, 3);
}

#[test]
fn a_transaction_is_a_journey_on_one_connection() {
    let server = Cluster::start_on_port();
    server.ask("CREATE TABLE account (id int PRIMARY KEY, balance bigint CHECK (balance >= 0))");
    server.ask("INSERT INTO account SELECT n, 1000 FROM generate_series(1, 10) n");
    let transfer = |amount: &str| {
        vec![
            step("begin", "BEGIN", &[]),
            step(
                "take",
                &format!("UPDATE account SET balance = balance - {amount} WHERE id = 1"),
                &["rows 1"],
            ),
            step(
                "give",
                &format!("UPDATE account SET balance = balance + {amount} WHERE id = 2"),
                &["rows 1"],
            ),
            step("commit", "COMMIT", &[]),
        ]
    };
    let total = run(
        postgres(server.address(), 3, vec![(1.0, transfer("1"))]),
        &closed(60),
    )
    .total;
    let seen = total.requests();
    assert_eq!(
        (seen.good(), seen.failed()),
        (seen.sent, 0),
        "{:?}",
        seen.refusals
    );
    let done = total.kinds[3].answered;
    let balance = |id: u64| server.ask(&format!("SELECT balance FROM account WHERE id = {id}"));
    assert_eq!(balance(1), (1_000 - done).to_string());
    assert_eq!(balance(2), (1_000 + done).to_string());
    assert_eq!(total.connections.opened, 3);
    // One that fails in the middle leaves nothing behind, neither rows nor an open transaction
    // for the next: its connection is closed.
    let total = run(
        postgres(server.address(), 1, vec![(1.0, transfer("100000"))]),
        &closed(10),
    )
    .total;
    assert_eq!(
        refusals(&total.requests()),
        [("error 23514", total.kinds[1].sent)]
    );
    assert_eq!((total.kinds[0].refused, total.kinds[2].sent), (0, 0));
    assert_eq!(balance(1), (1_000 - done).to_string());
    assert!(total.connections.opened >= total.kinds[1].sent);
    assert_eq!(
        server.ask("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"),
        "0"
    );
}

#[test]
fn a_transaction_that_the_end_of_the_load_cuts_off_is_nobody_s() {
    let server = Cluster::start_on_port();
    let mut begin = step("begin", "BEGIN", &[]);
    begin.think = Duration::from_secs(60);
    let steps = vec![begin, step("commit", "COMMIT", &[])];
    let mut local = Local::start(postgres(server.address(), 4, vec![(1.0, steps)])).unwrap();
    let segment = open(Process::Constant, 20.0, 0.2);
    let total = local.run(&segment, &mut |_| Flow::Continue).unwrap().total;
    assert_eq!((total.kinds[0].answered, total.kinds[1].sent), (4, 0));
    // The generator is there for another segment, whose journeys begin outside of any.
    let left = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'";
    let none = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        server.ask(left) == "0"
    });
    assert!(none, "{} are open", server.ask(left));
    drop(local);
}

#[test]
fn a_transaction_whose_connection_is_closed_in_a_pause_is_not_gone_on_with() {
    let server = Cluster::start_on_port();
    server.ask("CREATE TABLE t (id int)");
    let mut begin = step("begin", "BEGIN", &[]);
    begin.think = Duration::from_secs(2);
    let insert = step("insert", "INSERT INTO t VALUES (1)", &["rows 1"]);
    let steps = vec![begin, insert, step("commit", "COMMIT", &[])];
    let workload = postgres(server.address(), 1, vec![(1.0, steps)]);
    let mut local = Local::start(workload).unwrap();
    let close = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(400));
        let paused = "FROM pg_stat_activity WHERE state = 'idle in transaction'";
        server.ask(&format!("SELECT pg_terminate_backend(pid) {paused}"));
        server
    });
    let segment = closed(1);
    let total = local.run(&segment, &mut |_| Flow::Continue).unwrap().total;
    let server = close.join().unwrap();
    assert_eq!(
        failures(&total.kinds[1]),
        [(Phase::Connect, "closed early", 1)]
    );
    assert_eq!((total.kinds[1].sent, total.kinds[2].sent), (0, 0));
    assert_eq!(server.ask("SELECT count(*) FROM t"), "0");
}

#[test]
fn a_statement_takes_as_long_as_it_says() {
    let server = Cluster::start_on_port();
    let sleep = step("sleep", "SELECT pg_sleep(0.02)", &["rows 1"]);
    let seen = run(
        one(server.address(), 4, sleep),
        &open(Process::Constant, 100.0, 0.5),
    )
    .total
    .requests();
    assert_eq!((seen.good(), seen.failed()), (50, 0), "{:?}", seen.errors);
    for latency in [&seen.actual, &seen.intended] {
        let least = latency.quantile(0.0).unwrap();
        assert!(least >= Duration::from_micros(19_800), "{least:?}");
    }
    // One connection cannot do a hundred a second: what waits for it is in the intended latency.
    let sleep = step("sleep", "SELECT pg_sleep(0.02)", &[]);
    let seen = run(
        one(server.address(), 1, sleep),
        &open(Process::Constant, 100.0, 0.5),
    )
    .total
    .requests();
    let last = seen.intended.quantile(1.0).unwrap();
    // The last of 50 is due after 490 ms and comes after 50 times 20 ms.
    assert!(last >= Duration::from_millis(500), "{last:?}");
}

#[test]
fn an_outage_is_seen_in_full() {
    let mut server = Cluster::start_on_port();
    for outage in [true, false] {
        let workload = one(server.address(), 3, step("one", "SELECT 1", &["body is 1"]));
        let mut local = Local::start(workload).unwrap();
        let crash = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(500));
            if outage {
                server.crash();
                // The children that serve the connections take a moment to follow.
                std::thread::sleep(Duration::from_millis(500));
            }
            server
        });
        let segment = open(Process::Constant, 200.0, 1.5);
        let total = local.run(&segment, &mut |_| Flow::Continue).unwrap().total;
        server = crash.join().unwrap();
        let seen = total.requests();
        assert_eq!(seen.answered + seen.failed(), 300, "{:?}", seen.errors);
        if outage {
            // A last word may say why, and is never good.
            assert!(seen.good() <= 200, "{:?} {:?}", seen.errors, seen.refusals);
            let phases: Vec<Phase> = failures(&seen).iter().map(|(phase, ..)| *phase).collect();
            assert!(phases.contains(&Phase::Connect), "{phases:?}");
            server.resume();
        } else {
            assert_eq!(
                (seen.good(), total.connections.opened),
                (300, 3),
                "{:?}",
                seen.errors
            );
        }
    }
}

#[test]
fn requests_whose_login_is_refused_were_tried() {
    let server = Cluster::start_on_port();
    let workload = one(server.address(), 3, step("one", "SELECT 1", &["body is 1"]));
    let mut local = Local::start(workload.clone()).unwrap();
    let refuse = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        server.allow("host all all 127.0.0.1/32 reject");
        let own = "pg_terminate_backend(pid) FROM pg_stat_activity WHERE client_addr IS NOT NULL";
        server.ask(&format!("SELECT {own}"));
        // It ends when it is dropped.
        server
    });
    let segment = open(Process::Constant, 200.0, 1.5);
    let recorded = local.run(&segment, &mut |_| Flow::Continue).unwrap();
    let _server = refuse.join().unwrap();
    let seen = recorded.total.requests();
    let refused: u64 = failures(&seen)
        .iter()
        .filter(|(phase, ..)| *phase == Phase::Open)
        .map(|(.., count)| count)
        .sum();
    assert!(refused > 0, "{:?}", seen.errors);
    assert_eq!(seen.sent + seen.unsendable(), 300, "{:?}", seen.errors);
    assert_eq!(recorded.total.tried().all, 300);
    let checks: Vec<String> = lab_load::validity::check(&workload, &recorded)
        .reasons
        .into_iter()
        .map(|reason| reason.check)
        .collect();
    assert!(!checks.contains(&"under-sent".to_owned()), "{checks:?}");
}

#[test]
fn every_way_to_log_in() {
    let server = Cluster::start_on_port();
    server.ask(
        "SET password_encryption = 'scram-sha-256'; CREATE ROLE scram LOGIN PASSWORD 's3cret'",
    );
    server.ask("SET password_encryption = 'md5'; CREATE ROLE hashed LOGIN PASSWORD 's3cret'");
    server.ask("CREATE ROLE clear LOGIN PASSWORD 's3cret'");
    server.allow(
        "host all scram 127.0.0.1/32 scram-sha-256\n\
         host all hashed 127.0.0.1/32 md5\n\
         host all clear 127.0.0.1/32 password",
    );
    for user in ["scram", "hashed", "clear"] {
        let mut workload = one(
            server.address(),
            2,
            step("who", "SELECT current_user", &[&format!("body is {user}")]),
        );
        workload.target.login.user = user.to_owned();
        workload.target.login.database = "postgres".to_owned();
        let said = refusal(workload.clone());
        assert!(
            said.contains("no password given") && said.contains("PGPASSWORD"),
            "{user}: {said}"
        );
        workload.target.login.password = "wr0ng".to_owned();
        let said = refusal(workload.clone());
        assert!(
            said.contains("login refused") && !said.contains("wr0ng"),
            "{user}: {said}"
        );
        workload.target.login.password = "s3cret".to_owned();
        let seen = run(workload.clone(), &closed(10)).total.requests();
        assert_eq!(
            (seen.good(), seen.failed()),
            (10, 0),
            "{user}: {:?}",
            seen.refusals
        );
        workload.target.login.database = "nowhere".to_owned();
        assert!(refusal(workload).contains("no such database"), "{user}");
    }
}

#[test]
fn a_statement_without_an_answer_in_time_closes_its_connection() {
    let server = Cluster::start_on_port();
    let mut workload = one(
        server.address(),
        1,
        step("sleep", "SELECT pg_sleep({uniform 3 3})", &[]),
    );
    workload.timeout = Duration::from_millis(100);
    let total = run(workload, &closed(3)).total;
    assert_eq!(
        failures(&total.requests()),
        [(Phase::Timeout, "timeout", 3)]
    );
    assert!(total.connections.opened >= 3);
}

#[test]
fn what_is_no_postgres_is_refused_before_the_load() {
    for answer in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        b"R\0\0\0\x03",
        b"R\x7f\xff\xff\xff",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 1024]);
                let _ = stream.write_all(answer);
            }
        });
        let said = refusal(one(address, 1, step("one", "SELECT 1", &[])));
        assert!(
            said.starts_with(&format!("log in to {address}: ")),
            "{said}"
        );
    }
}
