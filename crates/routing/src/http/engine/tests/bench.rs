//! What the tests stand on: a router, backends that follow a script, clients.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::super::{Engine, EngineConfig, start};
use crate::http::counters::{Counters, Totals};
use crate::http::settings::HttpSettings;
use crate::table::{Endpoint, PoolSettings, RouteKey, Table, TableSettings};

/// Longest wait of a test for anything; reached only by one that fails.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Whether the test is alone in its process. Where it is not, it runs again in one of its own, so that
/// what it measures of the process is not other tests' doing; that it failed there, it fails here.
pub(super) fn alone() -> bool {
    const ALONE: &str = "HEADROOM_TEST_ALONE";
    let own = std::thread::current();
    // Tests that run one after another run in the main thread.
    let name = own.name().filter(|name| *name != "main");
    let (Some(name), None) = (name, std::env::var_os(ALONE)) else {
        return true;
    };
    let mut again = Command::new(std::env::current_exe().unwrap());
    let again = again.args(["--exact", name]).env(ALONE, "1").output();
    let again = again.unwrap();
    let told = String::from_utf8_lossy(&again.stdout);
    assert!(
        again.status.success() && told.contains("1 passed"),
        "{told}"
    );
    false
}

/// A router with the route `app.test`.
pub(super) struct Bench {
    pub(super) engine: Engine,
    pub(super) table: Arc<Table>,
    counters: Arc<Counters>,
    /// What health checks are told.
    pub(super) healthy: Arc<AtomicBool>,
}

impl Bench {
    pub(super) fn new(backends: &[SocketAddr]) -> Self {
        Self::with(backends, |_| {})
    }

    pub(super) fn with(backends: &[SocketAddr], change: impl FnOnce(&mut HttpSettings)) -> Self {
        let mut settings = HttpSettings {
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            threads: Some(1),
            ..HttpSettings::default()
        };
        change(&mut settings);
        let table = Arc::new(Table::new(TableSettings::default()));
        for backend in backends {
            register(&table, *backend);
        }
        let counters = Arc::new(Counters::new(super::super::threads(&settings)));
        let healthy = Arc::new(AtomicBool::new(true));
        let engine = start(EngineConfig {
            settings: Arc::new(settings),
            table: Arc::clone(&table),
            counters: Arc::clone(&counters),
            healthy: Arc::clone(&healthy),
        })
        .unwrap();
        Self {
            engine,
            table,
            counters,
            healthy,
        }
    }

