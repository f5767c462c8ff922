//! Against this crate's client, in one thread.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use bytes::Bytes;
use http::Request;

use super::*;
use crate::http2::{Answer, ClientSettings, Exchanges};

const MOST: u64 = 1 << 20;

struct Both {
    client: Exchanges,
    server: Serving,
    ended: Option<Http2Error>,
    served: Vec<(StreamKey, Served)>,
    finished: Vec<(StreamKey, Result<Answer, StreamError>)>,
}

impl Both {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        for stream in [&near, &far] {
            stream.set_nonblocking(true).unwrap();
        }
        let mut both = Self {
            client: Exchanges::start(Stream::Plain(near.into()), ClientSettings::default()),
            server: Serving::start(
                Stream::Plain(far.into()),
                ServerSettings::default(),
                8,
                MOST,
            ),
            ended: None,
            served: Vec::new(),
            finished: Vec::new(),
        };
        both.until(|both| both.client.can_send());
        both
    }

    /// Drives both until `done`; gives up after very long.
    fn until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        for turn in 0..200_000 {
            if self.ended.is_none() {
                self.ended = self.server.drive(true).err();
                self.served.extend(self.server.served());
            }
            let _ = self.client.drive(true);
            self.finished.extend(self.client.finished());
            if done(self) {
                return;
            }
            if turn > 1000 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        panic!("what was awaited never came");
    }

    fn ask(&mut self, path: &str, body: Payload) -> StreamKey {
        let request = Request::post(format!("http://test{path}"))
            .body(())
            .unwrap();
        self.client.send(request, body, 100).unwrap()
    }

    /// The next request at the server.
    fn asked(&mut self) -> (StreamKey, Box<ReceivedRequest>) {
        self.until(|both| !both.served.is_empty());
        match self.served.remove(0) {
            (key, Served::Asked(asked)) => (key, asked),
            other => panic!("{other:?}"),
        }
    }

    fn one_finished(&mut self) -> Result<Answer, StreamError> {
        self.until(|both| !both.finished.is_empty());
        self.finished.remove(0).1
    }

    fn one_served(&mut self) -> (StreamKey, Served) {
        self.until(|both| !both.served.is_empty());
        self.served.remove(0)
    }
}

fn pattern(length: u64) -> Payload {
    Payload::filled(
        Bytes::from_static(b"first:"),
        Bytes::from_static(b"0123456789"),
        length,
    )
}

fn ok() -> Response<()> {
    Response::new(())
}

#[test]
fn a_request_and_its_answer_with_bodies_and_trailers() {
    let mut both = Both::new();
    both.ask("/a?b", Payload::from(Bytes::from_static(b"hello, all")));
    let (key, asked) = both.asked();
    assert_eq!(asked.head.uri.path(), "/a");
    assert_eq!((&*asked.body, asked.body_bytes), (&b"hello, a"[..], 10));
    assert_eq!(both.server.open_streams(), 1);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    both.server
        .answer(key, ok(), pattern(12), Some(trailers.clone()))
        .unwrap();
    let answer = both.one_finished().unwrap();
    assert_eq!(answer.body, b"first:012345678901");
    assert_eq!(answer.trailers, Some(trailers));
    assert!(matches!(both.one_served(), (told, Served::Answered) if told == key));
    assert_eq!(both.server.open_streams(), 0);
}

#[test]
fn long_bodies_pass_both_ways() {
    let mut both = Both::new();
    both.ask("/", pattern(MOST - 6));
    let (key, asked) = both.asked();
    assert_eq!(asked.body_bytes, MOST);
    let long = 50 * MOST;
    both.server.answer(key, ok(), pattern(long), None).unwrap();
    assert_eq!(both.one_finished().unwrap().body_bytes, long + 6);
}

