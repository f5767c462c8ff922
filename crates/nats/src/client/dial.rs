//! From an address to a connection that a server accepted.

use std::sync::Arc;

use bytes::BytesMut;
use rustls::pki_types::ServerName;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::config::{ClientConfig, ServerAddress};
use super::error::DialError;
use crate::Password;
use crate::codec::{Frame, Limits, Scanner, encode};
use crate::stream::Stream;

/// INFO of a large cluster names all its servers.
const MOST_LINE_BYTES: usize = 64 * 1024;

/// A connection that a server accepted.
pub(super) struct Connection {
    pub(super) stream: Box<dyn Stream>,
    /// Bytes that were read and not scanned.
    pub(super) unread: BytesMut,
    pub(super) max_payload: usize,
}

/// What a server says about itself, as far as it matters here.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Info {
    max_payload: Option<usize>,
    tls_required: bool,
}

/// What we say about ourselves.
#[derive(Serialize)]
struct Connect<'a> {
    verbose: bool,
    pedantic: bool,
    tls_required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pass: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth_token: Option<&'a str>,
    name: &'a str,
    lang: &'a str,
    version: &'a str,
    protocol: u8,
    headers: bool,
    no_responders: bool,
}

/// What a client scans with.
pub(super) fn scanner(config: &ClientConfig) -> Scanner {
    Scanner::new(Limits {
        line_bytes: MOST_LINE_BYTES,
        payload_bytes: config.payload_bytes,
    })
}

/// Connects, within the time of the settings.
pub(super) async fn dial(
    config: &ClientConfig,
    server: &ServerAddress,
) -> Result<Connection, DialError> {
    tokio::time::timeout(config.connect_timeout, greet(config, server))
        .await
        .unwrap_or(Err(DialError::Timeout))
}

async fn greet(config: &ClientConfig, server: &ServerAddress) -> Result<Connection, DialError> {
    let mut stream = TcpStream::connect((server.host.as_str(), server.port)).await?;
    stream.set_nodelay(true)?;
    let mut unread = BytesMut::with_capacity(4096);
    let mut scanner = scanner(config);
    let info: Info = expect(
        &mut stream,
        &mut unread,
        &mut scanner,
        |frame| match frame {
            Frame::Info(json) => Some(serde_json::from_slice(json).map_err(DialError::Info)),
            _ => None,
        },
    )
    .await??;
    if info.tls_required && config.tls.is_none() {
        return Err(DialError::TlsRequired);
    }
    let tls = config.tls.as_ref();
    let tls = tls.filter(|_| config.tls_always || info.tls_required);
    let mut stream: Box<dyn Stream> = match tls {
        None => Box::new(stream),
        Some(tls) => {
            let name = ServerName::try_from(server.host.clone())
                .map_err(|_| DialError::Name(server.host.clone()))?;
            // What came before the handshake is not to be trusted.
            unread.clear();
            let connector = TlsConnector::from(Arc::clone(tls));
            Box::new(connector.connect(name, stream).await?)
        }
    };
    stream.write_all(&greeting(config, tls.is_some())).await?;
    stream.flush().await?;
    expect(
        &mut stream,
        &mut unread,
        &mut scanner,
        |frame| match frame {
            Frame::Pong => Some(()),
            _ => None,
        },
    )
    .await?;
    Ok(Connection {
        stream,
        unread,
        max_payload: info.max_payload.unwrap_or(Limits::default().payload_bytes),
    })
}

fn greeting(config: &ClientConfig, tls_required: bool) -> BytesMut {
    let connect = Connect {
        verbose: false,
        pedantic: false,
        tls_required,
        user: config.user.as_ref().map(|(user, _)| user.as_str()),
        pass: config.user.as_ref().map(|(_, password)| password.reveal()),
        auth_token: config.token.as_ref().map(Password::reveal),
        name: &config.name,
        lang: "rust",
        version: env!("CARGO_PKG_VERSION"),
        protocol: 1,
        headers: false,
        no_responders: false,
    };
    let mut out = BytesMut::new();
    // Text and truth values are always JSON.
    let json = serde_json::to_vec(&connect).unwrap_or_default();
    encode::object(&mut out, "CONNECT", &json);
    out.extend_from_slice(encode::PING);
    out
}

/// Reads until the frame that `wanted` knows. INFO may come again, `+OK` and PING too.
async fn expect<T>(
    stream: &mut (impl AsyncRead + Unpin),
    unread: &mut BytesMut,
    scanner: &mut Scanner,
    wanted: impl Fn(&Frame<'_>) -> Option<T>,
) -> Result<T, DialError> {
    loop {
        while let Some(scanned) = scanner.scan(unread)? {
            let found = wanted(&scanned.frame);
            match scanned.frame {
                _ if found.is_some() => {}
                Frame::Info(_) | Frame::Ok | Frame::Ping => {}
                Frame::Err(text) => {
                    return Err(DialError::Refused(
                        String::from_utf8_lossy(text).into_owned(),
                    ));
                }
                Frame::Msg { .. } => return Err(DialError::Greeting("MSG")),
                _ => return Err(DialError::Greeting("another frame")),
            }
            let consumed = scanned.consumed;
            let _ = unread.split_to(consumed);
            if let Some(found) = found {
                return Ok(found);
            }
        }
        if stream.read_buf(unread).await? == 0 {
            return Err(DialError::Closed);
        }
    }
}
