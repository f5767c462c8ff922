use std::io::Read;

use proptest::prelude::*;

use super::*;
use crate::names::Names;
use crate::random_spans::any_span;
use crate::samples::server;
use crate::{Epoch, Origin, ReadError, Span, SpanKind, normalise};
use crate::{SpanId, TraceId};

fn origin(ahead: u64, boot: &str) -> Origin {
    Origin {
        epoch: Epoch::ahead(ahead),
        boot: boot.into(),
    }
}

type Spans = Result<Vec<Span>, ReadError>;

fn read_protobuf(body: &[u8], origin: &Origin, names: &mut Names) -> Spans {
    decode_protobuf(body, origin, names)?.whole()
}

fn read_json(body: &[u8], origin: &Origin, names: &mut Names) -> Spans {
    decode_json(body, origin, names)?.whole()
}

fn sorted(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| (span.trace, span.id, span.start));
    spans
}

proptest! {
    #[test]
    fn what_is_written_is_read_to_the_nanosecond(
        spans in proptest::collection::vec(any_span(), 0..8), ahead in 0_u64..1 << 60,
    ) {
        let (here, names) = (origin(ahead, "boot"), &mut Names::default());
        let read = read_protobuf(&write_protobuf(&spans, &here), &here, names).unwrap();
        prop_assert_eq!(sorted(read), sorted(spans.clone()));
        let read = read_json(&write_json(&spans, &here), &here, names).unwrap();
        prop_assert_eq!(sorted(read), sorted(spans));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let (here, names) = (origin(0, ""), &mut Names::default());
        let _ = read_protobuf(&bytes, &here, names);
        let _ = read_json(&bytes, &here, names);
    }
}

#[test]
fn processes_of_one_machine_share_its_clock() {
    let spans = [server(1, 2, 5_000, 9_000)];
    let written = write_protobuf(&spans, &origin(1_000_000, "this"));
    let times = |reader: &Origin| {
        let spans = read_protobuf(&written, reader, &mut Names::default()).unwrap();
        (spans[0].start, spans[0].end)
    };
    // The reader measured the wall clock 700 ns later than the writer did.
    assert_eq!(times(&origin(1_000_700, "this")), (5_000, 9_000));
    assert_eq!(times(&origin(1_000_700, "other")), (4_300, 8_300));
    // What is older than the reader's clock keeps its length.
    assert_eq!(times(&origin(2_000_000, "other")), (0, 4_000));
    assert_eq!(times(&Origin::unix()), (1_005_000, 1_009_000));
}

#[test]
fn another_implementation_is_understood() {
    let packed = include_bytes!("../../tests/data/otlp-python-1.45.2.bin.gz");
    let mut body = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(&packed[..]);
    reader.read_to_end(&mut body).unwrap();
    let spans = read_protobuf(&body, &Origin::unix(), &mut Names::default()).unwrap();
    let spans = sorted(spans);
    assert_eq!(spans.len(), 3);
    const T: u64 = 1_700_000_000_000_000_000;
    let [server, client, work] = &spans[..] else {
        panic!("{spans:?}");
    };
    let trace = TraceId(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
    for span in &spans {
        assert_eq!((span.trace, &*span.service), (trace, "checkout"));
    }
    assert_eq!((server.kind, &*server.name), (SpanKind::Server, "/cart"));
    assert_eq!((server.status, server.cause), (503, "error"));
    assert_eq!((server.start, server.end), (T, T + 5_000_000));
    assert_eq!((client.kind, &*client.peer), (SpanKind::Client, "price"));
    assert_eq!((client.parent, &*client.name), (SpanId(0x1001), "/price"));
    assert_eq!((client.start, client.end), (T + 1_000_500, T + 3_000_000));
    assert_eq!((work.kind, &*work.name), (SpanKind::Internal, "sieve"));
}

#[test]
fn json_is_as_the_specification_has_it() {
    let mut span = server(0x5b8e_fff7_9803_8103_d269_b633_813f_c60c, 0xeee1, 1, 2);
    span.parent = SpanId(0xeee0);
    let json = write_json(&[span], &origin(1_544_712_660_000_000_000, ""));
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let span = &json["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(span["traceId"], "5b8efff798038103d269b633813fc60c");
    assert_eq!(span["parentSpanId"], "000000000000eee0");
    assert_eq!(span["kind"], 2);
    assert_eq!(span["startTimeUnixNano"], "1544712660000000001");
    let attributes = span["attributes"].as_array().unwrap();
    let status = serde_json::json!({
        "key": "http.response.status_code", "value": { "intValue": "200" },
    });
    assert!(attributes.contains(&status), "{attributes:?}");
    let resource = &json["resourceSpans"][0]["resource"]["attributes"];
    assert_eq!(resource[1]["key"], "headroom.boot_id");
}

#[test]
fn json_of_lenient_writers_is_read() {
    let text = r#"{"resourceSpans":[{"resource":{"attributes":[
        {"key":"service.name","value":{"stringValue":"s"}},
        {"key":"list","value":{"arrayValue":{"values":[{"intValue":"1"}]}}},
        {"key":"ratio","value":{"doubleValue":"NaN"}},{"key":"part","value":{"doubleValue":0.5}}]},
        "scopeSpans":[{"spans":[{"traceId":"5B8EFFF798038103D269B633813FC60C",
        "spanId":"EEE19B7EC3C1B174","name":"n","kind":"SPAN_KIND_CLIENT","parentSpanId":"",
        "startTimeUnixNano":7,"endTimeUnixNano":"9","status":{"code":"STATUS_CODE_ERROR"},
        "attributes":[{"key":"http.status_code","value":{"intValue":404}}],
        "events":[{"name":"e"}],"links":[]}]}]}]}"#;
    let spans = read_json(text.as_bytes(), &Origin::unix(), &mut Names::default()).unwrap();
    let [span] = &spans[..] else {
        panic!("{spans:?}");
    };
    assert_eq!((span.kind, span.start, span.end), (SpanKind::Client, 7, 9));
    assert_eq!((span.status, span.cause), (404, ""));
    assert_eq!(span.parent, SpanId(0));
}

