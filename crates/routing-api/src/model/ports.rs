//! Ports that a router group may give away: `1024-2047,3000`.

use std::fmt::{self, Display};

/// Ranges of ports, none of which overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservablePorts(Vec<Range>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    first: u16,
    last: u16,
}

/// The lowest port that may be given away.
const LOWEST: u16 = 1024;

impl ReservablePorts {
    /// Reads ranges and single ports, separated by commas.
    ///
    /// # Errors
    /// The text of the error that routing-api answers.
    pub fn parse(text: &str) -> Result<Self, String> {
        let ranges = text
            .split(',')
            .map(Range::parse)
            .collect::<Result<Vec<_>, _>>()?;
        for (at, range) in ranges.iter().enumerate() {
            let mut others = ranges.iter().enumerate();
            if let Some((_, other)) =
                others.find(|(other_at, other)| *other_at != at && range.overlaps(**other))
            {
                return Err(format!("Overlapping values: {range} and {other}"));
            }
        }
        Ok(Self(ranges))
    }

    /// Whether this port may be given away.
    pub fn contains(&self, port: u16) -> bool {
        let mut ranges = self.0.iter();
        ranges.any(|range| (range.first..=range.last).contains(&port))
    }
}

impl Range {
    fn parse(text: &str) -> Result<Self, String> {
        let mut ends = text.split('-');
        let (first, last, more) = (ends.next(), ends.next(), ends.next());
        let number = |end: Option<&str>| end.and_then(digits);
        let range = match (last, more) {
            (None, _) => {
                let port = number(first).ok_or_else(out_of_bounds)?;
                Self {
                    first: port,
                    last: port,
                }
            }
            (Some(_), None) => {
                let first = number(first)
                    .ok_or_else(|| format!("range ({text}) requires a starting port"))?;
                let last = number(last)
                    .ok_or_else(|| format!("range ({text}) requires an ending port"))?;
                if first > last {
                    return Err(format!("range ({text}) must be in ascending numeric order"));
                }
                Self { first, last }
            }
            (Some(_), Some(_)) => {
                return Err(format!("range ({text}) has too many '-' separators"));
            }
        };
        if range.first < LOWEST {
            return Err(out_of_bounds());
        }
        Ok(range)
    }

    fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Digits alone: Rust would also take a sign.
fn digits(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

fn out_of_bounds() -> String {
    "port must be between 1024 and 65535".to_owned()
}

impl Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(formatter, "{}", self.first)
        } else {
            write!(formatter, "[{}-{}]", self.first, self.last)
        }
    }
}
