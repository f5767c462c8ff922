//! Which servers, as whom, and how patiently.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::Password;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// A name or an address; one of IPv6 without brackets.
    pub host: String,
    /// The port; 4222 when a text names none.
    pub port: u16,
}

/// Why a text is no address of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It names no host, or a port that is none.
    #[error("{0:?} is no address of a NATS server; expected host[:port] or nats://host[:port]")]
    Form(String),
    /// It carries a user. The text is not shown: it may hold a password.
    #[error(
        "the address of a NATS server holds an '@'; name user and password in the settings, \
         where no list of processes shows them"
    )]
    User,
}

impl FromStr for ServerAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.contains('@') {
            return Err(AddressError::User);
        }
        let form = || AddressError::Form(text.to_owned());
        let rest = ["nats://", "tls://"]
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme))
            .unwrap_or(text);
        let (host, port) = if let Some(rest) = rest.strip_prefix('[') {
            let (host, port) = rest.split_once(']').ok_or_else(form)?;
            let port = match port {
                "" => None,
                _ => Some(port.strip_prefix(':').ok_or_else(form)?),
            };
            (host, port)
        } else {
            match rest.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            }
        };
        let port = port.map_or(Ok(4222), str::parse).map_err(|_| form())?;
        if host.is_empty() || port == 0 || host.contains(['/', ' ']) {
            return Err(form());
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// How a client connects.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Tried in turn.
    pub servers: Vec<ServerAddress>,
    /// Who this is; `None`: nobody in particular.
    pub user: Option<(String, Password)>,
    /// A token that proves who this is, in place of a user.
    pub token: Option<Password>,
    /// TLS; `None`: only when no server asks for it.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// With `tls`: whether it is used with servers, too, that do not ask for it.
    pub tls_always: bool,
    /// The client's name in the server's list of connections.
    pub name: String,
    /// Rounds over all servers before the first connection counts as failed.
    pub attempts: u32,
    /// Pause between those rounds, and the first pause of a reconnect.
    pub pause: Duration,
    /// Longest pause of a reconnect; pauses double from `pause` on.
    pub longest_pause: Duration,
    /// Longest time until a server accepted us.
    pub connect_timeout: Duration,
    /// Silence is broken by a PING this often; two without an answer end the connection.
    pub ping_interval: Duration,
    /// Bytes that may wait to be sent. Above it [`publish`](super::Client::publish) fails.
    pub outgoing_bytes: usize,
    /// Largest payload that is taken from a server.
    pub payload_bytes: usize,
}

impl Default for ClientConfig {
    /// The times are those of gorouter.
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            user: None,
            token: None,
            tls: None,
            tls_always: true,
            name: "headroom".to_owned(),
            attempts: 3,
            pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(2),
            connect_timeout: Duration::from_secs(5),
            ping_interval: Duration::from_secs(20),
            outgoing_bytes: 8 * 1024 * 1024,
            payload_bytes: 1024 * 1024,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (text, expected) in [
            ("localhost", "localhost:4222"),
            ("nats://10.0.0.1:4224", "10.0.0.1:4224"),
            ("tls://[::1]:5", "[::1]:5"),
            ("[::1]", "[::1]:4222"),
        ] {
            let address: ServerAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), expected);
        }
        for bad in [
            "", "nats://", ":4222", "a:b", "a:0", "a:70000", "[::1", "[::1]4", "a/b",
        ] {
            assert!(
                matches!(bad.parse::<ServerAddress>(), Err(AddressError::Form(_))),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_password_in_an_address_is_not_repeated() {
        let error = "nats://u:secret@h".parse::<ServerAddress>().unwrap_err();
        assert!(!error.to_string().contains("secret"));
    }
}
