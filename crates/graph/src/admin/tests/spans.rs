//! Spans over HTTP: out and in.

use std::io::Write;

use super::*;

#[tokio::test]
async fn traces_are_listed_and_shown() {
    let running = Running::start().await;
    let now = wire::clock::now();
    let mut recorder = running.tracer.recorder();
    for trace in 1..=5_u64 {
        let mut span = server(u128::from(trace), 1, now, now + trace * MS);
        recorder.record(span.clone());
        span.id = traces::SpanId(2);
        span.parent = traces::SpanId(1);
        span.start += 10;
        span.cause = "timeout";
        recorder.record(span);
    }
    let slowest = running.json("/traces?slowest=2&seconds=60").await;
    let traces = slowest["traces"].as_array().unwrap();
    let lengths: Vec<_> = traces
        .iter()
        .map(|one| one["duration_ns"].as_u64().unwrap())
        .collect();
    assert_eq!(lengths, [5 * MS, 4 * MS]);
    assert_eq!(traces[0]["trace"], format!("{:032x}", 5));
    assert_eq!(
        (&traces[0]["spans"], &traces[0]["status"]),
        (&json!(2), &json!(200))
    );
    // Who follows in small steps misses nothing.
    let first = running.json("/traces?since=0&limit=3").await;
    let rest = running
        .json(&format!("/traces?since={}&limit=3", first["next"]))
        .await;
    let end = running
        .json(&format!("/traces?since={}&limit=3", rest["next"]))
        .await;
    let count = |list: &Value| list["traces"].as_array().unwrap().len();
    assert_eq!((count(&first), count(&rest), count(&end)), (3, 2, 0));
    assert_eq!(
        running.json("/traces?recent=1").await["traces"][0]["trace"],
        format!("{:032x}", 5)
    );

    let one = running.json("/traces/0000000000000003").await;
    let spans = one["spans"].as_array().unwrap();
    assert_eq!(
        (&spans[0]["parent"], &spans[1]["parent"]),
        (&Value::Null, &json!("0000000000000001"))
    );
    assert_eq!(
        (&spans[1]["start_ns"], &spans[1]["end_ns"]),
        (&json!(10), &json!(3 * MS))
    );
    assert_eq!(
        (&spans[1]["kind"], &spans[1]["cause"]),
        (&json!("server"), &json!("timeout"))
    );
    let zipkin = running.json("/traces/3?format=zipkin").await;
    assert_eq!(zipkin.as_array().unwrap().len(), 2);
    let otlp = running.json("/traces/3?format=otlp").await;
    assert!(otlp["resourceSpans"].is_array());
    for (path, status) in [
        ("/traces/9", 404),
        ("/traces/xyz", 400),
        ("/traces/3?format=x", 400),
        ("/traces?slowest=0", 400),
        ("/traces?recent=a", 400),
    ] {
        assert_eq!(running.get(path).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn spans_of_others_come_in_and_go_out() {
    let running = Running::start().await;
    let answer = running.get("/analysis").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(error(&answer), "no trace has ended yet");
    let origin = Origin::here();
    let post = |path: &'static str, headers: &'static [(&str, &str)], body: Vec<u8>| {
        let running = &running;
        async move { running.ask(Method::POST, path, headers, &body).await }
    };
    let json: &[_] = &[("content-type", "application/json")];
    let protobuf: &[_] = &[("content-type", otlp::PROTOBUF)];
    let packed: &[_] = &[
        ("content-type", otlp::PROTOBUF),
        ("content-encoding", "gzip"),
    ];
    let other: &[_] = &[("content-encoding", "br")];
    let answer = post(
        zipkin::PATH,
        json,
        zipkin::write(&[server(1, 1, 1000, 2000)], &origin),
    )
    .await;
    assert_eq!(
        (answer.status, answer.body.len()),
        (StatusCode::ACCEPTED, 0)
    );
    let answer = post(
        otlp::PATH,
        protobuf,
        otlp::write_protobuf(&[server(2, 1, 1, 2)], &origin),
    )
    .await;
    assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, 0));
    assert_eq!(answer.headers["content-type"], otlp::PROTOBUF);
    let answer = post(
        otlp::PATH,
        json,
        otlp::write_json(&[server(3, 1, 1, 2)], &origin),
    )
    .await;
    assert_eq!(&answer.body[..], b"{}");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&otlp::write_protobuf(&[server(4, 1, 1, 2)], &origin))
        .unwrap();
    let answer = post(otlp::PATH, packed, gzip.finish().unwrap()).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(running.tracer.store().counts().traces, 4);

    assert_eq!(running.json("/analysis").await, json!({ "traces": 4 }));
    let count_of = |form, spans: &[u8]| {
        let names = &mut traces::names::Names::default();
        let decoded = traces::decode_posted(form, spans, &origin, names);
        decoded.unwrap().spans.len()
    };
    let spans = running.get("/spans").await.body;
    assert_eq!(count_of(traces::Form::OtlpJson, &spans), 4);

    for (query, count) in [
        ("?limit=3", 3),
        ("?path=/", 4),
        ("?path=/x", 0),
        ("?seconds=0", 0),
    ] {
        let spans = running.get(&format!("/spans{query}")).await.body;
        let found = count_of(traces::Form::OtlpJson, &spans);
        assert_eq!(found, count, "{query}");
    }
    assert_eq!(
        running.json("/analysis?limit=2").await,
        json!({ "traces": 2 })
    );
    let spans = running.get("/spans?format=protobuf").await.body;
    assert_eq!(count_of(traces::Form::OtlpProtobuf, &spans), 4);
    assert_eq!(running.get("/spans?format=x").await.status, 400);

    for (path, headers, body, status) in [
        (otlp::PATH, protobuf, b"\xff".to_vec(), 400),
        (zipkin::PATH, json, b"[{}]".to_vec(), 400),
        (otlp::PATH, packed, b"no gzip".to_vec(), 400),
        (otlp::PATH, other, Vec::new(), 415),
    ] {
        let answer = post(path, headers, body).await;
        assert_eq!(answer.status, status);
        assert!(!error(&answer).is_empty());
    }
    // A megabyte of zeros takes a kilobyte, and so on.
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(&vec![0; collector::BODY_BYTES + 1]).unwrap();
    let answer = post(otlp::PATH, packed, bomb.finish().unwrap()).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(running.tracer.store().counts().traces, 4);
}

#[test]
fn headers_of_an_intake_are_read_leniently() {
    let mut headers = HeaderMap::new();
    let intake = collector::Intake::new(traces::Store::new(StoreLimits::default()), Origin::unix());
    let take = |headers: &HeaderMap, body: &'static [u8]| {
        intake
            .take(collector::Form::Otlp, headers, Bytes::from_static(body))
            .map(|answer| answer.status())
    };
    assert_eq!(take(&headers, b""), Ok(StatusCode::OK));
    headers.insert("content-encoding", HeaderValue::from_static("identity"));
    headers.insert(
        "content-type",
        HeaderValue::from_static("application/json; charset=utf-8"),
    );
    assert_eq!(take(&headers, b"{}"), Ok(StatusCode::OK));
}
