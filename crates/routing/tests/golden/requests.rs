//! The sections of the transcripts whose requests are known.

use routing::http::pipeline::retry::Failure;
use routing::table::PoolSettings;
use wire::http1::BodyLength;
use wire::tls::TlsFailure;

use super::router::{APP, Backend, Router};
use super::transcript::{masked, section};

const FIRST: &str = include_str!("../data/gorouter/transcript-1.txt");
const SECOND: &str = include_str!("../data/gorouter/transcript-2.txt");
const COOKIE: &str = "Set-Cookie: JSESSIONID=abc; Secure; SameSite=Lax; Max-Age=60\r\n";

fn recorded(traced: bool) -> Router {
    let router = Router::recorded(traced);
    let pool = PoolSettings::default();
    for (uri, port) in [
        ("echo.ex.com", 9101),
        ("close.ex.com", 9102),
        ("sticky.ex.com/ctx", 9103),
        ("hdr.ex.com", 9104),
        ("chunk.ex.com", 9105),
        ("ws.ex.com", 9106),
        ("hang.ex.com", 9107),
        ("rst.ex.com", 9108),
        ("dead.ex.com", 9199),
        ("deadws.ex.com", 9198),
    ] {
        router.route(uri, port, &format!("inst-{port}"), &pool);
    }
    router.route("echo.ex.com/a/b", 9103, "ab", &pool);
    let service = PoolSettings {
        route_service_url: "https://127.0.0.1:9443/rs".into(),
        ..PoolSettings::default()
    };
    router.route("rs.ex.com", 9101, "inst-9101", &service);
    router
}

/// Compares what the client got with the section. Sections that were cut when they were
/// recorded are compared as far as they go.
fn check(transcript: &str, title: &str, request: &str, backend: &Backend<'_>) {
    let mut router = recorded(transcript == SECOND);
    let outcome = router.exchange(&request.replace('\n', "\r\n"), backend);
    compare(transcript, title, &outcome.answer);
}

fn compare(transcript: &str, title: &str, answer: &str) {
    let expected = masked(section(transcript, title));
    let found = masked(answer);
    let found = match found.get(..expected.len()) {
        Some(begin) if expected.len() < 120 => begin,
        _ => &found,
    };
    assert_eq!(found, expected, "{title}");
}

#[test]
fn requests_reach_the_backend_as_from_gorouter() {
    let echo = Backend::Echo("");
    check(
        FIRST,
        "GET echo.ex.com (body = request as backend saw it)",
        "GET /p/q?x=1&y=%20 HTTP/1.1\nHost: echo.ex.com:1234\nx-custom-lower: 1\nX-weird-CASE: 2\n\
         X-My-Log: hello\n\n",
        &echo,
    );
    check(
        FIRST,
        "XFF/XFP preset",
        "GET / HTTP/1.1\nHost: ECHO.ex.com\nX-Forwarded-For: 9.9.9.9\nX-Forwarded-Proto: https\n\
         X-Request-Start: 5\n\n",
        &echo,
    );
    check(
        FIRST,
        "trace key",
        "GET / HTTP/1.1\nHost: echo.ex.com\nX-Vcap-Trace: 22\n\n",
        &echo,
    );
    check(
        FIRST,
        "HTTP/1.0 keepalive?",
        "GET / HTTP/1.0\nHost: echo.ex.com\n\n",
        &echo,
    );
    check(
        FIRST,
        "sticky stale",
        "GET / HTTP/1.1\nHost: echo.ex.com\nCookie: JSESSIONID=abc; __VCAP_ID__=gone\n\n",
        &echo,
    );
    check(
        FIRST,
        "sticky 1 (app sets JSESSIONID)",
        "GET /ctx/foo HTTP/1.1\nHost: sticky.ex.com\n\n",
        &Backend::Echo(COOKIE),
    );
    check(
        FIRST,
        "hdr rewrite",
        "GET / HTTP/1.1\nHost: hdr.ex.com\n\n",
        &Backend::Echo("x-lower-case: v\r\nX-Remove-Me: 1\r\nX-CF-Proxy-Signature: s\r\n"),
    );
}

#[test]
fn the_instance_that_a_header_names() {
    let mut router = recorded(false);
    let request =
        format!("GET / HTTP/1.1\r\nHost: echo.ex.com\r\nX-CF-App-Instance: {APP}:0\r\n\r\n");
    let outcome = router.exchange(&request, &Backend::Echo(""));
    let expected = masked(section(FIRST, "good instance"));
    // The recording ends within a line.
    let whole = expected.rfind('\n').unwrap();
    assert_eq!(masked(&outcome.answer)[..whole], expected[..whole]);
    assert!(!outcome.request.contains("App-Instance"));
}

