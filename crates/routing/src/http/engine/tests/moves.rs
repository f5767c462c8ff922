//! A route changes under its requests: none is lost, none comes twice.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::bench::{Backend, Bench, ok, register};
use crate::table::{Modification, RouteKey, Table};

const CLIENTS: usize = 4;
const REQUESTS: usize = 20_000;
const MOVES: usize = 200;

/// How often each request has come to a backend.
type Came = Arc<Mutex<HashMap<String, usize>>>;

fn counting(came: &Came) -> Backend {
    let came = Arc::clone(came);
    Backend::answering(move |asked| {
        let id = asked.path().to_owned();
        let answer = ok(id.as_bytes());
        *came.lock().unwrap().entry(id).or_default() += 1;
        answer
    })
}

fn unregister(table: &Table, backend: SocketAddr) {
    let key = RouteKey::new("app.test").unwrap();
    let tag = Modification::default();
    table.unregister(&key, &backend.to_string(), &tag, 0);
}

/// From one backend to the other, sometimes over both, sometimes over none.
fn change(table: &Table, step: usize, one: SocketAddr, other: SocketAddr) {
    let (from, to) = if step.is_multiple_of(2) {
        (one, other)
    } else {
        (other, one)
    };
    if step.is_multiple_of(3) {
        unregister(table, from);
        register(table, to);
    } else {
        register(table, to);
        unregister(table, from);
    }
}

#[test]
fn no_request_is_lost_or_doubled_while_its_route_moves() {
    let came = Came::default();
    let (one, other) = (counting(&came), counting(&came));
    let bench = Bench::with(&[one.address], |settings| settings.threads = Some(2));
    let done = AtomicUsize::new(0);
    let statuses = Mutex::new(HashMap::new());
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (bench, done, statuses) = (&bench, &done, &statuses);
            scope.spawn(move || {
                let mut client = bench.client();
                for request in 0..REQUESTS / CLIENTS {
                    let id = format!("/{number}-{request}");
                    // Every other one must not be sent again once it was sent.
                    let (method, body) = match request % 2 {
                        0 => ("GET", ""),
                        _ => ("POST", "Content-Length: 4\r\n"),
                    };
                    let head = format!("{method} {id} HTTP/1.1\r\nHost: app.test\r\n{body}\r\n");
                    let body = if method == "POST" { "body" } else { "" };
                    client.send(format!("{head}{body}").as_bytes());
                    let answer = client.answer().unwrap();
                    if answer.status == 200 {
                        assert_eq!(answer.body, id.as_bytes());
                    }
                    statuses.lock().unwrap().insert(id, answer.status);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for step in 0..MOVES {
            while done.load(Ordering::Relaxed) < step * (REQUESTS / MOVES) {
                std::thread::yield_now();
            }
            change(&bench.table, step, one.address, other.address);
        }
    });
    let (statuses, came) = (statuses.into_inner().unwrap(), came.lock().unwrap());
    assert_eq!(statuses.len(), REQUESTS);
    for (id, status) in &statuses {
        let times = came.get(id).copied().unwrap_or_default();
        match status {
            200 => assert_eq!(times, 1, "{id}"),
            // No route, or one that lost its endpoint when it had been found.
            404 | 502 | 503 => assert_eq!(times, 0, "{id}"),
            _ => panic!("{id}: status {status}, came {times} times"),
        }
    }
    assert_eq!(bench.totals().active, 0);
}
