//! One load over several addresses.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lab_load::arrivals::{Arrivals, Process, Shape};
use lab_load::request::{Mix, Step};
use lab_load::{Flow, Generate as _, Length, Model, Segment};

use super::Local;
use crate::engine::Addresses;
use crate::simulated;

/// A server at an address of this machine that answers whatever asks, and counts it.
fn counting(address: [u8; 4]) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind(SocketAddr::from((address, 0))).unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let counted = Arc::clone(&counted);
            std::thread::spawn(move || answer(stream.unwrap(), &counted));
        }
    });
    (address, count)
}

/// Requests come one at a time, each in one piece.
fn answer(mut stream: TcpStream, counted: &AtomicU64) {
    let mut request = [0; 4096];
    while stream.read(&mut request).is_ok_and(|bytes| bytes > 0) {
        counted.fetch_add(1, Ordering::Relaxed);
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        if stream.write_all(answer).is_err() {
            return;
        }
    }
}

#[test]
fn requests_take_the_addresses_of_a_target_in_turn() {
    let (one, by_one) = counting([127, 0, 0, 1]);
    let (two, by_two) = counting([127, 0, 0, 2]);
    let mut workload = simulated::workload(1, 0);
    workload.mix = Mix::of(Step::new("get", "GET", "/"));
    workload.connections.held = 4;
    workload.connections.most = 4;
    workload.timeout = Duration::from_secs(30);
    (workload.target.host, workload.target.port) = (one.ip().to_string(), one.port());
    let setup = Local::prepare(workload).unwrap();
    let mut setup = Arc::into_inner(setup).unwrap();
    setup.addresses = Addresses::new(one, vec![two]);
    setup.addresses.note = Some("in turn".to_owned());
    let mut local = Local::open(Arc::new(setup), None).unwrap();
    // So rarely that one connection would do.
    let segment = Segment {
        model: Model::Open(Arrivals::Rate {
            process: Process::Constant,
            shape: Shape::Constant(100.0),
        }),
        length: Length {
            duration: None,
            requests: Some(40),
        },
        first: 0,
    };
    let recorded = local.run(&segment, &mut |_| Flow::Continue).unwrap();
    assert_eq!(recorded.total.requests().good(), 40);
    assert_eq!(recorded.notes, ["in turn"]);
    let counts = [&by_one, &by_two].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(counts.iter().sum::<u64>(), 40);
    assert!(counts.iter().all(|count| *count >= 10), "{counts:?}");
}
