//! Attributes of cookies: as applications set them, as `__VCAP_ID__` has them, and as
//! `__VCAP_ID_META__` keeps them.

use crate::http::pipeline::text::{MONTHS, decimal};

/// Attributes that go over from the application's cookie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) secure: bool,
    pub(super) partitioned: bool,
    /// In seconds; with 0 or less it ends now.
    pub(super) max_age: Option<i64>,
    pub(super) same_site: Option<SameSite>,
    /// In seconds since 1970.
    pub(super) expires: Option<i64>,
}

/// Which requests from other sites have the cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SameSite {
    Lax,
    Strict,
    None,
}

impl SameSite {
    const ALL: [Self; 3] = [Self::Lax, Self::Strict, Self::None];

    fn name(self) -> &'static str {
        match self {
            Self::Lax => "Lax",
            Self::Strict => "Strict",
            Self::None => "None",
        }
    }

    /// The one of this name, whatever its case.
    fn of(name: &[u8]) -> Option<Self> {
        let named = |one: &Self| one.name().as_bytes().eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(named)
    }
}

impl Attributes {
    /// Those of a `Set-Cookie` field, which stand behind its first semicolon.
    pub(super) fn of_cookie<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut like = Self::default();
        for part in parts {
            let (name, value) = pair(part);
            match name.to_ascii_lowercase().as_slice() {
                b"secure" => like.secure = true,
                b"partitioned" => like.partitioned = true,
                b"max-age" => like.max_age = max_age(value),
                b"samesite" => like.same_site = SameSite::of(value),
                b"expires" => like.expires = expires(value),
                _ => {}
            }
        }
        like
    }

    /// Those that a `__VCAP_ID_META__` keeps, as they are at `now` (seconds since 1970). What
    /// is not understood is left out: whoever changes it harms nobody but himself.
    pub(super) fn of_metadata(value: &[u8], now: i64) -> Self {
        let mut like = Self::default();
        let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<i64>().ok();
        for part in value.split(|byte| *byte == b'&') {
            match pair(part) {
                (b"secure", _) => like.secure = true,
                (b"partitioned", _) => like.partitioned = true,
                (b"samesite", value) => like.same_site = SameSite::of(value),
                (b"maxage", value) => {
                    let until = number(value).filter(|until| *until != 0);
                    // What is over, or was from the beginning, stays over.
                    like.max_age = until.map(|until| until.saturating_sub(now).max(0));
                }
                (b"expires", value) => like.expires = number(value).filter(|at| *at != 0),
                _ => {}
            }
        }
        like
    }

    /// Appends them as the value of `__VCAP_ID_META__`. Times become moments, so that a
    /// cookie which is made from them later lives no longer than the first: the end of
    /// `Max-Age`, or -1 if it was over, in seconds since 1970.
    pub(super) fn write_metadata(&self, now: i64, out: &mut Vec<u8>) {
        let start = out.len();
        let mut key = |name: &str, value: Option<i64>| {
            if out.len() > start {
                out.push(b'&');
            }
            out.extend_from_slice(name.as_bytes());
            if let Some(value) = value {
                out.push(b'=');
                out.extend(value.is_negative().then_some(b'-'));
                decimal(value.unsigned_abs(), out);
            }
        };
        if self.secure {
            key("secure", None);
        }
        if self.partitioned {
            key("partitioned", None);
        }
        if let Some(expires) = self.expires {
            key("expires", Some(expires));
        }
        if let Some(age) = self.max_age {
            let until = if age > 0 { now.saturating_add(age) } else { -1 };
            key("maxage", Some(until));
        }
        match self.same_site {
            Some(SameSite::Lax) => key("samesite=lax", None),
            Some(SameSite::Strict) => key("samesite=strict", None),
            Some(SameSite::None) => key("samesite=none", None),
            None => {}
        }
    }

    /// Appends them to a cookie, in the order in which Go writes them.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        if let Some(date) = self.expires.and_then(date) {
            out.extend_from_slice(b"; Expires=");
            out.extend_from_slice(date.as_bytes());
        }
        if let Some(age) = self.max_age {
            out.extend_from_slice(b"; Max-Age=");
            decimal(age.max(0).unsigned_abs(), out);
        }
        out.extend_from_slice(b"; HttpOnly");
        if self.secure {
            out.extend_from_slice(b"; Secure");
        }
        if let Some(same_site) = self.same_site {
            out.extend_from_slice(b"; SameSite=");
            out.extend_from_slice(same_site.name().as_bytes());
        }
        if self.partitioned {
            out.extend_from_slice(b"; Partitioned");
        }
    }
}