#[test]
fn null_is_what_is_not_said() {
    let text = r#"{"resourceSpans":[{"resource":null,"scopeSpans":[{"scope":{"name":null,"version":null},
        "spans":[{"traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"EEE19B7EC3C1B174",
        "parentSpanId":null,"name":null,"kind":null,"startTimeUnixNano":"7","endTimeUnixNano":9,
        "flags":null,"status":{"code":null,"message":null},
        "attributes":[{"key":"http.route","value":null}]}]}]}]}"#;
    let spans = read_json(text.as_bytes(), &Origin::unix(), &mut Names::default()).unwrap();
    assert_eq!((spans[0].start, spans[0].end), (7, 9));
    assert_eq!((spans[0].parent, spans[0].has_failed()), (SpanId(0), false));
    let float = text.replace("\"7\"", "1.79e18");
    let error = read_json(float.as_bytes(), &Origin::unix(), &mut Names::default()).unwrap_err();
    assert!(
        error.to_string().contains("expected a whole number"),
        "{error}"
    );
}

#[test]
fn what_is_wrong_is_named() {
    let names = &mut Names::default();
    let id = |trace: &str, span: &str, parent: &str| {
        let text = format!(
            r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"traceId":"{trace}","spanId":"{span}","parentSpanId":"{parent}"}}]}}]}}]}}"#
        );
        let read = read_json(text.as_bytes(), &Origin::unix(), &mut Names::default());
        read.unwrap_err().to_string()
    };
    let good = "5b8efff798038103d269b633813fc60c";
    assert_eq!(
        id("00", "eee19b7ec3c1b174", ""),
        "read spans: traceId of span 1 is not an id; expected 16 or 32 hexadecimal digits that are not all zero"
    );
    assert!(id(good, "0000000000000000", "").contains("spanId of span 1"));
    assert!(id(good, "eee19b7ec3c1b174", "12").contains("parentSpanId"));
    assert!(id("xyz", "eee19b7ec3c1b174", "").contains("traceId of span 1"));
    assert!(id(good, "eee19b7ec3c1b174", "xy").contains("parentSpanId of span 1"));
    let error = read_json(b"{", &Origin::unix(), names).unwrap_err();
    assert!(error.to_string().contains("OTLP in JSON"), "{error}");
    let error = read_protobuf(b"\x0a\xff", &Origin::unix(), names).unwrap_err();
    assert!(error.to_string().contains("OTLP in protobuf"), "{error}");
}

