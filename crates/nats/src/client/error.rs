//! What can go wrong for a client.

use crate::codec::ProtocolError;

/// Why a connection could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The list of servers is empty.
    #[error("connect to NATS: no server is named")]
    NoServer,
    /// No server accepted the client.
    #[error("connect to NATS at {server}: {cause} (after {attempts} attempts)")]
    Unreachable {
        /// The last server that was tried.
        server: String,
        /// Rounds over all servers.
        attempts: u32,
        /// Why it did not work there.
        cause: DialError,
    },
}

/// Why one server did not accept the client, or why its connection ended.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The network says no.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The server took too long.
    #[error("no answer in time; expected INFO and PONG")]
    Timeout,
    /// The server closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// The server said why it does not want the client.
    #[error("the server says {0:?}")]
    Refused(String),
    /// The server speaks something else.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The server began with something else than INFO.
    #[error("the server sent {0} where INFO and then PONG were expected")]
    Greeting(&'static str),
    /// What the server says about itself is not JSON.
    #[error("read INFO: {0}")]
    Info(serde_json::Error),
    /// The server wants TLS, and the settings have none.
    #[error("the server requires TLS; name its authority in the settings")]
    TlsRequired,
    /// Its name cannot stand in a certificate.
    #[error("{0:?} is not a name that a certificate can prove")]
    Name(String),
    /// Two PINGs in a row had no answer.
    #[error("two PINGs had no answer")]
    Silent,
    /// The server sends PINGs and does not read the answers.
    #[error("the server reads no answers to its PINGs")]
    Unread,
}

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// Its subject is none.
    #[error("publish: the subject has empty words, spaces or wildcards")]
    Subject,
    /// The server takes none so large.
    #[error("publish: a payload of {found} bytes; the server takes at most {most}")]
    Large {
        /// Its bytes.
        found: usize,
        /// What the server takes.
        most: usize,
    },
    /// Too much waits to be sent already.
    #[error("publish: {0} bytes wait to be sent already; the server is away or slow")]
    Full(usize),
    /// The client was closed.
    #[error("publish: the client is closed")]
    Closed,
}

/// Why a subscription could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeError {
    /// The subject or the queue is none.
    #[error("subscribe: the subject or queue has empty words, spaces, or wildcards inside words")]
    Subject,
    /// Too much waits to be sent already.
    #[error("subscribe: {0} bytes wait to be sent already; the server is away or slow")]
    Full(usize),
}

/// Why nobody knows whether the server has what was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FlushError {
    /// The connection was lost before the server answered.
    #[error("flush: the connection was lost before the server answered")]
    Away,
    /// The client was closed.
    #[error("flush: the client is closed")]
    Closed,
}