/// Name and value; empty without an equals sign.
fn pair(part: &[u8]) -> (&[u8], &[u8]) {
    let equals = memchr::memchr(b'=', part);
    equals.map_or((part, &[][..]), |at| (&part[..at], &part[at + 1..]))
}

/// The seconds of a `Max-Age`; none if they begin with a zero, as Go has it.
fn max_age(value: &[u8]) -> Option<i64> {
    let seconds: i64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    (seconds == 0 || value.first() != Some(&b'0')).then_some(seconds)
}

/// The earliest year that a cookie may name (RFC 6265 section 5.1.1).
const FIRST_YEAR: i16 = 1601;

/// The moment of `Expires`: `Wed, 21 Oct 2026 07:28:00 GMT`, with spaces or hyphens within the
/// day, in seconds since 1970. The weekday may be wrong, as in Go.
fn expires(value: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?;
    let (_, rest) = text.split_at_checked(3)?;
    let rest = rest.strip_prefix(", ")?;
    let rest = rest
        .strip_suffix(" GMT")
        .or_else(|| rest.strip_suffix(" UTC"))?;
    let (date, clock) = rest
        .split_once(' ')
        .filter(|(date, _)| date.len() == 11)
        .or({
            // `21 Oct 2026 07:28:00`
            rest.split_at_checked(11)
                .and_then(|(date, clock)| Some((date, clock.strip_prefix(' ')?)))
        })?;
    let number = |text: &str, length: usize| {
        let digits = text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<i16>().ok()).flatten()
    };
    let mut date = date.split([' ', '-']);
    let (day, month, year) = (date.next()?, date.next()?, date.next()?);
    let month = MONTHS
        .iter()
        .position(|name| name.eq_ignore_ascii_case(month))?;
    let mut clock = clock.split(':');
    let (hour, minute, second) = (clock.next()?, clock.next()?, clock.next()?);
    if date.next().is_some() || clock.next().is_some() {
        return None;
    }
    let small = |text: &str| i8::try_from(number(text, 2)?).ok();
    let year = number(year, 4).filter(|year| *year >= FIRST_YEAR)?;
    let month = i8::try_from(month + 1).ok()?;
    let at = jiff::civil::DateTime::new(
        year,
        month,
        small(day)?,
        small(hour)?,
        small(minute)?,
        small(second)?,
        0,
    );
    let at = at.ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(at.timestamp().as_second())
}

