//! What a client wants.

use super::codec::{Connection, Role, Settings};

/// What a client wants of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientSettings {
    /// Most streams open at once; the peer may allow fewer. Default 100.
    pub streams: usize,
    /// Streams opened before the peer has said how many it allows; with 0, requests wait
    /// for its first word, and none is refused for being one too many. Default 100.
    pub early_streams: usize,
    /// Bytes that the peer may send ahead, on one stream and on the connection; at least
    /// 64 KiB - 1 on the connection. Default and most 2^31 - 1: the window is never what limits
    /// a load.
    pub window: u32,
    /// Bytes of requests that wait to be sent. Default 400 KiB.
    pub send_buffer: usize,
    /// Bytes of one answer's fields, as RFC 9113 section 6.5.2 counts them, and of its
    /// trailers. Default 64 KiB.
    pub head_bytes: u32,
    /// Bytes read in one drive before it returns [`Progress::More`](super::Progress::More).
    /// Default 1 MiB.
    pub read_budget: usize,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            streams: 100,
            early_streams: 100,
            window: i32::MAX as u32,
            send_buffer: 400 * 1024,
            head_bytes: 64 * 1024,
            read_budget: 1024 * 1024,
        }
    }
}

/// Streams that may break rules before the connection ends.
const BROKEN_STREAMS: usize = 1024;

impl ClientSettings {
    /// A connection on which nothing was sent yet.
    pub(super) fn connection(&self) -> Connection {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let settings = Settings {
            streams: number(self.streams),
            early_streams: number(self.early_streams),
            stream_window: self.window,
            connection_window: self.window,
            out_bytes: self.send_buffer,
            head_bytes: self.head_bytes,
            early_resets: 0,
            broken_streams: BROKEN_STREAMS,
            extended_connect: false,
        };
        Connection::new(Role::Client, settings)
    }
}
