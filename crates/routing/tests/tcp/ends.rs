//! How a router ends.

use std::net::TcpStream;
use std::time::Duration;

use routing::tcp::{Change, TcpSettings, run};
use telemetry::{Level, Logger, Sink};
use tokio::sync::{mpsc, oneshot};

use super::rig::{Backend, Rig, connect, exchange, get, greeting, mapping, until};

#[test]
fn a_drain_lets_connections_end() {
    let mut rig = Rig::with(|settings| settings.drain_wait = Duration::from_secs(2));
    let backend = Backend::echo(b'x');
    let port = rig.route(&[backend.address]);
    let mut old = connect(port);
    assert_eq!(greeting(&mut old), Some(b'x'));
    assert_eq!(get(rig.status, "/health"), (200, "ok\n".into()));
    let router = rig.router();
    let drained = rig.runtime.spawn(router.drain());
    until("health fails", || get(rig.status, "/health").0 == 503);
    // Whoever has not noticed yet is still served.
    assert_eq!(greeting(&mut connect(port)), Some(b'x'));
    until("the port closes", || {
        TcpStream::connect(("127.0.0.1", port)).is_err()
    });
    // A change opens no port again.
    let _ = rig
        .changes
        .blocking_send(Change::Upsert(mapping(port, backend.address)));
    assert_eq!(exchange(&mut old, b"to the end"), b"to the end");
    assert!(!drained.is_finished());
    drop(old);
    rig.runtime.block_on(drained).unwrap();
    assert!(rig.log.kept().contains("tcp-router.drain-closed-ports"));
}

#[test]
fn a_drain_has_an_end() {
    let mut rig = Rig::with(|settings| {
        settings.drain_wait = Duration::ZERO;
        settings.drain_timeout = Duration::from_millis(300);
    });
    let backend = Backend::echo(b'x');
    let mut client = connect(rig.route(&[backend.address]));
    assert_eq!(greeting(&mut client), Some(b'x'));
    let router = rig.router();
    rig.runtime.block_on(router.drain());
    assert_eq!(greeting(&mut client), None);
}

#[test]
fn a_stop_ends_it_at_once_even_while_it_drains() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let (_changes, taken) = mpsc::channel(1);
    let (drain, drains) = oneshot::channel::<()>();
    let (stop, stops) = oneshot::channel::<()>();
    let log = Sink::memory();
    let logger = Logger::new("tcp-router", log.clone(), Level::Info);
    let running = runtime.spawn(run(
        TcpSettings::default(),
        taken,
        logger,
        async { drop(drains.await) },
        async { drop(stops.await) },
    ));
    drain.send(()).unwrap();
    until("it drains", || log.kept().contains("drain-began"));
    stop.send(()).unwrap();
    runtime.block_on(running).unwrap().unwrap();
}

#[test]
fn the_feed_may_end_before_the_router() {
    let mut rig = Rig::new();
    let backend = Backend::echo(b'x');
    let port = rig.route(&[backend.address]);
    let (closed, _) = mpsc::channel(1);
    rig.changes = closed;
    until("its end is noticed", || {
        rig.log.kept().contains("feed-ended")
    });
    assert_eq!(greeting(&mut connect(port)), Some(b'x'));
}

#[test]
fn other_paths_and_methods_are_refused() {
    let rig = Rig::new();
    assert_eq!(get(rig.status, "/").0, 404);
    assert_eq!(get(rig.status, "/metrics").0, 200);
}
