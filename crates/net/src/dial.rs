//! Connections to a server, as every client here opens them.

use std::io;
use std::time::Duration;

use rustix::net::sockopt;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use tokio::net::TcpStream;

/// Silence after which the kernel asks the peer whether it is still there.
const IDLE: Duration = Duration::from_secs(30);
/// Between two of these questions.
const INTERVAL: Duration = Duration::from_secs(10);
/// Questions without an answer after which a connection is broken.
const QUESTIONS: u32 = 3;

/// Opens a connection to `host` (`HOST:PORT`) that sends at once what is written. A peer that vanished
/// without a word, behind a router that forgot the connection too, is found out within a minute.
pub(crate) async fn dial(host: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(host).await?;
    // Without these a connection still works.
    let _ = stream.set_nodelay(true);
    let _ = keep_alive(&stream);
    Ok(stream)
}

fn keep_alive(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_tcp_keepidle(stream, IDLE)?;
    sockopt::set_tcp_keepintvl(stream, INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, QUESTIONS)?;
    sockopt::set_socket_keepalive(stream, true)
}

/// Whom the certificate of `host` (`HOST:PORT`) must name. An address of IPv6 stands in brackets in a
/// URI, and without them in a certificate.
pub(crate) fn server_name(host: &str) -> Result<ServerName<'static>, InvalidDnsNameError> {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    ServerName::try_from(bare.unwrap_or(name).to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[tokio::test]
    async fn the_kernel_asks_after_a_peer_that_is_silent() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let plain = TcpStream::connect(&host).await.unwrap();
        assert!(!sockopt::socket_keepalive(&plain).unwrap());
        let stream = dial(&host).await.unwrap();
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), IDLE);
        assert_eq!(sockopt::tcp_keepintvl(&stream).unwrap(), INTERVAL);
        assert_eq!(sockopt::tcp_keepcnt(&stream).unwrap(), QUESTIONS);
        assert!(stream.nodelay().unwrap());
    }

    #[test]
    fn a_certificate_names_addresses_without_brackets() {
        for (host, name) in [
            ("[::1]:443", "::1"),
            ("127.0.0.1:8889", "127.0.0.1"),
            ("bbs.example:443", "bbs.example"),
        ] {
            assert_eq!(server_name(host).unwrap().to_str(), name);
        }
        server_name("[::1:443").unwrap_err();
    }
}
