//! Which processors a thread may use.

use rustix::thread::CpuSet;

use super::error::WorkError;

/// The processors of a list as the kernel takes them; all that are allowed for an empty
/// one.
///
/// # Errors
/// When one is not allowed.
pub(crate) fn processors(list: &[u32], allowed: &CpuSet) -> Result<CpuSet, WorkError> {
    if list.is_empty() {
        return Ok(*allowed);
    }
    let mut set = CpuSet::new();
    for &found in list {
        let number = found as usize;
        if number >= CpuSet::MAX_CPU || !allowed.is_set(number) {
            return Err(WorkError::NoProcessor {
                found,
                allowed: show(allowed),
            });
        }
        set.set(number);
    }
    Ok(set)
}

/// The numbers of a set.
pub(crate) fn numbers(set: &CpuSet) -> Vec<u32> {
    let all = (0..CpuSet::MAX_CPU).filter(|number| set.is_set(*number));
    all.filter_map(|number| u32::try_from(number).ok())
        .collect()
}

/// Such as `0-2,5`.
pub(crate) fn show(set: &CpuSet) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers(set) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let shown = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    shown.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(numbers: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        for number in numbers {
            set.set(*number);
        }
        set
    }

    #[test]
    fn a_list_must_be_allowed() {
        let allowed = set(&[0, 1, 2, 5, 7, 8]);
        assert_eq!(show(&allowed), "0-2,5,7-8");
        assert_eq!(processors(&[], &allowed).unwrap(), allowed);
        assert_eq!(processors(&[5, 1, 5], &allowed).unwrap(), set(&[1, 5]));
        for wrong in [3, 1_000_000] {
            let error = processors(&[0, wrong], &allowed).unwrap_err();
            assert_eq!(error.cause(), "no-processor");
            assert!(error.to_string().contains("0-2,5,7-8"), "{error}");
        }
    }
}
