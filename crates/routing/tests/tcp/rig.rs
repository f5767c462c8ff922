//! A router, backends and clients of one test.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use routing::tcp::{CHANGES, Change, TcpMapping, TcpRouter, TcpSettings};
use telemetry::{Level, Logger, Sink};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::free_port::free_port;

/// Longest wait for anything that must happen. Far above what it takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Waits until something is so.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < LONG, "waited too long: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A router with its feed.
pub(crate) struct Rig {
    pub(crate) runtime: Runtime,
    router: Option<TcpRouter>,
    pub(crate) status: SocketAddr,
    pub(crate) changes: mpsc::Sender<Change>,
    pub(crate) log: Sink,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut TcpSettings)) -> Self {
        let mut settings = TcpSettings {
            status: Some(SocketAddr::new(LOCAL, 0)),
            threads: Some(2),
            bind_again: Duration::from_millis(20),
            prune_every: Duration::from_millis(50),
            ..TcpSettings::default()
        };
        change(&mut settings);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (changes, taken) = mpsc::channel(CHANGES);
        let log = Sink::memory();
        let logger = Logger::new("tcp-router", log.clone(), Level::Debug);
        let router = runtime
            .block_on(TcpRouter::start(settings, taken, logger))
            .unwrap();
        Self {
            status: router.status().unwrap(),
            router: Some(router),
            runtime,
            changes,
            log,
        }
    }

    pub(crate) fn send(&self, change: Change) {
        self.changes.blocking_send(change).unwrap();
    }

    /// Routes a free port to backends, and waits until it is open.
    pub(crate) fn route(&self, backends: &[SocketAddr]) -> u16 {
        let port = free_port();
        for backend in backends {
            self.send(Change::Upsert(mapping(port, *backend)));
        }
        self.opened(port);
        port
    }

    /// Waits until a port is open.
    pub(crate) fn opened(&self, port: u16) {
        let line = format!("\"port\":{port}}}");
        until("the port opens", || {
            let log = self.log.kept();
            log.lines()
                .any(|it| it.contains("port-opened") && it.contains(&line))
        });
    }

    /// A number of the metrics' page.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let page = get(self.status, "/metrics").1;
        let line = page
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or("0").parse().unwrap()
    }

    pub(crate) fn router(&mut self) -> TcpRouter {
        self.router.take().unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // It ends its tasks, which needs the runtime.
        let _inside = self.runtime.enter();
        self.router.take();
    }
}

pub(crate) fn mapping(port: u16, backend: SocketAddr) -> TcpMapping {
    TcpMapping {
        port,
        backend_ip: backend.ip().to_string(),
        backend_port: backend.port(),
        ..TcpMapping::default()
    }
}

/// The status and the body of an answer.
pub(crate) fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

/// A client's connection through a port.
pub(crate) fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect((LOCAL, port)).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.set_write_timeout(Some(LONG)).unwrap();
    stream
}

/// Sends bytes and reads as many back.
pub(crate) fn exchange(stream: &mut TcpStream, bytes: &[u8]) -> Vec<u8> {
    stream.write_all(bytes).unwrap();
    let mut back = vec![0; bytes.len()];
    stream.read_exact(&mut back).unwrap();
    back
}

/// The first byte of a connection: who serves it. `None`: it was closed.
pub(crate) fn greeting(stream: &mut TcpStream) -> Option<u8> {
    let mut byte = [0];
    stream.read_exact(&mut byte).ok().map(|()| byte[0])
}

/// A server with a thread for each connection.
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    stopped: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    thread: Option<JoinHandle<()>>,
}

impl Backend {
    /// One that serves each connection by `serve`.
    pub(crate) fn new(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((LOCAL, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let stopped = Arc::new(AtomicBool::new(false));
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let serve = Arc::new(serve);
        let thread = std::thread::spawn({
            let (stopped, streams) = (Arc::clone(&stopped), Arc::clone(&streams));
            move || {
                for stream in listener.incoming() {
                    if stopped.load(Ordering::SeqCst) {
                        return;
                    }
                    let stream = stream.unwrap();
                    let kept = stream.try_clone().unwrap();
                    streams.lock().unwrap().push(stream.try_clone().unwrap());
                    let serve = Arc::clone(&serve);
                    std::thread::spawn(move || {
                        serve(stream);
                        // Clones are kept: dropping one does not close it.
                        let _ = kept.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Self {
            address,
            stopped,
            streams,
            thread: Some(thread),
        }
    }

    /// One that says who it is by a byte, and then sends everything back.
    pub(crate) fn echo(name: u8) -> Self {
        Self::new(move |mut stream| {
            if stream.write_all(&[name]).is_err() {
                return;
            }
            let mut piece = vec![0; 64 * 1024];
            while let Ok(count) = stream.read(&mut piece) {
                if count == 0 || stream.write_all(&piece[..count]).is_err() {
                    break;
                }
            }
            let _ = stream.shutdown(Shutdown::Write);
        })
    }

    /// Ends it: nobody listens any more, and its connections are gone.
    pub(crate) fn kill(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.kill();
    }
}
