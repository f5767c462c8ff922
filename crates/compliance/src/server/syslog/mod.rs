//! Reports of older agents over syslog: datagrams and streams, without a signature and without an answer. Lines are put
//! together to runs, which are kept as those that are uploaded.

mod counts;
mod heard;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::StatusCode;
use net::Shutdown;
use rustix::net::sockopt;
use telemetry::{Fields, Logger};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

pub(super) use counts::SyslogCounts;

use super::metrics::{Count, Metrics};
use super::service::Service;
use crate::reports::moment::Moment;
use crate::reports::runlog::Limits;
use crate::reports::syslog::frames::{Frame, Frames, MESSAGE_BYTES};
use crate::reports::syslog::parse;
use crate::reports::syslog::runs::{Bounds, NotTaken, OverRun, Runs};

/// Streams that are read at once.
const STREAMS: usize = 1_024;
/// Longest silence of a stream.
const STREAM_SILENCE: Duration = Duration::from_secs(600);
/// How often runs that are over are looked for, and how many are kept at once.
const LOOK: (Duration, usize) = (Duration::from_millis(250), 64);
/// Bytes that are read of a stream at once.
const READ: usize = 16 << 10;
/// How often a run is given to a store that cannot keep it, and the wait between.
const TRIES: (u32, Duration) = (30, Duration::from_secs(1));
/// Ports that are tried when any will do: it must be free for both.
const PORTS: u32 = 32;

/// Sockets that are bound to one address.
#[derive(Debug)]
pub(super) struct Sockets {
    udp: UdpSocket,
    tcp: TcpListener,
    pub(super) address: SocketAddr,
    buffer: Buffer,
}

/// Bytes of datagrams that may wait in the kernel.
#[derive(Debug, Clone, Copy)]
struct Buffer {
    asked: usize,
    given: usize,
}

impl Buffer {
    /// Requests so many bytes for a socket from the kernel.
    fn request(udp: &UdpSocket, asked: usize) -> io::Result<Self> {
        // Beyond `net.core.rmem_max` only with leave (CAP_NET_ADMIN).
        if sockopt::set_socket_recv_buffer_size_force(udp, asked).is_err() {
            sockopt::set_socket_recv_buffer_size(udp, asked)?;
        }
        // It tells twice what it took, as half is for its own bookkeeping (socket(7)).
        let given = sockopt::socket_recv_buffer_size(udp)? / 2;
        Ok(Self { asked, given })
    }
}

impl Sockets {
    /// Binds both to the same port; so many bytes of datagrams may wait, if the kernel grants it.
    pub(super) async fn bind(address: SocketAddr, buffer: usize) -> io::Result<Self> {
        let mut tries = if address.port() == 0 { PORTS } else { 1 };
        loop {
            let tcp = net::bind(address).await?;
            let address = tcp.local_addr()?;
            tries -= 1;
            match UdpSocket::bind(address).await {
                Ok(udp) => {
                    let buffer = Buffer::request(&udp, buffer)?;
                    return Ok(Self {
                        udp,
                        tcp,
                        address,
                        buffer,
                    });
                }
                Err(_) if tries > 0 => {}
                Err(error) => {
                    let why = format!("listen on {address} for datagrams: {error}");
                    return Err(io::Error::new(error.kind(), why));
                }
            }
        }
    }

    /// The kernel's number of the socket of datagrams, by which it counts what it dropped.
    fn inode(&self) -> Option<u64> {
        let link = fs::read_link(format!("/proc/self/fd/{}", self.udp.as_raw_fd())).ok()?;
        let text = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        text.parse().ok()
    }
}

/// What listens.
pub(super) struct Syslog {
    service: Arc<Service>,
    metrics: Arc<Metrics>,
    runs: Mutex<Runs>,
    begin: Instant,
    logger: Logger,
}

/// Its tasks.
pub(super) struct Listening {
    syslog: Arc<Syslog>,
    tasks: Vec<JoinHandle<()>>,
}

impl Listening {
    /// Listens until `shutdown`.
    pub(super) fn start(
        sockets: Sockets,
        service: Arc<Service>,
        metrics: Arc<Metrics>,
        logger: Logger,
        shutdown: &Shutdown,
    ) -> Self {
        let Buffer { asked, given } = sockets.buffer;
        metrics.syslog.listens(sockets.inode(), given);
        let address = sockets.address.to_string();
        let fields = Fields::new().and("address", &address);
        logger.info(
            "listening",
            fields.and("receive-buffer-bytes", given.to_string()),
        );
        if given < asked {
            let help = "raise net.core.rmem_max, or give the server CAP_NET_ADMIN";
            let fields = Fields::new().and("asked-bytes", asked.to_string());
            logger.info(
                "receive-buffer.smaller-than-asked",
                fields
                    .and("given-bytes", given.to_string())
                    .and("help", help),
            );
        }
        let syslog = Arc::new(Syslog {
            service,
            metrics,
            runs: Mutex::new(Runs::new(Bounds::default())),
            begin: Instant::now(),
            logger,
        });
        let datagrams = Arc::clone(&syslog).datagrams(sockets.udp, shutdown.clone());
        let streams = Arc::clone(&syslog).streams(sockets.tcp, shutdown.clone());
        let keeping = Arc::clone(&syslog).keep_what_is_over(shutdown.clone());
        let tasks = vec![
            tokio::spawn(net::boxed(datagrams)),
            tokio::spawn(net::boxed(streams)),
            tokio::spawn(net::boxed(keeping)),
        ];
        Self { syslog, tasks }
    }

