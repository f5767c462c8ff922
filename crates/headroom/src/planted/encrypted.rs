//! TLS with a certificate that the server made itself.

use std::net::TcpStream;
use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Settings; `forgetful`: no session can be resumed.
pub(super) fn settings(forgetful: bool) -> Result<Arc<ServerConfig>> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
    let made = made.context("make a certificate")?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der());
    let key = key
        .map_err(anyhow::Error::msg)
        .context("use the key of the certificate")?;
    let mut settings = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)?;
    if forgetful {
        settings.session_storage = Arc::new(NoServerSessionStorage {});
        settings.send_tls13_tickets = 0;
    }
    Ok(Arc::new(settings))
}

/// Shakes hands when something is read.
pub(super) fn accept(
    settings: &Arc<ServerConfig>,
    stream: TcpStream,
) -> Result<StreamOwned<ServerConnection, TcpStream>, rustls::Error> {
    let connection = ServerConnection::new(Arc::clone(settings))?;
    Ok(StreamOwned::new(connection, stream))
}
