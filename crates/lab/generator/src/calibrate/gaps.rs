//! Times in which a thread that never sleeps did not run: other work on its processor,
//! the hypervisor, a cgroup's quota.

use std::time::Duration;

use super::CalibrateError;
use super::analysis::Gaps;
use super::timer::failed;

/// Spins on every processor that this process may use, on all at once. Where threads cannot
/// be pinned the scheduler chooses, and the gaps are its own.
pub(crate) fn on_each_processor(length: Duration) -> Result<Gaps, CalibrateError> {
    let each = wire::floor::on_each_processor("gaps", move |_, _| {
        let mut gaps = Gaps::default();
        wire::floor::spin(length, |between| gaps.count(Duration::from_nanos(between)));
        gaps
    });
    let mut all = Gaps::default();
    for gaps in each.map_err(|(doing, found)| failed(doing)(found))? {
        all.add(&gaps);
    }
    Ok(all)
}
