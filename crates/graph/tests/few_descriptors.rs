//! A process without descriptors left serves whom it has, and others later.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod running;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use running::{Running, graph};
use rustix::net::{AddressFamily, SocketType, connect, socket};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Asks, and says whether the answer is 200; `None`: none came in time.
fn ask(stream: &mut TcpStream, patience: Duration) -> Option<bool> {
    stream.set_read_timeout(Some(patience)).unwrap();
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    stream.write_all(request).unwrap();
    let mut room = [0; 4096];
    match stream.read(&mut room) {
        Ok(0) | Err(_) => None,
        Ok(count) => Some(room[..count].starts_with(b"HTTP/1.1 200")),
    }
}

#[test]
fn accepting_pauses_when_no_descriptors_are_left() {
    let topology = graph("[services.root]\nentry = true\nresponse = \"8B\"\n");
    let running = Running::start(&topology, 1);
    let address = running.entry();
    let long = Duration::from_secs(20);
    let mut first = TcpStream::connect(address).unwrap();
    assert_eq!(ask(&mut first, long), Some(true));
    // Both ends of each connection are this process's: what is taken here is not left
    // there.
    let mut others: Vec<_> = (0..20)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    for other in &mut others {
        assert_eq!(ask(other, long), Some(true));
    }
    let unconnected = || socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    let late: Vec<_> = (0..8).map(|_| unconnected()).collect();
    let limit = getrlimit(Resource::Nofile);
    // Numbers are given from the lowest on: none is left below the highest.
    let highest = late.last().unwrap().as_raw_fd() as u64;
    let few = Rlimit {
        current: Some(highest + 1),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, few).unwrap();
    assert!(TcpStream::connect(address).is_err());
    // The kernel makes these connections; nobody can accept them.
    for one in &late {
        connect(one, &address).unwrap();
    }
    let mut late: Vec<_> = late.into_iter().map(TcpStream::from).collect();
    assert_eq!(ask(&mut late[0], Duration::from_millis(300)), None);
    // Those that are there go on.
    assert_eq!(ask(&mut first, long), Some(true));
    for other in &mut others {
        assert_eq!(ask(other, long), Some(true));
    }
    drop(others);
    // There is room again, and somebody looks for it.
    let mut room = [0; 4096];
    late[0].set_read_timeout(Some(long)).unwrap();
    assert!(late[0].read(&mut room).unwrap() > 0);
    for one in &mut late {
        assert_eq!(ask(one, long), Some(true));
    }
    setrlimit(Resource::Nofile, limit).unwrap();
    assert_eq!(
        ask(&mut TcpStream::connect(address).unwrap(), long),
        Some(true)
    );
    drop((first, late));
    assert!(running.host.drain(long));
}
