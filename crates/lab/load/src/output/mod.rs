//! Results in forms that other programs read.

mod csv;
mod hdr;

pub use self::csv::csv;
pub use hdr::{hdr_head, hdr_lines};

use crate::summary::Summary;

/// The summary as JSON, with a line feed at the end. `docs/load.md` has the schema.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn json(summary: &Summary) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(summary).map(|json| json + "\n")
}

#[cfg(test)]
mod tests;
