//! Changes of the routes.

use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use routing::tcp::Change;
use routing_api::client::ClientSettings;

use super::rig::{Backend, Rig, connect, exchange, greeting, mapping, until};
use crate::free_port::free_port;

#[test]
fn a_port_leads_to_its_backends_in_turn() {
    let (rig, one, two) = (Rig::new(), Backend::echo(b'1'), Backend::echo(b'2'));
    let port = rig.route(&[one.address, two.address]);
    let mut names = Vec::new();
    for _ in 0..4 {
        let mut client = connect(port);
        names.push(greeting(&mut client).unwrap());
        assert_eq!(exchange(&mut client, b"hello"), b"hello");
    }
    // Both may not have been there for the first of them.
    assert_ne!(names[2], names[3]);
    until("the bytes are counted", || {
        rig.metric("tcp_router_received_bytes_total") == 24.0
            && rig.metric("tcp_router_sent_bytes_total") == 20.0
    });
    assert_eq!(rig.metric("tcp_router_sessions_total"), 4.0);
    assert_eq!(rig.metric("tcp_router_connect_seconds_count"), 4.0);
    let sample = format!("tcp_router_port_sessions_total{{port=\"{port}\"}}");
    assert_eq!(rig.metric(&sample), 4.0);
}

#[test]
fn established_connections_outlive_their_route() {
    let (rig, one, two) = (Rig::new(), Backend::echo(b'1'), Backend::echo(b'2'));
    let port = rig.route(&[one.address]);
    let mut old = connect(port);
    assert_eq!(greeting(&mut old), Some(b'1'));
    rig.send(Change::Full(vec![mapping(port, two.address)]));
    until("new connections go to the other", || {
        greeting(&mut connect(port)) == Some(b'2')
    });
    rig.send(Change::Delete(mapping(port, two.address)));
    until("the port closes", || {
        TcpStream::connect(("127.0.0.1", port)).is_err()
    });
    assert_eq!(exchange(&mut old, b"still here"), b"still here");
    assert_eq!(rig.metric("tcp_router_ports"), 0.0);
    assert_eq!(rig.metric("tcp_router_routes"), 0.0);
}

