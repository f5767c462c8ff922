//! Reads the time of a line.

/// The instant in nanoseconds since the Unix epoch; `None` when the text is no
/// time, or one that 64 bits cannot hold (before 1678 or after 2262).
///
/// A number counts seconds, milliseconds, microseconds or nanoseconds since the
/// epoch, told by its size: below 10^11 it is seconds, below 10^14 milliseconds,
/// below 10^17 microseconds. Digits beyond the ninth after the point are dropped.
/// Anything else must be RFC 3339, with an offset or `Z`.
pub(crate) fn parse(text: &[u8]) -> Option<i64> {
    decimal(text).or_else(|| rfc3339(text))
}

fn decimal(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let whole_end = digits
        .iter()
        .position(|b| !b.is_ascii_digit())
        .unwrap_or(digits.len());
    let whole = number(&digits[..whole_end])?;
    let nanos = match &digits[whole_end..] {
        [] => scaled(whole, 0)?,
        [b'.', fraction @ ..] if fraction.iter().all(u8::is_ascii_digit) => {
            let kept = &fraction[..fraction.len().min(9)];
            scaled(whole, number(kept)? * 10_i64.pow(9 - kept.len() as u32))?
        }
        [b'.' | b'e' | b'E', ..] => return exponent(text),
        _ => return None,
    };
    Some(if negative { -nanos } else { nanos })
}

fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_i64, |n, digit| {
        n.checked_mul(10)?.checked_add(i64::from(digit - b'0'))
    })
}

/// `whole + billionths / 10^9` of the unit that the size of `whole` tells.
fn scaled(whole: i64, billionths: i64) -> Option<i64> {
    const SECONDS_BELOW: i64 = 100_000_000_000;
    let unit: i64 = match whole / SECONDS_BELOW {
        0 => 1_000_000_000,
        1..1_000 => 1_000_000,
        1_000..1_000_000 => 1_000,
        _ => 1,
    };
    // The unit divides 10^9, so this is billionths * unit / 10^9 without overflow.
    whole
        .checked_mul(unit)?
        .checked_add(billionths / (1_000_000_000 / unit))
}

/// A number with an exponent; some loggers write doubles so. Good to a microsecond.
#[cold]
fn exponent(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    if !text
        .bytes()
        .all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
    {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    let size = value.abs();
    if size >= i64::MAX as f64 {
        return None;
    }
    let nanos = scaled(size.trunc() as i64, (size.fract() * 1e9) as i64)?;
    Some(if value < 0.0 { -nanos } else { nanos })
}

fn rfc3339(text: &[u8]) -> Option<i64> {
    static PARSER: jiff::fmt::temporal::DateTimeParser = jiff::fmt::temporal::DateTimeParser::new();
    let instant = PARSER.parse_timestamp(text).ok()?;
    i64::try_from(instant.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Option<i64> {
        parse(text.as_bytes())
    }

    #[test]
    fn unix_time_in_every_unit() {
        let instant = Some(1_464_900_000_123_456_789);
        assert_eq!(at("1464900000.123456789"), instant);
        assert_eq!(at("1464900000123.456789"), instant);
        assert_eq!(at("1464900000123456.789"), instant);
        assert_eq!(at("1464900000123456789"), instant);
        assert_eq!(at("1464900000"), Some(1_464_900_000_000_000_000));
        assert_eq!(at("1464900000.1234567891234"), instant);
        assert_eq!(at("1464900000.5"), Some(1_464_900_000_500_000_000));
        assert_eq!(at("1.4649e9"), Some(1_464_900_000_000_000_000));
        assert_eq!(at("-1.5"), Some(-1_500_000_000));
        assert_eq!(at("0"), Some(0));
    }

    #[test]
    fn the_unit_follows_from_the_size() {
        assert_eq!(at("9000000000"), Some(9_000_000_000_000_000_000));
        assert_eq!(at("99999999999"), None);
        assert_eq!(at("100000000000"), Some(100_000_000_000_000_000));
        assert_eq!(at("99999999999999"), None);
        assert_eq!(at("100000000000000"), Some(100_000_000_000_000_000));
        assert_eq!(at("99999999999999999"), None);
        assert_eq!(at("100000000000000000"), Some(100_000_000_000_000_000));
    }

    #[test]
    fn rfc3339_with_offset() {
        let instant = Some(1_464_900_000_123_456_789);
        assert_eq!(at("2016-06-02T20:40:00.123456789Z"), instant);
        assert_eq!(at("2016-06-02T22:40:00.123456789+02:00"), instant);
        assert_eq!(at("2016-06-02 20:40:00.123456789Z"), instant);
    }

    #[test]
    fn what_is_no_time() {
        for text in [
            "",
            "-",
            ".",
            "1.",
            ".5",
            "x",
            "12x",
            "e",
            "1e",
            "--1",
            "yesterday",
            "2016-06-02",
            "2016-06-02T20:40:00",
            "99999999999999999999",
            "1e300",
            "inf",
            "nan",
            "1700-01-01",
            "1000-01-01T00:00:00Z",
        ] {
            assert_eq!(at(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_what_lager_prints(nanos in 0i64..4_000_000_000_000_000_000) {
            let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
            prop_assert_eq!(at(&text), Some(nanos));
        }

        #[test]
        fn agrees_with_jiff(nanos in -4_000_000_000_000_000_000i64..4_000_000_000_000_000_000) {
            let text = jiff::Timestamp::from_nanosecond(nanos.into()).unwrap().to_string();
            prop_assert_eq!(at(&text), Some(nanos));
        }

        #[test]
        fn never_panics(text in prop::collection::vec(any::<u8>(), 0..40)) {
            parse(&text);
        }

        #[test]
        fn never_panics_on_what_looks_like_a_number(text in "-?[0-9]{0,25}[.]?[0-9]{0,25}(e[0-9]{0,3})?") {
            at(&text);
        }
    }
}
