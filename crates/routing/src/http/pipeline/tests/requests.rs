//! Requests towards endpoints.

use proptest::prelude::*;
use wire::http1::RequestBody;

use super::*;
use crate::http::settings::{ForwardedClientCert, TracingSettings};

#[test]
fn what_connection_names_is_removed_unless_it_is_protected() {
    let request = "GET / HTTP/1.1\nHost: a.ex.com\nConnection: x-one, X-Forwarded-Proto\n\
                   X-One: 1\nX-Two: 2\nX-Forwarded-Proto: https\n\n";
    let sent = Fixture::new(|_| {}).sent(request);
    assert_eq!(value(&sent, "X-One"), None);
    assert_eq!(value(&sent, "X-Two"), Some("2"));
    assert_eq!(value(&sent, "X-Forwarded-Proto"), None);
    let protect = |settings: &mut HttpSettings| {
        settings.headers.protected = vec!["x-forwarded-PROTO".to_owned()];
    };
    let sent = Fixture::new(protect).sent(request);
    assert_eq!(value(&sent, "X-One"), None);
    assert_eq!(value(&sent, "X-Forwarded-Proto"), Some("https"));
}

#[test]
fn what_identifies_the_endpoint_cannot_be_removed_or_forged() {
    let sent = Fixture::new(|_| {}).sent(
        "GET / HTTP/1.1\nHost: a.ex.com\nConnection: X-Cf-Applicationid, X-Forwarded-For\n\
         X-CF-ApplicationID: forged\nX-Forwarded-For: forged\nX-Vcap-Request-Id: forged\n\n",
    );
    assert_eq!(value(&sent, "X-Cf-Applicationid"), Some("app-guid"));
    assert_eq!(value(&sent, "X-Cf-Instanceid"), Some("instance-guid"));
    assert_eq!(value(&sent, "X-Cf-Instanceindex"), Some("3"));
    assert_eq!(value(&sent, "X-Forwarded-For"), Some("203.0.113.9"));
    assert!(!sent.contains("forged"));
}

#[test]
fn the_id_is_the_routers_whatever_connection_names() {
    for option in ["X-Vcap-Request-Id", "x-vcap-request-id"] {
        let mut fixture = Fixture::new(|_| {});
        let sent = fixture.sent(&format!(
            "GET / HTTP/1.1\nHost: a.ex.com\nConnection: {option}, X-One\nX-One: 1\n\n"
        ));
        let id = value(&sent, "X-Vcap-Request-Id").map(str::as_bytes);
        assert_eq!(id, Some(fixture.exchange.request_id()));
        assert_eq!(value(&sent, "X-One"), None);
    }
}

#[test]
fn values_of_forwarded_for_become_one() {
    let sent = Fixture::new(|_| {}).sent(
        "GET / HTTP/1.1\nHost: a.ex.com\nX-Forwarded-For: 1.1.1.1\nx-forwarded-for: 2.2.2.2\n\n",
    );
    let expected = Some("1.1.1.1, 2.2.2.2, 203.0.113.9");
    assert_eq!(value(&sent, "X-Forwarded-For"), expected);
}

#[test]
fn an_old_wish_not_to_cache_is_said_in_the_new_way_too() {
    let cache = |fields: &str| {
        let request = format!("GET / HTTP/1.1\nHost: a.ex.com\n{fields}\n");
        let sent = Fixture::new(|_| {}).sent(&request);
        value(&sent, "Cache-Control").map(str::to_owned)
    };
    assert_eq!(cache("Pragma: no-cache\n"), Some("no-cache".to_owned()));
    let both = "Pragma: no-cache\nCache-Control: max-age=0\n";
    assert_eq!(cache(both), Some("max-age=0".to_owned()));
    assert_eq!(cache("Pragma: x\nPragma: no-cache\n"), None);
}

