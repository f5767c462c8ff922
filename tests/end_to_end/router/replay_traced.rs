//! The second recording, with sockets: tracing, small heads, new status endpoints.

use super::rig::{Rig, Wanted, exchange};
use super::site::Site;
use super::transcript::{Differences, SECOND, log_behind, section};

const TRACED: &str = "max_request_header_bytes: 3000\n\
                      tracing: {enable_zipkin: true, enable_w3c: true}\n";

const CUT: [&str; 8] = [
    "longest path /a/b/c (expect inst ab)",
    "wild x.y",
    "wild q",
    "wild apex",
    "CONNECT",
    "rs http url rejected",
    "url-encoded path",
    "/routes",
];

fn compare(differences: &mut Differences, title: &str, found: &str) {
    differences.compare(title, found, section(SECOND, title), CUT.contains(&title));
}

fn start() -> (Rig, Site) {
    let mut rig = Rig::start(&Wanted {
        more: TRACED,
        ..Wanted::default()
    });
    let site = Site::start(&mut rig, true);
    (rig, site)
}

#[test]
fn requests_with_traces() {
    let (rig, site) = start();
    let mut differences = Differences::default();
    let large = format!(
        "GET / HTTP/1.1\nHost: echo.ex.com\nX-Large: {}\n\n",
        "a".repeat(4000)
    );
    let cases = [
        (
            "ws ok",
            "GET / HTTP/1.1\nHost: ws.ex.com\nConnection: keep-alive, Upgrade\nUpgrade: WebSocket\n\n",
        ),
        (
            "ws to dead",
            "GET / HTTP/1.1\nHost: deadws.ex.com\nConnection: upgrade\nUpgrade: websocket\n\n",
        ),
        (
            "longest path /a/b/c (expect inst ab)",
            "GET /a/b/c HTTP/1.1\nHost: echo.ex.com\n\n",
        ),
        ("wild x.y", "GET / HTTP/1.1\nHost: x.y.wild.ex.com\n\n"),
        ("wild q", "GET / HTTP/1.1\nHost: q.wild.ex.com\n\n"),
        ("wild apex", "GET / HTTP/1.1\nHost: wild.ex.com\n\n"),
        ("431", &large),
        ("zipkin/w3c new", "GET / HTTP/1.1\nHost: echo.ex.com\n\n"),
        (
            "zipkin/w3c existing",
            "GET / HTTP/1.1\nHost: echo.ex.com\nX-B3-TraceId: 7f46165474d11ee5836777d85df2cdab\n\
             X-B3-SpanId: 05e3ac9a4f6e3b90\n\
             traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n\
             tracestate: rojo=00f067aa0ba902b7\n\n",
        ),
        (
            "b3 single",
            "GET / HTTP/1.1\nHost: echo.ex.com\n\
             b3: 7f46165474d11ee5836777d85df2cdab-05e3ac9a4f6e3b90-1\n\n",
        ),
        ("HEAD", "HEAD / HTTP/1.1\nHost: echo.ex.com\n\n"),
        ("CONNECT", "CONNECT / HTTP/1.1\nHost: echo.ex.com\n\n"),
        (
            "double slash",
            "GET //foo/bar?a=b&c HTTP/1.1\nHost: echo.ex.com\n\n",
        ),
        (
            "absolute-form",
            "GET http://echo.ex.com/abs HTTP/1.1\nHost: other.ex.com\n\n",
        ),
        ("semicolon", "GET /?a;b HTTP/1.1\nHost: echo.ex.com\n\n"),
        (
            "expect",
            "POST / HTTP/1.1\nHost: echo.ex.com\nContent-Length: 2\nExpect: 100-continue\n\nhi",
        ),
        (
            "chunked req",
            "POST / HTTP/1.1\nHost: echo.ex.com\nTransfer-Encoding: chunked\n\n2\nhi\n0\n\n",
        ),
        (
            "hop-by-hop",
            "GET / HTTP/1.1\nHost: echo.ex.com\nConnection: close, X-Gone\nX-Gone: 1\n\
             Keep-Alive: timeout=5\nTE: trailers, deflate\nProxy-Connection: x\n\
             Proxy-Authorization: x\nTrailer: X-T\n\n",
        ),
        (
            "instance header pass",
            "GET / HTTP/1.1\nHost: echo.ex.com\nX-Cf-Instanceid: mine\nX-Cf-Applicationid: mine\n\n",
        ),
        (
            "route service (unreachable)",
            "GET / HTTP/1.1\nHost: rs.ex.com\n\n",
        ),
        (
            "rs http url rejected",
            "GET / HTTP/1.1\nHost: rsbad.ex.com\n\n",
        ),
        (
            "rs w/ bad sig",
            "GET / HTTP/1.1\nHost: rs.ex.com\nX-CF-Proxy-Signature: !!!\n\
             X-CF-Proxy-Metadata: e30=\n\n",
        ),
        (
            "ws to rs",
            "GET / HTTP/1.1\nHost: rs.ex.com\nConnection: Upgrade\nUpgrade: websocket\n\n",
        ),
        (
            "url-encoded path",
            "GET /a%2Fb/c HTTP/1.1\nHost: echo.ex.com\n\n",
        ),
    ];
    for (title, request) in cases {
        site.echo.forget();
        compare(&mut differences, title, &rig.ask(request));
        if title == "expect" {
            // The recording has it once more as the backend saw it.
            let (_, recorded) = section(SECOND, title).split_once("\n\n").expect("a body");
            differences.compare("backend saw", &site.echo.saw(), recorded, false);
        }
    }
    let dots = rig.ask("GET /a/../b/./c HTTP/1.1\nHost: echo.ex.com\n\n");
    let kept = dots.contains("\r\n\r\nGET /a/../b/./c HTTP/1.1\r\n");
    differences.holds("dot path", kept, &dots);
    let upgrade = rig.log_line("ws.ex.com", "");
    differences.compare("ws ok log", &upgrade, log_behind(SECOND, "ws ok"), false);
    let dead = rig.log_line("deadws.ex.com", "");
    differences.compare(
        "ws to dead log",
        &dead,
        log_behind(SECOND, "ws to dead"),
        false,
    );
    let refused = rig.log_line("echo.ex.com", "\" 431 ");
    let begins = " x_cf_routererror:\"max-request-size-exceeded\" x_my_log:\"-\" x_b3_traceid:\"";
    differences.holds("431 log", refused.contains(begins), &refused);
    let begin = |line: &str| {
        line.split(" vcap_request_id")
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let recorded = begin(log_behind(SECOND, "431"));
    differences.compare("431 log", &begin(&refused), &recorded, false);
    for (title, part) in [
        ("zipkin/w3c new", "\"GET / HTTP/1.1\" 200 0 529 "),
        ("HEAD", "\"HEAD "),
    ] {
        let line = rig.log_line("echo.ex.com", part);
        differences.compare(
            &format!("{title} log"),
            &line,
            log_behind(SECOND, title),
            false,
        );
    }
}

#[test]
fn the_new_status_endpoints() {
    let mut rig = Rig::start(&Wanted {
        more: TRACED,
        ..Wanted::default()
    });
    let mut differences = Differences::default();
    let (status, routes) = (rig.address("status"), rig.address("routes-address"));
    for (title, address, path) in [
        (
            "health /is-process-alive",
            status,
            "/is-process-alive-do-not-use-for-loadbalancing",
        ),
        ("/health", status, "/health"),
        ("/routes on status", status, "/routes"),
        ("/routes noauth", routes, "/routes"),
    ] {
        let answer = exchange(address, &format!("GET {path} HTTP/1.1\nHost: x\n\n"));
        compare(&mut differences, title, &answer);
    }
    let recorded = section(SECOND, "/routes")
        .split_once("\n{")
        .expect("JSON")
        .1;
    let recorded = format!("{{{recorded}");
    // Registered as they were, as far as the recording goes.
    let mut known = recorded.clone();
    known.truncate(
        recorded
            .rfind("},{")
            .map_or(0, |at| at + 1)
            .max(recorded.rfind("}],").expect("a route") + 2),
    );
    known.push('}');
    let known: serde_json::Value = serde_json::from_str(&known).expect("JSON");
    for (uri, endpoints) in known.as_object().expect("an object") {
        for endpoint in endpoints.as_array().expect("endpoints") {
            let address = endpoint["address"].as_str().expect("an address");
            let port: u16 = address
                .rsplit(':')
                .next()
                .and_then(|p| p.parse().ok())
                .expect("a port");
            let mut message = endpoint.clone();
            message["uris"] = serde_json::json!([uri]);
            message["host"] = serde_json::json!("127.0.0.1");
            let key = if endpoint["tls"] == true {
                "tls_port"
            } else {
                "port"
            };
            message[key] = serde_json::json!(port);
            let algorithm = endpoint["load_balancing_algorithm"].clone();
            message["options"] = serde_json::json!({ "loadbalancing": algorithm });
            if algorithm.is_null() {
                message["options"] = serde_json::json!({});
            }
            rig.nats.publish("router.register", &message.to_string());
        }
    }
    rig.settle();
    let found = exchange(
        routes,
        "GET /routes HTTP/1.1\nHost: x\nAuthorization: Basic dTpw\n\n",
    );
    let head =
        |text: &str| super::transcript::masked(text.split("\n\n").next().unwrap_or_default());
    let found_head = head(&found.replace('\r', ""));
    differences.holds(
        "/routes' head",
        found_head == head(section(SECOND, "/routes")),
        &found_head,
    );
    let body = found.replace('\r', "");
    let body = &body[body.find('{').expect("JSON")..];
    let whole = recorded.rfind("}],").expect("a route") + 2;
    differences.holds(
        "/routes",
        body.starts_with(&recorded[..whole]),
        &format!("{body}\n{}", &recorded[..whole]),
    );
    let greeted = greet(&mut rig);
    differences.compare("greet", &greeted, &section_of_greet(), false);
}

fn greet(rig: &mut Rig) -> String {
    let (start, payload) = rig.nats.message();
    assert!(start.starts_with("router.start "), "{start}");
    rig.nats
        .send("SUB inbox.1 9\r\nPUB router.greet inbox.1 0\r\n\r\n");
    let (reply, greeted) = rig.nats.message();
    assert!(reply.starts_with("inbox.1 9 "), "{reply}");
    assert_eq!(payload, greeted);
    greeted
}

fn section_of_greet() -> String {
    let line = SECOND.lines().nth(2).expect("the greeting");
    let start = line.find('{').expect("JSON");
    let end = line.rfind('}').expect("JSON");
    line[start..=end].to_owned()
}
