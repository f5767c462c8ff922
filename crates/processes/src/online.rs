//! Which processors the machine has.

/// Processors that the machine has and that are switched on, in rising order; none where the
/// kernel does not say.
fn online_processors() -> Vec<u32> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    units::parse_cpus(list.trim()).unwrap_or_default()
}

/// Why processors cannot be used, if the machine lacks one of them: `processor 99 is not there: this
/// machine has 2 (0-1)`.
#[must_use]
pub fn lacking_processor(wanted: &[u32]) -> Option<String> {
    lacking(wanted, &online_processors())
}

fn lacking(wanted: &[u32], online: &[u32]) -> Option<String> {
    let absent = wanted.iter().find(|cpu| !online.contains(cpu));
    let absent = absent.filter(|_| !online.is_empty())?;
    Some(format!(
        "processor {absent} is not there: this machine has {} ({})",
        online.len(),
        units::write_cpus(online)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_that_the_machine_lacks_is_named() {
        assert_eq!(lacking(&[0, 1], &[0, 1, 2]), None);
        let told = lacking(&[1, 99], &[0, 1, 2, 5]);
        let expected = "processor 99 is not there: this machine has 4 (0-2,5)";
        assert_eq!(told.as_deref(), Some(expected));
        assert_eq!(lacking(&[7], &[]), None, "the kernel does not say");
        assert!(online_processors().contains(&0));
    }
}
