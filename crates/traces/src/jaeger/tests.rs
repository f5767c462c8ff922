use proptest::prelude::*;

use serde_json::Value;

use super::*;
use crate::SpanId;
use crate::names::Names;
use crate::random_spans::any_span;
use crate::{Epoch, Origin, ReadError, Span, SpanKind, normalise};

fn read(json: &[u8], origin: &Origin, names: &mut Names) -> Result<Vec<Span>, ReadError> {
    decode(json, origin, names)?.whole()
}

fn spans(json: &str) -> Result<Vec<Span>, ReadError> {
    let mut spans = read(json.as_bytes(), &Origin::unix(), &mut Names::default())?;
    normalise(&mut spans);
    Ok(spans)
}

/// As the query service answers: kinds said, and one that is not.
const ANSWER: &str = r#"{
  "data": [{
    "traceID": "a1",
    "spans": [
      {"traceID": "a1", "spanID": "1", "operationName": "GET /", "references": [],
       "startTime": 1700000000000000, "duration": 900, "processID": "p1", "logs": [],
       "tags": [{"key": "span.kind", "type": "string", "value": "server"},
                {"key": "http.url", "type": "string", "value": "http://front:80/buy?x=1"},
                {"key": "http.status_code", "type": "int64", "value": 200}]},
      {"traceID": "a1", "spanID": "2", "operationName": "call",
       "references": [{"refType": "CHILD_OF", "traceID": "a1", "spanID": "1"}],
       "startTime": 1700000000000100, "duration": 500, "processID": "p1",
       "tags": [{"key": "span.kind", "type": "string", "value": "client"},
                {"key": "server.address", "type": "string", "value": "10.0.0.7"},
                {"key": "error", "type": "bool", "value": true}]},
      {"traceID": "a1", "spanID": "3", "operationName": "/get",
       "references": [{"refType": "FOLLOWS_FROM", "traceID": "b2", "spanID": "9"},
                      {"refType": "CHILD_OF", "traceID": "a1", "spanID": "2"}],
       "startTime": 1700000000000200, "duration": 300, "processID": "p2", "tags": []},
      {"traceID": "a1", "spanID": "4", "operationName": "sql", "parentSpanID": "3",
       "startTime": 1700000000000250, "duration": 100, "processID": "p2"}
    ],
    "processes": {"p1": {"serviceName": "front", "tags": []}, "p2": {"serviceName": "store"}}
  }],
  "total": 0, "limit": 0, "offset": 0, "errors": null
}"#;

#[test]
fn an_answer_of_the_query_service_is_read() {
    let all = spans(ANSWER).unwrap();
    let seen: Vec<_> = all
        .iter()
        .map(|span| {
            let times = span.end - span.start;
            (span.kind, &*span.service, &*span.name, span.parent.0, times)
        })
        .collect();
    assert_eq!(
        seen,
        [
            (SpanKind::Server, "front", "/buy", 0, 900_000),
            (SpanKind::Client, "front", "call", 1, 500_000),
            // Says no kind: its parent is of another service.
            (SpanKind::Server, "store", "/get", 2, 300_000),
            (SpanKind::Internal, "store", "sql", 3, 100_000),
        ]
    );
    assert_eq!((all[0].status, all[0].cause), (200, ""));
    assert_eq!((&*all[1].peer, all[1].cause), ("store", "error"));
}

#[test]
fn a_trace_alone_is_read_as_one_of_a_list() {
    let file: Value = serde_json::from_str(ANSWER).unwrap();
    let alone = file["data"][0].to_string();
    let all = spans(&alone).unwrap();
    assert_eq!(all, spans(ANSWER).unwrap());
}

#[test]
fn what_others_write_for_nothing_and_below_zero_costs_no_other_span() {
    let text = br#"{"data":[{"traceID":"a1","spans":[
        {"traceID":"a1","spanID":"1","operationName":"/","references":null,"tags":null,
         "startTime":1700000000000000,"duration":2.5,"processID":"p1"},
        {"traceID":"a1","spanID":"2","operationName":"/","startTime":1700000000000000,"duration":-5},
        {"traceID":"a1","spanID":"3","operationName":"/","startTime":-1,"duration":5}],
        "processes":{"p1":{"serviceName":"front"}}},{"spans":null,"processes":null}]}"#;
    let decoded = crate::decode(text, &Origin::unix()).unwrap();
    let [span] = &decoded.spans[..] else {
        panic!("{decoded:?}");
    };
    assert_eq!((&*span.service, span.end - span.start), ("front", 2_000));
    assert_eq!((decoded.absurd, decoded.misdated), (1, 1));
}

#[test]
fn numbers_that_the_page_would_round_are_texts() {
    let span = crate::samples::server(1, 2, 1 << 60, (1 << 60) + 5);
    let json: Value = serde_json::from_slice(&write(&[span], &Origin::unix())).unwrap();
    let tags = json["data"][0]["spans"][0]["tags"].as_array().unwrap();
    let value = |key: &str| {
        let tag = tags.iter().find(|tag| tag["key"] == key);
        tag.map(|tag| tag["value"].clone())
    };
    let start = Value::from("1152921504606846976");
    assert_eq!(value("headroom.start_ns"), Some(start));
    assert_eq!(value("headroom.duration_ns"), Some(Value::from(5)));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let error = spans("{\n\"data\": [{\"spans\": [3]}]}").unwrap_err();
    assert!(error.to_string().contains("line 2"), "{error}");
    for (from, to, what) in [
        (
            "\"spanID\": \"2\", \"op",
            "\"spanID\": \"zz\", \"op",
            "spanID of span 2",
        ),
        (
            "\"traceID\": \"a1\", \"spanID\": \"4\"",
            "\"traceID\": \"0\", \"spanID\": \"4\"",
            "traceId of span 4",
        ),
        (
            "\"parentSpanID\": \"3\"",
            "\"parentSpanID\": \"x\"",
            "parent's spanID of span 4",
        ),
    ] {
        assert!(ANSWER.contains(from), "{from}");
        let error = spans(&ANSWER.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_to_the_nanosecond(
        spans in proptest::collection::vec(any_span(), 0..8),
    ) {
        let here = Origin { epoch: Epoch::ahead(1_000_000_000), boot: "".into() };
        let read = read(&write(&spans, &here), &here, &mut Names::default()).unwrap();
        prop_assert_eq!(read, spans);
    }

    #[test]
    fn nothing_panics(json in ".{0,200}") {
        let _ = spans(&json);
    }

    /// Ids have as many digits as they need.
    #[test]
    fn ids_of_any_length_are_read(id in 1..=u64::MAX) {
        prop_assert_eq!(read::span_id(&format!("{id:x}")), Some(SpanId(id)));
        prop_assert_eq!(read::span_id(&format!("{id:016x}")), Some(SpanId(id)));
    }
}
