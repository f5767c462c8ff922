//! The lists that a route-emitter and a bulker of the desired fetch.

use std::time::{Duration, Instant};

use bytes::Bytes;
use diego::{Bbs, CallError, Failed, models, path};
use prost::Message;

use super::populate::failed;
use super::times::Stopwatch;
use super::{BenchmarkError, Options, Times};

const FETCHING_ACTUAL: &str = "fetch all instances";
const FETCHING_INFOS: &str = "fetch all scheduling infos";

/// What the fetches took.
pub(super) struct Fetched {
    pub(super) route_emitter: Times,
    pub(super) route_emitter_bytes: Times,
    pub(super) nsync_bulker: Times,
}

/// Fetches each list as often as it is asked for, one after the other.
pub(super) async fn fetch(bbs: &Bbs, options: &Options) -> Result<Fetched, BenchmarkError> {
    let expected = options.processes as usize;
    let [route_emitter, bytes, nsync_bulker] = [const { Stopwatch::new() }; 3];
    for _ in 0..options.fetches {
        let begun = Instant::now();
        let actual = list::<models::ActualLrPsResponse>(bbs, path::ACTUAL_LRPS);
        let actual = actual.await.map_err(failed(FETCHING_ACTUAL))?;
        counted(FETCHING_ACTUAL, expected, actual.answer.actual_lrps.len())?;
        let infos = scheduling_infos(bbs, expected).await?;
        route_emitter.note(begun.elapsed());
        bytes.note(actual.transfer + infos);
    }
    for _ in 0..options.fetches {
        let begun = Instant::now();
        scheduling_infos(bbs, expected).await?;
        nsync_bulker.note(begun.elapsed());
    }
    Ok(Fetched {
        route_emitter: route_emitter.times(),
        route_emitter_bytes: bytes.times(),
        nsync_bulker: nsync_bulker.times(),
    })
}

/// Fetches all scheduling infos; says how long it took until the last byte was there.
async fn scheduling_infos(bbs: &Bbs, expected: usize) -> Result<Duration, BenchmarkError> {
    let path = path::DESIRED_LRP_SCHEDULING_INFOS;
    let infos = list::<models::DesiredLrpSchedulingInfosResponse>(bbs, path);
    let infos = infos.await.map_err(failed(FETCHING_INFOS))?;
    let found = infos.answer.desired_lrp_scheduling_infos.len();
    counted(FETCHING_INFOS, expected, found)?;
    Ok(infos.transfer)
}

/// A list, and how long it took to come.
struct List<A> {
    answer: A,
    transfer: Duration,
}

async fn list<A: Message + Default + Failed>(bbs: &Bbs, path: &str) -> Result<List<A>, CallError> {
    let begun = Instant::now();
    let bytes = bbs.send(path, Bytes::new(), "").await?;
    let transfer = begun.elapsed();
    let answer = Bbs::read(path, bytes)?;
    Ok(List { answer, transfer })
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
