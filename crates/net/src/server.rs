//! A server whose every resource has a bound.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

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
    /// Longest wait for a request's head, also between requests of a connection.
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

/// Answers requests.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request. Dropping the returned future (the peer went away)
    /// must leave the service sound.
    fn handle(&self, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send;
}

/// A [`Handler`] without its type: a server is compiled once for all of them, for the
/// price of an allocation a request.
trait Answer: Send + Sync + 'static {
    fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Pin<Box<dyn Future<Output = Response<Body>> + Send + '_>>;
}

impl<H: Handler> Answer for H {
    fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Pin<Box<dyn Future<Output = Response<Body>> + Send + '_>> {
        Box::pin(self.handle(request))
    }
}

/// Asks a server to stop; all clones see it.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// Returns once a stop was asked for, or when nobody can ask any more.
    pub async fn asked(&mut self) {
        // An error means that the asking side is gone, which is a stop as well.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}

/// A way to ask for a stop (send `true`, or drop it), and what servers listen to.
pub fn shutdown() -> (watch::Sender<bool>, Shutdown) {
    let (ask, asked) = watch::channel(false);
    (ask, Shutdown(asked))
}

/// Binds `address` for [`serve`].
///
/// # Errors
/// The error names the address: "listen on 127.0.0.1:8889: address in use".
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    listen(address)
        .map_err(|cause| io::Error::new(cause.kind(), format!("listen on {address}: {cause}")))
}

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
    serve_any(listener, tls, limits, handler, shutdown)
}

/// As [`serve`] without TLS, for peers that speak HTTP/2 from the first byte, as gRPC's do.
pub fn serve_http2<H: Handler>(
    listener: TcpListener,
    limits: Limits,
    handler: Arc<H>,
    shutdown: Shutdown,
) -> BoxFuture<()> {
    let connections = Connections {
        version: Version::Http2,
        tls: None,
        limits,
        handler,
    };
    Box::pin(accept(listener, connections, shutdown))
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

/// Not generic: everything below is compiled here, not by each crate that serves.
fn serve_any(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    limits: Limits,
    handler: Arc<dyn Answer>,
    shutdown: Shutdown,
) -> BoxFuture<()> {
    let connections = Connections {
        version: Version::Http1,
        tls: tls.map(TlsAcceptor::from),
        limits,
        handler,
    };
    Box::pin(accept(listener, connections, shutdown))
}

async fn accept(listener: TcpListener, connections: Connections, mut shutdown: Shutdown) {
    let limits = connections.limits;
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            break;
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.asked() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(_) => {
                // Out of descriptors, or the peer gave up: neither is fatal, and a
                // pause keeps the loop from spinning.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        let (connections, shutdown) = (connections.clone(), shutdown.clone());
        tokio::spawn(async move {
            connections.serve_stream(stream, shutdown).await;
            drop(place);
        });
    }
    drop(listener);
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(limits.drain, places.acquire_many(all)).await;
}

impl Connections {
    async fn serve_stream(self, stream: TcpStream, shutdown: Shutdown) {
        // Without it small answers wait for the peer's delayed acknowledgement.
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => self.serve(stream, shutdown).await,
            Some(tls) => {
                let within = self.limits.handshake_within;
                if let Ok(Ok(stream)) = tokio::time::timeout(within, tls.accept(stream)).await {
                    self.serve(stream, shutdown).await;
                }
            }
        }
    }

    /// A connection's error concerns that peer alone, who sees it closed.
    async fn serve<S>(&self, stream: S, mut shutdown: Shutdown)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (limits, handler) = (self.limits, Arc::clone(&self.handler));
        let service = service_fn(move |request| {
            let handler = Arc::clone(&handler);
            async move { Ok::<_, std::convert::Infallible>(handler.answer(request).await) }
        });
        let io = TokioIo::new(StallGuard::new(stream, limits.write_stall));
        match self.version {
            Version::Http1 => {
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(limits.head_within)
                    // As Go writes them, for peers that compare bytes.
                    .title_case_headers(true)
                    .max_buf_size(limits.head_bytes.max(8192))
                    .serve_connection(io, service);
                let mut connection = std::pin::pin!(connection);
                let _ = tokio::select! {
                    result = connection.as_mut() => result,
                    () = shutdown.asked() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                };
            }
            Version::Http2 => {
                let head_bytes = u32::try_from(limits.head_bytes).unwrap_or(u32::MAX);
                let connection = http2::Builder::new(TokioExecutor::new())
                    .timer(TokioTimer::new())
                    .max_concurrent_streams(STREAMS)
                    .max_header_list_size(head_bytes)
                    // A peer that is gone is found out.
                    .keep_alive_interval(limits.head_within)
                    .serve_connection(io, service);
                let mut connection = std::pin::pin!(connection);
                let _ = tokio::select! {
                    result = connection.as_mut() => result,
                    () = shutdown.asked() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                };
            }
        }
    }
}