    pub(super) fn client(&self) -> Client {
        let stream = TcpStream::connect(self.engine.address().unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client {
            reader: BufReader::new(stream),
        }
    }

    pub(super) fn totals(&self) -> Totals {
        self.counters.totals()
    }

    /// Waits until the counters satisfy a condition.
    pub(super) fn until(&self, what: &str, condition: impl Fn(&Totals) -> bool) {
        let began = std::time::Instant::now();
        while !condition(&self.totals()) {
            assert!(began.elapsed() < PATIENCE, "{what}: {:?}", self.totals());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

pub(super) fn register(table: &Table, backend: SocketAddr) {
    let endpoint = Endpoint {
        identity: backend.to_string().into(),
        ..Endpoint::default()
    };
    let key = RouteKey::new("app.test").unwrap();
    table.register(&key, endpoint, &PoolSettings::default(), 0);
}

/// A client that speaks bytes.
pub(super) struct Client {
    reader: BufReader<TcpStream>,
}

/// An answer as a client sees it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) status: u16,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Whether the body came in chunks.
    pub(super) chunked: bool,
}

impl Seen {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

impl Client {
    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    /// As [`Client::send`], where the router may have hung up.
    pub(super) fn try_send(&mut self, bytes: &[u8]) {
        let _ = self.reader.get_mut().write_all(bytes);
    }

    pub(super) fn socket(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    pub(super) fn get(&mut self, path: &str) -> Seen {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: app.test\r\n\r\n").as_bytes());
        self.answer().unwrap()
    }

    /// The next answer; an error says how the connection ended instead.
    pub(super) fn answer(&mut self) -> Result<Seen, String> {
        read_message(&mut self.reader, false)
    }

    /// An answer to HEAD.
    pub(super) fn answer_without_body(&mut self) -> Result<Seen, String> {
        read_message(&mut self.reader, true)
    }

    /// Everything up to the end of the connection.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = self.reader.read_to_end(&mut rest);
        rest
    }

    pub(super) fn read_exact(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.reader.read_exact(&mut bytes).unwrap();
        bytes
    }
}

/// Reads a head and, unless it is bodiless, the body.
pub(super) fn read_message(
    reader: &mut impl std::io::BufRead,
    bodiless: bool,
) -> Result<Seen, String> {
    let mut seen = Seen::default();
    let first = line(reader)?;
    seen.status = first
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or(0);
    loop {
        let line = line(reader)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or("no colon")?;
        seen.fields.push((name.to_owned(), value.trim().to_owned()));
    }
    let length = seen
        .field("content-length")
        .map(|length| length.parse::<usize>().unwrap());
    seen.chunked = seen.field("transfer-encoding").is_some();
    if bodiless || (100..200).contains(&seen.status) || matches!(seen.status, 204 | 304) {
        return Ok(seen);
    }
    let failed = |error: std::io::Error| error.to_string();
    if seen.chunked {
        loop {
            let size = line(reader)?;
            let size = usize::from_str_radix(&size, 16).map_err(|_| format!("size {size:?}"))?;
            let mut part = vec![0; size];
            reader.read_exact(&mut part).map_err(failed)?;
            seen.body.extend_from_slice(&part);
            loop {
                let end = line(reader)?;
                if end.is_empty() {
                    break;
                }
                let (name, value) = end.split_once(':').ok_or("no trailer")?;
                let name = format!("trailer {name}");
                seen.fields.push((name, value.trim().to_owned()));
            }
            if size == 0 {
                return Ok(seen);
            }
        }
    }
    match length {
        Some(length) => {
            seen.body = vec![0; length];
            reader.read_exact(&mut seen.body).map_err(failed)?;
        }
        None => {
            reader.read_to_end(&mut seen.body).map_err(failed)?;
        }
    }
    Ok(seen)
}

fn line(reader: &mut impl std::io::BufRead) -> Result<String, String> {
    let mut line = String::new();
    match reader.read_line(&mut line) {
        Ok(0) => Err("end".to_owned()),
        Ok(_) => Ok(line.trim_end_matches(['\r', '\n']).to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A backend that follows a script.
pub(super) struct Backend {
    pub(super) address: SocketAddr,
    connections: Arc<AtomicU64>,
}

impl Backend {
    /// Handles each connection by `script`, which is told its number, from 0.
    pub(super) fn new(script: impl Fn(Connection, u64) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&connections);
        let script = Arc::new(script);
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let number = count.fetch_add(1, Ordering::SeqCst);
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let script = Arc::clone(&script);
                std::thread::spawn(move || {
                    let reader = BufReader::new(stream);
                    script(Connection { reader }, number);
                });
            }
        });
        Self {
            address,
            connections,
        }
    }

    /// Answers each request by what `answer` makes of it.
    pub(super) fn answering(answer: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::new(move |mut connection, _| {
            while let Some(asked) = connection.request() {
                connection.send(&answer(&asked));
            }
        })
    }

    /// Connections so far.
    pub(super) fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }
}

/// An address where nobody listens, and where nobody can for as long as the test's process lives:
/// the client's end of a connection has it.
pub(super) fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let address = stream.local_addr().unwrap();
    std::mem::forget((listener, stream));
    address
}

/// An answer with a body of a known length.
pub(super) fn ok(body: &[u8]) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let answer = std::mem::take(&mut answer);
    [answer.as_bytes(), body].concat()
}

/// The backend's end of a connection.
pub(super) struct Connection {
    reader: BufReader<TcpStream>,
}

/// A request as a backend sees it.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) line: String,
    pub(super) message: Seen,
}

impl Asked {
    pub(super) fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }
}

impl Connection {
    /// The next request, with its body; `None` at the end.
    pub(super) fn request(&mut self) -> Option<Asked> {
        let line = self.peek_line()?;
        let bodiless = !self.head_has_body();
        let message = read_message(&mut self.reader, bodiless).ok()?;
        Some(Asked { line, message })
    }

    /// The next request's head only.
    pub(super) fn head(&mut self) -> Option<Asked> {
        let line = self.peek_line()?;
        let message = read_message(&mut self.reader, true).ok()?;
        Some(Asked { line, message })
    }

    fn peek_line(&mut self) -> Option<String> {
        let bytes = self.reader.fill_buf().ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\r')?;
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    fn head_has_body(&mut self) -> bool {
        let bytes = self.reader.fill_buf().unwrap_or_default();
        let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
        let head = text.split("\r\n\r\n").next().unwrap_or_default();
        head.contains("\r\ncontent-length: ") || head.contains("\r\ntransfer-encoding: ")
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        let _ = self.reader.get_mut().write_all(bytes);
    }

    pub(super) fn read_exact(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.reader.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Reads so many bytes, if they come.
    pub(super) fn try_read_exact(&mut self, count: usize) -> bool {
        self.reader.read_exact(&mut vec![0; count]).is_ok()
    }

    /// Waits until the router ends its side.
    pub(super) fn wait_for_end(&mut self) {
        let _ = self.reader.read_to_end(&mut Vec::new());
    }

    pub(super) fn socket(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    /// Closes with a reset.
    pub(super) fn reset(self) {
        let linger = Some(Duration::ZERO);
        rustix::net::sockopt::set_socket_linger(self.socket(), linger).unwrap();
    }
}
