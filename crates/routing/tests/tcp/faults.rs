//! Backends that are dead or die, and clients that do.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use routing::tcp::Change;

use super::rig::{Backend, Rig, connect, exchange, greeting, mapping, until};
use crate::free_port::free_port;

fn dead() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port()))
}

#[test]
fn a_dead_backend_is_passed_over() {
    let rig = Rig::with(|settings| settings.failed_for = Duration::from_secs(3600));
    let alive = Backend::echo(b'a');
    let port = rig.route(&[dead(), dead(), alive.address]);
    until("all mappings are there", || {
        rig.metric("tcp_router_backends") == 3.0
    });
    for _ in 0..20 {
        assert_eq!(greeting(&mut connect(port)), Some(b'a'));
    }
    // Each was asked once, and then left alone.
    let refused = rig.metric("tcp_router_dial_errors_total{cause=\"refused\"}");
    assert!(refused <= 2.0, "{refused}");
    assert_eq!(
        rig.metric("tcp_router_sessions_ended_total{end=\"no_backend\"}"),
        0.0
    );
}

#[test]
fn attempts_have_a_bound() {
    let rig = Rig::with(|settings| {
        settings.attempts = 2;
        settings.failed_for = Duration::ZERO;
    });
    let port = rig.route(&[dead(), dead(), dead()]);
    until("all mappings are there", || {
        rig.metric("tcp_router_backends") == 3.0
    });
    assert_eq!(greeting(&mut connect(port)), None);
    until("it is counted", || {
        rig.metric("tcp_router_sessions_ended_total{end=\"no_backend\"}") == 1.0
    });
    assert_eq!(
        rig.metric("tcp_router_dial_errors_total{cause=\"refused\"}"),
        2.0
    );
    assert!(rig.log.kept().contains("tcp-router.dial-backend"));
}

#[test]
fn a_killed_backend_ends_its_connections_only() {
    let (rig, mut one, two) = (Rig::new(), Backend::echo(b'1'), Backend::echo(b'2'));
    let port = rig.route(&[one.address, two.address]);
    until("all mappings are there", || {
        rig.metric("tcp_router_backends") == 2.0
    });
    let mut clients: Vec<_> = (0..10).map(|_| connect(port)).collect();
    let names: Vec<_> = clients.iter_mut().map(|it| greeting(it).unwrap()).collect();
    assert!(names.contains(&b'1') && names.contains(&b'2'));
    one.kill();
    for (client, name) in clients.iter_mut().zip(&names) {
        match name {
            b'1' => assert_eq!(client.read(&mut [0]).unwrap_or(0), 0),
            _ => assert_eq!(exchange(client, b"on"), b"on"),
        }
    }
    for _ in 0..5 {
        assert_eq!(greeting(&mut connect(port)), Some(b'2'));
    }
}

#[test]
fn what_a_backend_said_before_it_went_away_arrives() {
    let rig = Rig::new();
    // Answers at once and closes with bytes unread: that resets the connection.
    let backend = Backend::new(|mut stream| {
        stream.read_exact(&mut [0; 10]).unwrap();
        stream.write_all(b"no, thank you").unwrap();
    });
    let mut client = connect(rig.route(&[backend.address]));
    client.write_all(&[1; 10]).unwrap();
    let mut answer = vec![0; 13];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(answer, b"no, thank you");
}

#[test]
fn clients_that_vanish_leave_nothing_behind() {
    let (rig, backend) = (Rig::new(), Backend::echo(b'x'));
    let port = rig.route(&[backend.address]);
    for round in 0..50 {
        let mut client = connect(port);
        if round % 2 == 0 {
            greeting(&mut client).unwrap();
            // Closing with unread bytes resets.
            client.write_all(&[0; 100_000]).unwrap();
        }
    }
    until("all are over", || {
        rig.metric("tcp_router_sessions_total") == 50.0 && rig.metric("tcp_router_sessions") == 0.0
    });
}

#[test]
fn silence_ends_a_connection() {
    let rig = Rig::with(|settings| settings.idle_timeout = Duration::from_millis(200));
    let backend = Backend::echo(b'x');
    let port = rig.route(&[backend.address]);
    let mut client = connect(port);
    assert_eq!(greeting(&mut client), Some(b'x'));
    assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
    assert_eq!(
        rig.metric("tcp_router_sessions_ended_total{end=\"idle\"}"),
        1.0
    );
}

#[test]
fn connections_above_the_limit_wait() {
    let rig = Rig::with(|settings| {
        settings.threads = Some(1);
        settings.port_connections = 2;
        settings.idle_timeout = Duration::from_secs(3600);
    });
    let backend = Backend::echo(b'x');
    let port = rig.route(&[backend.address]);
    let mut first = connect(port);
    assert_eq!(greeting(&mut first), Some(b'x'));
    let mut second = connect(port);
    assert_eq!(greeting(&mut second), Some(b'x'));
    let mut third = connect(port);
    until("the limit is noticed", || {
        rig.metric("tcp_router_held_back_total") > 0.0
    });
    assert_eq!(rig.metric("tcp_router_sessions"), 2.0);
    // Another port has its own limit.
    assert_eq!(
        greeting(&mut connect(rig.route(&[backend.address]))),
        Some(b'x')
    );
    assert_eq!(exchange(&mut second, b"fine"), b"fine");
    drop(first);
    assert_eq!(greeting(&mut third), Some(b'x'));
}

#[test]
fn a_backend_that_comes_back_is_used_again() {
    let rig = Rig::with(|settings| settings.failed_for = Duration::from_millis(1));
    let address = dead();
    let port = free_port();
    rig.send(Change::Upsert(mapping(port, address)));
    rig.opened(port);
    assert_eq!(greeting(&mut connect(port)), None);
    let listener = std::net::TcpListener::bind(address).unwrap();
    let client = connect(port);
    let (mut served, _) = listener.accept().unwrap();
    served.write_all(b"!").unwrap();
    let mut client = client;
    assert_eq!(greeting(&mut client), Some(b'!'));
}
