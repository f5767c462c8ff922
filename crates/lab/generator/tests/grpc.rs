//! Unary calls whose status is 0: an answer counts only with one whole message.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::SocketAddr;

use crate::accepting::accepting;
use crate::workload::{closed, failures, plain, run};
use bytes::Bytes;
use lab_load::recording::{Phase, Recording};
use lab_load::request::{Assertion, Mix, Step};
use lab_load::{Protocol, Workload};

/// What the target answers to a method: an encoding, bytes of the body, and the status.
type Answer = (Option<&'static str>, &'static [u8], &'static str);

fn answer(method: &str) -> Answer {
    match method {
        "/t/Whole" => (None, b"\0\0\0\0\x02hi", "0"),
        "/t/Empty" => (None, b"\0\0\0\0\0", "0"),
        "/t/Encoded" => (Some("gzip"), b"\x01\0\0\0\x02??", "0"),
        "/t/Refused" => (None, b"", "5"),
        "/t/RefusedWithRest" => (None, b"\0\0\0", "5"),
        "/t/Short" => (None, b"\0\0\0\0\x09x", "0"),
        "/t/ShortPrefix" => (None, b"\0\0\0", "0"),
        "/t/None" => (None, b"", "0"),
        "/t/Two" => (None, b"\0\0\0\0\x01a\0\0\0\0\x01b", "0"),
        "/t/Unencoded" => (None, b"\x01\0\0\0\x02??", "0"),
        "/t/Identity" => (Some("identity"), b"\x01\0\0\0\x02??", "0"),
        _ => (None, b"\x07\0\0\0\x02??", "0"),
    }
}

fn target() -> SocketAddr {
    accepting(serve)
}

async fn serve(stream: tokio::net::TcpStream) {
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let (encoding, body, status) = answer(request.uri().path());
        let mut head = http::Response::builder().header("content-type", "application/grpc");
        if let Some(encoding) = encoding {
            head = head.header("grpc-encoding", encoding);
        }
        let Ok(mut stream) = respond.send_response(head.body(()).unwrap(), false) else {
            return;
        };
        let _ = stream.send_data(Bytes::from_static(body), false);
        let mut trailers = http::HeaderMap::new();
        trailers.insert("grpc-status", http::HeaderValue::from_static(status));
        let _ = stream.send_trailers(trailers);
    }
}

/// Twenty calls of a method.
fn called(address: SocketAddr, method: &str, assertions: Vec<Assertion>) -> Recording {
    let mut step = Step::new("call", "", method);
    step.assertions = assertions;
    let mut workload: Workload = plain(address, 1);
    workload.target.protocol = Protocol::Grpc;
    workload.mix = Mix::of(step);
    workload.connections.streams = 4;
    run(workload, &closed(20)).total.requests()
}

#[test]
fn a_status_of_0_without_one_whole_message_is_no_answer() {
    let address = target();
    let looked_at = || vec![Assertion::BodyContains("x".to_owned())];
    for (method, cause) in [
        ("/t/Short", "cut grpc message"),
        ("/t/ShortPrefix", "cut grpc message"),
        ("/t/None", "no grpc message"),
        ("/t/Two", "several grpc messages"),
        ("/t/Unencoded", "no grpc-encoding"),
        ("/t/Identity", "no grpc-encoding"),
        ("/t/Flag", "bad grpc message"),
    ] {
        for assertions in [vec![], looked_at()] {
            let seen = called(address, method, assertions);
            assert_eq!((seen.sent, seen.answered), (20, 0), "{method}");
            assert_eq!(failures(&seen), [(Phase::Protocol, cause, 20)], "{method}");
        }
    }
    // What is compressed cannot be looked at.
    let seen = called(address, "/t/Encoded", looked_at());
    let expected = [(Phase::Protocol, "compressed grpc message", 20)];
    assert_eq!(failures(&seen), expected);
}

#[test]
fn a_whole_message_is_an_answer_and_so_is_another_status_without_one() {
    let address = target();
    let size = |bytes| vec![Assertion::Size(bytes, bytes)];
    let is = |text: &str| vec![Assertion::BodyIs(text.to_owned())];
    for (method, assertions, refused) in [
        ("/t/Whole", vec![], 0),
        ("/t/Whole", size(2), 0),
        ("/t/Whole", is("hi"), 0),
        ("/t/Whole", is("ho"), 20),
        ("/t/Empty", size(0), 0),
        ("/t/Encoded", size(2), 0),
        ("/t/Refused", vec![], 20),
        ("/t/RefusedWithRest", vec![], 20),
        ("/t/Refused", vec![Assertion::Status(vec![(5, 5)])], 0),
    ] {
        let seen = called(address, method, assertions);
        let counts = (seen.answered, seen.refused, seen.failed());
        assert_eq!(counts, (20, refused, 0), "{method} {:?}", seen.errors);
    }
}