/// A moment as HTTP writes it; `None`: no cookie may name it.
fn date(seconds: i64) -> Option<String> {
    let at = jiff::Timestamp::from_second(seconds).ok()?;
    let at = at.to_zoned(jiff::tz::TimeZone::UTC);
    (at.year() >= FIRST_YEAR).then(|| at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of_cookie(text: &str) -> Attributes {
        Attributes::of_cookie(text.split("; ").map(str::as_bytes))
    }

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn dates_are_read_and_written_as_go_does() {
        for (text, expected) in [
            ("Wed, 21 Oct 2026 07:28:00 GMT", Some(1_792_567_680)),
            ("Wed, 21-Oct-2026 07:28:00 GMT", Some(1_792_567_680)),
            ("Xyz, 21 OCT 2026 07:28:00 UTC", Some(1_792_567_680)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Mon, 01 Jan 1601 00:00:00 GMT", Some(-11_644_473_600)),
            ("Sun, 31 Dec 1600 23:59:59 GMT", None),
            ("Sat, 31 Feb 2026 00:00:00 GMT", None),
            ("Wed, 21 Oct 2026 24:00:00 GMT", None),
            ("Wed, 1 Oct 2026 07:28:00 GMT", None),
            ("Wed, 21 Oct 26 07:28:00 GMT", None),
            ("Wed, 21 Oct 2026 07:28 GMT", None),
            ("Wed, 21 Oct 2026 07:28:00", None),
            ("Wed, 21 Oct 2026  7:28:00 GMT", None),
            ("Wed, 21 Oct 2026 07:28:+1 GMT", None),
            ("\u{e9}\u{e9}, 21 Oct 2026 07:28:00 GMT", None),
            ("", None),
        ] {
            assert_eq!(expires(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(
            date(1_792_567_680).as_deref(),
            Some("Wed, 21 Oct 2026 07:28:00 GMT")
        );
        assert_eq!(date(-11_644_473_601), None);
        assert_eq!(date(i64::MAX), None);
    }

    #[test]
    fn ages_are_read_as_go_does() {
        for (text, expected) in [
            ("60", Some(60)),
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("060", None),
            ("", None),
            ("1h", None),
            ("9223372036854775808", None),
        ] {
            assert_eq!(max_age(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn metadata_has_the_form_of_gorouters() {
        let now = 1_000;
        for (cookie, expected) in [
            ("", ""),
            ("Secure", "secure"),
            ("Max-Age=-1", "maxage=-1"),
            ("Max-Age=0; SameSite=Strict", "maxage=-1&samesite=strict"),
            (
                "SameSite=lax; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:10 GMT; Partitioned; secure",
                "secure&partitioned&expires=10&maxage=1060&samesite=lax",
            ),
            ("SameSite=none", "samesite=none"),
            ("SameSite=other", ""),
        ] {
            let found = written(|out| of_cookie(cookie).write_metadata(now, out));
            assert_eq!(found, expected, "{cookie}");
        }
    }

    #[test]
    fn what_metadata_keeps_ends_when_it_was_to_end() {
        let at = |value: &str, now| {
            written(|out| Attributes::of_metadata(value.as_bytes(), now).write(out))
        };
        assert_eq!(at("maxage=1060", 1_000), "; Max-Age=60; HttpOnly");
        assert_eq!(at("maxage=1060", 1_059), "; Max-Age=1; HttpOnly");
        assert_eq!(at("maxage=1060", 1_060), "; Max-Age=0; HttpOnly");
        assert_eq!(at("maxage=-1", 1_060), "; Max-Age=0; HttpOnly");
        assert_eq!(
            at("secure&partitioned&expires=10&samesite=none", 0),
            "; Expires=Thu, 01 Jan 1970 00:00:10 GMT; HttpOnly; Secure; SameSite=None; Partitioned"
        );
        let odd = "maxage=x&expires=&samesite=odd&secure=0&&=&other=1";
        assert_eq!(at(odd, 0), "; HttpOnly; Secure");
    }

    proptest! {
        #[test]
        fn whatever_a_client_keeps_breaks_nothing(
            value in prop::collection::vec(any::<u8>(), 0..64), now in 0_i64..1 << 40,
        ) {
            let text = written(|out| Attributes::of_metadata(&value, now).write(out));
            prop_assert!(!text.bytes().any(|byte| byte.is_ascii_control()));
        }

        #[test]
        fn attributes_outlive_their_cookie(
            secure: bool,
            partitioned: bool,
            age in prop::option::of(1_i64..1 << 40),
            same_site in prop::option::of(prop::sample::select(SameSite::ALL.to_vec())),
            expires in prop::option::of(1_i64..1 << 35),
            now in 1_i64..1 << 40,
        ) {
            let like = Attributes { secure, partitioned, max_age: age, same_site, expires };
            let mut kept = Vec::new();
            like.write_metadata(now, &mut kept);
            prop_assert_eq!(Attributes::of_metadata(&kept, now), like);
        }
    }
}