#[test]
fn forwarded_proto_is_believed_or_not() {
    let request = "GET / HTTP/1.1\nHost: a.ex.com\nX-Forwarded-Proto: ftp\n\n";
    let proto = |change: fn(&mut HttpSettings), tls: bool| {
        let mut fixture = Fixture::new(change);
        let tls = tls.then(TlsFacts::default);
        fixture.client = Client::new("203.0.113.9:4711".parse().unwrap(), tls);
        let sent = fixture.sent(request);
        value(&sent, "X-Forwarded-Proto").unwrap().to_owned()
    };
    assert_eq!(proto(|_| {}, true), "ftp");
    assert_eq!(
        proto(|settings| settings.headers.sanitize_proto = true, true),
        "https"
    );
    assert_eq!(
        proto(|settings| settings.headers.sanitize_proto = true, false),
        "http"
    );
    assert_eq!(
        proto(|settings| settings.headers.force_https = true, false),
        "https"
    );
}

#[test]
fn client_certificates_are_forwarded_as_the_settings_say() {
    let request = "GET / HTTP/1.1\nHost: a.ex.com\nX-Forwarded-Client-Cert: claimed\n\n";
    let seen = |mode, certificate: &[u8]| {
        let mut fixture = Fixture::new(|settings| settings.headers.client_cert = mode);
        let tls = Some(TlsFacts {
            certificate: certificate.to_vec(),
            ..TlsFacts::default()
        });
        fixture.client = Client::new("203.0.113.9:4711".parse().unwrap(), tls);
        let sent = fixture.sent(request);
        let sent = value(&sent, "X-Forwarded-Client-Cert").map(str::to_owned);
        let logged = fixture
            .exchange
            .logged_value(&fixture.head, "X-Forwarded-Client-Cert");
        assert_eq!(sent.as_deref().unwrap_or_default().as_bytes(), logged);
        sent
    };
    let claimed = Some("claimed".to_owned());
    assert_eq!(seen(ForwardedClientCert::AlwaysForward, b""), claimed);
    assert_eq!(seen(ForwardedClientCert::Forward, b""), None);
    assert_eq!(seen(ForwardedClientCert::Forward, b"der"), claimed);
    assert_eq!(seen(ForwardedClientCert::SanitizeSet, b""), None);
    let proven = Some("ZGVy".to_owned());
    assert_eq!(seen(ForwardedClientCert::SanitizeSet, b"der"), proven);
}

#[test]
fn bodies_are_framed_for_the_endpoint() {
    let framing = |request: &str| {
        let sent = Fixture::new(|_| {}).sent(request);
        let line = sent.lines().nth(2).unwrap();
        (line.starts_with("Content-") || line.starts_with("Transfer-")).then(|| line.to_owned())
    };
    let some = |line: &str| Some(line.to_owned());
    let head = "HTTP/1.1\nHost: a.ex.com\n";
    assert_eq!(framing(&format!("GET / {head}\n")), None);
    assert_eq!(framing(&format!("GET / {head}Content-Length: 0\n\n")), None);
    assert_eq!(framing(&format!("DELETE / {head}\n")), None);
    for method in ["POST", "PUT", "PATCH"] {
        assert_eq!(
            framing(&format!("{method} / {head}\n")),
            some("Content-Length: 0")
        );
    }
    let seven = format!("POST / {head}Content-Length: 7\n\n");
    assert_eq!(framing(&seven), some("Content-Length: 7"));
    let chunked = format!("POST / {head}Transfer-Encoding: chunked\nTrailer: x-b, x-a\n\n");
    assert_eq!(framing(&chunked), some("Transfer-Encoding: chunked"));
    let sent = Fixture::new(|_| {}).sent(&chunked);
    assert_eq!(value(&sent, "Trailer"), Some("X-B,X-A"));
}

#[test]
fn a_connection_that_is_not_kept_says_so() {
    let mut fixture = Fixture::new(|settings| settings.backends.idle = 0);
    let sent = fixture.sent("GET / HTTP/1.1\nHost: a.ex.com\n\n");
    assert!(sent.ends_with("\r\nConnection: close\r\n\r\n"));
    let upgrade = "Connection: Upgrade\nUpgrade: websocket\n";
    let sent = fixture.sent(&format!("GET / HTTP/1.1\nHost: a.ex.com\n{upgrade}\n"));
    assert_eq!(sent.matches("Connection: ").count(), 1);
}

