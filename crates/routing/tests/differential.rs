//! A table of raw requests with what gorouter makes of them, against our engine on real
//! sockets. The table says of each line where that is known from; what differs on purpose
//! stands there too, so that it stays what docs/routing.md says.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use routing::http::counters::Counters;
use routing::http::engine::{self, Engine, EngineConfig};
use routing::http::settings::HttpSettings;
use routing::table::{Endpoint, PoolSettings, RouteKey, Table, TableSettings};

use crate::free_port::free_port;

const CASES: &str = include_str!("data/gorouter/differential.txt");
const APP: &str = "11111111-2222-3333-4444-555555555555";
/// Longest wait for anything; reached only by a test that fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// One line of the table.
#[derive(Default)]
struct Case<'t> {
    title: &'t str,
    request: Vec<u8>,
    from: &'t str,
    status: &'t str,
    ours: &'t str,
    error: Option<&'t str>,
    body: Option<String>,
    sent: Option<&'t str>,
    then: Option<&'t str>,
}

fn cases() -> Vec<Case<'static>> {
    let mut cases: Vec<Case<'static>> = Vec::new();
    for line in CASES.lines().filter(|line| !line.starts_with('#')) {
        if let Some(title) = line.strip_prefix("= ") {
            cases.push(Case {
                title,
                ..Case::default()
            });
            continue;
        }
        let Some((key, value)) = line.split_once(": ") else {
            assert_eq!(line, "", "neither a title nor a key");
            continue;
        };
        let case = cases.last_mut().expect("a title first");
        match key {
            "request" => case.request = unescaped(value),
            "from" => case.from = value,
            "status" => case.status = value,
            "ours" => case.ours = value,
            "error" => case.error = Some(value),
            "body" => case.body = Some(String::from_utf8(unescaped(value)).unwrap()),
            "sent" => case.sent = Some(value),
            "then" => case.then = Some(value),
            _ => panic!("unknown key {key:?} of {:?}", case.title),
        }
    }
    cases
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let [byte, behind @ ..] = rest {
        rest = behind;
        match (byte, behind) {
            (b'\\', [b'r', ..]) => out.push(b'\r'),
            (b'\\', [b'n', ..]) => out.push(b'\n'),
            (b'\\', [b't', ..]) => out.push(b'\t'),
            (b'\\', [b'x', digits @ ..]) => {
                let digits = std::str::from_utf8(&digits[..2]).unwrap();
                out.push(u8::from_str_radix(digits, 16).unwrap());
                rest = &rest[2..];
            }
            _ => {
                out.push(*byte);
                continue;
            }
        }
        rest = &rest[1..];
    }
    out
}

/// A backend that answers with the request line that it saw, or closes at once.
fn backend(answers: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream);
                while let Some((line, fields)) = head(&mut reader) {
                    if !answers {
                        return;
                    }
                    read_body(&mut reader, &fields);
                    let answer = format!(
                        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{line}",
                        line.len()
                    );
                    if reader.get_mut().write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// A first line and the fields behind it, names in lower case; `None`: the connection ended.
fn head(reader: &mut BufReader<TcpStream>) -> Option<(String, Vec<(String, String)>)> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut fields = Vec::new();
    loop {
        let mut field = String::new();
        if reader.read_line(&mut field).ok()? == 0 {
            return None;
        }
        match field.trim_end().split_once(':') {
            None => return Some((line.trim_end().to_owned(), fields)),
            Some((name, value)) => {
                fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
    }
}

fn field<'f>(fields: &'f [(String, String)], name: &str) -> Option<&'f str> {
    let found = fields.iter().find(|(found, _)| found == name);
    found.map(|(_, value)| value.as_str())
}

/// The body that the fields tell of: by its length, in chunks without trailers, or, of an
/// answer that is the last one, up to the end.
fn read_body(reader: &mut BufReader<TcpStream>, fields: &[(String, String)]) -> String {
    let mut body = Vec::new();
    if let Some(length) = field(fields, "content-length") {
        body.resize(length.parse().unwrap(), 0);
        reader.read_exact(&mut body).unwrap();
    } else if field(fields, "transfer-encoding") == Some("chunked") {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).unwrap();
            let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).unwrap();
            body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                break;
            }
        }
    } else if field(fields, "connection") == Some("close") {
        reader.read_to_end(&mut body).unwrap();
    }
    String::from_utf8(body).unwrap()
}