#[test]
fn a_trace_id_of_64_bits_is_one() {
    let text = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"d269b633813fc60c",
        "spanId":"eee19b7ec3c1b174","startTimeUnixNano":"7","endTimeUnixNano":"9"}]}]}]}"#;
    let spans = read_json(text.as_bytes(), &Origin::unix(), &mut Names::default()).unwrap();
    assert_eq!(spans[0].trace, TraceId(0xd269_b633_813f_c60c));
}

fn one(kind: u8, attributes: &str, status: &str) -> Span {
    let text = format!(
        r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"traceId":"5B8EFFF798038103D269B633813FC60C",
        "spanId":"EEE19B7EC3C1B174","name":"n","kind":{kind},"startTimeUnixNano":7,
        "endTimeUnixNano":9,"status":{{{status}}},"attributes":[{attributes}]}}]}}]}}]}}"#
    );
    let mut spans = read_json(text.as_bytes(), &Origin::unix(), &mut Names::default()).unwrap();
    spans.remove(0)
}

#[test]
fn a_route_says_what_a_request_is_whatever_path_it_had() {
    let path = r#"{"key":"url.path","value":{"stringValue":"/users/17"}}"#;
    let route = r#"{"key":"http.route","value":{"stringValue":"/users/{id}"}}"#;
    assert_eq!(&*one(2, path, "").name, "/users/17");
    for both in [format!("{path},{route}"), format!("{route},{path}")] {
        assert_eq!(&*one(2, &both, "").name, "/users/{id}");
    }
}

#[test]
fn a_callee_is_named_by_the_old_convention_and_the_new_one() {
    let address = r#"{"key":"server.address","value":{"stringValue":"10.0.0.7"}}"#;
    for key in ["peer.service", "service.peer.name"] {
        let named = format!(r#"{address},{{"key":"{key}","value":{{"stringValue":"store"}}}}"#);
        assert_eq!(&*one(3, &named, "").peer, "store", "{key}");
    }
}

#[test]
fn a_url_within_a_target_is_no_path() {
    let named = |key: &str, value: &str| {
        let text = format!(r#"{{"key":"{key}","value":{{"stringValue":"{value}"}}}}"#);
        one(2, &text, "").name.to_string()
    };
    let login = "/login?next=https://shop.example/cart";
    assert_eq!(named("http.target", login), "/login");
    assert_eq!(
        named("http.target", "/proxy/http://a/b#c"),
        "/proxy/http://a/b"
    );
    assert_eq!(named("http.url", "http://a:80/buy?to=http://b/c"), "/buy");
    assert_eq!(named("url.full", "http://a?at=/b"), "/");
}

#[test]
fn what_says_that_it_failed_has_whatever_was_answered_first() {
    let status = |code: u16| {
        format!(r#"{{"key":"http.response.status_code","value":{{"intValue":{code}}}}}"#)
    };
    let failed = |code, of: &str| one(2, &status(code), of).has_failed();
    assert!(failed(200, r#""code":2"#));
    assert!(!failed(200, ""));
    assert!(!failed(200, r#""code":1"#));
    // The request was wrong, and the answer right.
    assert!(!failed(404, r#""code":2"#));
    assert!(failed(503, ""));
}

#[test]
fn who_sends_a_message_does_not_wait_for_who_takes_it() {
    assert_eq!(one(4, "", "").kind, SpanKind::Internal);
    assert_eq!(one(5, "", "").kind, SpanKind::Server);
    let of = |kind, id: u64, parent: u64, service: &str, (start, end): (u64, u64)| Span {
        kind,
        parent: SpanId(parent),
        service: service.into(),
        start: start * 1_000_000,
        end: end * 1_000_000,
        ..server(1, id, 0, 0)
    };
    let mut spans = vec![
        of(SpanKind::Server, 1, 0, "shop", (0, 10)),
        of(one(4, "", "").kind, 2, 1, "shop", (2, 4)),
        // Short, and much later: no clock is wrong.
        of(one(5, "", "").kind, 3, 2, "mail", (500, 501)),
    ];
    normalise(&mut spans);
    let found = crate::analysis::analyse(&spans);
    assert_eq!(found.counts.moved_spans, 0);
    assert_eq!(found.latency.p50_ns, 10_000_000);
    let waited: Vec<_> = found.components.iter().map(|one| &*one.service).collect();
    assert_eq!(waited, ["shop", "shop"], "{found}");
}