#[test]
fn a_head_is_measured_as_gorouter_measures_it() {
    let refused = |change: &dyn Fn(&mut HttpSettings), path: &str, fields: &str| {
        let mut fixture = Fixture::new(change);
        let request = format!("GET {path} HTTP/1.1\nHost: a.ex.com\n{fields}\n");
        fixture.admit(&request) == Admission::Answer(Refusal::HeadTooLarge)
    };
    // The line, the host and the id: 16, 16 and 57 bytes.
    for (path, fields, traced, bytes) in [
        ("/", "", false, 89),
        ("/", "X-A: 12\n", false, 98),
        ("/", "X-A:12\nX-Vcap-Request-Id: mine\n", false, 98),
        ("/\u{e4}?b", "", false, 97),
        ("/", "Transfer-Encoding: chunked\nTrailer: x\n", false, 89),
        ("/", "Trailer: x\n", false, 101),
        // What B3 adds: 48, 31 and 55.
        ("/", "", true, 223),
    ] {
        for (limit, expected) in [(bytes, true), (bytes + 1, false)] {
            let change = |settings: &mut HttpSettings| {
                settings.request_head_bytes = limit;
                settings.tracing.zipkin = traced;
            };
            assert_eq!(refused(&change, path, fields), expected, "{path} {fields}");
        }
    }
    for (limit, expected) in [(2, true), (3, false)] {
        let change = |settings: &mut HttpSettings| settings.request_fields = limit;
        assert_eq!(refused(&change, "/", "A: 1\nB: 2\n"), expected);
    }
}

#[test]
fn a_request_that_expects_leave_is_the_last_of_its_connection() {
    let said = |expect: &str, fields: &str, keeps: bool| {
        let mut fixture =
            Fixture::new(|settings| settings.backends.keep_alive_after_continue = keeps);
        let request = format!("GET / HTTP/1.1\nHost: a.ex.com\nExpect: {expect}\n{fields}\n");
        let sent = fixture.sent(&request);
        assert_eq!(value(&sent, "Expect"), Some(expect));
        let said: Vec<_> = sent
            .lines()
            .filter_map(|line| line.strip_prefix("Connection: "))
            .map(str::to_owned)
            .collect();
        assert_eq!(fixture.exchange.closes, said == ["close"]);
        said
    };
    let upgrade = "Connection: Upgrade\nUpgrade: websocket\n";
    // Whether there is a body or not, and whatever else it asks for.
    for fields in ["", "Content-Length: 1\n", upgrade] {
        assert_eq!(said("100-Continue", fields, false), ["close"]);
    }
    assert!(said("100-continue", "", true).is_empty());
    assert_eq!(said("100-continue", upgrade, true), ["Upgrade"]);
    // gorouter looks for these words and no others.
    assert!(said("100-continue, x", "", false).is_empty());
}

