//! Values that queries compare: sizes, dates, networks, regular expressions.

use std::net::IpAddr;

use jiff::civil::Date;
use regex::{Regex, RegexBuilder};

/// Most memory that a compiled regular expression may take, in bytes.
const REGEX_BYTES: usize = 1 << 20;

/// A regular expression that matches a text as a whole; `.` matches line ends too.
///
/// # Errors
/// What is wrong with it, or that it becomes larger than a MiB. Backreferences and lookaround,
/// which Java has, are not known here.
pub fn full_match(pattern: &str) -> Result<Regex, String> {
    let build = |pattern: &str| {
        RegexBuilder::new(pattern)
            .size_limit(REGEX_BYTES)
            .dfa_size_limit(REGEX_BYTES)
            .nest_limit(64)
            .build()
            .map_err(|error| {
                let message = error.to_string();
                let last = message.lines().last().unwrap_or_default();
                format!("the regular expression cannot be used: {last}")
            })
    };
    // Alone first: within a group `a)|(b` would pass.
    build(pattern)?;
    build(&format!("\\A(?s:{pattern})\\z"))
}

/// Reads a size in bytes: digits with spaces or `_` between, and `b`, `kB`, `ko`, `M`, `GB` and
/// the like, in any case of letters, by factors of 1,024. None for anything else, or above
/// 2^63.
pub fn parse_memory(text: &str) -> Option<i64> {
    let is_digit = |letter: char| letter.is_ascii_digit() || letter == ' ' || letter == '_';
    if !text.starts_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    let split = text.find(|letter| !is_digit(letter)).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    let unit = unit.to_ascii_lowercase();
    let power = match unit.strip_suffix(['b', 'o']).unwrap_or(&unit) {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    digits.parse::<i64>().ok()?.checked_mul(1 << (10 * power))
}

/// A date, or a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// A day of the calendar, in UTC.
    Day(Date),
    /// Seconds since 1970.
    Second(i64),
}

/// Reads `2026-05-01`, `01/05/2026`, `2026/05/01`, or a moment such as `2026-05-01T12:00:00Z`.
pub fn parse_when(text: &str) -> Option<When> {
    if let Ok(moment) = text.parse::<jiff::Timestamp>() {
        return Some(When::Second(moment.as_second()));
    }
    let formats = ["%Y-%m-%d", "%d/%m/%Y", "%Y/%m/%d"];
    let mut days = formats.iter();
    days.find_map(|format| Date::strptime(format, text).ok())
        .map(When::Day)
}

impl When {
    /// How this stands to what a query asks for: to a day by its day, to a moment by its second.
    pub fn compare(self, asked: Self) -> Option<std::cmp::Ordering> {
        match (self, asked) {
            (Self::Second(second), Self::Day(day)) => Some(day_of(second)?.cmp(&day)),
            (Self::Day(day), Self::Day(asked)) => Some(day.cmp(&asked)),
            (Self::Second(second), Self::Second(asked)) => Some(second.cmp(&asked)),
            (Self::Day(day), Self::Second(asked)) => Some(day.cmp(&day_of(asked)?)),
        }
    }
}

fn day_of(second: i64) -> Option<Date> {
    let moment = jiff::Timestamp::from_second(second).ok()?;
    Some(moment.to_zoned(jiff::tz::TimeZone::UTC).date())
}

/// A network of IPv4 or IPv6, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Reads `10.0.0.0/8`, `2001:db8::/32` or an address.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        (bits <= most).then_some(Self { address, bits })
    }

    /// Is the address in it?
    pub fn contains(self, address: IpAddr) -> bool {
        let same = |a: u128, b: u128, width: u8| {
            let shift = u32::from(width - self.bits);
            a.checked_shr(shift).unwrap_or(0) == b.checked_shr(shift).unwrap_or(0)
        };
        match (self.address, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => same(a.to_bits().into(), b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), 128),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let cases = [
            ("1234", Some(1_234)),
            ("1 234", Some(1_234)),
            ("1_234_", Some(1_234)),
            ("3 kB", Some(3_072)),
            ("3ko", Some(3_072)),
            ("300 M", Some(300 << 20)),
            ("2GB", Some(2 << 30)),
            ("1 to", Some(1 << 40)),
            ("7 b", Some(7)),
            ("_1", None),
            (" 1", None),
            ("MB", None),
            ("1 XB", None),
            ("99999999999999999999", None),
            ("9000 PB", None),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_memory(text), bytes, "{text}");
        }
    }

    #[test]
    fn dates_and_moments() {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let stored = parse_when("2026-05-01T23:59:59Z").unwrap();
        let cases = [
            ("2026-05-01", Equal),
            ("01/05/2026", Equal),
            ("2026/05/02", Less),
            ("2026-05-01T23:59:58Z", Greater),
            ("2026-05-02T01:59:59+02:00", Equal),
        ];
        for (asked, order) in cases {
            let asked_when = parse_when(asked).unwrap();
            assert_eq!(stored.compare(asked_when), Some(order), "{asked}");
        }
        assert_eq!(parse_when("yesterday"), None);
    }

    #[test]
    fn networks() {
        let inside = |network: &str, address: &str| {
            Network::parse(network).map(|network| network.contains(address.parse().unwrap()))
        };
        assert_eq!(inside("10.0.0.0/8", "10.200.3.4"), Some(true));
        assert_eq!(inside("10.0.0.0/8", "11.0.0.0"), Some(false));
        assert_eq!(inside("0.0.0.0/0", "1.2.3.4"), Some(true));
        assert_eq!(inside("192.168.1.1", "192.168.1.1"), Some(true));
        assert_eq!(inside("2001:db8::/32", "2001:db8:1::1"), Some(true));
        assert_eq!(inside("::/0", "2001:db8:1::1"), Some(true));
        assert_eq!(inside("::/0", "1.2.3.4"), Some(false));
        assert_eq!(inside("10.0.0.0/33", "10.0.0.0"), None);
        assert_eq!(inside("10.0.0", "10.0.0.0"), None);
    }

    #[test]
    fn expressions_match_as_a_whole() {
        let matches = |pattern: &str, text: &str| full_match(pattern).unwrap().is_match(text);
        assert!(matches("web|db", "db"));
        assert!(!matches("web|db", "web1"));
        assert!(!matches("web|db", "xdb"));
        assert!(matches("a.b", "a\nb"));
        assert!(matches("(?i)WEB.*", "web01"));
        assert!(full_match("a)|(b").is_err());
        assert!(full_match("(?=a)").is_err());
        assert!(full_match("(a{1000}){1000}").is_err());
        assert!(full_match(&"(".repeat(500)).is_err());
    }
}
