//! What rules do to real connections, in a network of its own for each test.

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::proxy::{Direction, Protocol};

/// A port at which nobody listens, and who connects to it is led on.
const TOLD: u16 = 45_999;
/// Long enough for an answer on any machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// In which an answer comes, unless it does not come: nothing fails if it was too short.
const SOON: Duration = Duration::from_millis(300);

/// Does something in a network of its own, where one can be made.
fn in_a_network(test: impl FnOnce() + Send + 'static) {
    static ABLE: OnceLock<Option<String>> = OnceLock::new();
    let unable = ABLE.get_or_init(|| able().err().map(|error| error.to_string()));
    if let Some(why) = unable {
        eprintln!("skipped, there are no rules of the kernel here: {why}");
        return;
    }
    let own = thread::spawn(move || {
        enter().unwrap();
        test();
    });
    own.join().unwrap();
}

/// Answers with what it is asked, and counts what came.
fn echo() -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let came = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&came);
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let counted = Arc::clone(&counted);
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut bytes) {
                    counted.fetch_add(length as u64, Ordering::SeqCst);
                    if stream.write_all(&bytes[..length]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    (port, came)
}

fn told() -> SocketAddr {
    ([127, 0, 0, 1], TOLD).into()
}

/// An echo to which connections are led, and one such connection.
fn led() -> (TcpStream, u16, Arc<AtomicU64>) {
    let (port, came) = echo();
    lead(&[Lead {
        protocol: Protocol::Tcp,
        from: TOLD,
        to: port,
    }])
    .unwrap();
    (TcpStream::connect(told()).unwrap(), port, came)
}

fn rule(breaks: Breaks) -> Rule {
    Rule {
        protocol: Protocol::Tcp,
        port: TOLD,
        breaks,
        direction: None,
        clients: None,
        seed: 7,
    }
}

/// Whether what is asked is answered within a time.
fn is_answered(stream: &mut TcpStream, within: Duration) -> bool {
    stream.write_all(b"hello").unwrap();
    hears(stream, within)
}

fn hears(stream: &mut TcpStream, within: Duration) -> bool {
    stream.set_read_timeout(Some(within)).unwrap();
    match stream.read_exact(&mut [0; 5]) {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) => panic!("{error}"),
    }
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn in_a_partition_nothing_arrives_no_handshake_either_and_afterwards_all_does() {
    in_a_network(|| {
        let (mut stream, port, came) = led();
        assert!(is_answered(&mut stream, PATIENCE));
        let rules = Rules::put("cut", &[rule(Breaks::Partition)]).unwrap();
        assert!(!is_answered(&mut stream, SOON));
        assert_eq!(came.load(Ordering::SeqCst), 5);
        let error = TcpStream::connect_timeout(&told(), SOON).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        // Another way to the same port is none of its business.
        let mut other = TcpStream::connect(("127.0.0.1", port)).unwrap();
        assert!(is_answered(&mut other, PATIENCE));
        let dropped = rules.end().unwrap();
        // The question, its retransmissions, and the handshake.
        assert!(dropped.packets >= 2 && dropped.bytes > 80, "{dropped:?}");
        assert!(
            hears(&mut stream, PATIENCE),
            "the kernel sends it once more"
        );
    });
}

#[test]
fn one_way_alone_is_cut() {
    in_a_network(|| {
        let (mut stream, _, came) = led();
        assert!(is_answered(&mut stream, PATIENCE));
        let one_way = |direction| Rule {
            direction: Some(direction),
            ..rule(Breaks::Partition)
        };
        let rules = Rules::put("there", &[one_way(Direction::ToServer)]).unwrap();
        assert!(!is_answered(&mut stream, SOON));
        assert_eq!(
            came.load(Ordering::SeqCst),
            5,
            "the question did not arrive"
        );
        drop(rules);
        assert!(hears(&mut stream, PATIENCE));
        let rules = Rules::put("back", &[one_way(Direction::ToClient)]).unwrap();
        stream.write_all(b"hello").unwrap();
        wait_until("the question arrives", || came.load(Ordering::SeqCst) == 15);
        assert!(!hears(&mut stream, SOON));
        wait_until("the answer is dropped", || {
            rules.dropped().unwrap().packets > 0
        });
        rules.end().unwrap();
        assert!(hears(&mut stream, PATIENCE));
    });
}

#[test]
fn what_is_lost_is_sent_again_by_the_kernel() {
    in_a_network(|| {
        let (stream, ..) = led();
        let rules = Rules::put("some", &[rule(Breaks::Lose(0.1))]).unwrap();
        let sent: Vec<u8> = (0..300_000_u32).map(|number| number as u8).collect();
        let (mut writer, whole) = (stream.try_clone().unwrap(), sent.clone());
        let writing = thread::spawn(move || writer.write_all(&whole).unwrap());
        let mut back = vec![0; sent.len()];
        (&stream).read_exact(&mut back).unwrap();
        writing.join().unwrap();
        assert!(back == sent, "every byte arrived, in order");
        // Of packets as large as Ethernet's, at least 200 each way.
        let dropped = rules.end().unwrap();
        assert!(dropped.packets > 3, "{dropped:?}");
        assert!(dropped.bytes / dropped.packets <= 1_500, "{dropped:?}");
    });
}

#[test]
fn a_reset_ends_connections_and_refuses_new_ones_until_it_is_over() {
    in_a_network(|| {
        let (mut stream, ..) = led();
        assert!(is_answered(&mut stream, PATIENCE));
        let rules = Rules::put("reset", &[rule(Breaks::Reset)]).unwrap();
        stream.write_all(b"hello").unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let error = stream.read(&mut [0; 5]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        let error = TcpStream::connect(told()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        rules.end().unwrap();
        let mut stream = TcpStream::connect(told()).unwrap();
        assert!(is_answered(&mut stream, PATIENCE));
    });
}

#[test]
fn a_share_of_the_connections_is_hit_and_always_the_same() {
    in_a_network(|| {
        let (first, ..) = led();
        let mut streams = vec![first];
        streams.extend((0..63).map(|_| TcpStream::connect(told()).unwrap()));
        let some = Rule {
            clients: Some(0.5),
            ..rule(Breaks::Partition)
        };
        let hit = |streams: &mut Vec<TcpStream>, name: &str, some: Rule| {
            let rules = Rules::put(name, &[some]).unwrap();
            for stream in streams.iter_mut() {
                stream.write_all(b"hello").unwrap();
            }
            let quiet = streams
                .iter_mut()
                .enumerate()
                .filter_map(|(number, stream)| (!hears(stream, SOON / 3)).then_some(number));
            let quiet: BTreeSet<usize> = quiet.collect();
            rules.end().unwrap();
            for number in &quiet {
                assert!(hears(&mut streams[*number], PATIENCE));
            }
            quiet
        };
        let once = hit(&mut streams, "some", some);
        let again = hit(&mut streams, "some", some);
        // On a busy machine an answer that is only late counts as none, here or there.
        assert!(once.intersection(&again).count() > 0);
        assert!(once.len() < 64 && again.len() < 64, "{once:?} {again:?}");
        assert_ne!(hit(&mut streams, "other", some), once);
    });
}

#[test]
fn who_sends_datagrams_is_not_told_that_they_are_dropped() {
    in_a_network(|| {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        lead(&[Lead {
            protocol: Protocol::Udp,
            from: TOLD,
            to: server.local_addr().unwrap().port(),
        }])
        .unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(told()).unwrap();
        for socket in [&server, &client] {
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        client.send(b"1").unwrap();
        let (_, from) = server.recv_from(&mut [0; 8]).unwrap();
        server.send_to(b"2", from).unwrap();
        assert_eq!(client.recv(&mut [0; 8]).unwrap(), 1);
        let cut = Rule {
            protocol: Protocol::Udp,
            ..rule(Breaks::Partition)
        };
        let rules = Rules::put("cut", &[cut]).unwrap();
        for _ in 0..3 {
            assert_eq!(client.send(b"lost").unwrap(), 4);
        }
        assert_eq!(rules.end().unwrap().packets, 3);
        client.send(b"here").unwrap();
        let mut bytes = [0; 8];
        let length = server.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"here");
    });
}

#[test]
fn rules_end_with_their_owner_and_the_network_with_its_thread() {
    let network = || fs::read_link("/proc/thread-self/ns/net").unwrap();
    let before = network();
    in_a_network(move || {
        assert_ne!(network(), before, "another network");
        let (mut stream, ..) = led();
        let first = Rules::put("a name", &[rule(Breaks::Partition)]).unwrap();
        let error = Rules::put("a name", &[rule(Breaks::Partition)]).unwrap_err();
        assert!(
            error.to_string().contains("headroom-fault-a-name"),
            "{error}"
        );
        drop(first);
        assert!(is_answered(&mut stream, PATIENCE));
        Rules::put("a name", &[rule(Breaks::Partition)]).unwrap();
    });
    assert_eq!(
        fs::read_link("/proc/thread-self/ns/net").unwrap(),
        fs::read_link("/proc/self/ns/net").unwrap(),
        "who asked for it stayed where it was"
    );
}

mod bytes {
    use proptest::prelude::*;

    use crate::kernel::message::{Attributes, KernelReply, attributes, message, parse_replies};

    #[test]
    fn attributes_are_read_back_and_padded() {
        let inner = Attributes::default().number(1, 7).text(2, "ab");
        let bytes = message(9, 0, 3, &[], &Attributes::default().nested(4, &inner));
        // The flag of nesting is no part of the kind.
        let [(4, value)] = attributes(&bytes[16..])[..] else {
            panic!("{bytes:?}");
        };
        let expected: [(u16, &[u8]); 2] = [(1, &[0, 0, 0, 7]), (2, b"ab\0")];
        assert_eq!(attributes(value), expected);
    }

    #[test]
    fn answers_are_told_from_pieces() {
        let answer = |number: u32, code: i32| {
            let mut bytes = message(2, 0, number, &code.to_ne_bytes(), &Attributes::default());
            // The kernel repeats the head of what it answers.
            bytes.extend([0; 16]);
            let length = bytes.len() as u32;
            bytes[..4].copy_from_slice(&length.to_ne_bytes());
            bytes
        };
        let piece = message(0xa06, 2, 1, &[2, 0, 0, 0], &Attributes::default());
        let over = message(3, 2, 1, &[0; 4], &Attributes::default());
        let all = [answer(1, 0), answer(2, -17), piece, over].concat();
        let expected = [
            KernelReply::Answer(1, 0),
            KernelReply::Answer(2, 17),
            KernelReply::Piece(&[2, 0, 0, 0]),
            KernelReply::Over,
        ];
        assert_eq!(parse_replies(&all), expected);
    }

    proptest! {
        #[test]
        fn nothing_that_is_received_breaks_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for one in parse_replies(&bytes) {
                if let KernelReply::Piece(piece) = one {
                    let _ = attributes(piece);
                }
            }
            let _ = attributes(&bytes);
        }
    }
}
