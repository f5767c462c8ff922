//! A server whose every resource has a bound.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::BoxFuture;
use crate::body::Body;
use crate::stall::StallGuard;

/// Bounds of a server.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections open at once; further ones wait in the kernel's queue.
    pub connections: usize,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Longest wait for a request's head, also between requests of a connection; over HTTP/2 for
    /// the beginning of a connection.
    pub head_within: Duration,
    /// Longest wait for a TLS handshake.
    pub handshake_within: Duration,
    /// Longest time that a peer may refuse to read what we send.
    pub write_stall: Duration,
    /// Longest wait for requests under way when the server shuts down.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            head_bytes: 64 * 1024,
            head_within: Duration::from_secs(90),
            handshake_within: Duration::from_secs(10),
            write_stall: Duration::from_secs(30),
            drain: Duration::from_secs(5),
        }
    }
}

/// The certificate that a client showed, DER, as an extension of its requests. What it proves is
/// for the verifier of the server's TLS to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerCertificate(pub Arc<[u8]>);

/// Answers requests.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request. Dropping the returned future (the peer went away)
    /// must leave the service sound.
    fn handle(&self, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send;

    /// Learns why a peer could not make a request; for the log. At most once a second for
    /// each kind.
    fn connection_failed(&self, _trouble: &ConnectionFailure) {}
}

/// Why a peer could not make a request.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionFailure {
    /// A connection could not be accepted, for instance for want of descriptors.
    #[error(
        "accept a connection: {cause}; those that wait do so until descriptors are free, or the limit is raised (ulimit -n)"
    )]
    Accept {
        /// What the system said.
        cause: io::Error,
    },
    /// All places are taken.
    #[error(
        "{connections} connections are open, which is all that may be; further ones wait until one is closed"
    )]
    Full {
        /// How many may be open.
        connections: usize,
    },
    /// A TLS handshake failed.
    #[error("TLS handshake with {peer}: {cause}")]
    Handshake {
        /// Who wanted to connect.
        peer: SocketAddr,
        /// What is wrong.
        cause: String,
    },
}

impl ConnectionFailure {
    /// A number for its kind.
    fn kind(&self) -> usize {
        match self {
            Self::Accept { .. } => 0,
            Self::Full { .. } => 1,
            Self::Handshake { .. } => 2,
        }
    }
}

/// Shortest time between two of one kind.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Reports failures to a handler, and not too often.
#[derive(Clone)]
struct FailureReporter {
    handler: Arc<dyn Answer>,
    last: Arc<Mutex<[Option<Instant>; 3]>>,
}

impl FailureReporter {
    fn report(&self, failure: &ConnectionFailure) {
        let now = Instant::now();
        {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            let last = &mut last[failure.kind()];
            if last.is_some_and(|last| now.duration_since(last) < TELL_EVERY) {
                return;
            }
            *last = Some(now);
        }
        self.handler.connection_failed(failure);
    }
}

/// A [`Handler`] without its type: a server is compiled once for all of them, for the
/// price of an allocation a request.
trait Answer: Send + Sync + 'static {
    fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Pin<Box<dyn Future<Output = Response<Body>> + Send + '_>>;

    fn connection_failed(&self, failure: &ConnectionFailure);
}

impl<H: Handler> Answer for H {
    fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Pin<Box<dyn Future<Output = Response<Body>> + Send + '_>> {
        Box::pin(self.handle(request))
    }

    fn connection_failed(&self, failure: &ConnectionFailure) {
        Handler::connection_failed(self, failure);
    }
}

/// Asks a server to stop; all clones see it.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// Returns once a stop was requested, or when nobody can request one any more.
    pub async fn requested(&mut self) {
        // An error means that the asking side is gone, which is a stop as well.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}

/// A way to ask for a stop (send `true`, or drop it), and what servers listen to.
pub fn shutdown() -> (watch::Sender<bool>, Shutdown) {
    let (ask, asked) = watch::channel(false);
    (ask, Shutdown(asked))
}

/// Binds `address` for [`serve`]. One that is in use is tried again for a second.
///
/// # Errors
/// The error names the address: "listen on 127.0.0.1:8889: address in use".
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let deadline = Instant::now() + IN_USE_FOR;
    loop {
        match listen(address) {
            Err(cause) if cause.kind() == io::ErrorKind::AddrInUse && Instant::now() < deadline => {
                tokio::time::sleep(IN_USE_PAUSE).await;
            }
            listener => {
                return listener.map_err(|cause| {
                    io::Error::new(cause.kind(), format!("listen on {address}: {cause}"))
                });
            }
        }
    }
}

/// How long an address may be in use before that is an error, and the time between two tries. The
/// socket of a server that has just stopped is open in each process that it was starting, until that
/// one has become its program: milliseconds, on a busy machine some tens.
const IN_USE_FOR: Duration = Duration::from_secs(1);
const IN_USE_PAUSE: Duration = Duration::from_millis(5);

/// Connections that may wait to be accepted. The usual 128 overflows when a client
/// opens hundreds at once; each one dropped then tries again only after a second.
const BACKLOG: u32 = 4096;

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Else a port could not be taken again for a minute after a restart.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves `handler` on `listener` until `shutdown`, then waits for requests
/// under way, at most [`Limits::drain`].
pub fn serve<H: Handler>(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    limits: Limits,
    handler: Arc<H>,
    shutdown: Shutdown,
) -> BoxFuture<()> {
    serve_as(Version::Http1, listener, tls, limits, handler, shutdown)
}

