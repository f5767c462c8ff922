//! Spans of a system that nobody described: which service is behind what got worse.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::lab::Lab;

/// A shop as its collector has it, in OTLP's JSON without kinds: one request in 25 also pays,
/// for so long. Times scatter by a sequence that repeats after a prime number of requests.
fn shop(lab: &Lab, name: &str, paying_us: u64) -> PathBuf {
    let mut front = Vec::new();
    let mut pay = Vec::new();
    let span = |trace: u64, id: u64, parent: u64, name: &str, (from, to): (u64, u64)| {
        let mut span = json!({
            "traceId": format!("{trace:032x}"),
            "spanId": format!("{id:016x}"),
            "name": name,
            "startTimeUnixNano": (from * 1000).to_string(),
            "endTimeUnixNano": (to * 1000).to_string(),
        });
        if parent > 0 {
            span["parentSpanId"] = json!(format!("{parent:016x}"));
        }
        span
    };
    for number in 1..=1_000_u64 {
        let begin = 1_700_000_000_000_000 + number * 20_000;
        let scatter = number * 7_919 % 997;
        let own = 2_000 + scatter;
        let pays = number.is_multiple_of(25);
        let length = own + if pays { paying_us + 400 } else { 0 };
        front.push(span(number, 1, 0, "GET /cart", (begin, begin + length)));
        if pays {
            let (call, answer) = (begin + 1_000, begin + 1_400 + paying_us);
            front.push(span(number, 2, 1, "POST /charge", (call, answer)));
            pay.push(span(number, 3, 2, "/charge", (call + 200, answer - 200)));
        }
    }
    let resource = |name: &str, spans: Vec<Value>| {
        json!({
            "resource": { "attributes": [
                { "key": "service.name", "value": { "stringValue": name } }
            ] },
            "scopeSpans": [{ "spans": spans }],
        })
    };
    let all = json!({ "resourceSpans": [resource("front", front), resource("pay", pay)] });
    let file = lab.path(name);
    std::fs::write(&file, all.to_string()).expect("a file");
    file
}

fn traces(lab: &Lab, args: &[&str], files: &[&Path]) -> (String, String, Option<i32>) {
    let output = lab.command().arg("traces").args(args).args(files).output();
    let output = output.expect("the binary");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        text(&output.stdout),
        text(&output.stderr),
        output.status.code(),
    )
}

#[test]
fn who_slows_one_request_in_25_is_named_and_nobody_where_nothing_changed() {
    let lab = Lab::new();
    let before = shop(&lab, "before.json", 3_000);
    let after = shop(&lab, "after.json", 6_000);
    let (said, _, status) = traces(&lab, &["compare"], &[&before, &after]);
    assert!(
        said.starts_with("Behind what got worse: `pay`. In B, `/charge` in `pay` takes 6 ms"),
        "{said}"
    );
    assert_eq!(status, Some(1), "{said}");
    let (said, _, status) = traces(&lab, &["compare", "--json"], &[&before, &before]);
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["culprits"], json!([]));
    assert_eq!(status, Some(0));
    let a = before.to_str().expect("a name");
    let (_, said, status) = traces(&lab, &["compare", "--a", a], &[]);
    assert!(said.contains("--b"), "{said}");
    assert_eq!(status, Some(4));
}

#[test]
fn each_kind_of_request_is_analysed_by_itself() {
    let lab = Lab::new();
    let file = shop(&lab, "spans.json", 50_000);
    let (said, _, status) = traces(&lab, &["analyse"], &[&file]);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains("1. front GET /cart, reaching nothing else: 960 requests, 96 % of all"),
        "{said}"
    );
    assert!(
        said.contains("2. front GET /cart, reaching 2 endpoints, as pay /charge: 40 requests"),
        "{said}"
    );
    assert!(said.contains("`pay`'s own handling"), "{said}");
    let (said, _, _) = traces(&lab, &["analyse", "--together"], &[&file]);
    assert!(
        said.contains("front GET /cart: 1,000 requests, 0 failed"),
        "{said}"
    );
}

/// Each service writes a file of its own: what one called is found in the other's.
#[test]
fn a_trace_in_two_files_is_one() {
    let lab = Lab::new();
    let whole = shop(&lab, "spans.json", 50_000);
    let text = std::fs::read_to_string(&whole).expect("a file");
    let spans: Value = serde_json::from_str(&text).expect("JSON");
    let of_each = spans["resourceSpans"].as_array().expect("services");
    assert_eq!(of_each.len(), 2);
    let parts = ["front.json", "pay.json"].map(|name| lab.path(name));
    for (part, spans) in parts.iter().zip(of_each) {
        let part_text = json!({ "resourceSpans": [spans] }).to_string();
        std::fs::write(part, part_text).expect("a file");
    }
    let (expected, _, _) = traces(&lab, &["analyse"], &[&whole]);
    assert!(expected.contains("reaching 2 endpoints"), "{expected}");
    for files in [[&*parts[0], &*parts[1]], [&*parts[1], &*parts[0]]] {
        let (said, _, status) = traces(&lab, &["analyse"], &files);
        assert_eq!((said, status), (expected.clone(), Some(0)));
    }
    // Half of it is half of it.
    let (half, _, _) = traces(&lab, &["analyse"], &[&parts[0]]);
    assert_ne!(half, expected);
}

