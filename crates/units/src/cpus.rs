//! Lists of processors, in the form that Linux shows them in.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::UnitError;

/// Highest processor that Linux numbers.
const HIGHEST: u32 = 8191;

/// Reads a list of processors: `0-1,3`. In rising order, each once.
///
/// # Errors
/// Text of another form, also an empty one, or a processor above 8191.
pub fn parse_cpus(text: &str) -> Result<Vec<u32>, UnitError> {
    let error = |at: Range<usize>, message: &str| {
        let message = format!("{message}; write processors as in 0-1 or 0,2");
        UnitError::new(at, message)
    };
    let mut cpus = BTreeSet::new();
    let mut at = 0;
    for part in text.split(',') {
        let range = at..at + part.len();
        at = range.end + 1;
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => cpus.extend(first..=last),
            (Some(_), Some(_)) => {
                return Err(error(range, "the first processor is above the last"));
            }
            _ => return Err(error(range, &format!("\"{part}\" is no processor"))),
        }
    }
    Ok(cpus.into_iter().collect())
}

fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits)?;
    (number <= HIGHEST).then_some(number)
}

/// Processors in rising order, as [`parse_cpus`] reads them; none are an empty text.
pub fn write_cpus(cpus: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if cpu == *last + 1 => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let parts: Vec<String> = parts
        .iter()
        .map(|(from, to)| match from == to {
            true => from.to_string(),
            false => format!("{from}-{to}"),
        })
        .collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists() {
        assert_eq!(parse_cpus("0-1").unwrap(), [0, 1]);
        assert_eq!(parse_cpus("2,0,1-2").unwrap(), [0, 1, 2]);
        assert_eq!(parse_cpus("0, 2").unwrap(), [0, 2]);
        for text in ["", "a", "1-", "2-1", "0,,1", "9999", "+1", "0-99999"] {
            assert!(parse_cpus(text).is_err(), "{text}");
        }
        let error = parse_cpus("0,2-1").unwrap_err();
        assert_eq!(error.at, 2..5);
        assert_eq!(write_cpus(&[0, 1, 2, 4, 6, 7]), "0-2,4,6-7");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(cpus in prop::collection::btree_set(0..=HIGHEST, 1..9)) {
            let cpus: Vec<u32> = cpus.into_iter().collect();
            prop_assert_eq!(parse_cpus(&write_cpus(&cpus)), Ok(cpus));
        }
    }
}
