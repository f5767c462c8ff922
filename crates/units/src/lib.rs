//! Quantities with units: how they are read, and how they are shown to people.
//!
//! | Quantity | Written as |
//! |---|---|
//! | length of time | `250ms`, `1.5s`, `1m30s`, `0`; units `ns us ms s m h` |
//! | size | `512B`, `64KiB`, `1.5GiB`, `10MB`, `0`; units `B KiB MiB GiB TiB kB MB GB TB` |
//! | rate | `500/s`, `30/m`, `1/h`, or `500`, which is so many a second |
//! | share | `10%`, `99.9%`, or a number from 0 to 1 |
//! | count | `4000`, `4_000` |
//! | processors | `0-1,3` |

pub mod columns;
mod cpus;
mod error;
mod nearest;
mod number;
mod show;
mod word;

use std::ops::Range;
use std::time::Duration;

pub use cpus::{parse_cpus, write_cpus};
pub use error::UnitError;
use number::Number;
pub use show::{Shown, bytes, cores, count, counted, grouped, rate, seconds, share};
pub use show::{show_bytes, show_cores, show_count, show_rate, show_seconds, show_share};

pub use nearest::nearest;
pub use word::Word;

/// Units of time, each with its length in nanoseconds.
const TIMES: [(&str, u128); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Units of size, each with its length in bytes.
const SIZES: [(&str, u128); 9] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

/// Units that people write for the ones we know.
const ALIASES: [(&str, &str); 15] = [
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("min", "m"),
    ("mins", "m"),
    ("minute", "m"),
    ("minutes", "m"),
    ("hour", "h"),
    ("hours", "h"),
    ("K", "KiB"),
    ("k", "KiB"),
    ("M", "MiB"),
    ("G", "GiB"),
    ("T", "TiB"),
];

/// Reads a length of time: one or more numbers with units, the largest unit first.
///
/// # Errors
/// Text of another form, an unknown unit, or more than 584 years.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let wrong = || {
        let message = format!("expected a length of time such as 30s, found \"{text}\"");
        UnitError::new(0..text.len(), message)
    };
    let mut total: u128 = 0;
    let mut at = 0;
    let mut finest = u128::MAX;
    let mut whole = true;
    while at < text.len() {
        let (number, used) = Number::leading(&text[at..]).ok_or_else(wrong)?;
        let unit_at = at + used;
        let unit_len = unit_length(&text[unit_at..]);
        let range = unit_at..unit_at + unit_len;
        if unit_len == 0 {
            let message = "a length of time needs a unit: ns, us, ms, s, m or h";
            let mut error = UnitError::new(0..text.len(), message);
            error.suggestion = (range.end == text.len()).then(|| format!("{text}s"));
            return Err(error);
        }
        let unit = unit(&TIMES, text, range.clone(), "time")?;
        if unit >= finest || !whole {
            let message = "parts of a length of time go from large to small, as in 1m30s";
            return Err(UnitError::new(at..range.end, message));
        }
        finest = unit;
        whole = number.is_whole();
        total = total.saturating_add(number.times(unit));
        at = range.end;
    }
    match u64::try_from(total) {
        Ok(nanos) if !text.is_empty() => Ok(Duration::from_nanos(nanos)),
        Ok(_) => Err(wrong()),
        Err(_) => Err(UnitError::new(
            0..text.len(),
            "this is longer than 584 years",
        )),
    }
}

/// Reads a size in bytes.
///
/// # Errors
/// Text of another form, an unknown unit, a part of a byte, or 2^64 bytes and more.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    if text == "0" {
        return Ok(0);
    }
    let all = 0..text.len();
    let Some((number, used)) = Number::leading(text) else {
        let message = format!("expected a size such as 512MiB, found \"{text}\"");
        return Err(UnitError::new(all, message));
    };
    if used == text.len() {
        let message = "a size needs a unit: B, KiB, MiB, GiB, TiB, kB, MB, GB or TB";
        return Err(UnitError::new(all, message));
    }
    let unit = unit(&SIZES, text, used..text.len(), "size")?;
    let Some(bytes) = number.exactly_times(unit) else {
        return Err(UnitError::new(all, "a size is a whole number of bytes"));
    };
    u64::try_from(bytes).map_err(|_| UnitError::new(all, "this is 2^64 bytes or more"))
}