/// As [`serve`], for peers that speak HTTP/2 from the first byte, as gRPC's do; with TLS they
/// must say so in its handshake (RFC 9113 section 3.2).
pub fn serve_http2<H: Handler>(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    limits: Limits,
    handler: Arc<H>,
    shutdown: Shutdown,
) -> BoxFuture<()> {
    let tls = tls.map(|tls| {
        let mut tls = (*tls).clone();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(tls)
    });
    serve_as(Version::Http2, listener, tls, limits, handler, shutdown)
}

/// What a server's connections speak.
#[derive(Debug, Clone, Copy)]
enum Version {
    Http1,
    Http2,
}

/// How a server's connections are served.
#[derive(Clone)]
struct Connections {
    version: Version,
    tls: Option<TlsAcceptor>,
    limits: Limits,
    handler: Arc<dyn Answer>,
}

/// Requests of one HTTP/2 connection at once.
const STREAMS: u32 = 128;
/// What a peer that speaks HTTP/2 begins with (RFC 9113 section 3.4).
const PREFACE_BYTES: usize = 24;

/// Not generic: everything below is compiled here, not by each crate that serves.
fn serve_as(
    version: Version,
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    limits: Limits,
    handler: Arc<dyn Answer>,
    shutdown: Shutdown,
) -> BoxFuture<()> {
    let connections = Connections {
        version,
        tls: tls.map(TlsAcceptor::from),
        limits,
        handler,
    };
    Box::pin(accept(listener, connections, shutdown))
}

async fn accept(listener: TcpListener, connections: Connections, mut shutdown: Shutdown) {
    let limits = connections.limits;
    let places = Arc::new(Semaphore::new(limits.connections));
    let teller = FailureReporter {
        handler: Arc::clone(&connections.handler),
        last: Arc::default(),
    };
    loop {
        let place = match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => place,
            Err(_) => {
                teller.report(&ConnectionFailure::Full {
                    connections: limits.connections,
                });
                let place = tokio::select! {
                    place = Arc::clone(&places).acquire_owned() => place,
                    () = shutdown.requested() => break,
                };
                let Ok(place) = place else { break };
                place
            }
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.requested() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(cause) => {
                // Out of descriptors, or the peer gave up: neither is fatal, and a
                // pause keeps the loop from spinning.
                if cause.kind() != io::ErrorKind::ConnectionAborted {
                    teller.report(&ConnectionFailure::Accept { cause });
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        let (connections, shutdown) = (connections.clone(), shutdown.clone());
        let teller = teller.clone();
        tokio::spawn(async move {
            connections
                .serve_stream(stream, peer, &teller, shutdown)
                .await;
            drop(place);
        });
    }
    drop(listener);
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(limits.drain, places.acquire_many(all)).await;
}

impl Connections {
    async fn serve_stream(
        self,
        stream: TcpStream,
        peer: SocketAddr,
        teller: &FailureReporter,
        shutdown: Shutdown,
    ) {
        // Without it small answers wait for the peer's delayed acknowledgement.
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => self.serve(stream, None, shutdown).await,
            Some(tls) => {
                let within = self.limits.handshake_within;
                let cause = match tokio::time::timeout(within, tls.accept(stream)).await {
                    Ok(Ok(stream)) => {
                        let (_, session) = stream.get_ref();
                        let chain = session.peer_certificates().and_then(<[_]>::first);
                        let peer = chain.map(|one| PeerCertificate(Arc::from(one.as_ref())));
                        return self.serve(stream, peer, shutdown).await;
                    }
                    Ok(Err(cause)) => cause.to_string(),
                    Err(_) => format!("not finished within {within:?}"),
                };
                teller.report(&ConnectionFailure::Handshake { peer, cause });
            }
        }
    }

    /// A connection's error concerns that peer alone, who sees it closed.
    async fn serve<S>(&self, stream: S, peer: Option<PeerCertificate>, mut shutdown: Shutdown)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (limits, handler) = (self.limits, Arc::clone(&self.handler));
        let service = service_fn(move |mut request: Request<Incoming>| {
            let handler = Arc::clone(&handler);
            if let Some(peer) = &peer {
                request.extensions_mut().insert(peer.clone());
            }
            async move { Ok::<_, std::convert::Infallible>(handler.answer(request).await) }
        });
        let stream = StallGuard::new(stream, limits.write_stall);
        match self.version {
            Version::Http1 => {
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(limits.head_within)
                    // As Go writes them, for peers that compare bytes.
                    .title_case_headers(true)
                    .max_buf_size(limits.head_bytes.max(8192))
                    .serve_connection(TokioIo::new(stream), service);
                let mut connection = std::pin::pin!(connection);
                let _ = tokio::select! {
                    result = connection.as_mut() => result,
                    () = shutdown.requested() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                };
            }
            Version::Http2 => {
                let head_bytes = u32::try_from(limits.head_bytes).unwrap_or(u32::MAX);
                // Peers are looked after below only once they have begun.
                let stream = stream.opened_within(PREFACE_BYTES, limits.head_within);
                let connection = http2::Builder::new(TokioExecutor::new())
                    .timer(TokioTimer::new())
                    .max_concurrent_streams(STREAMS)
                    .max_header_list_size(head_bytes)
                    // A peer that is gone is found out.
                    .keep_alive_interval(limits.head_within)
                    .serve_connection(TokioIo::new(stream), service);
                let mut connection = std::pin::pin!(connection);
                let _ = tokio::select! {
                    result = connection.as_mut() => result,
                    () = shutdown.requested() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                };
            }
        }
    }
}