    /// Waits for the tasks, which were asked to stop, and keeps what there is of runs.
    pub(super) async fn stop(self) {
        for task in self.tasks {
            let _ = task.await;
        }
        loop {
            let rest = self.syslog.runs().all(LOOK.1);
            if rest.is_empty() {
                return;
            }
            self.syslog.keep(rest, 1).await;
        }
    }

    /// Ends at once.
    pub(super) fn abort(&self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Syslog {
    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Takes one message, and counts what became of it.
    fn message(&self, bytes: &[u8]) {
        self.outcome(bytes).add(1);
    }

    fn outcome(&self, bytes: &[u8]) -> &Count {
        let counts = &self.metrics.syslog;
        let text = String::from_utf8_lossy(bytes);
        let received = Moment::utc(jiff::Timestamp::now());
        let Ok(found) = parse(&text, received, &Limits::default()) else {
            return &counts.invalid;
        };
        if !self.service.intake.accepts_syslog(found.report.node_id) {
            return &counts.refused;
        }
        match self.runs().take(&found.report, self.now()) {
            Ok(()) => &counts.taken,
            Err(NotTaken::Broken) => &counts.invalid,
            Err(NotTaken::NoRoom) => &counts.dropped,
        }
    }

    async fn datagrams(self: Arc<Self>, socket: UdpSocket, mut shutdown: Shutdown) {
        let mut buffer = vec![0; MESSAGE_BYTES];
        loop {
            tokio::select! {
                () = shutdown.requested() => return,
                received = socket.recv(&mut buffer) => match received {
                    Ok(length) => self.message(buffer.get(..length).unwrap_or_default()),
                    // Nothing is wrong for long with a socket that is bound.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                },
            }
        }
    }

    async fn streams(self: Arc<Self>, listener: TcpListener, mut shutdown: Shutdown) {
        let places = Arc::new(Semaphore::new(STREAMS));
        let mut streams = JoinSet::new();
        loop {
            tokio::select! {
                () = shutdown.requested() => return,
                Some(_) = streams.join_next() => {}
                accepted = listener.accept() => {
                    let Ok((stream, _)) = accepted else {
                        // Descriptors may be short for a while.
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    };
                    let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                        self.metrics.syslog.closed.add(1);
                        continue;
                    };
                    let syslog = Arc::clone(&self);
                    streams.spawn(async move {
                        syslog.stream(stream).await;
                        drop(place);
                    });
                }
            }
        }
    }

    async fn stream(&self, mut stream: TcpStream) {
        let (mut frames, mut buffer) = (Frames::default(), vec![0; READ]);
        loop {
            let read = tokio::time::timeout(STREAM_SILENCE, stream.read(&mut buffer)).await;
            match read {
                Ok(Ok(0)) => break,
                Ok(Ok(length)) => frames.push(buffer.get(..length).unwrap_or_default()),
                // It is silent, or broke off.
                Ok(Err(_)) | Err(_) => return,
            }
            loop {
                match frames.next_frame() {
                    Ok(None) => break,
                    Ok(Some(Frame::Message(message))) => self.message(&message),
                    Ok(Some(Frame::LongLine)) => self.metrics.syslog.invalid.add(1),
                    Err(error) => {
                        self.metrics.syslog.closed.add(1);
                        self.logger
                            .info("stream-closed", Fields::new().and("why", error.to_string()));
                        return;
                    }
                }
            }
        }
        if let Some(rest) = frames.rest() {
            self.message(&rest);
        }
    }

    async fn keep_what_is_over(self: Arc<Self>, mut shutdown: Shutdown) {
        loop {
            let over = self.runs().over(self.now(), LOOK.1);
            let more = over.len() == LOOK.1;
            self.keep(over, TRIES.0).await;
            if more {
                continue;
            }
            tokio::select! {
                () = shutdown.requested() => return,
                () = tokio::time::sleep(LOOK.0) => {}
            }
        }
    }

    /// Keeps runs, all at once so that they share a sync of the store.
    async fn keep(self: &Arc<Self>, runs: Vec<OverRun>, tries: u32) {
        let mut keeping = JoinSet::new();
        for run in runs {
            let syslog = Arc::clone(self);
            keeping.spawn(async move { syslog.keep_one(run, tries).await });
        }
        while keeping.join_next().await.is_some() {}
    }

    async fn keep_one(&self, run: OverRun, tries: u32) {
        for left in (0..tries).rev() {
            let Err(refused) = self.service.intake.unsigned_run(&run).await else {
                return;
            };
            // Nobody would send it again.
            if refused.status == StatusCode::SERVICE_UNAVAILABLE && left > 0 {
                tokio::time::sleep(TRIES.1).await;
                continue;
            }
            self.metrics.syslog.lost.add(run.reports);
            let fields = Fields::new().and("node", &run.node);
            self.logger.error("run-refused", &refused.why, fields);
            return;
        }
    }
}