/// A router with the routes of the table, and the address where nobody listens.
fn router() -> (Engine, SocketAddr) {
    let table = Arc::new(Table::new(TableSettings::default()));
    let (echo, closing) = (backend(true), backend(false));
    let dead = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let service = PoolSettings {
        route_service_url: "https://127.0.0.1:9443/rs".into(),
        ..PoolSettings::default()
    };
    let plain = PoolSettings::default();
    for (uri, address, pool) in [
        ("echo.ex.com", echo, &plain),
        ("path.ex.com/ctx", echo, &plain),
        ("*.wild.ex.com", echo, &plain),
        ("close.ex.com", closing, &plain),
        ("dead.ex.com", dead, &plain),
        ("rs.ex.com", echo, &service),
    ] {
        let endpoint = Endpoint {
            identity: address.to_string().into(),
            app: APP.into(),
            instance_id: "instance".into(),
            instance_index: "0".into(),
            ..Endpoint::default()
        };
        table.register(&RouteKey::new(uri).unwrap(), endpoint, pool, 0);
    }
    let mut settings = HttpSettings {
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        threads: Some(1),
        ..HttpSettings::default()
    };
    settings.route_services.secret = "secret".into();
    let engine = engine::start(EngineConfig {
        counters: Arc::new(Counters::new(engine::threads(&settings))),
        settings: Arc::new(settings),
        table,
        healthy: Arc::new(AtomicBool::new(true)),
    });
    (engine.unwrap(), dead)
}

/// What differs between the table and our answer; empty: nothing.
fn differences(case: &Case<'_>, router: SocketAddr, dead: SocketAddr) -> Vec<String> {
    let mut stream = TcpStream::connect(router).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&case.request).unwrap();
    let mut reader = BufReader::new(stream);
    let Some((line, fields)) = head(&mut reader) else {
        return vec!["expected an answer, found the end of the connection".to_owned()];
    };
    let body = read_body(&mut reader, &fields);
    let mut differ = Vec::new();
    let mut compare = |what: &str, found: &str, expected: &str| {
        if found != expected {
            differ.push(format!("{what}: expected {expected:?}, found {found:?}"));
        }
    };
    let status = if case.ours.is_empty() {
        case.status
    } else {
        case.ours
    };
    let whole = status.starts_with("HTTP/");
    let found = if whole {
        line.as_str()
    } else {
        line.split(' ').nth(1).unwrap_or_default()
    };
    compare("status", found, status);
    if let Some(error) = case.error {
        let found = field(&fields, "x-cf-routererror").unwrap_or("-");
        compare("error", found, &error.replace("DEAD", &dead.to_string()));
    }
    if let Some(expected) = &case.body {
        compare("body", &body, expected);
    }
    if let Some(sent) = case.sent {
        compare("sent", &body, sent);
    }
    if let Some(then) = case.then {
        let again = b"GET /again HTTP/1.1\r\nHost: echo.ex.com\r\n\r\n";
        let sent = reader.get_mut().write_all(again).is_ok();
        let answered = sent && head(&mut reader).is_some();
        compare("then", if answered { "open" } else { "closed" }, then);
    }
    differ
}

#[test]
fn requests_are_answered_as_gorouter_answers_them() {
    let (engine, dead) = router();
    let cases = cases();
    assert!(cases.len() > 30, "{} cases", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        assert!(
            !case.request.is_empty() && !case.from.is_empty() && !case.status.is_empty(),
            "{:?} needs a request, a source and a status",
            case.title
        );
        assert_ne!(case.ours, case.status, "{:?} does not differ", case.title);
        for one in differences(case, engine.address().unwrap(), dead) {
            wrong.push(format!("{} ({}): {one}", case.title, case.from));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    engine.stop();
}
