//! What each of several workers does of one workload.

use lab_load::{GenerateError, Share, Workload};

/// The workload of each worker. Threads are numbered over all workers; connections are
/// divided, the first workers getting what is left over, and none gets fewer than one.
pub(crate) fn shares(workload: &Workload, workers: u32) -> Result<Vec<Workload>, GenerateError> {
    let threads = workload.threads.checked_mul(workers);
    let threads = threads.ok_or_else(|| {
        let found = format!("{workers} workers with {} threads each", workload.threads);
        GenerateError::new("divide the load among workers", found).help("ask for fewer")
    })?;
    let part = |whole: u32, worker: u32| {
        let more = u32::from(worker < whole % workers);
        (whole / workers + more).max(1)
    };
    let shares = (0..workers).map(|worker| {
        let mut share = workload.clone();
        share.share = Share {
            first: worker * workload.threads,
            threads,
        };
        share.connections.held = part(workload.connections.held, worker);
        share.connections.most =
            part(workload.connections.most, worker).max(share.connections.held);
        share
    });
    Ok(shares.collect())
}
