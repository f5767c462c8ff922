//! The lists that a route-emitter and a bulker of the desired fetch.

use std::time::Instant;

use diego::{Bbs, models, path};
use prost::Message;

use super::populate::failed;
use super::times::Stopwatch;
use super::{BenchmarkError, Options, Times};

/// What the fetches took.
pub(super) struct Fetched {
    pub(super) route_emitter: Times,
    pub(super) nsync_bulker: Times,
}

/// Fetches each list as often as it is asked for, one after the other.
pub(super) async fn fetch(bbs: &Bbs, options: &Options) -> Result<Fetched, BenchmarkError> {
    let expected = options.processes as usize;
    let [route_emitter, nsync_bulker] = [const { Stopwatch::new() }; 2];
    for _ in 0..options.fetches {
        let begun = Instant::now();
        instances(bbs, expected).await?;
        scheduling_infos(bbs, expected).await?;
        route_emitter.note(begun.elapsed());
    }
    for _ in 0..options.fetches {
        let begun = Instant::now();
        scheduling_infos(bbs, expected).await?;
        nsync_bulker.note(begun.elapsed());
    }
    Ok(Fetched {
        route_emitter: route_emitter.times(),
        nsync_bulker: nsync_bulker.times(),
    })
}

async fn instances(bbs: &Bbs, expected: usize) -> Result<(), BenchmarkError> {
    const FETCHING: &str = "fetch all instances";
    list::<models::ActualLrp>(bbs, path::ACTUAL_LRPS, FETCHING, expected).await
}

async fn scheduling_infos(bbs: &Bbs, expected: usize) -> Result<(), BenchmarkError> {
    const FETCHING: &str = "fetch all scheduling infos";
    let path = path::DESIRED_LRP_SCHEDULING_INFOS;
    list::<models::DesiredLrpSchedulingInfo>(bbs, path, FETCHING, expected).await
}

/// Fetches a list and decodes each of its records, as whoever looks at each once does.
async fn list<R: Message + Default>(
    bbs: &Bbs,
    path: &str,
    doing: &'static str,
    expected: usize,
) -> Result<(), BenchmarkError> {
    let each = |found: &mut usize, record: R| {
        std::hint::black_box(record);
        *found += 1;
    };
    let found = bbs.list(path, &(), || 0, each).await;
    counted(doing, expected, found.map_err(failed(doing))?)
}

/// A list is of what was made, and of nothing else.
pub(super) fn counted(
    doing: &'static str,
    expected: usize,
    found: usize,
) -> Result<(), BenchmarkError> {
    match found == expected {
        true => Ok(()),
        false => Err(BenchmarkError::Records {
            doing,
            expected,
            found,
        }),
    }
}
