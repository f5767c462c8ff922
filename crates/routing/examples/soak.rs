//! Does the HTTP router's memory stay flat? Requests while routes and connections come and
//! go, until the time is over; each second one line.
//!
//! `cargo run --release -p routing --example soak -- SECONDS`
//!
//! Router, backend and client are one process, so that one number holds all memory. Routes
//! are registered and unregistered ten thousand times a second; connections end after some
//! hundred requests, some in the middle of one; some bodies and heads are large.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use backend::{BackendSettings, StaticBackend};
use routing::http::counters::{Counters, Totals};
use routing::http::engine::{self, EngineConfig};
use routing::http::settings::HttpSettings;
use routing::table::{Endpoint, Modification, PoolSettings, RouteKey, Table, TableSettings};
use wire::http1::{Limits, ResponseScanner};

/// Routes that stay, and routes that come and go beside them.
const LASTING: usize = 10_000;
const FLEETING: usize = 10_000;
/// Connections of the client, and requests that each sends at once.
const CONNECTIONS: usize = 16;
const AT_ONCE: usize = 16;
/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let seconds: u64 = match std::env::args().nth(1).map(|it| it.parse()) {
        Some(Ok(seconds)) => seconds,
        _ => return Err("usage: soak SECONDS".into()),
    };
    let backend = StaticBackend::start(&BackendSettings {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        body_bytes: 100,
        threads: Some(1),
        id: String::new(),
        control: None,
        tls: None,
    })?;
    let settings = Arc::new(HttpSettings {
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        threads: Some(1),
        ..HttpSettings::default()
    });
    let table = Arc::new(Table::new(TableSettings::default()));
    let routes = Routes {
        table: &table,
        backend: backend.address(),
    };
    for number in 0..LASTING {
        routes.add(&format!("app-{number}.test"))?;
    }
    let counters = Arc::new(Counters::new(engine::threads(&settings)));
    let engine = engine::start(EngineConfig {
        settings,
        table: Arc::clone(&table),
        counters: Arc::clone(&counters),
        healthy: Arc::new(AtomicBool::new(true)),
    })?;
    let router = engine.address().ok_or("the router does not listen")?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let load = scope.spawn(|| load(router, &stop));
        let churn = scope.spawn(|| churn(&routes, &stop));
        let told = tell(seconds, &counters, &table, || {
            load.is_finished() || churn.is_finished()
        });
        stop.store(true, Ordering::Relaxed);
        for thread in [load, churn] {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        told
    })
}

/// One line each second: what was done since the last, and the memory.
fn tell(seconds: u64, counters: &Counters, table: &Table, over: impl Fn() -> bool) -> Outcome<()> {
    println!("second  requests    total  connections  routes  resident");
    let mut before = Totals::default();
    let began = Instant::now();
    for second in 1..=seconds {
        let due = began + Duration::from_secs(second);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let now = counters.totals();
        println!(
            "{second:>6} {:>9} {:>8} {:>12} {:>7} {:>5.1} MB",
            now.requests - before.requests,
            now.requests,
            now.accepted - before.accepted,
            table.len(),
            resident()? as f64 / 1e6,
        );
        before = now;
        if over() {
            return Ok(());
        }
    }
    let [_, _, ok, _, refused, failed] = before.responses;
    println!("answers: {ok} 2xx, {refused} 4xx, {failed} 5xx; {before:?}");
    Ok(())
}

/// Bytes of this process that are in memory.
fn resident() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = resident
        .ok_or("no resident memory")?
        .trim_end_matches("kB")
        .trim();
    Ok(kib.parse::<u64>()? * 1024)
}

struct Routes<'a> {
    table: &'a Table,
    backend: SocketAddr,
}

impl Routes<'_> {
    fn add(&self, uri: &str) -> Outcome<()> {
        let endpoint = Endpoint {
            identity: self.backend.to_string().into(),
            app: uri.into(),
            instance_id: uri.into(),
            ..Endpoint::default()
        };
        let settings = PoolSettings::default();
        self.table.register(
            &RouteKey::new(uri)?,
            endpoint,
            &settings,
            wire::clock::now(),
        );
        Ok(())
    }

    fn remove(&self, uri: &str) -> Outcome<()> {
        let (key, address) = (RouteKey::new(uri)?, self.backend.to_string());
        let tag = Modification::default();
        self.table
            .unregister(&key, &address, &tag, wire::clock::now());
        Ok(())
    }
}

/// Routes come and go, each time under other names.
fn churn(routes: &Routes<'_>, stop: &AtomicBool) -> Outcome<()> {
    for number in 0_usize.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        routes.add(&format!("fleeting-{number}.test/path"))?;
        if let Some(old) = number.checked_sub(FLEETING) {
            routes.remove(&format!("fleeting-{old}.test/path"))?;
        }
        if number.is_multiple_of(100) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}

/// Requests on connections that come and go.
fn load(router: SocketAddr, stop: &AtomicBool) -> Outcome<()> {
    let mut connections: Vec<Option<TcpStream>> = (0..CONNECTIONS).map(|_| None).collect();
    let (mut text, mut answers) = (Vec::new(), vec![0; 256 * 1024]);
    for round in 0_usize.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        for (number, place) in connections.iter_mut().enumerate() {
            let connection = match place {
                Some(connection) => connection,
                None => place.insert(connect(router)?),
            };
            text.clear();
            for index in 0..AT_ONCE {
                request(
                    round * CONNECTIONS * AT_ONCE + number * AT_ONCE + index,
                    &mut text,
                );
            }
            connection.write_all(&text)?;
        }
        for (number, place) in connections.iter_mut().enumerate() {
            // Some leave with their answers under way.
            if (round + number).is_multiple_of(97) {
                *place = None;
                continue;
            }
            if let Some(connection) = place {
                read_answers(connection, &mut answers)?;
            }
            if (round + number).is_multiple_of(31) {
                *place = None;
            }
        }
    }
    Ok(())
}

fn connect(router: SocketAddr) -> Outcome<TcpStream> {
    let connection = TcpStream::connect(router)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_nodelay(true)?;
    Ok(connection)
}

/// One request in its turn: to a route that stays, or, seldom, to none; with a body or a
/// large head now and then.
fn request(turn: usize, into: &mut Vec<u8>) {
    let app = turn * 7919 % (LASTING + LASTING / 100);
    let head = format!("/{turn} HTTP/1.1\r\nHost: app-{app}.test\r\nAccept: */*\r\n");
    if turn.is_multiple_of(1009) {
        let (body, more) = (vec![b'b'; 30_000], "x".repeat(10_000));
        into.extend_from_slice(format!("PUT {head}X-More: {more}\r\n").as_bytes());
        into.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        into.extend_from_slice(&body);
    } else {
        into.extend_from_slice(format!("GET {head}\r\n").as_bytes());
    }
}

/// Reads as many answers as were asked for.
fn read_answers(connection: &mut TcpStream, into: &mut [u8]) -> Outcome<()> {
    let mut scanner = ResponseScanner::new(Limits::default());
    let (mut left, mut held) = (AT_ONCE, 0);
    while left > 0 {
        let room = into.get_mut(held..).unwrap_or_default();
        match connection.read(room)? {
            0 => return Err("the router closed a connection".into()),
            read => held += read,
        }
        let mut at = 0;
        loop {
            let scan = scanner.scan(into.get(at..held).unwrap_or_default(), &mut ())?;
            at += scan.consumed;
            match scan.complete {
                Some(_) => left = left.saturating_sub(1),
                None => break,
            }
        }
        into.copy_within(at..held, 0);
        held -= at;
    }
    Ok(())
}