#[test]
fn refusals_are_those_of_gorouter() {
    let nothing = Backend::Echo("");
    let refused = |title, request: &str| check(FIRST, title, request, &nothing);
    refused("404", "GET / HTTP/1.1\nHost: nope.ex.com\n\n");
    refused("empty host 1.0", "GET / HTTP/1.0\n\n");
    refused("host=remote ip", "GET / HTTP/1.1\nHost: 127.0.0.1:80\n\n");
    refused(
        "bad app instance hdr",
        "GET / HTTP/1.1\nHost: echo.ex.com\nX-CF-App-Instance: bad\n\n",
    );
    refused(
        "missing instance",
        &format!("GET / HTTP/1.1\nHost: echo.ex.com\nX-CF-App-Instance: {APP}:7\n\n"),
    );
    refused(
        "bad process hdr",
        "GET / HTTP/1.1\nHost: echo.ex.com\nX-CF-Process-Instance: bad\n\n",
    );
    refused(
        "context path miss",
        "GET / HTTP/1.1\nHost: sticky.ex.com\n\n",
    );
    refused(
        "ctx prefix not segment",
        "GET /ctxfoo HTTP/1.1\nHost: sticky.ex.com\n\n",
    );
    refused(
        "user agent HC",
        "GET / HTTP/1.1\nHost: x\nUser-Agent: HTTP-Monitor/1.1\n\n",
    );
    // These came when the routes were gone already.
    refused("HEAD", "HEAD / HTTP/1.1\nHost: gone.ex.com\n\n");
    let mut router = Router::recorded(false);
    let request = "POST / HTTP/1.1\r\nHost: echo.ex.com\r\nContent-Length: 2\r\n\
                   Expect: 100-continue\r\n\r\n";
    let outcome = router.exchange(request, &nothing);
    compare(FIRST, "expect", &outcome.answer);
    assert!(!outcome.keep_alive);
}

#[test]
fn a_route_whose_endpoints_are_busy_is_refused() {
    let mut router = recorded(false);
    router.admit("GET / HTTP/1.1\r\nHost: hang.ex.com\r\n\r\n");
    let busy = router.exchange.pool().unwrap().endpoints()[0].clone();
    for _ in 0..500 {
        busy.state.begin();
    }
    let outcome = router.exchange(
        "GET / HTTP/1.1\r\nHost: hang.ex.com\r\n\r\n",
        &Backend::Echo(""),
    );
    compare(FIRST, "overloaded (max_conns 2)", &outcome.answer);
}

#[test]
fn failures_are_told_as_gorouter_tells_them() {
    let failed = |title, host: &str, failure| {
        let request = format!("GET / HTTP/1.1\nHost: {host}\n\n");
        check(FIRST, title, &request, &Backend::Fails(failure));
    };
    failed(
        "dead backend",
        "dead.ex.com",
        Failure::Dial("connection refused"),
    );
    failed("backend closes, GET", "close.ex.com", Failure::Closed);
    failed("rst", "rst.ex.com", Failure::Reset);
    failed("hang>endpoint_timeout 3s", "hang.ex.com", Failure::Timeout);
    let name = TlsFailure::OtherName {
        proven: vec!["other-guid".to_owned()],
        expected: "inst-guid-1".to_owned(),
    };
    failed("tlsbad", "echo.ex.com", Failure::Tls(&name));
    let required = TlsFailure::AlertCertificateRequired;
    failed("tlsreq", "echo.ex.com", Failure::Tls(&required));
    check(
        FIRST,
        "backend closes, POST",
        "POST / HTTP/1.1\nHost: close.ex.com\nContent-Length: 2\n\n",
        &Backend::Fails(Failure::Closed),
    );
    check(
        SECOND,
        "tlsunt",
        "GET / HTTP/1.1\nHost: echo.ex.com\n\n",
        &Backend::Fails(Failure::Tls(&TlsFailure::UnknownAuthority)),
    );
    check(
        SECOND,
        "ws to dead",
        "GET / HTTP/1.1\nHost: deadws.ex.com\nConnection: upgrade\nUpgrade: websocket\n\n",
        &Backend::Fails(Failure::Dial("connection refused")),
    );
}

#[test]
fn answers_in_chunks_and_tunnels() {
    let mut router = recorded(false);
    let chunked = Backend::Says {
        status: 200,
        fields: "Transfer-Encoding: chunked\r\nTrailer: X-T\r\n",
        body: BodyLength::Chunked,
    };
    let request = "GET / HTTP/1.1\r\nHost: chunk.ex.com\r\n\r\n";
    let mut outcome = router.exchange(request, &chunked);
    outcome.answer.push_str("3\r\nabc\r\n0\r\n");
    let mut trailers = Vec::new();
    router
        .pipeline
        .write_trailers(b"x-t: tv\r\n", &mut router.exchange, &mut trailers);
    outcome
        .answer
        .push_str(std::str::from_utf8(&trailers).unwrap());
    compare(FIRST, "chunked+trailer", &outcome.answer);
    let tunnel = Backend::Says {
        status: 101,
        fields: "Upgrade: websocket\r\nConnection: Upgrade\r\nX-B: 1\r\n",
        body: BodyLength::Exactly(0),
    };
    check(
        FIRST,
        "ws ok",
        "GET / HTTP/1.1\nHost: ws.ex.com\nConnection: Upgrade\nUpgrade: websocket\n\n",
        &tunnel,
    );
}

