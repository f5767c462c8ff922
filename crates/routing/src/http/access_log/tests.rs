use std::sync::Arc;

use proptest::prelude::*;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use wire::http1::{Limits, RequestScanner};

use super::*;
use crate::http::pipeline::Refusal;
use crate::http::settings::HttpSettings;
use crate::table::{Table, TableSettings};

const NOW: Times = Times {
    mono: 5_000_000_000,
    wall: 1_795_249_040_286_360_016,
};

/// The line of a request that finds no route.
fn line(request: &[u8], change: impl FnOnce(&mut AccessLogSettings)) -> String {
    written(request, change, write_line)
}

type Write = fn(&Pipeline, &RequestHead, &Client, &Exchange, Times, &mut Vec<u8>);

fn written(request: &[u8], change: impl FnOnce(&mut AccessLogSettings), write: Write) -> String {
    let mut settings = HttpSettings::default();
    change(&mut settings.access_log);
    let pipeline = Pipeline::new(Arc::new(settings));
    let table = Table::new(TableSettings::default());
    let client = Client::new("203.0.113.9:4711".parse().unwrap(), None);
    let mut head = RequestHead::default();
    let limits = Limits {
        head_bytes: 1 << 20,
        ..Limits::default()
    };
    let length = RequestScanner::new(limits).head(request, &mut head);
    assert!(matches!(length, Ok(Some(_))), "{length:?}");
    let mut exchange = Exchange::default();
    let mut random = StdRng::seed_from_u64(1);
    pipeline.admit(&head, &client, &table, NOW, &mut random, &mut exchange);
    let mut out = Vec::new();
    let refusal = Refusal::UnknownRoute;
    pipeline.write_refusal(&head, &mut exchange, refusal, true, NOW, &mut out);
    out.clear();
    write(&pipeline, &head, &client, &exchange, NOW, &mut out);
    String::from_utf8(out).unwrap()
}

fn request(target: &str, fields: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: a.ex.com\r\n{fields}\r\n").into_bytes()
}

#[test]
fn a_path_is_escaped_as_go_does_it() {
    for (target, expected) in [
        ("/a;b,c(d)[e]!'*", "/a;b,c(d)[e]!'*"),
        ("/%41%2f?\"q\"", "/%41%2f?\\\"q\\\""),
        ("/\"q\"", "/%22q%22"),
        ("/<x>^`{|}\\#", "/%3Cx%3E%5E%60%7B%7C%7D%5C%23"),
        ("/\u{e9}", "/%C3%A9"),
        // What is escaped already is escaped anew beside what is not.
        ("/%41%2f(<", "/A/%28%3C"),
    ] {
        let line = line(&request(target, ""), |_| {});
        let found = line.split(" HTTP/1.1\" 4").next().unwrap();
        assert!(found.ends_with(&format!("\"GET {expected}")), "{line}");
    }
}

#[test]
fn semicolons_are_told_where_nothing_else_is() {
    let told = |target: &str, refused: bool| {
        let write: Write = match refused {
            true => write_line,
            false => |pipeline, head, client, exchange, now, out| {
                let answered = Exchange {
                    host: exchange.host.clone(),
                    target: exchange.target.clone(),
                    ..Exchange::default()
                };
                write_line(pipeline, head, client, &answered, now, out);
            },
        };
        let line = written(&request(target, ""), |_| {}, write);
        let error = line.split("x_cf_routererror:").nth(1).unwrap();
        error.trim_end().to_owned()
    };
    for target in ["/?a=b;c=d", "/;x", "/a;b?c"] {
        assert_eq!(told(target, false), "\"deprecated-semicolon-params\"");
        assert_eq!(told(target, true), "\"unknown_route\"");
    }
    assert_eq!(told("/?a=b&c=%3B", false), "\"-\"");
}

#[test]
fn queries_are_redacted_of_get_requests() {
    let with = |method: &str, target: &str, redact| {
        let request = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        let line = line(request.as_bytes(), |settings| {
            settings.redact_query = redact
        });
        line.split('"').nth(1).unwrap().to_owned()
    };
    assert_eq!(
        with("GET", "/p?a=b", RedactQuery::None),
        "GET /p?a=b HTTP/1.1"
    );
    assert_eq!(with("GET", "/p?a=b", RedactQuery::All), "GET /p HTTP/1.1");
    // printf a=b | sha1sum
    let hashed = "GET /p?hash=ccff2fee4b15e0b46f79f86ce5d1de59163bb483 HTTP/1.1";
    assert_eq!(with("GET", "/p?a=b", RedactQuery::Hash), hashed);
    assert_eq!(
        with("POST", "/p?a=b", RedactQuery::All),
        "POST /p?a=b HTTP/1.1"
    );
    assert_eq!(with("GET", "/p?", RedactQuery::None), "GET /p? HTTP/1.1");
    assert_eq!(
        with("GET", "http://b.ex.com?x", RedactQuery::None),
        "GET /?x HTTP/1.1"
    );
}

