//! Recorded times from a file.

use std::sync::Arc;

use super::Arrivals;
use super::check::MOST_TIMES;

/// A first time from here on is one of Unix time (March 1973), and all times of the file
/// count from it; a first time below counts from the start of the load.
const UNIX_FROM: u64 = 100_000_000;

/// A file of times that cannot be replayed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TraceError {
    /// A line that is no time.
    #[error("line {line}: expected a time in seconds such as 12.345, found \"{found}\"")]
    Time {
        /// Number of the line, from 1.
        line: usize,
        /// Its text, or the start of it.
        found: String,
    },
    /// A time before the one above it.
    #[error(
        "line {line}: {found} is earlier than the time before it; sort the file by time (sort -g)"
    )]
    Order {
        /// Number of the line, from 1.
        line: usize,
        /// Its text.
        found: String,
    },
    /// Too many times.
    #[error("line {line}: a trace has at most 20,000,000 times; split the file")]
    Many {
        /// Number of the line, from 1.
        line: usize,
    },
    /// No time at all.
    #[error("the file has no times; expected one a line, in seconds such as 12.345")]
    Empty,
    /// Times that [`Arrivals::check`] refuses.
    #[error("{0}")]
    Refused(#[from] super::ArrivalsError),
}

/// Reads recorded times: one a line, in seconds with up to nine digits after the point,
/// ascending. Empty lines and lines that start with `#` say nothing. Times are
/// relative to the start of the load; when the first is 100,000,000 s or more, they are
/// taken for Unix time and count from the first.
///
/// # Errors
/// A line that is no time, times out of order, none or too many; with the line's number.
pub fn parse(text: &str) -> Result<Arrivals, TraceError> {
    let mut times: Vec<u64> = Vec::new();
    let mut origin = None;
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let found = || {
            line.chars()
                .take(40)
                .collect::<String>()
                .escape_debug()
                .to_string()
        };
        let time = nanos(line).ok_or_else(|| TraceError::Time {
            line: number,
            found: found(),
        })?;
        let unix = time >= UNIX_FROM * 1_000_000_000;
        let origin = *origin.get_or_insert(if unix { time } else { 0 });
        let out_of_order = TraceError::Order {
            line: number,
            found: found(),
        };
        match time.checked_sub(origin) {
            Some(at) if times.last().is_none_or(|&before| before <= at) => times.push(at),
            _ => return Err(out_of_order),
        }
        if times.len() > MOST_TIMES {
            return Err(TraceError::Many { line: number });
        }
    }
    if times.is_empty() {
        return Err(TraceError::Empty);
    }
    let arrivals = Arrivals::Trace(Arc::from(times));
    arrivals.check()?;
    Ok(arrivals)
}

/// Seconds with a fraction, as nanoseconds; without floats, because Unix time in
/// nanoseconds has more digits than they do.
fn nanos(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    whole.checked_mul(1_000_000_000)?.checked_add(fraction)
}
