//! Points in time as reports write them: with the offset of the node's zone.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde::{Serialize, Serializer};

/// A point in time and the offset from UTC that it was written with.
///
/// Two are equal if they are the same instant, whatever their offsets.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    instant: Timestamp,
    offset: Offset,
}

impl Moment {
    /// A point in time, written in UTC.
    pub fn utc(instant: Timestamp) -> Self {
        let offset = Offset::UTC;
        Self { instant, offset }
    }

    /// A point in time, written with the offset of a zone: `+0200` or `+02:00`.
    pub fn within(instant: Timestamp, zone: &str) -> Option<Self> {
        let offset = offset_of(zone.as_bytes())?;
        Some(Self { instant, offset })
    }

    /// Reads RFC 3339: `2018-08-24T15:55:01+00:00`, with or without a fraction, `Z` for UTC.
    pub fn from_rfc3339(text: &str) -> Option<Self> {
        let (date, rest) = text.as_bytes().split_at_checked(10)?;
        let (separator, rest) = rest.split_first()?;
        if !matches!(separator, b'T' | b't' | b' ') {
            return None;
        }
        let (time, rest) = rest.split_at_checked(8)?;
        let (nanoseconds, zone) = fraction(rest)?;
        let offset = match zone {
            b"Z" | b"z" => Offset::UTC,
            [sign, h, m, b':', n, o] => offset(*sign, [*h, *m, *n, *o])?,
            _ => return None,
        };
        Self::new(date, time, nanoseconds, offset)
    }

    /// Reads the form of a run's start inside of a report: `2018-08-24 15:55:01+00:00`, also
    /// with spaces before the zone or without the zone's colon.
    pub fn from_run_start(text: &str) -> Option<Self> {
        let (date, rest) = text.as_bytes().split_at_checked(10)?;
        let (time, zone) = rest.strip_prefix(b" ")?.split_at_checked(8)?;
        Self::new(date, time, 0, offset_of(zone.trim_ascii_start())?)
    }

    fn new(date: &[u8], time: &[u8], nanoseconds: i32, offset: Offset) -> Option<Self> {
        let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = *date else {
            return None;
        };
        let [h0, h1, b':', n0, n1, b':', s0, s1] = *time else {
            return None;
        };
        let year = i16::from(pair(y0, y1)?) * 100 + i16::from(pair(y2, y3)?);
        // A leap second is told as the one before it.
        let second = match pair(s0, s1)? {
            60 => 59,
            second => second,
        };
        let (month, day) = (pair(m0, m1)?, pair(d0, d1)?);
        let (hour, minute) = (pair(h0, h1)?, pair(n0, n1)?);
        let local = DateTime::new(year, month, day, hour, minute, second, nanoseconds).ok()?;
        let instant = offset.to_timestamp(local).ok()?;
        Some(Self { instant, offset })
    }

    /// The instant, without the zone.
    pub fn instant(&self) -> Timestamp {
        self.instant
    }

    /// Milliseconds since the start of 1970.
    pub fn unix_millis(&self) -> i64 {
        self.instant.as_millisecond()
    }

    /// Shows it as a run's start inside of a report.
    pub fn as_run_start(&self) -> impl fmt::Display {
        Shown(*self, ' ')
    }
}

impl PartialEq for Moment {
    fn eq(&self, other: &Self) -> bool {
        self.instant == other.instant
    }
}

impl Eq for Moment {}