/// Reads a rate, as so many a second; so is a bare number, as hey and oha have it.
///
/// # Errors
/// Text of another form or an unknown unit.
pub fn parse_rate(text: &str) -> Result<f64, UnitError> {
    let wrong = || {
        let message = format!("expected a rate such as 500/s, found \"{text}\"");
        UnitError::new(0..text.len(), message)
    };
    let (number, used) = Number::leading(text).ok_or_else(wrong)?;
    if used == text.len() {
        return Ok(number.as_f64());
    }
    match text[used..].strip_prefix('/').ok_or_else(wrong)? {
        "s" => Ok(number.as_f64()),
        "m" => Ok(number.as_f64() / 60.0),
        "h" => Ok(number.as_f64() / 3600.0),
        unit => {
            let message = format!("unknown unit of a rate \"/{unit}\"; units are /s, /m and /h");
            let mut error = UnitError::new(used..text.len(), message);
            let mut meant = ALIASES.iter().filter(|(alias, _)| *alias == unit);
            let meant = meant.find(|(_, meant)| TIMES.iter().any(|(name, _)| name == meant));
            error.suggestion = meant.map(|(_, meant)| format!("/{meant}"));
            Err(error)
        }
    }
}

/// Reads a share, as a number from 0 to 1.
///
/// # Errors
/// Text of another form, or a share above 100 %.
pub fn parse_share(text: &str) -> Result<f64, UnitError> {
    let share = parse_ratio(text)?;
    if share > 1.0 {
        let message = format!("a share is at most 100% or 1, found {text}");
        let mut error = UnitError::new(0..text.len(), message);
        error.suggestion = (!text.ends_with('%')).then(|| format!("{text}%"));
        return Err(error);
    }
    Ok(share)
}

/// Reads a share of something else, which may be larger than it: `250%` is 2.5.
///
/// # Errors
/// Text of another form.
pub fn parse_ratio(text: &str) -> Result<f64, UnitError> {
    let wrong = || {
        let message = format!("expected a share such as 10% or 0.1, found \"{text}\"");
        UnitError::new(0..text.len(), message)
    };
    let (number, used) = Number::leading(text).ok_or_else(wrong)?;
    match &text[used..] {
        "%" => Ok(number.percent().as_f64()),
        "" => Ok(number.as_f64()),
        _ => Err(wrong()),
    }
}

/// Reads a whole number.
///
/// # Errors
/// Text of another form, or 2^64 and more.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    let number =
        Number::leading(text).filter(|&(number, used)| used == text.len() && number.is_whole());
    number
        .and_then(|(number, _)| u64::try_from(number.times(1)).ok())
        .ok_or_else(|| {
            let message = format!("expected a whole number such as 4000, found \"{text}\"");
            UnitError::new(0..text.len(), message)
        })
}

/// Reads a number that is not negative, without a unit.
///
/// # Errors
/// Text of another form.
pub fn parse_number(text: &str) -> Result<f64, UnitError> {
    match Number::leading(text) {
        Some((number, used)) if used == text.len() => Ok(number.as_f64()),
        _ => {
            let message = format!("expected a number such as 0.5, found \"{text}\"");
            Err(UnitError::new(0..text.len(), message))
        }
    }
}

