//! Requests told as envelopes: what a receiver of datagrams gets.

use std::net::UdpSocket;

use prost::Message as _;

use super::bench::{Backend, Bench, PATIENCE, nobody, ok};
use crate::http::envelopes::dropsonde::{Envelope, HttpStartStop};
use crate::http::settings::{EnvelopeSettings, EnvelopesTo, HttpSettings};
use crate::table::{Endpoint, PoolSettings, RouteKey};

const APP: &str = "c4f1d0b1-1d5a-4a73-9b1d-aa00bb11cc22";

struct Receiver(UdpSocket);

impl Receiver {
    fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(socket)
    }

    fn settings(&self, http: &mut HttpSettings) {
        http.envelopes = Some(EnvelopeSettings {
            to: EnvelopesTo::Datagrams {
                address: self.0.local_addr().unwrap().to_string(),
            },
            instance: "7".to_owned(),
            ..EnvelopeSettings::default()
        });
    }

    fn next(&self) -> Envelope {
        let mut buffer = vec![0; 65_536];
        let length = self.0.recv(&mut buffer).unwrap();
        let envelope = Envelope::decode(&buffer[..length]).unwrap();
        assert_eq!(envelope.origin, "gorouter");
        envelope
    }

    fn event(&self) -> (HttpStartStop, Vec<String>) {
        let envelope = self.next();
        assert_eq!(envelope.event_type, 4);
        let names = envelope.tags.into_keys().collect();
        (envelope.http_start_stop.unwrap(), names)
    }
}

fn register(bench: &Bench, backend: std::net::SocketAddr) {
    let endpoint = Endpoint {
        identity: backend.to_string().into(),
        app: APP.into(),
        instance_id: "instance".into(),
        instance_index: "3".into(),
        tags: Some(
            [("process_type", "web"), ("source_id", APP)]
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        ),
        ..Endpoint::default()
    };
    let key = RouteKey::new("app.test").unwrap();
    bench
        .table
        .register(&key, endpoint, &PoolSettings::default(), 0);
}

#[test]
fn an_applications_request_is_told_three_times() {
    let backend = Backend::answering(|_| ok(b"hello"));
    let receiver = Receiver::new();
    let bench = Bench::with(&[], |settings| receiver.settings(settings));
    register(&bench, backend.address);
    let mut client = bench.client();
    client.send(
        b"POST /a%20b?secret=1 HTTP/1.1\r\nHost: app.test\r\nUser-Agent: curl\r\n\
          X-Forwarded-For: 192.0.2.1\r\nContent-Length: 3\r\n\r\nabc",
    );
    assert_eq!(client.answer().unwrap().body, b"hello");
    let peer = client.socket().local_addr().unwrap().to_string();

    let (backend_side, tags) = receiver.event();
    assert_eq!(tags, Vec::<String>::new());
    assert_eq!(
        (
            backend_side.peer_type,
            backend_side.status_code,
            backend_side.content_length
        ),
        (1, 200, 5)
    );
    assert_eq!(backend_side.application_id.unwrap().text(), APP);
    assert_eq!(backend_side.instance_index, Some(3));
    assert_eq!(backend_side.instance_id.as_deref(), Some("instance"));
    assert_eq!(backend_side.forwarded, ["192.0.2.1", "127.0.0.1"]);

    let log = receiver.next();
    assert_eq!(log.event_type, 5);
    let told = log.log_message.unwrap();
    let line = String::from_utf8(told.message).unwrap();
    assert!(line.starts_with("app.test - ["), "{line}");
    assert!(line.contains("\"POST /a%20b?secret=1 HTTP/1.1\" 200 3 5"));
    assert!(!line.ends_with('\n'));
    assert_eq!(told.app_id.as_deref(), Some(APP));
    assert_eq!(told.source_type.as_deref(), Some("RTR"));
    assert_eq!(told.source_instance.as_deref(), Some("7"));
    assert_eq!(log.tags["process_type"], "web");

    let (own_side, tags) = receiver.event();
    assert_eq!(tags, ["process_type", "source_id", "span_id", "trace_id"]);
    assert_eq!(
        (
            own_side.peer_type,
            own_side.method,
            own_side.status_code,
            own_side.content_length
        ),
        (2, 2, 200, 5)
    );
    assert_eq!(own_side.uri, "http://app.test/a b");
    assert_eq!(own_side.remote_address, peer);
    assert_eq!(own_side.user_agent, "curl");
    assert_eq!(own_side.forwarded, ["192.0.2.1"]);
    assert_eq!(own_side.application_id, None);
    assert_eq!(own_side.request_id, backend_side.request_id);
    assert!(line.contains(&own_side.request_id.text()));
    // The request to the backend lies within the client's.
    assert!(own_side.start_timestamp <= backend_side.start_timestamp);
    assert!(backend_side.start_timestamp <= backend_side.stop_timestamp);
    assert!(backend_side.stop_timestamp <= own_side.stop_timestamp);
}

#[test]
fn a_request_of_no_application_has_no_log() {
    let receiver = Receiver::new();
    let bench = Bench::with(&[], |settings| receiver.settings(settings));
    let mut client = bench.client();
    assert_eq!(client.get("/nowhere").status, 404);
    let (event, tags) = receiver.event();
    assert_eq!((event.peer_type, event.status_code), (2, 404));
    assert_eq!(tags, ["span_id", "trace_id"]);
    // What would not have been logged is told of nobody else: the next one is the next request.
    assert_eq!(client.get("/second").status, 404);
    let (event, _) = receiver.event();
    assert_eq!(event.uri, "http://app.test/second");
    bench.until("envelopes", |totals| totals.envelopes == 2);
}

#[test]
fn a_backend_that_is_away_is_told_with_status_0() {
    let receiver = Receiver::new();
    let bench = Bench::with(&[], |settings| receiver.settings(settings));
    register(&bench, nobody());
    assert_eq!(bench.client().get("/").status, 502);
    let (event, _) = receiver.event();
    assert_eq!(
        (event.peer_type, event.status_code, event.content_length),
        (1, 0, 0)
    );
    let line = receiver.next().log_message.unwrap().message;
    assert!(
        String::from_utf8(line)
            .unwrap()
            .contains("endpoint_failure")
    );
    assert_eq!(receiver.event().0.status_code, 502);
}

#[test]
fn what_is_switched_off_is_not_told() {
    let backend = Backend::answering(|_| ok(b"hello"));
    let receiver = Receiver::new();
    let bench = Bench::with(&[], |settings| {
        receiver.settings(settings);
        let envelopes = settings.envelopes.as_mut().unwrap();
        (envelopes.client_events, envelopes.logs) = (false, false);
    });
    register(&bench, backend.address);
    let mut client = bench.client();
    for _ in 0..2 {
        assert_eq!(client.get("/").status, 200);
        assert_eq!(receiver.event().0.peer_type, 2);
    }
}