#[test]
fn what_is_no_span_is_refused_with_its_file() {
    let lab = Lab::new();
    let file = lab.path("log.txt");
    for (text, why) in [
        ("", "it is empty"),
        ("{\"level\":3}", "its first key is \"level\""),
        ("[{}]", "traceId"),
    ] {
        std::fs::write(&file, text).expect("a file");
        let (_, said, status) = traces(&lab, &["analyse"], &[&file]);
        assert!(said.contains("log.txt") && said.contains(why), "{said}");
        assert_eq!(status, Some(4));
    }
    let (_, said, status) = traces(&lab, &["analyse"], &[&lab.path("none.json")]);
    assert!(said.contains("none.json"), "{said}");
    assert_eq!(status, Some(4));
}

/// Posts a body, and gives the answer as it came.
fn post(address: &str, path: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("the collector");
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("a head");
    stream.write_all(body).expect("a body");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn a_collector_keeps_what_comes_over_http_and_grpc_and_writes_it_at_the_end() {
    let lab = Lab::new();
    let spans = std::fs::read(shop(&lab, "spans.json", 3_000)).expect("a file");
    let kept = lab.path("kept.json");
    let mut child = lab
        .command()
        .args([
            "traces",
            "collect",
            "--listen",
            "127.0.0.1:0",
            "--grpc",
            "127.0.0.1:0",
            "--out",
        ])
        .arg(&kept)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the collector");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("its output");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    let mut addresses = line.split(' ').filter(|word| word.starts_with("127."));
    let (http, grpc) = (
        addresses.next().expect(&line),
        addresses.next().expect(&line),
    );

    assert!(post(http, "/v1/traces", &spans).starts_with("HTTP/1.1 200"));
    assert!(post(http, "/v1/traces", b"{\"resourceSpans\":3}").starts_with("HTTP/1.1 400"));
    // Of a job that only calls others no server's span comes.
    let job = br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"nightly","kind":3,
        "traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174",
        "startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000000001000"}]}]}]}"#;
    assert!(post(http, "/v1/traces", job).starts_with("HTTP/1.1 200"));
    assert!(post(http, "/else", b"").starts_with("HTTP/1.1 405"));
    // A message without spans is one, and another call is none.
    let call = |path: &str| {
        let url =
            format!("grpc://{grpc}/opentelemetry.proto.collector.trace.v1.TraceService/{path}");
        let args = [
            "load",
            &url,
            "--requests",
            "5",
            "--closed",
            "-c",
            "1",
            "--json",
        ];
        let output = lab.command().args(args).output().expect("the binary");
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")["requests"].clone()
    };
    let (known, unknown) = (call("Export"), call("Else"));
    assert_eq!(
        (&known["answered"], &known["failed"]),
        (&json!(5), &json!(0)),
        "{known}"
    );
    assert_eq!(unknown["failed"], 5, "{unknown}");

    let id = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("an id"));
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGINT).expect("a signal");
    let output = child.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("1,081 spans of 1,001 traces; 1,081 came in, 0 were dropped"),
        "{said}"
    );
    let text = std::fs::read_to_string(&kept).expect("what was kept");
    assert!(text.contains("nightly"), "{} bytes", text.len());
    let (said, _, status) = traces(&lab, &["compare"], &[&lab.path("spans.json"), &kept]);
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn a_path_that_nobody_entered_is_refused_with_those_that_there_are() {
    let lab = Lab::new();
    let file = shop(&lab, "spans.json", 50_000);
    let (_, said, status) = traces(&lab, &["analyse", "--path", "/cart"], &[&file]);
    assert!(
        said.contains("expected one of `GET /cart` (1,000)"),
        "{said}"
    );
    assert_eq!(status, Some(4));
}

#[test]
fn what_was_left_out_or_shares_an_id_is_said() {
    let lab = Lab::new();
    let file = shop(&lab, "spans.json", 50_000);
    let text = std::fs::read_to_string(&file).expect("a file");
    let cut = lab.path("cut.json");
    std::fs::write(&cut, format!("{text}\n{}", &text[..200])).expect("a file");
    let (whole, nothing, _) = traces(&lab, &["analyse"], &[&file]);
    assert_eq!(nothing, "");
    let (said, left_out, status) = traces(&lab, &["analyse"], &[&cut]);
    assert_eq!((said, status), (whole, Some(0)));
    assert!(
        left_out.contains("the last line, which ends in its midst"),
        "{left_out}"
    );
    // The same ids, a day later.
    let later = lab.path("later.json");
    let moved = text.replace(":\"17000", ":\"17001");
    std::fs::write(&later, moved).expect("a file");
    let (said, parted, _) = traces(&lab, &["analyse"], &[&file, &later]);
    assert!(
        parted.contains("1,000 traces hold several requests"),
        "{parted}"
    );
    assert!(said.contains("1,920 requests, 96 % of all"), "{said}");
}