#[test]
fn a_body_that_is_too_long_is_413_and_nobody_is_asked() {
    let mut both = Both::new();
    both.ask("/", pattern(MOST));
    assert_eq!(both.one_finished().unwrap().status, 413);
    assert!(both.served.is_empty());
    assert_eq!(both.server.open_streams(), 0);
    // The connection goes on.
    both.ask("/", Payload::default());
    let (key, _) = both.asked();
    both.server
        .answer(key, ok(), Payload::default(), None)
        .unwrap();
    assert_eq!(both.one_finished().unwrap().status, 200);
}

#[test]
fn answers_may_come_in_another_order() {
    let mut both = Both::new();
    let keys: Vec<_> = (0..50)
        .map(|number| both.ask(&format!("/{number}"), Payload::default()))
        .collect();
    both.until(|both| both.served.len() == 50);
    for (key, served) in std::mem::take(&mut both.served).into_iter().rev() {
        let Served::Asked(asked) = served else {
            panic!("{served:?}");
        };
        let path = Bytes::copy_from_slice(asked.head.uri.path().as_bytes());
        both.server.answer(key, ok(), path.into(), None).unwrap();
    }
    both.until(|both| both.finished.len() == 50);
    for (key, answer) in &both.finished {
        let number = keys.iter().position(|one| one == key).unwrap();
        assert_eq!(
            answer.as_ref().unwrap().body,
            format!("/{number}").as_bytes()
        );
    }
}

#[test]
fn a_client_that_gives_up_is_told_of() {
    let mut both = Both::new();
    let asked = both.ask("/", Payload::default());
    let (key, _) = both.asked();
    both.client.cancel(asked);
    assert!(matches!(both.one_served(), (told, Served::Gone) if told == key));
    assert_eq!(both.server.open_streams(), 0);
    // Too late, and no harm.
    both.server.answer(key, ok(), pattern(5), None).unwrap();

    // In the middle of a long answer.
    let asked = both.ask("/", Payload::default());
    let (key, _) = both.asked();
    both.server
        .answer(key, ok(), pattern(1 << 40), None)
        .unwrap();
    for _ in 0..10 {
        let _ = both.client.drive(true);
        let _ = both.server.drive(true);
    }
    both.client.cancel(asked);
    assert!(matches!(both.one_served(), (told, Served::Gone) if told == key));
}

#[test]
fn a_request_can_be_given_up() {
    let mut both = Both::new();
    both.ask("/", Payload::default());
    let (key, _) = both.asked();
    both.server.reset(key, Reason::INTERNAL_ERROR);
    let expected = Err(StreamError::Reset(Reason::INTERNAL_ERROR));
    assert_eq!(both.one_finished(), expected);
    assert!(both.served.is_empty());
    assert_eq!(both.server.open_streams(), 0);
}

#[test]
fn the_end_of_the_connection_is_the_end_of_its_streams() {
    let mut both = Both::new();
    both.ask("/a", Payload::default());
    both.ask("/b", Payload::default());
    let (first, _) = both.asked();
    let (second, _) = both.asked();
    let Both {
        client, mut server, ..
    } = both;
    drop(client);
    let mut gone = Vec::new();
    let ended = (0..20_000).find_map(|_| {
        let ended = server.drive(true).err();
        gone.extend(server.served().map(|(key, served)| {
            assert!(matches!(served, Served::Gone));
            key
        }));
        std::thread::sleep(std::time::Duration::from_millis(1));
        ended
    });
    assert!(ended.is_some());
    gone.sort_unstable_by_key(|key| key.slot());
    let mut expected = [first, second];
    expected.sort_unstable_by_key(|key| key.slot());
    assert_eq!(gone, expected);
}

#[test]
fn a_server_that_shuts_down_ends_with_its_last_stream() {
    let mut both = Both::new();
    both.ask("/", Payload::default());
    let (key, _) = both.asked();
    both.server.shut_down();
    both.until(|both| both.client.is_draining());
    assert!(both.ended.is_none());
    both.server.answer(key, ok(), pattern(3), None).unwrap();
    assert_eq!(both.one_finished().unwrap().body, b"first:012");
    both.until(|both| both.ended.is_some());
    assert_eq!(both.ended, Some(Http2Error::Closed));
}

