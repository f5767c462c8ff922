//! Sizes of memory and disk as a person writes them.

use std::fmt;
use std::str::FromStr;

/// A size in whole MiB, written `512MiB`, `1.5GiB`, `10GB` or, as MiB, `512`. What is no whole MiB is
/// rounded down: a cell must not promise more than it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mebibytes(pub i32);

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a size: write a number from 1MiB to 2047TiB with MiB, GiB, TiB, MB, GB or TB, or 0"
)]
pub struct BadSize(String);

impl FromStr for Mebibytes {
    type Err = BadSize;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadSize(text.into());
        let text = text.trim();
        let size = match text.parse::<u32>() {
            Ok(size) => u64::from(size),
            Err(_) => {
                let bytes = units::parse_bytes(text).map_err(|_| bad())?;
                let size = bytes >> 20;
                if size == 0 && bytes > 0 {
                    return Err(bad());
                }
                size
            }
        };
        i32::try_from(size).map(Self).map_err(|_| bad())
    }
}

impl fmt::Display for Mebibytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            size if size != 0 && size % (1 << 20) == 0 => write!(f, "{}TiB", size >> 20),
            size if size != 0 && size % (1 << 10) == 0 => write!(f, "{}GiB", size >> 10),
            size => write!(f, "{size}MiB"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_read_as_in_experiments() {
        for (text, size) in [
            ("12GiB", 12 * 1024),
            ("512", 512),
            ("1TiB", 1 << 20),
            ("1.5GiB", 1536),
            ("10GB", 9536),
            ("0", 0),
            ("0GiB", 0),
        ] {
            assert_eq!(text.parse(), Ok(Mebibytes(size)), "{text}");
        }
        for bad in [
            "",
            "GiB",
            "-1",
            "3gb",
            "1MB",
            "2048TiB",
            "4294967295",
            "1 GiB",
        ] {
            assert!(bad.parse::<Mebibytes>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(size in 0..i32::MAX) {
            prop_assert_eq!(Mebibytes(size).to_string().parse(), Ok(Mebibytes(size)));
        }
    }
}
