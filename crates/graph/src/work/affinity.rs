//! Which processors a thread may use.

use std::io;

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
    units::write_cpus(&numbers(set))
}

/// Pins the calling thread, and threads that it starts from now on. Without processors it
/// stays free, and numbers that no machine has are left out.
///
/// # Errors
/// When none of them is there and allowed.
pub fn pin(cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        if (*cpu as usize) < CpuSet::MAX_CPU {
            set.set(*cpu as usize);
        }
    }
    match set.count() {
        0 => Ok(()),
        _ => Ok(rustix::thread::sched_setaffinity(None, &set)?),
    }
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
