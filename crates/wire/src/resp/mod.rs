//! The protocol of Redis and Valkey, RESP2 and RESP3: a scanner that finds where each reply ends.
//!
//! Types and limits are those of <https://redis.io/docs/latest/develop/reference/protocol-spec/>.
//! Streamed strings and aggregates (`$?`, `*?`), which no server sends, are refused.

mod code;
mod error;
mod scanner;

pub use code::ErrorCode;
pub use error::RespError;
pub use scanner::{Reply, ReplyScan, ReplyScanner, ReplySink};

/// Longest line: a simple string, an error, a number.
pub const MOST_LINE: u64 = 64 << 10;
/// Longest bulk string: what a server takes and sends unless told otherwise
/// (`proto-max-bulk-len`).
pub const MOST_BULK: u64 = 512 << 20;
/// Most elements of one aggregate; a map of so many has half as many keys.
pub const MOST_ELEMENTS: u64 = 1 << 32;
/// Deepest nesting of aggregates.
pub const DEEPEST: usize = 32;

#[cfg(test)]
mod tests;
