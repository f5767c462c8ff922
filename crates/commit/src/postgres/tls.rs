//! TLS to PostgreSQL with rustls, when the URL asks for it (`sslmode=require`); then the
//! server's certificate is checked, name included.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::StoreError;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as RustlsStream;
use wire::tls::{TlsClient, TlsOptions};

/// Makes connections secure; the server's name is always checked.
#[derive(Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Trusts the certificates in a file, or without one the authorities of the public web.
    pub(super) fn new(authority: Option<&Path>) -> Result<Self, StoreError> {
        let refuse = |cause: String| StoreError::Database {
            doing: "set up TLS to",
            cause,
        };
        let authorities = authority.map(std::fs::read_to_string).transpose();
        let authorities = authorities.map_err(|error| {
            let path = authority.unwrap_or(Path::new("")).display();
            refuse(format!("read {path}: {error}"))
        })?;
        let options = TlsOptions {
            authorities: authorities.as_deref().unwrap_or_default(),
            ..TlsOptions::default()
        };
        // The name of each connection comes later.
        let client = TlsClient::new("localhost", &options);
        let client = client.map_err(|error| refuse(error.to_string()))?;
        Ok(Self(client.config()))
    }
}

impl<S> MakeTlsConnect<S> for Tls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type TlsConnect = Connect;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Connect, Self::Error> {
        // A Unix socket has no name, and PostgreSQL speaks no TLS over it.
        let host = if host.is_empty() { "localhost" } else { host };
        let name = ServerName::try_from(host.to_owned())?;
        Ok(Connect(TlsConnector::from(Arc::clone(&self.0)), name))
    }
}

/// One connection about to be made secure.
pub(super) struct Connect(TlsConnector, ServerName<'static>);

impl<S> TlsConnect<S> for Connect
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { self.0.connect(self.1, stream).await.map(Stream) })
    }
}

/// A secure connection.
pub(super) struct Stream<S = TcpStream>(RustlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
