//! A router as gorouter's file describes it, with NATS and a client's sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::{PATIENCE, Part, text};
use crate::free_port::free_port;
use crate::lab::Lab;

/// The application that all endpoints of the recordings belong to.
pub(super) const APP: &str = "11111111-2222-3333-4444-555555555555";

/// What both recorded routers had.
const RECORDED: &str = r#"
port: 0
index: 3
status: {host: 127.0.0.1, port: 0, user: u, pass: p, routes: {port: 0}DEPRECATED}
nats: {hosts: [{hostname: 127.0.0.1, port: NATS}]}
prometheus: {port: METRICS}
access_log: {file: ACCESS}
start_response_delay_interval: 1s
droplet_stale_threshold: STALE
prune_stale_droplets_interval: PRUNE
endpoint_timeout: 3s
drain_wait: 4s
drain_timeout: 10s
trace_key: "22"
empty_pool_response_code_503: true
disable_keep_alives: false
max_idle_conns_per_host: 100
backends: {max_conns: 2, max_attempts: 3}
route_services_secret: "secret"
healthcheck_user_agent: HTTP-Monitor/1.1
extra_headers_to_log: [X-My-Log]
logging: {extra_access_log_fields: [failed_attempts, backend_time, local_address]}
http_rewrite:
  responses:
    remove_headers: [{name: X-Remove-Me}]
    add_headers_if_not_present: [{name: X-Added, value: v1}]
"#;

/// How a router differs from what both recorded ones had.
#[derive(Default)]
pub(super) struct Wanted<'a> {
    /// The old set of status endpoints.
    pub(super) deprecated: bool,
    /// Metrics, only where they are looked at.
    pub(super) metrics: bool,
    /// How often stale routes are looked for; empty: never within a test.
    pub(super) prune: &'a str,
    /// After how long a route is stale; empty: 6 s.
    pub(super) stale: &'a str,
    /// More lines of YAML.
    pub(super) more: &'a str,
}

pub(super) struct Rig {
    pub(super) nats: Nats,
    pub(super) router: Part,
    at: Value,
    access_log: PathBuf,
    _nats_server: Part,
    _lab: Lab,
}

impl Rig {
    pub(super) fn start(wanted: &Wanted<'_>) -> Self {
        let lab = Lab::new();
        let nats_server = Part::start(&lab, "nats", &["nats", "--listen", "127.0.0.1:0"]);
        let nats_address = text(&nats_server.said("started"), "address");
        let nats = Nats::connect(&nats_address, &["router.start", "vcap.component.announce"]);
        let access_log = lab.path("access.log");
        let metrics = if wanted.metrics { free_port() } else { 0 };
        let deprecated = ", enable_deprecated_varz_healthz_endpoints: true";
        let prune = if wanted.prune.is_empty() {
            "1h"
        } else {
            wanted.prune
        };
        let stale = if wanted.stale.is_empty() {
            "6s"
        } else {
            wanted.stale
        };
        let settings = RECORDED
            .replace(
                "DEPRECATED",
                if wanted.deprecated { deprecated } else { "" },
            )
            .replace("NATS", nats_address.rsplit(':').next().expect("a port"))
            .replace("METRICS", &metrics.to_string())
            .replace("ACCESS", &access_log.display().to_string())
            .replace("PRUNE", prune)
            .replace("STALE", stale);
        let file = lab.write("gorouter.yml", &format!("{settings}{}", wanted.more));
        let file = file.display().to_string();
        let router = Part::start(&lab, "router", &["http", "-c", &file]);
        let at = router.said("started");
        Self {
            nats,
            router,
            at,
            access_log,
            _nats_server: nats_server,
            _lab: lab,
        }
    }

    /// Where one of the router's servers listens, as reached from here.
    pub(super) fn address(&self, name: &str) -> SocketAddr {
        let mut address: SocketAddr = text(&self.at, name).parse().expect("an address");
        if address.ip().is_unspecified() {
            address.set_ip([127, 0, 0, 1].into());
        }
        address
    }

    /// A plain endpoint as in the recordings; `more` are further keys of the message.
    pub(super) fn register(
        &mut self,
        uri: &str,
        port: u16,
        instance: &str,
        more: &[(&str, Value)],
    ) {
        let mut message = json!({
            "uris": [uri], "host": "127.0.0.1", "port": port, "app": APP,
            "private_instance_id": instance, "private_instance_index": "0",
            "tags": {"component": "test"},
        });
        for (key, value) in more {
            message[*key] = value.clone();
        }
        self.nats.publish("router.register", &message.to_string());
    }

    pub(super) fn unregister(&mut self, uri: &str, port: u16) {
        let message = json!({"uris": [uri], "host": "127.0.0.1", "port": port});
        self.nats.publish("router.unregister", &message.to_string());
    }

