//! The first recording, with sockets: requests sent, answers and log lines compared.

use super::rig::{Client, Rig, Wanted};
use super::site::Site;
use super::transcript::{Differences, FIRST, LOG, log_behind, section};

/// Sections that were cut when they were recorded.
const CUT: [&str; 9] = [
    "good instance",
    "mix 0",
    "mix 1",
    "mix 2",
    "ctx prefix not segment",
    "ctx case",
    "tlsbad again",
    "tlsok again",
    "tlsreq again",
];

pub(super) fn compare(differences: &mut Differences, title: &str, found: &str) {
    differences.compare(title, found, section(FIRST, title), CUT.contains(&title));
}

pub(super) fn compare_log(differences: &mut Differences, title: &str, found: &str) {
    differences.compare(title, found, log_behind(FIRST, title), false);
}

pub(super) fn start(more: &str) -> (Rig, Site) {
    let mut rig = Rig::start(&Wanted {
        deprecated: true,
        more,
        ..Wanted::default()
    });
    let site = Site::start(&mut rig, false);
    (rig, site)
}

#[test]
fn requests_and_refusals() {
    let (rig, site) = start("");
    let mut differences = Differences::default();
    let cases = [
        (
            "GET echo.ex.com (body = request as backend saw it)",
            "GET /p/q?x=1&y=%20 HTTP/1.1\nHost: echo.ex.com:1234\nx-custom-lower: 1\n\
             X-weird-CASE: 2\nX-My-Log: hello\n\n",
        ),
        (
            "XFF/XFP preset",
            "GET / HTTP/1.1\nHost: ECHO.ex.com\nX-Forwarded-For: 9.9.9.9\n\
             X-Forwarded-Proto: https\nX-Request-Start: 5\n\n",
        ),
        (
            "trace key",
            "GET / HTTP/1.1\nHost: echo.ex.com\nX-Vcap-Trace: 22\n\n",
        ),
        (
            "HTTP/1.0 keepalive?",
            "GET / HTTP/1.0\nHost: echo.ex.com\n\n",
        ),
        ("404", "GET / HTTP/1.1\nHost: nope.ex.com\n\n"),
        ("empty host 1.0", "GET / HTTP/1.0\n\n"),
        ("host=remote ip", "GET / HTTP/1.1\nHost: 127.0.0.1\n\n"),
        ("no host 1.1", "GET / HTTP/1.1\n\n"),
        (
            "bad app instance hdr",
            "GET / HTTP/1.1\nHost: echo.ex.com\nX-CF-App-Instance: bad\n\n",
        ),
        (
            "missing instance",
            "GET / HTTP/1.1\nHost: echo.ex.com\n\
             X-CF-App-Instance: 11111111-2222-3333-4444-555555555555:7\n\n",
        ),
        (
            "good instance",
            "GET / HTTP/1.1\nHost: echo.ex.com\n\
             X-CF-App-Instance: 11111111-2222-3333-4444-555555555555:0\n\n",
        ),
        (
            "bad process hdr",
            "GET / HTTP/1.1\nHost: echo.ex.com\nX-CF-Process-Instance: bad\n\n",
        ),
        ("dead backend", "GET / HTTP/1.1\nHost: dead.ex.com\n\n"),
        (
            "backend closes, GET",
            "GET / HTTP/1.1\nHost: close.ex.com\n\n",
        ),
        (
            "backend closes, POST",
            "POST / HTTP/1.1\nHost: close.ex.com\nContent-Length: 2\n\nhi",
        ),
        ("rst", "GET / HTTP/1.1\nHost: rst.ex.com\n\n"),
        (
            "hang>endpoint_timeout 3s",
            "GET / HTTP/1.1\nHost: hang.ex.com\n\n",
        ),
        (
            "sticky 1 (app sets JSESSIONID)",
            "GET /ctx/foo HTTP/1.1\nHost: sticky.ex.com\n\n",
        ),
        (
            "context path miss",
            "GET / HTTP/1.1\nHost: sticky.ex.com\n\n",
        ),
        (
            "ctx prefix not segment",
            "GET /ctxfoo HTTP/1.1\nHost: sticky.ex.com\n\n",
        ),
        ("ctx case", "GET /CTX/x HTTP/1.1\nHost: sticky.ex.com\n\n"),
        (
            "sticky stale",
            "GET / HTTP/1.1\nHost: echo.ex.com\nCookie: JSESSIONID=abc; __VCAP_ID__=gone\n\n",
        ),
        ("hdr rewrite", "GET / HTTP/1.1\nHost: hdr.ex.com\n\n"),
        ("chunked+trailer", "GET / HTTP/1.1\nHost: chunk.ex.com\n\n"),
        ("HTTP/3.0 proto", "GET / HTTP/3.0\nHost: echo.ex.com\n\n"),
        ("garbage", "garbage\n\n"),
        (
            "user agent HC",
            "GET / HTTP/1.1\nHost: x\nUser-Agent: HTTP-Monitor/1.1\n\n",
        ),
    ];
    for (title, request) in cases {
        compare(&mut differences, title, &rig.ask(request));
    }
    // The routes of these were gone when they were recorded.
    let gone = "X.ex.com";
    for (title, request) in [
        ("HEAD", "HEAD / HTTP/1.1\nHost: X.ex.com\n\n"),
        ("semicolon", "GET /?a;b HTTP/1.1\nHost: X.ex.com\n\n"),
        ("double slash", "GET //foo/bar HTTP/1.1\nHost: X.ex.com\n\n"),
        (
            "absolute-form",
            "GET http://X.ex.com/abs HTTP/1.1\nHost: other\n\n",
        ),
        (
            "expect",
            "POST / HTTP/1.1\nHost: X.ex.com\nContent-Length: 2\nExpect: 100-continue\n\n",
        ),
    ] {
        let recorded = section(FIRST, title)
            .replace("echo.ex.com", gone)
            .replace("63", "60");
        differences.compare(title, &rig.ask(request), &recorded, false);
    }
    for (title, host) in [
        (
            "GET echo.ex.com (body = request as backend saw it)",
            "echo.ex.com:1234",
        ),
        ("404", "nope.ex.com"),
        ("empty host 1.0", ""),
        ("dead backend", "dead.ex.com"),
        ("backend closes, GET", "close.ex.com"),
        ("hang>endpoint_timeout 3s", "hang.ex.com"),
    ] {
        compare_log(&mut differences, title, &rig.log_line(host, "\"GET "));
    }
    let chunks = log_behind(FIRST, "ws ok");
    differences.compare(
        "chunks' log",
        &rig.log_line("chunk.ex.com", ""),
        chunks,
        false,
    );
    let seen = site.echo.saw();
    differences.holds(
        "what the backend saw",
        seen.starts_with("GET /p/q?x=1&y=%20 HTTP/1.1\r\nHost: echo.ex.com:1234\r\nX-Cf-App"),
        &seen,
    );
}

