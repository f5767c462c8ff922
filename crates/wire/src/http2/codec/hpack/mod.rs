//! Compression of fields (RFC 7541).

mod decoder;
mod encoder;
mod huffman;
mod integer;
mod statics;
mod table;
#[cfg(test)]
mod tests;

pub(super) use decoder::{Decoded, Decoder};
pub use encoder::Block;
pub(super) use encoder::Encoder;

/// What cannot be read at all: nothing behind it can be either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreadable;

/// The table's size that both sides begin with (`SETTINGS_HEADER_TABLE_SIZE`), which this side
/// never asks to change, and never exceeds if it is asked.
const LARGEST_TABLE: usize = 4096;
/// What an entry counts besides its bytes (section 4.1).
const OVERHEAD: usize = 32;