impl fmt::Display for Moment {
    /// RFC 3339; a fraction is written if there is one.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown(*self, 'T').fmt(out)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A moment, and what stands between its day and its time.
struct Shown(Moment, char);

impl fmt::Display for Shown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Moment { instant, offset }, separator) = *self;
        let local = offset.to_datetime(instant);
        write!(
            out,
            "{:04}-{:02}-{:02}{separator}{:02}:{:02}:{:02}",
            local.year(),
            local.month(),
            local.day(),
            local.hour(),
            local.minute(),
            local.second()
        )?;
        // The form of a run's start has whole seconds.
        if separator == 'T' && local.subsec_nanosecond() != 0 {
            let digits = format!("{:09}", local.subsec_nanosecond());
            write!(out, ".{}", digits.trim_end_matches('0'))?;
        }
        let minutes = offset.seconds() / 60;
        let sign = if minutes < 0 { '-' } else { '+' };
        let minutes = minutes.unsigned_abs();
        write!(out, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

/// Nanoseconds of a fraction of a second, and what follows it.
fn fraction(bytes: &[u8]) -> Option<(i32, &[u8])> {
    let Some(digits) = bytes.strip_prefix(b".") else {
        return Some((0, bytes));
    };
    let count = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let (digits, rest) = digits.split_at(count);
    if digits.is_empty() {
        return None;
    }
    let mut nanoseconds = 0;
    for place in 0..9 {
        let digit = digits.get(place).map_or(0, |byte| byte - b'0');
        nanoseconds = nanoseconds * 10 + i32::from(digit);
    }
    Some((nanoseconds, rest))
}

/// The offset of a zone, with or without a colon.
fn offset_of(zone: &[u8]) -> Option<Offset> {
    match zone {
        [sign, h, m, b':', n, o] | [sign, h, m, n, o] => offset(*sign, [*h, *m, *n, *o]),
        _ => None,
    }
}

fn offset(sign: u8, digits: [u8; 4]) -> Option<Offset> {
    let [h0, h1, m0, m1] = digits;
    let (hours, minutes) = (pair(h0, h1)?, pair(m0, m1)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let seconds = (i32::from(hours) * 60 + i32::from(minutes)) * 60;
    match sign {
        b'+' => Offset::from_seconds(seconds).ok(),
        b'-' => Offset::from_seconds(-seconds).ok(),
        _ => None,
    }
}

fn pair(tens: u8, ones: u8) -> Option<i8> {
    if !tens.is_ascii_digit() || !ones.is_ascii_digit() {
        return None;
    }
    i8::try_from((tens - b'0') * 10 + (ones - b'0')).ok()
}

#[cfg(test)]
mod tests {
    use super::Moment;

    #[test]
    fn both_forms_are_read_and_written() {
        for text in [
            "2018-08-24T15:55:01+00:00",
            "2018-08-24T15:55:01.25-03:30",
            "2024-02-29T23:59:59+14:00",
        ] {
            assert_eq!(Moment::from_rfc3339(text).unwrap().to_string(), text);
        }
        let start = Moment::from_run_start("2018-08-24 15:55:01 +02:00").unwrap();
        assert_eq!(start.to_string(), "2018-08-24T15:55:01+02:00");
        assert_eq!(
            start.as_run_start().to_string(),
            "2018-08-24 15:55:01+02:00"
        );
        assert_eq!(
            Moment::from_run_start("2018-08-24 15:55:01+0200"),
            Some(start)
        );
        assert_eq!(Moment::from_rfc3339("2018-08-24T13:55:01Z"), Some(start));
        for (zone, shown) in [
            ("+0200", "2018-08-24T15:55:01+02:00"),
            ("-03:30", "2018-08-24T10:25:01-03:30"),
        ] {
            let there = Moment::within(start.instant(), zone).unwrap();
            assert_eq!(there.to_string(), shown);
        }
        assert_eq!(Moment::within(start.instant(), "CEST"), None);
        assert_eq!(start.unix_millis(), 1_535_118_901_000);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "2018-08-24",
            "2018-08-24T15:55:01",
            "2018-13-24T15:55:01Z",
            "2018-02-30T15:55:01Z",
            "2018-08-24T25:55:01Z",
            "2018-08-24T15:55:01+0000",
            "2018-08-24T15:55:01.Z",
            "2018-08-24T15:55:01+24:00",
            "2018-08-24T15:55:01Zé",
            "18-08-24T15:55:01Z",
        ] {
            assert_eq!(Moment::from_rfc3339(text), None, "{text}");
        }
        assert_eq!(Moment::from_run_start("2018-08-24T15:55:01+00:00"), None);
        assert_eq!(Moment::from_run_start("2018-08-24 15:55:01"), None);
    }
}