    /// Waits until the router has taken in what was published: messages come in order.
    pub(super) fn settle(&mut self) {
        let until = Instant::now() + PATIENCE;
        for (subject, there) in [("router.register", true), ("router.unregister", false)] {
            let marker = json!({"uris": ["marker.ex.com"], "host": "127.0.0.1", "port": 1});
            self.nats.publish(subject, &marker.to_string());
            while self.routes().contains("marker.ex.com") != there {
                assert!(Instant::now() < until, "registrations are not taken in");
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }

    /// The body of `/routes`.
    pub(super) fn routes(&self) -> String {
        let address = match self.at["routes-address"].is_string() {
            true => self.address("routes-address"),
            false => self.address("status"),
        };
        let answer = exchange(
            address,
            "GET /routes HTTP/1.1\nHost: x\nAuthorization: Basic dTpw\n\n",
        );
        answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
    }

    pub(super) fn client(&self) -> Client {
        Client::connect(self.address("http"))
    }

    /// One request on a connection of its own; LF stands for CRLF.
    pub(super) fn ask(&self, request: &str) -> String {
        exchange(self.address("http"), request)
    }

    /// A GET of a host's root.
    pub(super) fn get(&self, host: &str) -> String {
        self.ask(&format!("GET / HTTP/1.1\nHost: {host}\n\n"))
    }

    /// The log line of a host that has a part, as soon as it is there.
    pub(super) fn log_line(&self, host: &str, part: &str) -> String {
        self.log_lines(host, part, 1).remove(0)
    }

    /// So many log lines, in the order of the log.
    pub(super) fn log_lines(&self, host: &str, part: &str, lines: usize) -> Vec<String> {
        let until = Instant::now() + PATIENCE;
        let begin = format!("{host} - [");
        loop {
            let log = std::fs::read_to_string(&self.access_log).unwrap_or_default();
            let whole = &log[..log.rfind('\n').map_or(0, |at| at + 1)];
            let found = whole
                .lines()
                .filter(|line| line.starts_with(&begin) && line.contains(part));
            let found: Vec<_> = found.map(str::to_owned).collect();
            if found.len() >= lines {
                return found;
            }
            assert!(
                Instant::now() < until,
                "no line of {host} with {part} in {log}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        self.router.signal(signal);
    }
}

/// One connection of a client.
pub(super) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(super) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Self {
            stream: BufReader::new(stream),
        }
    }

    /// Sends bytes as they are.
    pub(super) fn send(&mut self, bytes: &str) {
        self.stream
            .get_mut()
            .write_all(bytes.as_bytes())
            .expect("sent");
    }

    /// Sends a request whose lines end with LF here, and reads the answer.
    pub(super) fn ask(&mut self, request: &str) -> String {
        self.send(&request.replace('\n', "\r\n"));
        self.answer(request.starts_with("HEAD "))
    }

    /// Reads an answer as its framing says.
    pub(super) fn answer(&mut self, without_body: bool) -> String {
        let mut answer = String::new();
        while !answer.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut answer).expect("a head") == 0 {
                return answer;
            }
        }
        let status = answer.get(9..12).unwrap_or_default().to_owned();
        if without_body || status.starts_with('1') || status == "204" || status == "304" {
            return answer;
        }
        let lower = answer.to_ascii_lowercase();
        if lower.contains("\r\ntransfer-encoding: chunked") {
            self.read_chunks(&mut answer);
        } else if let Some((_, rest)) = lower.split_once("\r\ncontent-length: ") {
            let length: usize = rest
                .split("\r\n")
                .next()
                .and_then(|n| n.parse().ok())
                .expect("a length");
            answer.push_str(&self.bytes(length));
        } else {
            self.stream.read_to_string(&mut answer).expect("a body");
        }
        answer
    }

    fn read_chunks(&mut self, answer: &mut String) {
        loop {
            let start = answer.len();
            self.stream.read_line(answer).expect("a chunk");
            let size = usize::from_str_radix(answer[start..].trim(), 16).expect("a size");
            if size == 0 {
                while self.stream.read_line(answer).expect("a trailer") > 2 {}
                return;
            }
            answer.push_str(&self.bytes(size + 2));
        }
    }

    /// So many bytes.
    pub(super) fn bytes(&mut self, length: usize) -> String {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).expect("bytes");
        String::from_utf8(bytes).expect("text")
    }

    /// Waits for the end of the connection, and returns what came before it.
    pub(super) fn end(&mut self) -> String {
        let mut rest = String::new();
        self.stream.read_to_string(&mut rest).expect("the end");
        rest
    }
}

/// One request and its answer on a connection of its own; LF stands for CRLF.
pub(super) fn exchange(address: SocketAddr, request: &str) -> String {
    Client::connect(address).ask(request)
}

/// A client of NATS that speaks its text protocol.
pub(super) struct Nats {
    stream: BufReader<TcpStream>,
}

impl Nats {
    /// Connects and subscribes; the subscription's id is its place in the list, from 1.
    pub(super) fn connect(address: &str, subjects: &[&str]) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut nats = Self {
            stream: BufReader::new(stream),
        };
        nats.send("CONNECT {\"verbose\":false}\r\n");
        for (index, subject) in subjects.iter().enumerate() {
            nats.send(&format!("SUB {subject} {}\r\n", index + 1));
        }
        nats.send("PING\r\n");
        while nats.line() != "PONG" {}
        nats
    }

    pub(super) fn send(&mut self, text: &str) {
        self.stream
            .get_mut()
            .write_all(text.as_bytes())
            .expect("sent");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a line");
        assert!(!line.is_empty(), "NATS closed the connection");
        line.trim_end().to_owned()
    }

    pub(super) fn publish(&mut self, subject: &str, payload: &str) {
        self.send(&format!("PUB {subject} {}\r\n{payload}\r\n", payload.len()));
    }

    /// The next message: its line without what follows the id, and its payload.
    pub(super) fn message(&mut self) -> (String, String) {
        loop {
            let line = self.line();
            match line.strip_prefix("MSG ") {
                Some(rest) => {
                    let payload = self.line();
                    return (rest.to_owned(), payload);
                }
                None if line == "PING" => self.send("PONG\r\n"),
                None => {}
            }
        }
    }
}