#[test]
fn traced_requests_reach_the_backend_as_from_gorouter() {
    let echo = Backend::Echo("");
    let sent = |title, request: &str| check(SECOND, title, request, &echo);
    sent(
        "ws ok",
        "GET / HTTP/1.1\nHost: ws.ex.com\nConnection: keep-alive, Upgrade\nUpgrade: WebSocket\n\n",
    );
    sent("zipkin/w3c new", "GET / HTTP/1.1\nHost: echo.ex.com\n\n");
    sent(
        "zipkin/w3c existing",
        "GET / HTTP/1.1\nHost: echo.ex.com\nX-B3-TraceId: 7f46165474d11ee5836777d85df2cdab\n\
         X-B3-SpanId: 05e3ac9a4f6e3b90\n\
         traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n\
         tracestate: rojo=00f067aa0ba902b7\n\n",
    );
    sent(
        "b3 single",
        "GET / HTTP/1.1\nHost: echo.ex.com\nb3: 7f46165474d11ee5836777d85df2cdab-05e3ac9a4f6e3b90-1\n\n",
    );
    sent("HEAD", "HEAD / HTTP/1.1\nHost: echo.ex.com\n\n");
    sent(
        "double slash",
        "GET //foo/bar?a=b&c HTTP/1.1\nHost: echo.ex.com\n\n",
    );
    sent(
        "absolute-form",
        "GET http://echo.ex.com/abs HTTP/1.1\nHost: other.ex.com\n\n",
    );
    sent("semicolon", "GET /?a;b HTTP/1.1\nHost: echo.ex.com\n\n");
    sent(
        "expect",
        "POST / HTTP/1.1\nHost: echo.ex.com\nContent-Length: 2\nExpect: 100-continue\n\n",
    );
    sent(
        "hop-by-hop",
        "GET / HTTP/1.1\nHost: echo.ex.com\nConnection: close, X-Gone\nX-Gone: 1\n\
         Keep-Alive: timeout=5\nTE: trailers, deflate\nProxy-Connection: x\n\
         Proxy-Authorization: x\nTrailer: X-T\n\n",
    );
    sent(
        "instance header pass",
        "GET / HTTP/1.1\nHost: echo.ex.com\nX-Cf-Instanceid: mine\nX-Cf-Applicationid: mine\n\n",
    );
    sent("wild apex", "GET / HTTP/1.1\nHost: wild.ex.com\n\n");
}

#[test]
fn a_request_in_chunks_stays_in_chunks() {
    let mut router = recorded(true);
    let request = "POST / HTTP/1.1\r\nHost: echo.ex.com\r\nTransfer-Encoding: chunked\r\n\r\n";
    let outcome = router.exchange(request, &Backend::Echo(""));
    let recorded = section(SECOND, "chunked req");
    // The backend sent the body back before the head.
    let head = recorded.split_once("\n\nhi").unwrap().1;
    assert_eq!(masked(&outcome.request), masked(head));
}

#[test]
fn sections_that_were_cut_agree_as_far_as_they_go() {
    let begins = |title: &str, request: &str, backend: &Backend<'_>| {
        let mut router = recorded(true);
        let answer = router.exchange(request, backend).answer;
        let expected = masked(section(SECOND, title));
        let whole = expected.rfind('\n').unwrap();
        assert_eq!(masked(&answer)[..whole], expected[..whole], "{title}");
    };
    let echo = Backend::Echo("");
    begins(
        "CONNECT",
        "CONNECT / HTTP/1.1\r\nHost: echo.ex.com\r\n\r\n",
        &echo,
    );
    begins(
        "url-encoded path",
        "GET /a%2Fb/c HTTP/1.1\r\nHost: echo.ex.com\r\n\r\n",
        &echo,
    );
    begins(
        "longest path /a/b/c (expect inst ab)",
        "GET /a/b/c HTTP/1.1\r\nHost: echo.ex.com\r\n\r\n",
        &Backend::Echo(COOKIE),
    );
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    let mut router = recorded(true);
    let request = format!(
        "GET / HTTP/1.1\r\nHost: echo.ex.com\r\nX-Large: {}\r\n\r\n",
        "a".repeat(4000)
    );
    let outcome = router.exchange(&request, &Backend::Echo(""));
    compare(SECOND, "431", &outcome.answer);
    assert!(!outcome.keep_alive);
    assert!(router.log_line(super::router::NOW).contains(
        r#" 431 0 0 "-" "-" "127.0.0.1:45014" "127.0.0.1:9101" x_forwarded_for:"-" x_forwarded_proto:"-" "#
    ));
}

#[test]
fn route_services_refuse_as_in_gorouter() {
    let echo = Backend::Echo("");
    check(
        SECOND,
        "rs w/ bad sig",
        "GET / HTTP/1.1\nHost: rs.ex.com\nX-CF-Proxy-Signature: bad\nX-CF-Proxy-Metadata: bad\n\n",
        &echo,
    );
    check(
        SECOND,
        "ws to rs",
        "GET / HTTP/1.1\nHost: rs.ex.com\nConnection: Upgrade\nUpgrade: websocket\n\n",
        &echo,
    );
}
