//! One exchange over HTTP/2, over a connection of its own.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::client::{ClientError, no_tls};
use crate::dial::{dial, server_name};

/// A whole answer over HTTP/2.
#[derive(Debug, Clone)]
pub struct Http2Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// The fields behind its body, if there are any.
    pub trailers: Option<HeaderMap>,
}

/// The task that works a connection; it ends with the exchange, also when that is given up.
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends `request` to `host` (`HOST:PORT`) over a new connection, with TLS or by prior
/// knowledge (RFC 9113 section 3.3), and reads an answer whose body has at most `answer_bytes`.
/// The URI of the request is absolute. The caller bounds how long it may take.
///
/// # Errors
/// See [`ClientError`]. An answer of any status is not an error.
pub async fn http2_exchange(
    host: &str,
    tls: Option<&Arc<ClientConfig>>,
    request: Request<Full<Bytes>>,
    answer_bytes: usize,
) -> Result<Http2Answer, ClientError> {
    let refused = |cause: String| ClientError::Connect {
        host: host.to_owned(),
        cause,
        lasts: false,
    };
    let broken = |cause: String| ClientError::Broken {
        host: host.to_owned(),
        cause,
    };
    let stream = dial(host).await;
    let stream = stream.map_err(|error| refused(error.to_string()))?;
    let (mut sender, _connection) = match tls {
        None => handshake(stream).await,
        Some(tls) => {
            let mut tls = ClientConfig::clone(tls);
            tls.alpn_protocols = vec![b"h2".to_vec()];
            let name = server_name(host).map_err(|error| refused(error.to_string()))?;
            let connector = TlsConnector::from(Arc::new(tls));
            let stream = connector.connect(name, stream).await;
            handshake(stream.map_err(|error| no_tls(host, &error))?).await
        }
    }
    .map_err(|error| refused(error.to_string()))?;
    let response = sender.send_request(request).await;
    let response = response.map_err(|error| broken(error.to_string()))?;
    let (head, mut rest) = response.into_parts();
    let (mut body, mut trailers) = (BytesMut::new(), None);
    while let Some(frame) = rest.frame().await {
        let frame = frame.map_err(|error| broken(error.to_string()))?;
        match frame.into_data() {
            Ok(data) if body.len() + data.len() > answer_bytes => {
                let cause = format!("the body is longer than {answer_bytes} bytes");
                return Err(broken(cause));
            }
            Ok(data) => body.extend_from_slice(&data),
            Err(frame) => trailers = frame.into_trailers().ok().or(trailers),
        }
    }
    Ok(Http2Answer {
        status: head.status,
        headers: head.headers,
        body: body.freeze(),
        trailers,
    })
}

type Sender = http2::SendRequest<Full<Bytes>>;

async fn handshake<S>(stream: S) -> Result<(Sender, Connection), hyper::Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    let connection = tokio::spawn(crate::boxed(async move {
        // What ends it reaches the exchange as well.
        let _ = connection.await;
    }));
    Ok((sender, Connection(connection)))
}