#[test]
fn changes_under_load_lose_no_connection() {
    let (rig, one, two) = (Rig::new(), Backend::echo(b'1'), Backend::echo(b'2'));
    let port = rig.route(&[one.address]);
    let others: Vec<u16> = (0..20).map(|_| free_port()).collect();
    let (over, exchanges) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|threads| {
        for client in 0..8_u8 {
            let (over, exchanges) = (&over, &exchanges);
            threads.spawn(move || {
                let mut kept = connect(port);
                greeting(&mut kept).unwrap();
                while !over.load(Ordering::SeqCst) {
                    assert_eq!(exchange(&mut kept, &[client; 1000]), [client; 1000]);
                    // And a new one each time: the port is never without a backend.
                    let mut short = connect(port);
                    greeting(&mut short).unwrap();
                    assert_eq!(exchange(&mut short, &[client; 10]), [client; 10]);
                    exchanges.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for round in 0..40 {
            let before = exchanges.load(Ordering::SeqCst);
            for other in &others {
                let other = mapping(*other, one.address);
                rig.send(match round % 2 {
                    0 => Change::Upsert(other),
                    _ => Change::Delete(other),
                });
            }
            let backend = if round % 2 == 0 { &two } else { &one };
            rig.send(Change::Full(vec![mapping(port, backend.address)]));
            until("load goes on", || {
                exchanges.load(Ordering::SeqCst) > before + 4
            });
        }
        over.store(true, Ordering::SeqCst);
    });
    assert_eq!(
        rig.metric("tcp_router_sessions_ended_total{end=\"no_route\"}"),
        0.0
    );
    assert_eq!(
        rig.metric("tcp_router_sessions_ended_total{end=\"no_backend\"}"),
        0.0
    );
}

#[test]
fn a_thousand_ports_open_and_close() {
    let (rig, backend) = (Rig::new(), Backend::echo(b'x'));
    // Held for a moment all at once, so that they differ.
    let held: Vec<TcpListener> = (0..1000)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let ports: Vec<u16> = held
        .iter()
        .map(|it| it.local_addr().unwrap().port())
        .collect();
    drop(held);
    let list = ports
        .iter()
        .map(|port| mapping(*port, backend.address))
        .collect();
    rig.send(Change::Full(list));
    until("all are open", || {
        rig.metric("tcp_router_ports") == 1000.0 && rig.metric("tcp_router_unbound_ports") == 0.0
    });
    for port in ports.iter().step_by(97) {
        assert_eq!(greeting(&mut connect(*port)), Some(b'x'));
    }
    rig.send(Change::Full(Vec::new()));
    until("all are closed", || {
        rig.metric("tcp_router_ports") == 0.0
            && ports
                .iter()
                .all(|port| TcpStream::connect(("127.0.0.1", *port)).is_err())
    });
}

#[test]
fn a_port_that_is_taken_holds_up_no_other() {
    let (rig, backend) = (Rig::new(), Backend::echo(b'x'));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    rig.send(Change::Upsert(mapping(port, backend.address)));
    let other = rig.route(&[backend.address]);
    assert_eq!(greeting(&mut connect(other)), Some(b'x'));
    assert_eq!(rig.metric("tcp_router_unbound_ports"), 1.0);
    assert!(rig.log.kept().contains("tcp-router.routes.port-not-opened"));
    drop(taken);
    rig.opened(port);
    assert_eq!(greeting(&mut connect(port)), Some(b'x'));
    assert_eq!(rig.metric("tcp_router_unbound_ports"), 0.0);
}

#[test]
fn a_stale_mapping_goes() {
    let (rig, backend) = (Rig::new(), Backend::echo(b'x'));
    let port = free_port();
    let mut short = mapping(port, backend.address);
    short.ttl = Some(1);
    rig.send(Change::Upsert(short));
    rig.opened(port);
    until("it is pruned", || {
        rig.metric("tcp_router_pruned_backends_total") == 1.0
    });
    assert_eq!(rig.metric("tcp_router_ports"), 0.0);
}

#[test]
fn nothing_is_stale_while_the_routing_api_says_nothing() {
    let rig = Rig::with(|settings| settings.routing_api = Some(ClientSettings::default()));
    let backend = Backend::echo(b'x');
    let (port, other) = (free_port(), free_port());
    let mut short = mapping(port, backend.address);
    short.ttl = Some(1);
    rig.send(Change::Upsert(short));
    rig.opened(port);
    // Longer than the mapping's TTL, with many looks for stale ones.
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(greeting(&mut connect(port)), Some(b'x'));
    assert_eq!(rig.metric("tcp_router_pruned_backends_total"), 0.0);
    rig.send(Change::Upsert(mapping(other, backend.address)));
    until("it is pruned", || {
        rig.metric("tcp_router_pruned_backends_total") == 1.0
    });
    assert_eq!(greeting(&mut connect(other)), Some(b'x'));
}

#[test]
fn a_mapping_that_cannot_be_used_is_told() {
    let (rig, backend) = (Rig::new(), Backend::echo(b'x'));
    let mut bad = mapping(free_port(), backend.address);
    bad.backend_ip = "not a name".into();
    rig.send(Change::Upsert(bad));
    until("it is skipped", || {
        rig.metric("tcp_router_skipped_mappings_total") == 1.0
    });
    let log = rig.log.kept();
    assert!(
        log.contains("mapping-skipped") && log.contains("expected an IP address"),
        "{log}"
    );
}

#[test]
fn a_backend_may_be_known_by_name() {
    let (rig, backend) = (Rig::new(), Backend::echo(b'x'));
    let port = free_port();
    let mut named = mapping(port, backend.address);
    named.backend_ip = "localhost".into();
    rig.send(Change::Upsert(named));
    rig.opened(port);
    // It may be known by its IPv6 address only, where nobody listens.
    until("its address is found", || {
        greeting(&mut connect(port)) == Some(b'x')
            || rig.metric("tcp_router_dial_errors_total{cause=\"refused\"}") > 0.0
    });
}

#[test]
fn two_routers_do_not_share_a_port() {
    let (first, second) = (Rig::new(), Rig::new());
    let (one, two) = (Backend::echo(b'1'), Backend::echo(b'2'));
    let port = first.route(&[one.address]);
    second.send(Change::Upsert(mapping(port, two.address)));
    until("the second router is refused", || {
        second.log.kept().contains("port-not-opened")
    });
    for _ in 0..20 {
        assert_eq!(greeting(&mut connect(port)), Some(b'1'));
    }
    first.send(Change::Delete(mapping(port, one.address)));
    second.opened(port);
    assert_eq!(greeting(&mut connect(port)), Some(b'2'));
}

#[test]
fn a_port_that_closes_opens_again_at_once() {
    let (rig, one) = (Rig::new(), Backend::echo(b'1'));
    let port = rig.route(&[one.address]);
    let said = |line: &str, times: usize| {
        until(line, || rig.log.kept().matches(line).count() == times);
    };
    for time in 1..=100 {
        rig.send(Change::Delete(mapping(port, one.address)));
        said("port-closed", time);
        rig.send(Change::Upsert(mapping(port, one.address)));
        said("port-opened", time + 1);
    }
    assert_eq!(greeting(&mut connect(port)), Some(b'1'));
    assert!(!rig.log.kept().contains("port-not-opened"));
}

/// Threads end accepting one after the other; what one of them takes meanwhile is of the port as it is
/// now.
#[test]
fn a_port_that_opens_again_is_the_one_that_it_was() {
    let (rig, one) = (Rig::new(), Backend::echo(b'1'));
    let port = rig.route(&[one.address]);
    let sessions = format!("tcp_router_port_sessions{{port=\"{port}\"}}");
    let mut stays = connect(port);
    assert_eq!(greeting(&mut stays), Some(b'1'));
    rig.send(Change::Delete(mapping(port, one.address)));
    until("the port is closed", || {
        rig.log.kept().contains("port-closed")
    });
    rig.send(Change::Upsert(mapping(port, one.address)));
    until("the port is opened again", || {
        rig.log.kept().matches("port-opened").count() == 2
    });
    assert_eq!(rig.metric(&sessions), 1.0);
    assert_eq!(exchange(&mut stays, b"still"), b"still");
    drop(stays);
    until("the connection has ended", || rig.metric(&sessions) == 0.0);
}
