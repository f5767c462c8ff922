//! A connection, plain or within TLS.

use tokio::io::{AsyncRead, AsyncWrite};

/// Either kind of connection.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}