/// Whoever drives only when the poller tells, and looks at nothing else, misses nothing.
#[test]
fn long_bodies_pass_with_the_poller_s_events_alone() {
    let Both {
        mut client,
        mut server,
        ..
    } = Both::new();
    let mut poller = Poller::new().unwrap();
    client.watch(&poller, 1).unwrap();
    server.watch(&poller, 2).unwrap();
    let request = Request::post("http://test/").body(()).unwrap();
    client.send(request, pattern(MOST - 6), 0).unwrap();
    client.drive(false).unwrap();
    client.rewatch(&poller).unwrap();
    let long = 20 * MOST;
    let mut finished = None;
    while finished.is_none() {
        poller
            .wait(Some(std::time::Duration::from_secs(30)))
            .unwrap();
        let tokens: Vec<u64> = std::iter::from_fn(|| poller.next_event())
            .map(|event| event.token)
            .collect();
        assert!(!tokens.is_empty(), "nothing happens any more");
        if tokens.contains(&1) {
            client.drive(true).unwrap();
            finished = client.finished().next();
            client.rewatch(&poller).unwrap();
        }
        if tokens.contains(&2) {
            server.drive(true).unwrap();
            let served: Vec<_> = server.served().collect();
            for (key, served) in served {
                if let Served::Asked(asked) = served {
                    assert_eq!(asked.body_bytes, MOST);
                    server.answer(key, ok(), pattern(long), None).unwrap();
                    server.drive(false).unwrap();
                }
            }
            server.rewatch(&poller).unwrap();
        }
    }
    let (_, answer) = finished.unwrap();
    assert_eq!(answer.unwrap().body_bytes, long + 6);
}

/// A client that asks and asks and does not listen: nothing is done for it before it does.
#[test]
fn a_flood_of_pings_that_nobody_hears_the_answers_of_costs_nothing() {
    const PING: &[u8; 17] = b"\0\0\x08\x06\0\0\0\0\0pingpong";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    for stream in [&client, &far] {
        stream.set_nonblocking(true).unwrap();
    }
    let mut poller = Poller::new().unwrap();
    let settings = ServerSettings::default();
    let mut server = Serving::start(Stream::Plain(far.into()), settings, 8, MOST);
    server.watch(&poller, 1).unwrap();
    let mut events = |server: &mut Serving, wait: u64| {
        poller
            .wait(Some(std::time::Duration::from_millis(wait)))
            .unwrap();
        let told = std::iter::from_fn(|| poller.next_event()).count();
        while told > 0 && server.drive(true).unwrap() == Progress::More {}
        server.rewatch(&poller).unwrap();
        told
    };
    client
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .unwrap();
    let pings = PING.repeat(10_000);
    let (mut sent, mut silent) = (0_usize, 0);
    for _ in 0..10_000 {
        while let Ok(length) = client.write(&pings[sent % PING.len()..]) {
            sent += length;
        }
        silent = match events(&mut server, 50) {
            0 => silent + 1,
            _ => 0,
        };
        if silent == 3 {
            break;
        }
    }
    assert_eq!(silent, 3, "it is told of bytes that it does not take");
    // Once it listens, every whole one is answered.
    let (mut answered, mut heard, mut piece) = (0, Vec::new(), vec![0; 1 << 16]);
    while answered < sent / PING.len() {
        while let Ok(length) = client.read(&mut piece) {
            heard.extend_from_slice(&piece[..length]);
        }
        answered += heard
            .windows(8)
            .filter(|bytes| bytes == b"pingpong")
            .count();
        heard.drain(..heard.len().saturating_sub(7));
        events(&mut server, 1000);
    }
}