#[test]
fn the_log_behind_a_retry_tells_of_it() {
    let (rig, _site) = start("");
    let mut differences = Differences::default();
    let mut failed = 0;
    // One of two requests begins with the endpoint that refuses; it is then left out.
    for index in 0..3 {
        let title = format!("mix {index}");
        compare(&mut differences, &title, &rig.get("mix.ex.com"));
        let line = rig.log_lines("mix.ex.com", "", index + 1).remove(index);
        let first_try = line.contains(" failed_attempts:0 ");
        failed += usize::from(!first_try);
        let recorded = if first_try { "mix 0" } else { "mix 1" };
        compare_log(&mut differences, recorded, &line);
    }
    differences.holds("failed attempts", failed == 1, &failed.to_string());
}

#[test]
fn a_tunnel() {
    let (rig, site) = start("");
    let mut differences = Differences::default();
    let mut client = rig.client();
    let request = "GET / HTTP/1.1\nHost: ws.ex.com\nConnection: Upgrade\nUpgrade: websocket\n\n";
    compare(&mut differences, "ws ok", &client.ask(request));
    client.send("to and fro");
    assert_eq!(client.bytes(10), "to and fro");
    drop(client);
    let recorded = LOG
        .lines()
        .find(|line| line.starts_with("ws.ex.com"))
        .expect("a line");
    differences.compare("log", &rig.log_line("ws.ex.com", ""), recorded, false);
    let seen = site.upgrade.saw();
    let upgrade = "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Cf-Applicationid: ";
    differences.holds("what the backend saw", seen.contains(upgrade), &seen);
}