/// Checks a length of time that may vary: `uniform 10ms 90ms` and the like.
///
/// # Errors
/// Text of another form, or bounds in the wrong order.
pub fn check_distribution(text: &str) -> Result<(), UnitError> {
    const FORMS: &str = "forms: 50ms, uniform 10ms 90ms, exponential 50ms, \
                         lognormal 900ms p99=4s, 5s +- 20%";
    let words: Vec<(usize, &str)> = words(text).collect();
    let all = 0..text.len();
    let time =
        |&(at, word): &(usize, &str)| parse_duration(word).map_err(|error| error.shifted(at));
    let wrong = |message: &str| Err(UnitError::new(0..text.len(), format!("{message}; {FORMS}")));
    match words.as_slice() {
        [fixed] if fixed.1.starts_with(|c: char| c.is_ascii_digit()) => time(fixed).map(drop),
        [(_, "uniform"), from, to] => match time(from)? <= time(to)? {
            true => Ok(()),
            false => Err(UnitError::new(
                all,
                "the first bound of uniform is above the second",
            )),
        },
        [(_, "exponential"), mean] => match time(mean)?.is_zero() {
            true => Err(UnitError::new(
                all,
                "the mean of exponential must be above 0",
            )),
            false => Ok(()),
        },
        [(_, "lognormal"), median, (at, high)] => {
            let Some(p99) = high.strip_prefix("p99=") else {
                return wrong("lognormal needs its 99th percentile as p99=4s");
            };
            let median = time(median)?;
            match time(&(at + 4, p99))? > median && !median.is_zero() {
                true => Ok(()),
                false => Err(UnitError::new(all, "lognormal needs 0 < median < p99")),
            }
        }
        [middle, (_, "+-" | "±"), (at, share)] => {
            time(middle)?;
            parse_share(share)
                .map(drop)
                .map_err(|error| error.shifted(*at))
        }
        [(at, word), ..] => {
            let names = ["uniform", "exponential", "lognormal"];
            let known = names.contains(word);
            let message = match known {
                true => format!("{word} has other parameters; {FORMS}"),
                false => format!("unknown form of delay \"{word}\"; {FORMS}"),
            };
            let at = if known { all } else { *at..at + word.len() };
            let suggestion = nearest(word, names).filter(|_| !known).map(str::to_owned);
            Err(UnitError {
                message,
                at,
                suggestion,
            })
        }
        [] => wrong("expected a delay, found nothing"),
    }
}

/// A length of time as a file has it: `1m30s`. [`parse_duration`] reads it back
/// to the nanosecond.
pub fn write_duration(duration: Duration) -> String {
    let mut left = duration.as_nanos();
    let mut text = String::new();
    for (name, nanos) in TIMES.iter().rev().filter(|(name, _)| *name != "µs") {
        if left >= *nanos {
            text += &format!("{}{name}", left / nanos);
            left %= nanos;
        }
    }
    if text.is_empty() {
        "0".to_owned()
    } else {
        text
    }
}

/// A size as a file has it: `2GiB`. [`parse_bytes`] reads it back to the byte.
pub fn write_bytes(bytes: u64) -> String {
    let unit = SIZES[..5]
        .iter()
        .rev()
        .find(|(_, size)| bytes > 0 && u128::from(bytes).is_multiple_of(*size));
    match unit {
        Some((name, size)) => format!("{}{name}", u128::from(bytes) / size),
        None => format!("{bytes}B"),
    }
}

/// The words of a text, each with its place.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_whitespace()
        .map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

/// Length of the letters at the start of `text`.
fn unit_length(text: &str) -> usize {
    text.find(|c: char| !c.is_alphabetic())
        .unwrap_or(text.len())
}

/// The size of the unit in `range` of `text`.
fn unit(
    units: &[(&str, u128)],
    text: &str,
    range: Range<usize>,
    what: &str,
) -> Result<u128, UnitError> {
    let found = &text[range.clone()];
    if let Some((_, size)) = units.iter().find(|(name, _)| *name == found) {
        return Ok(*size);
    }
    let names: Vec<&str> = units
        .iter()
        .map(|(name, _)| *name)
        .filter(|n| *n != "µs")
        .collect();
    let alias = ALIASES
        .iter()
        .find(|(alias, _)| *alias == found)
        .map(|(_, meant)| *meant);
    let message = format!(
        "unknown unit of {what} \"{found}\"; units are {}",
        names.join(", ")
    );
    let mut error = UnitError::new(range, message);
    error.suggestion = alias
        .filter(|meant| names.contains(meant))
        .or_else(|| nearest(found, names.iter().copied()))
        .map(str::to_owned);
    Err(error)
}

#[cfg(test)]
mod tests;