#[test]
fn addresses_are_hidden_on_request() {
    let request = request("/", "X-Forwarded-For: 1.1.1.1\r\n");
    let open = line(&request, |_| {});
    assert!(
        open.contains(r#" "203.0.113.9:4711" "-" x_forwarded_for:"1.1.1.1" "#),
        "{open}"
    );
    let hidden = line(&request, |settings| {
        (settings.hide_client, settings.hide_forwarded_for) = (true, true);
    });
    assert!(
        hidden.contains(r#" "-" "-" x_forwarded_for:"-" "#),
        "{hidden}"
    );
}

#[test]
fn extra_headers_are_told_once_and_the_host_is_none() {
    let line = line(&request("/", "X-A: 1\r\nX-A: 2\r\n"), |settings| {
        let names = ["X-A", "Host", "Transfer-Encoding", "X-A", "x-a"];
        settings.extra_headers = names.map(str::to_owned).to_vec();
    });
    let expected = concat!(
        r#" x_cf_routererror:"unknown_route" x_a:"1" host:"-" transfer_encoding:"-" x_a:"1""#,
        "\n"
    );
    assert!(line.ends_with(expected), "{line}");
}

#[test]
fn all_extra_fields_without_an_endpoint() {
    let line = line(&request("/", ""), |settings| {
        settings.extra_fields = vec![
            ExtraField::FailedAttempts,
            ExtraField::FailedAttemptsTime,
            ExtraField::DnsTime,
            ExtraField::DialTime,
            ExtraField::TlsTime,
            ExtraField::BackendTime,
            ExtraField::LocalAddress,
            ExtraField::TlsSni,
            ExtraField::CallerApp,
            ExtraField::CallerSpace,
            ExtraField::CallerOrganization,
            ExtraField::RoutePolicy,
        ];
    });
    let expected = r#" failed_attempts:0 failed_attempts_time:"-" dns_time:"-" dial_time:"-" tls_time:"-" backend_time:"-" local_address:"-" tls_sni:"-" caller_cf_app:"-" caller_cf_space:"-" caller_cf_org:"-" route_policy:"-" x_cf_routererror:"unknown_route""#;
    assert!(line.contains(expected), "{line}");
}

#[test]
fn texts_are_quoted_as_go_does() {
    let quote = |text: &[u8]| {
        let mut out = Vec::new();
        quoted_or_dash(text, &mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(quote(b""), r#""-""#);
    assert_eq!(quote(b"a \"b\" \\"), r#""a \"b\" \\""#);
    assert_eq!(
        quote(b"\x07\x08\x0c\n\r\t\x0b\x00\x1f\x7f"),
        r#""\a\b\f\n\r\t\v\x00\x1f\x7f""#
    );
    assert_eq!(quote("grün €😀".as_bytes()), "\"grün €😀\"");
    assert_eq!(quote(b"\xff\xc3("), r#""\xff\xc3(""#);
    assert_eq!(
        quote("\u{a0}\u{200b}\u{feff}\u{e0001}".as_bytes()),
        r#""\u00a0\u200b\ufeff\U000e0001""#
    );
}

/// The log has it whole; an envelope, which may be a datagram, has not.
#[test]
fn a_line_that_is_too_long_is_cut_for_envelopes() {
    let target = format!("/?{}", "a=b&".repeat(25_000));
    let asked = request(&target, "Referer: short\r\n");
    assert!(line(&asked, |_| {}).contains(&target));
    let short = written(&asked, |_| {}, write_short_line);
    let (_, uri) = short.split_once("\"GET ").unwrap();
    let (uri, rest) = uri.split_once(" HTTP/1.1\" 404 ").unwrap();
    // 100,002 bytes, halved three times.
    assert_eq!(uri.len(), 12_572);
    assert!(uri.ends_with("...REQUEST-URI-TOO-LONG-TO-LOG--TRUNCATED"));
    assert!(rest.contains(" \"short\" "));
    let agent = format!("User-Agent: {}\r\n", "\\".repeat(50_000));
    let short = written(&request("/", &agent), |_| {}, write_short_line);
    assert!(
        short.contains("...USER-AGENT-TOO-LONG-TO-LOG--TRUNCATED\" "),
        "{short}"
    );
    assert!(short.len() < 3_000);
    let plain = request("/a", "");
    assert_eq!(
        written(&plain, |_| {}, write_short_line),
        line(&plain, |_| {})
    );
}

proptest! {
    /// Whatever a client sends, its request is one line, with every quote closed.
    #[test]
    fn a_line_is_a_line(agent in prop::collection::vec(any::<u8>(), 0..80), path in "[!-$&-~]{0,40}") {
        let agent: Vec<u8> = agent.into_iter().filter(|byte| !byte.is_ascii_control()).collect();
        let mut request = format!("GET /{path} HTTP/1.1\r\nHost: a.ex.com\r\nUser-Agent: ").into_bytes();
        request.extend_from_slice(&agent);
        request.extend_from_slice(b"\r\n\r\n");
        let line = line(&request, |_| {});
        prop_assert_eq!(line.matches('\n').count(), 1);
        let (mut open, mut escaped) = (false, false);
        for byte in line.bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if open => escaped = true,
                b'"' => open = !open,
                _ => {}
            }
        }
        prop_assert!(!open, "{line}");
    }
}