#[test]
fn connections_stay_behind_errors_and_serve_requests_in_a_row() {
    let (rig, _site) = start("");
    let mut differences = Differences::default();
    let mut client = rig.client();
    for (title, host) in [
        ("404", "nope.ex.com"),
        ("dead backend", "dead.ex.com"),
        ("404", "nope.ex.com"),
    ] {
        let answer = client.ask(&format!("GET / HTTP/1.1\nHost: {host}\n\n"));
        compare(&mut differences, title, &answer);
    }
    client.send(
        &"GET /1 HTTP/1.1\nHost: echo.ex.com\n\nGET /2 HTTP/1.1\nHost: echo.ex.com\n\n"
            .replace('\n', "\r\n"),
    );
    for path in ["/1", "/2"] {
        let answer = client.answer(false);
        differences.holds(
            path,
            answer.contains(&format!("\r\n\r\nGET {path} HTTP/1.1\r\n")),
            &answer,
        );
    }
    for path in ["/1", "/2"] {
        let part = format!("\"GET {path} HTTP/1.1\"");
        let recorded = LOG
            .lines()
            .find(|line| line.contains(&part))
            .expect("a line");
        differences.compare(path, &rig.log_line("echo.ex.com", &part), recorded, false);
    }
    // Length and chunks: the chunks count, the length is dropped.
    let both = "POST / HTTP/1.1\nHost: echo.ex.com\nContent-Length: 5\nTransfer-Encoding: chunked\n\n0\n\n";
    let answer = client.ask(both);
    differences.holds(
        "length and chunks",
        answer.contains("\r\nContent-Length: 315\r\n"),
        &answer,
    );
    let recorded = LOG
        .lines()
        .find(|line| line.contains("\" 200 0 315 \""))
        .expect("a line");
    differences.compare(
        "its log",
        &rig.log_line("echo.ex.com", "\"POST "),
        recorded,
        false,
    );
    // HTTP/2 without TLS is not spoken: its beginning is a request without a host.
    let preface = rig.ask("PRI * HTTP/2.0\n\nSM\n\n");
    let recorded = section(FIRST, "empty host 1.0").replace("HTTP/1.0", "HTTP/1.1");
    let recorded = recorded.replace(
        "Content-Length: 47",
        "Content-Length: 47\nConnection: close",
    );
    differences.compare("preface", &preface, &recorded, false);
    let recorded = LOG
        .lines()
        .find(|line| line.contains("PRI *"))
        .expect("a line");
    differences.compare("its log", &rig.log_line("", "PRI"), recorded, false);
}

#[test]
fn clients_that_go_away_are_logged() {
    let (rig, site) = start("");
    let mut differences = Differences::default();
    let mut client = rig.client();
    client.send("GET / HTTP/1.1\r\nHost: hang.ex.com\r\n\r\n");
    site.hang.saw();
    drop(client);
    let recorded = LOG
        .lines()
        .find(|line| line.contains("\" 499 0 22 \""))
        .expect("a line");
    differences.compare("499", &rig.log_line("hang.ex.com", ""), recorded, false);
}

#[test]
fn a_route_that_is_full() {
    let (rig, site) = start("");
    let mut differences = Differences::default();
    let mut busy: Vec<Client> = Vec::new();
    for _ in 0..2 {
        let mut client = rig.client();
        client.send("GET / HTTP/1.1\r\nHost: hang.ex.com\r\n\r\n");
        site.hang.saw();
        busy.push(client);
    }
    compare(
        &mut differences,
        "overloaded (max_conns 2)",
        &rig.get("hang.ex.com"),
    );
    compare_log(
        &mut differences,
        "overloaded (max_conns 2)",
        &rig.log_line("hang.ex.com", "\" 503 "),
    );
}
