use proptest::prelude::*;

use super::*;
use crate::names::Names;
use crate::random_spans::any_span;
use crate::{Epoch, Origin, ReadError, Span, SpanKind, normalise};
use crate::{SpanId, TraceId};

fn read(json: &[u8], origin: &Origin, names: &mut Names) -> Result<Vec<Span>, ReadError> {
    decode(json, origin, names)?.whole()
}

fn of(json: &str) -> Result<Vec<Span>, ReadError> {
    let mut spans = read(json.as_bytes(), &Origin::unix(), &mut Names::default())?;
    normalise(&mut spans);
    Ok(spans)
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

    /// Whoever moves a span on its way to us knows better than what we once wrote.
    #[test]
    fn what_others_moved_has_the_microseconds_that_they_gave(start in 2_000_000_u64..1 << 50) {
        let here = Origin::unix();
        let json = write(&[crate::samples::server(1, 2, start, start + 5_499)], &here);
        let mut json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let before = start / 1000 - 7;
        json[0]["timestamp"] = before.into();
        let read = of(&json.to_string()).unwrap();
        let length = json[0]["duration"].as_u64().unwrap() * 1000;
        prop_assert_eq!((read[0].start, read[0].end), (before * 1000, before * 1000 + length));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let _ = read(&bytes, &Origin::unix(), &mut Names::default());
    }
}

#[test]
fn a_span_is_as_zipkin_has_it() {
    let span = Span {
        trace: TraceId(0xabc),
        id: SpanId(2),
        parent: SpanId(1),
        kind: SpanKind::Client,
        service: "root".into(),
        name: "/x".into(),
        peer: "leaf".into(),
        start: 1_500,
        end: 3_400,
        cpu: 0,
        queue: 70,
        status: 0,
        attempt: 1,
        revision: 0,
        cause: "timeout",
    };
    let json = write(&[span], &Origin::unix());
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let expected = serde_json::json!([{
        "traceId": "0000000000000abc", "id": "0000000000000002",
        "parentId": "0000000000000001", "kind": "CLIENT", "name": "/x",
        "timestamp": 1, "duration": 2,
        "localEndpoint": { "serviceName": "root" },
        "remoteEndpoint": { "serviceName": "leaf" },
        "tags": {
            "http.path": "/x", "error": "timeout", "error.type": "timeout",
            "headroom.attempt": "1", "headroom.queue_ns": "70",
            "headroom.start_ns": "1500", "headroom.duration_ns": "1900",
        },
    }]);
    assert_eq!(json, expected);
}

#[test]
fn an_answer_of_500_is_marked_as_an_error() {
    let failed = |status: u16| {
        let span = Span {
            status,
            ..crate::samples::server(1, 2, 5_000, 9_000)
        };
        let json = write(&[span], &Origin::unix());
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        json[0]["tags"]["error"].as_str().map(str::to_owned)
    };
    assert_eq!(failed(500).as_deref(), Some(""));
    assert_eq!((failed(404), failed(200)), (None, None));
}

#[test]
fn another_implementation_is_understood() {
    let spans = of(include_str!("../../tests/data/zipkin-python-1.45.2.json")).unwrap();
    let [client, work, server] = &spans[..] else {
        panic!("{spans:?}");
    };
    assert_eq!((server.kind, &*server.name), (SpanKind::Server, "/cart"));
    assert_eq!((server.status, server.cause), (503, "error"));
    assert_eq!(server.end - server.start, 5_000_000);
    assert_eq!((client.kind, &*client.name), (SpanKind::Client, "/price"));
    assert_eq!((&*client.peer, client.status), ("price", 200));
    assert_eq!((work.kind, work.parent), (SpanKind::Internal, server.id));
}

#[test]
fn a_server_that_shares_its_clients_span_gets_one_of_its_own() {
    for shared in [r#","shared":true"#, ""] {
        let text = format!(
            r#"[{{"traceId":"00000000000000aa","id":"0000000000000002","parentId":"0000000000000001",
                "kind":"CLIENT","timestamp":10,"duration":90,"localEndpoint":{{"serviceName":"root"}}}},
            {{"traceId":"00000000000000aa","id":"0000000000000002","parentId":"0000000000000001",
                "kind":"SERVER","timestamp":20,"duration":70,"localEndpoint":{{"serviceName":"leaf"}}{shared}}},
            {{"traceId":"00000000000000aa","id":"0000000000000003","parentId":"0000000000000002",
                "name":"busy","timestamp":30,"duration":10,"localEndpoint":{{"serviceName":"leaf"}}}},
            {{"traceId":"00000000000000aa","id":"0000000000000004","parentId":"0000000000000002",
                "name":"own","timestamp":30,"duration":10,"localEndpoint":{{"serviceName":"root"}}}}]"#
        );
        let spans = of(&text).unwrap();
        let [client, server, busy, own] = &spans[..] else {
            panic!("{spans:?}");
        };
        assert_eq!((client.id, client.parent), (SpanId(2), SpanId(1)));
        assert_eq!(server.parent, SpanId(2));
        assert!(![1, 2, 3, 4].contains(&server.id.0));
        assert_eq!((busy.parent, own.parent), (server.id, SpanId(2)));
    }
    // The client's half comes from elsewhere.
    let alone = r#"[{"traceId":"00000000000000aa","id":"0000000000000002","shared":true,
        "kind":"SERVER","timestamp":20}]"#;
    let spans = of(alone).unwrap();
    assert_eq!(spans[0].parent, SpanId(2));
}

