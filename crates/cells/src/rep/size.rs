//! Sizes of memory and disk as a person writes them.

use std::fmt;
use std::str::FromStr;

/// A size in whole MiB, written `512MiB`, `12GiB`, `2TiB` or, as MiB, `512`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mebibytes(pub i32);

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a size: write a whole number up to 2047TiB with MiB, GiB or TiB")]
pub struct BadSize(String);

impl FromStr for Mebibytes {
    type Err = BadSize;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadSize(text.into());
        let text = text.trim();
        let split = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let factor = match unit.trim_start() {
            "" | "MiB" => 1,
            "GiB" => 1 << 10,
            "TiB" => 1 << 20,
            _ => return Err(bad()),
        };
        let number: i32 = number.parse().map_err(|_| bad())?;
        Ok(Self(number.checked_mul(factor).ok_or_else(bad)?))
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
    fn sizes_are_read_in_binary_units() {
        assert_eq!("12GiB".parse(), Ok(Mebibytes(12 * 1024)));
        assert_eq!("512".parse(), Ok(Mebibytes(512)));
        assert_eq!("1 TiB".parse(), Ok(Mebibytes(1 << 20)));
        for bad in ["", "GiB", "-1", "3GB", "1.5GiB", "2048TiB"] {
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