#[test]
fn double_slashes_are_written_anew() {
    let target = |target: &str| {
        let sent = Fixture::new(|_| {}).sent(&format!("GET {target} HTTP/1.1\nHost: a.ex.com\n\n"));
        let line = sent.lines().next().unwrap().to_owned();
        line.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(target("//a%20b/c"), "http://a.ex.com//a%20b/c");
    assert_eq!(
        target("//a?z=1&b=%2f&b=c+d&bad;pair"),
        "http://a.ex.com//a?b=%2F&b=c+d&z=1"
    );
    assert_eq!(target("/a//b"), "/a//b");
    assert_eq!(target("/?"), "/?");
    // An endpoint that speaks TLS is told so.
    let mut fixture = Fixture::new(|_| {});
    fixture.admit("GET //a HTTP/1.1\nHost: a.ex.com\n\n");
    let endpoint = Endpoint {
        tls: true,
        ..Endpoint::default()
    };
    let (head, exchange) = (&fixture.head, &mut fixture.exchange);
    let mut out = Vec::new();
    fixture
        .pipeline
        .write_request(head, exchange, Some(&endpoint), &mut out);
    assert!(out.starts_with(b"GET https://a.ex.com//a HTTP/1.1\r\n"));
}

#[test]
fn a_route_is_found_by_its_path_escaped_as_go_escapes_it() {
    let mut fixture = Fixture::new(|_| {});
    fixture.route("b.ex.com/%C3%A4", &PoolSettings::default());
    fixture.route("c.ex.com/x/y%7C", &PoolSettings::default());
    for (host, path, found) in [
        ("b.ex.com", "/ä", true),
        ("b.ex.com", "/%c3%A4/more", true),
        ("b.ex.com", "/a", false),
        // One byte that may not stand there, and the slash is none that was escaped any more.
        ("c.ex.com", "/x%2Fy|", true),
        ("c.ex.com", "/x%2Fy%7C", false),
    ] {
        let request = format!("GET {path} HTTP/1.1\nHost: {host}\n\n");
        let admission = fixture.admit(&request);
        assert_eq!(admission == Admission::Forward, found, "{host}{path}");
    }
    // What is sent is what came.
    let sent = fixture.sent("GET /ä/|x HTTP/1.1\nHost: b.ex.com\n\n");
    assert_eq!(sent.lines().next(), Some("GET /ä/|x HTTP/1.1"));
}

#[test]
fn the_host_of_an_absolute_target_counts() {
    let mut fixture = Fixture::new(|_| {});
    let sent = fixture.sent("GET http://a.ex.com:80?x HTTP/1.1\nHost: b.ex.com\n\n");
    assert_eq!(
        sent.lines().next(),
        Some("GET http://a.ex.com:80?x HTTP/1.1")
    );
    assert_eq!(value(&sent, "Host"), Some("a.ex.com:80"));
}

#[test]
fn sticky_wishes() {
    let wish = |fields: &str, negotiate: bool| {
        let mut fixture = Fixture::new(|settings| settings.sticky.auth_negotiate = negotiate);
        fixture.admit(&format!("GET / HTTP/1.1\nHost: a.ex.com\n{fields}\n"));
        let sticky = fixture.exchange.selection_request(&fixture.head).sticky;
        sticky.map(|sticky| (String::from_utf8(sticky.id.to_vec()).unwrap(), sticky.must))
    };
    let named = |must| Some(("i-1".to_owned(), must));
    assert_eq!(wish("Cookie: a=b; __VCAP_ID__=i-1\n", false), None);
    assert_eq!(
        wish("Cookie: JSESSIONID=x; __VCAP_ID__=i-1\n", false),
        named(false)
    );
    assert_eq!(
        wish("Cookie: JSESSIONID=x\nCookie: __VCAP_ID__=\"i-1\"\n", false),
        named(false)
    );
    assert_eq!(
        wish("Cookie: __Host-JSESSIONID=x; __VCAP_ID__=i-1\n", false),
        named(false)
    );
    let negotiate = "Authorization: Negotiate abc\nCookie: __VCAP_ID__=i-1\n";
    assert_eq!(wish(negotiate, false), None);
    assert_eq!(wish(negotiate, true), named(true));
    // The first one counts.
    let basic = "Authorization: Basic abc\n";
    assert_eq!(wish(&format!("{basic}{negotiate}"), true), None);
    assert_eq!(wish(&format!("{negotiate}{basic}"), true), named(true));
    // One without a value is a cookie, one with bytes that no value has is none.
    let cookie = |cookie: &str| wish(&format!("Cookie: {cookie}; __VCAP_ID__=i-1\n"), false);
    assert_eq!(cookie("JSESSIONID"), named(false));
    assert_eq!(cookie("JSESSIONID=\"a b\""), named(false));
    assert_eq!(cookie("JSESSIONID=\u{e9}"), None);
    assert_eq!(cookie("JSESSIONID=a\"b"), None);
}

#[test]
fn traces_that_are_not_whole_are_replaced() {
    let traced = |fields: &str| {
        let mut fixture = Fixture::new(|settings| {
            settings.tracing = TracingSettings {
                zipkin: true,
                w3c: true,
                w3c_tenant: "t".to_owned(),
            };
        });
        fixture.sent(&format!("GET / HTTP/1.1\nHost: a.ex.com\n{fields}\n"))
    };
    let sent = traced("b3: nonsense\ntraceparent: 00-short-01\ntracestate: x=1\n");
    let trace = value(&sent, "X-B3-Traceid").unwrap();
    let span = value(&sent, "X-B3-Spanid").unwrap();
    assert_eq!(&trace[16..], span);
    assert_eq!(value(&sent, "B3"), Some(&*format!("{trace}-{span}")));
    assert_eq!(
        value(&sent, "Tracestate"),
        Some(&*format!("t@gorouter={span}"))
    );
    let id = value(&sent, "X-Vcap-Request-Id").unwrap().replace('-', "");
    assert_eq!(id, trace);
    // A trace of 64 bits is kept, and gives no id.
    let sent = traced("b3: 05e3ac9a4f6e3b90-05e3ac9a4f6e3b90\n");
    assert_eq!(
        value(&sent, "B3"),
        Some("05e3ac9a4f6e3b90-05e3ac9a4f6e3b90")
    );
    assert_eq!(value(&sent, "X-Vcap-Request-Id").unwrap().len(), 36);
    // Both kinds of headers tell of one trace.
    let parent = value(&sent, "Traceparent").unwrap();
    let expected = "00-000000000000000005e3ac9a4f6e3b90-05e3ac9a4f6e3b90-";
    assert!(parent.starts_with(expected), "{parent}");
    // It is an id if gorouter's library takes it for a UUID: version 1 to 5.
    let id = |trace: &str| {
        let sent = traced(&format!("b3: {trace}-108c880d778f29eb\n"));
        assert!(value(&sent, "B3").unwrap().starts_with(trace));
        value(&sent, "X-Vcap-Request-Id").unwrap().replace('-', "")
    };
    assert_ne!(
        id("6d8780b7d3eed3f5108c880d778f29eb"),
        "6d8780b7d3eed3f5108c880d778f29eb"
    );
    assert_eq!(
        id("6d8780b7d3ee43f5108c880d778f29eb"),
        "6d8780b7d3ee43f5108c880d778f29eb"
    );
    let state = format!(
        "traceparent: 00-{0}{0}-{0}-00\ntracestate: a=1,t@gorouter=old, b=2\n",
        "05e3ac9a4f6e3b90"
    );
    let sent = traced(&state);
    let state = value(&sent, "Tracestate").unwrap();
    assert!(
        state.ends_with(",a=1,b=2") && !state.contains("old"),
        "{state}"
    );
    assert!(value(&sent, "Traceparent").unwrap().ends_with("-00"));
    let sent = traced(
        "X-B3-TraceId: 7f46165474d11ee5836777d85df2cdab\nX-B3-SpanId: 05e3ac9a4f6e3b90\n\
                       X-B3-Sampled: 1\nX-B3-ParentSpanId: 00e3ac9a4f6e3b90\n",
    );
    let single = "7f46165474d11ee5836777d85df2cdab-05e3ac9a4f6e3b90-1-00e3ac9a4f6e3b90";
    assert_eq!(value(&sent, "B3"), Some(single));
}

/// gorouter's library takes the headers of B3 whole, or not at all.
#[test]
fn traces_that_cannot_be_are_sent_on_as_they_came() {
    let traced = |fields: &str| {
        let mut fixture = Fixture::new(|settings| settings.tracing.zipkin = true);
        fixture.sent(&format!("GET / HTTP/1.1\nHost: a.ex.com\n{fields}\n"))
    };
    let trace = "7f46165474d11ee5836777d85df2cdab";
    let span = "05e3ac9a4f6e3b90";
    let with = |more: &str| {
        let fields = format!("X-B3-TraceId: {trace}\nX-B3-SpanId: {span}\n{more}");
        value(&traced(&fields), "B3").map(str::to_owned)
    };
    assert_eq!(
        with("X-B3-Sampled: TRUE\n"),
        Some(format!("{trace}-{span}-1"))
    );
    assert_eq!(with("X-B3-Flags: 1\n"), Some(format!("{trace}-{span}-d")));
    for wrong in [
        "X-B3-Sampled: maybe\n",
        "X-B3-Sampled: maybe\nX-B3-Flags: 1\n",
        "X-B3-ParentSpanId: nonsense\n",
        "X-B3-ParentSpanId: 105e3ac9a4f6e3b90\n",
    ] {
        assert_eq!(with(wrong), None, "{wrong}");
    }
    // A span has 64 bits.
    let long = traced(&format!("X-B3-TraceId: {trace}\nX-B3-SpanId: {trace}\n"));
    assert_eq!(value(&long, "B3"), None);
    assert_eq!(value(&long, "X-B3-Spanid"), Some(trace));
    // Of a single header that is too long or too short nothing is kept.
    for wrong in [
        format!("{trace}-{span}-1-{span}-1"),
        format!("{trace}-{span}-1-5e3ac9"),
    ] {
        let sent = traced(&format!("b3: {wrong}\n"));
        assert!(!value(&sent, "B3").unwrap().starts_with(trace), "{sent}");
    }
}

#[test]
fn a_request_id_is_a_uuid_of_version_4() {
    let sent = Fixture::new(|_| {}).sent("GET / HTTP/1.1\nHost: a.ex.com\n\n");
    let id = value(&sent, "X-Vcap-Request-Id").unwrap().as_bytes();
    assert_eq!(
        (id.len(), id[8], id[13], id[14], id[18], id[23]),
        (36, b'-', b'-', b'4', b'-', b'-')
    );
    assert!(b"89ab".contains(&id[19]));
}

#[test]
fn an_exchange_keeps_nothing_of_the_one_before() {
    let mut fixture = Fixture::new(|_| {});
    let plain = "GET / HTTP/1.1\nHost: a.ex.com\n\n";
    let fresh = fixture.sent(plain);
    fixture.sent(
        "POST / HTTP/1.1\nHost: a.ex.com\nTransfer-Encoding: chunked\nTrailer: X-T\nTE: trailers\n\
         Cookie: JSESSIONID=x; __VCAP_ID__=i\nX-Forwarded-For: 1.1.1.1\nUser-Agent: x\n\
         Connection: Upgrade\nUpgrade: x\nX-Request-Start: 1\n\n",
    );
    fixture.admit("GET / HTTP/1.1\nHost: nope\n\n");
    assert_eq!(fixture.sent(plain), fresh);
}

/// Fields that a client may send, hop-by-hop ones among them.
fn field() -> impl Strategy<Value = (String, String)> {
    let names = prop_oneof![
        Just("Connection".to_owned()),
        Just("keep-alive".to_owned()),
        Just("Proxy-Connection".to_owned()),
        Just("PROXY-AUTHORIZATION".to_owned()),
        Just("TE".to_owned()),
        Just("Trailer".to_owned()),
        Just("Upgrade".to_owned()),
        Just("X-Forwarded-For".to_owned()),
        Just("x-forwarded-proto".to_owned()),
        Just("x-cf-instanceid".to_owned()),
        Just("X-Request-Start".to_owned()),
        Just("Cookie".to_owned()),
        Just("User-Agent".to_owned()),
        "[A-Za-z][A-Za-z0-9-]{0,30}".prop_filter("framing and host are given apart", |name| {
            !["host", "content-length", "transfer-encoding", "expect"]
                .contains(&&*name.to_ascii_lowercase())
        }),
    ];
    (names, "[ -~\t]{0,60}")
}

proptest! {
    /// Whatever a client sends, what goes on is one head, framed as the request was, sorted,
    /// without fields of the hop, and each field of the endpoint is there once.
    #[test]
    fn what_is_sent_is_a_head_of_the_same_body(
        fields in prop::collection::vec(field(), 0..30),
        body in prop_oneof![Just(None), (1_u64..100_000).prop_map(Some)],
        chunked in any::<bool>(),
    ) {
        let mut request = "POST /p HTTP/1.1\r\nHost: a.ex.com\r\n".to_owned();
        for (name, value) in &fields {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        let expected = match (chunked, body) {
            (true, _) => {
                request.push_str("Transfer-Encoding: chunked\r\n");
                RequestBody::Chunked
            }
            (false, Some(length)) => {
                request.push_str(&format!("Content-Length: {length}\r\n"));
                RequestBody::Exactly(length)
            }
            (false, None) => RequestBody::None,
        };
        request.push_str("\r\n");
        let mut fixture = Fixture::new(|_| {});
        let sent = fixture.sent(&request.replace("\r\n", "\n"));

        let mut again = RequestHead::default();
        let length = RequestScanner::new(Limits::default()).head(sent.as_bytes(), &mut again);
        prop_assert_eq!(length, Ok(Some(sent.len())));
        prop_assert_eq!(again.body(), expected);
        let mut parsed = [httparse::EMPTY_HEADER; 100];
        let mut other = httparse::Request::new(&mut parsed);
        prop_assert!(other.parse(sent.as_bytes()).unwrap().is_complete());

        let names: Vec<_> = again.fields().map(|(name, _)| name.to_vec()).collect();
        let upgrades = fixture.exchange.upgrade() != Upgrade::None;
        for hop in ["Keep-Alive", "Proxy-Connection", "Proxy-Authorization"] {
            prop_assert!(!names.contains(&hop.as_bytes().to_vec()), "{hop} in {sent}");
        }
        prop_assert_eq!(names.contains(&b"Upgrade".to_vec()), upgrades);
        prop_assert_eq!(names.contains(&b"Connection".to_vec()), upgrades);
        if let Some(te) = again.field("Te") {
            prop_assert_eq!(te, b"trailers");
        }
        for once in ["Host", "X-Cf-Applicationid", "X-Cf-Instanceid", "X-Forwarded-For"] {
            let count = names.iter().filter(|name| name.as_slice() == once.as_bytes()).count();
            prop_assert_eq!(count, 1, "{} in {}", once, sent);
        }
        let sorted = names.iter().position(|name| {
            !["Host", "User-Agent", "Content-Length", "Transfer-Encoding", "Trailer"]
                .iter().any(|early| early.as_bytes() == name.as_slice())
        }).unwrap();
        prop_assert!(names[sorted..].is_sorted(), "{sent}");
    }

    /// What a registration says cannot end a line.
    #[test]
    fn an_endpoint_injects_nothing(app in "[ -~\r\n\t\u{0}]{0,40}", index in ".{0,20}") {
        let mut fixture = Fixture::new(|_| {});
        fixture.admit("GET / HTTP/1.1\nHost: a.ex.com\n\n");
        let endpoint = Endpoint {
            identity: "x".into(),
            app: (&*app).into(),
            instance_index: (&*index).into(),
            ..Endpoint::default()
        };
        let mut out = Vec::new();
        fixture.pipeline.write_request(&fixture.head, &mut fixture.exchange, Some(&endpoint), &mut out);
        let lines = out.split(|byte| *byte == b'\n').count();
        prop_assert_eq!(lines, 11);
        let breaks = out.iter().filter(|byte| **byte == b'\r').count();
        prop_assert_eq!(breaks, lines - 1);
    }

    /// No target makes the pipeline panic, or anything of a line but its target.
    #[test]
    fn any_target_stays_on_its_line(
        target in "(http://[a-z.]{1,9})?/{1,2}([!-$&-~]|%[0-9a-f]{2}){0,40}",
        method in "(GET|CONNECT|OPTIONS|POST)",
    ) {
        let mut fixture = Fixture::new(|_| {});
        let request = format!("{method} {target} HTTP/1.1\r\nHost: a.ex.com\r\n\r\n");
        let scanned = RequestScanner::new(Limits::default()).head(request.as_bytes(), &mut RequestHead::default());
        prop_assume!(matches!(scanned, Ok(Some(_))));
        if fixture.admit_bytes(request.as_bytes()) == Admission::Forward {
            let mut out = Vec::new();
            fixture.pipeline.write_request(&fixture.head, &mut fixture.exchange, None, &mut out);
            let mut parsed = [httparse::EMPTY_HEADER; 100];
            let mut other = httparse::Request::new(&mut parsed);
            prop_assert!(other.parse(&out).unwrap().is_complete());
            prop_assert_eq!(other.method, Some(&*method));
        }
    }
}
