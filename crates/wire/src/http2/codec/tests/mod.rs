//! Against the `h2` crate, in memory, and against peers that write their own frames.

mod against_h2;
mod rules;

use super::*;
use crate::http2::{Http2Error, Reason, StreamError};

fn settings() -> Settings {
    Settings {
        streams: 250,
        early_streams: 100,
        stream_window: 256 * 1024,
        connection_window: 1024 * 1024,
        out_bytes: 64 * 1024,
        head_bytes: 64 * 1024,
        early_resets: 20,
        broken_streams: 128,
        extended_connect: false,
    }
}