#[test]
fn annotations_of_version_1_tell_services_kinds_and_both_sides_of_a_call() {
    let text = r#"[
        {"traceId":"aa","id":"1","name":"get","annotations":[
            {"timestamp":1000,"value":"sr","endpoint":{"serviceName":"front","port":80}},
            {"timestamp":1900,"value":"ss","endpoint":{"serviceName":"front","port":80}}],
         "binaryAnnotations":[
            {"key":"http.path","value":"/buy","endpoint":{"serviceName":"front"}},
            {"key":"http.status_code","value":"503","endpoint":{"serviceName":"front"}}]},
        {"traceId":"aa","id":"2","parentId":"1","name":"get","timestamp":1100,"duration":400,
         "annotations":[
            {"timestamp":1100,"value":"cs","endpoint":{"serviceName":"front"}},
            {"timestamp":1200,"value":"sr","endpoint":{"serviceName":"store"}},
            {"timestamp":1450,"value":"ss","endpoint":{"serviceName":"store"}},
            {"timestamp":1500,"value":"cr","endpoint":{"serviceName":"front"}}],
         "binaryAnnotations":[
            {"key":"http.path","value":"/get","endpoint":{"serviceName":"store"}}]},
        {"traceId":"aa","id":"3","parentId":"2","name":"select","timestamp":1250,"duration":100,
         "binaryAnnotations":[{"key":"lc","value":"sql","endpoint":{"serviceName":"store"}}]},
        {"traceId":"aa","id":"4","parentId":"1","name":"put","timestamp":1600,"duration":200,
         "annotations":[
            {"timestamp":1600,"value":"cs","endpoint":{"serviceName":"front"}},
            {"timestamp":1800,"value":"cr","endpoint":{"serviceName":"front"}}],
         "binaryAnnotations":[{"key":"sa","value":true,"endpoint":{"serviceName":"cache"}}]}]"#;
    let spans = of(text).unwrap();
    let told = |span: &Span| {
        let times = (span.start / 1000, span.end / 1000);
        format!("{:?} {} {} {times:?}", span.kind, span.service, span.name)
    };
    assert_eq!(
        spans.iter().map(told).collect::<Vec<_>>(),
        [
            "Server front /buy (1000, 1900)",
            "Client front get (1100, 1500)",
            "Server store /get (1200, 1450)",
            "Internal store select (1250, 1350)",
            "Client front put (1600, 1800)",
        ]
    );
    assert_eq!(spans[0].status, 503);
    assert_eq!((&*spans[1].peer, &*spans[4].peer), ("store", "cache"));
    assert_eq!((spans[2].parent, spans[3].parent), (SpanId(2), spans[2].id));
}

#[test]
fn a_length_below_zero_costs_its_span_alone() {
    let span = |id: u8, duration: &str| {
        format!(r#"{{"traceId":"aa","id":"{id}","timestamp":5000,"duration":{duration}}}"#)
    };
    let text = format!("[{},{},{}]", span(1, "-3"), span(2, "7.9"), span(3, "null"));
    let decoded = crate::decode(text.as_bytes(), &Origin::unix()).unwrap();
    let lengths: Vec<u64> = decoded.spans.iter().map(Span::length).collect();
    assert_eq!((decoded.absurd, lengths), (1, vec![7_000, 0]));
}

#[test]
fn tags_that_are_no_texts_cost_nothing() {
    let text = r#"[{"traceId":"aa","id":"1","kind":"SERVER","timestamp":5,
        "tags":{"http.status_code":200,"error":true,"user":null,"http.path":"/buy"}}]"#;
    let spans = of(text).unwrap();
    assert_eq!((spans[0].status, &*spans[0].name), (200, "/buy"));
    assert!(spans[0].has_failed());
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let id = r#""traceId":"aa","id":"1""#;
    assert_eq!(of(&format!("[{{{id}}}]")).unwrap(), []);
    let spans = of(&format!(
        r#"[{{{id},"timestamp":5,"parentId":"0000000000000000"}}]"#
    ))
    .unwrap();
    assert_eq!(
        (&*spans[0].service, spans[0].parent),
        ("unknown", SpanId(0))
    );
    let error = |text: &str| of(text).unwrap_err().to_string();
    assert!(error("{}").contains("Zipkin's JSON"));
    assert!(error(r#"[{"traceId":"aa"}]"#).contains("`id`"));
    assert!(error(r#"[{"traceId":"0","id":"1"}]"#).contains("traceId of span 1"));
    let long = format!(
        r#"[{{{id},"timestamp":5}},{{"traceId":"aa","id":"{}1"}}]"#,
        "1".repeat(16)
    );
    assert!(error(&long).contains("id of span 2"));
}

#[test]
fn traces_of_the_query_api_are_lists_of_lists() {
    let span = |trace: &str| format!(r#"{{"traceId":"{trace}","id":"1","timestamp":5}}"#);
    let text = format!(" [ [{}],\n[], [{}]]", span("aa"), span("bb"));
    let traces: Vec<u128> = of(&text).unwrap().iter().map(|span| span.trace.0).collect();
    assert_eq!(traces, [0xaa, 0xbb]);
    let error = of(&format!("[[{},3]]", span("aa"))).unwrap_err();
    assert!(error.to_string().contains("Zipkin's JSON"), "{error}");
}
