//! Long transfers, slow readers, and ends of one direction.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use super::rig::{Backend, Rig, connect, exchange, greeting, until};

const MANY: usize = 10 << 20;

/// Bytes that do not repeat within a piece.
fn bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    (0..count).map(|_| next()).collect()
}

fn both_ways(splice: bool) {
    let rig = Rig::with(|settings| settings.splice = splice);
    // Reads and writes at the same time, with bytes of its own.
    let backend = Backend::new(|stream| {
        let mut reader = stream.try_clone().unwrap();
        let writer = std::thread::spawn(move || {
            let mut stream: TcpStream = stream;
            stream.write_all(&bytes(MANY, 2)).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        });
        let mut taken = Vec::new();
        reader.read_to_end(&mut taken).unwrap();
        assert!(taken == bytes(MANY, 1));
        writer.join().unwrap();
    });
    let port = rig.route(&[backend.address]);
    for _ in 0..3 {
        let mut client = connect(port);
        let mut writing = client.try_clone().unwrap();
        let writer = std::thread::spawn(move || {
            writing.write_all(&bytes(MANY, 1)).unwrap();
            writing.shutdown(Shutdown::Write).unwrap();
        });
        let mut taken = Vec::new();
        client.read_to_end(&mut taken).unwrap();
        assert!(taken == bytes(MANY, 2));
        writer.join().unwrap();
    }
    let finished = "tcp_router_sessions_ended_total{end=\"finished\"}";
    until("all are over", || rig.metric(finished) == 3.0);
    let expected = 3.0 * MANY as f64;
    assert_eq!(rig.metric("tcp_router_sent_bytes_total"), expected);
    assert_eq!(rig.metric("tcp_router_received_bytes_total"), expected);
}

#[test]
fn ten_megabytes_each_way_by_copying() {
    both_ways(false);
}

#[test]
fn ten_megabytes_each_way_through_pipes() {
    both_ways(true);
}

fn slow_reader(splice: bool) {
    let rig = Rig::with(|settings| {
        settings.threads = Some(1);
        settings.splice = splice;
    });
    let source = Backend::new(|mut stream| {
        stream.write_all(&bytes(MANY, 3)).unwrap();
    });
    let (echo, port) = (Backend::echo(b'e'), rig.route(&[source.address]));
    let other = rig.route(&[echo.address]);
    let mut slow = connect(port);
    // What does not fit into the kernel's buffers stays with the backend.
    let mut last = -1.0;
    until("the transfer stands still", || {
        let carried = rig.metric("tcp_router_received_bytes_total");
        std::thread::sleep(std::time::Duration::from_millis(1500));
        std::mem::replace(&mut last, carried) == carried && carried > 0.0
    });
    // Nobody else notices.
    let mut quick = connect(other);
    assert_eq!(greeting(&mut quick), Some(b'e'));
    assert_eq!(exchange(&mut quick, &[7; 5000]), [7; 5000]);
    let mut taken = Vec::new();
    slow.read_to_end(&mut taken).unwrap();
    assert!(taken == bytes(MANY, 3));
}

#[test]
fn a_slow_reader_holds_up_its_backend_only() {
    slow_reader(false);
}

#[test]
fn a_slow_reader_holds_up_its_backend_only_through_pipes() {
    slow_reader(true);
}

#[test]
fn one_direction_may_end_before_the_other() {
    let rig = Rig::new();
    let backend = Backend::new(|mut stream| {
        let mut asked = Vec::new();
        stream.read_to_end(&mut asked).unwrap();
        asked.reverse();
        stream.write_all(&asked).unwrap();
    });
    let port = rig.route(&[backend.address]);
    let mut client = connect(port);
    client.write_all(b"abc").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"cba");
    // The other way around: the backend has nothing to say, and listens.
    let backend = Backend::new(|mut stream| {
        stream.shutdown(Shutdown::Write).unwrap();
        let mut taken = Vec::new();
        stream.read_to_end(&mut taken).unwrap();
        assert_eq!(taken, b"late");
    });
    let mut client = connect(rig.route(&[backend.address]));
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    client.write_all(b"late").unwrap();
    drop(client);
    let finished = "tcp_router_sessions_ended_total{end=\"finished\"}";
    until("both are over", || rig.metric(finished) == 2.0);
    assert_eq!(rig.metric("tcp_router_sessions"), 0.0);
}
