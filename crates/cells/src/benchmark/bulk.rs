//! The bulk loops of many reps: each asks for its records, and says of all of them that they run.

use std::sync::Arc;
use std::time::Duration;

use diego::models::{self, ActualLrp, ActualLrpInstanceKey, ActualLrpKey};
use diego::{Bbs, path};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::fetch::counted;
use super::limits::ProcessorUse;
use super::populate::{cell, claim, failed, start};
use super::times::Stopwatch;
use super::{BenchmarkError, Generator, Options, Times};

const LOOPING: &str = "go through the bulk loops of reps";

/// What the loops took.
pub(super) struct Bulk {
    pub(super) fetch: Times,
    pub(super) turn: Times,
    pub(super) start: Times,
    pub(super) claim: Times,
}

/// What all reps share.
struct Shared {
    bbs: Bbs,
    options: Options,
    /// Places for calls in flight.
    places: Semaphore,
    begin: Instant,
    fetch: Stopwatch,
    turn: Stopwatch,
    start: Stopwatch,
    claim: Stopwatch,
    late: Stopwatch,
    waited: Stopwatch,
}

/// Lets every rep go through its turns, and waits until all that follows from them is done.
pub(super) async fn loops(
    bbs: &Bbs,
    options: &Options,
    processor_time: impl Fn() -> Duration,
) -> Result<(Bulk, Generator), BenchmarkError> {
    let since = ProcessorUse::now(&processor_time);
    let shared = Arc::new(Shared {
        bbs: bbs.clone(),
        options: options.clone(),
        places: Semaphore::new(options.in_flight as usize),
        begin: Instant::now(),
        fetch: Stopwatch::new(),
        turn: Stopwatch::new(),
        start: Stopwatch::new(),
        claim: Stopwatch::new(),
        late: Stopwatch::new(),
        waited: Stopwatch::new(),
    });
    let mut reps = JoinSet::new();
    for rep in 0..options.reps {
        let seed = options.seed.wrapping_add(u64::from(rep));
        let mut random = StdRng::seed_from_u64(seed);
        let offset = options.cycle.mul_f64(random.random::<f64>());
        // Room for every turn: a turn never waits for what follows from those before it.
        let (lists, follows) = mpsc::channel(options.trials as usize);
        let (turns, calls) = (Arc::clone(&shared), Arc::clone(&shared));
        reps.spawn(net::boxed(
            async move { turns.turns(rep, offset, &lists).await },
        ));
        reps.spawn(net::boxed(
            async move { calls.follow(follows, random).await },
        ));
    }
    while let Some(ended) = reps.join_next().await {
        ended.map_err(|cause| BenchmarkError::Task {
            doing: LOOPING,
            cause,
        })??;
    }
    let (cores, idle) = since.used(&processor_time);
    let bulk = Bulk {
        fetch: shared.fetch.times(),
        turn: shared.turn.times(),
        start: shared.start.times(),
        claim: shared.claim.times(),
    };
    let generator = Generator {
        in_flight: options.in_flight,
        late: shared.late.times(),
        waited: shared.waited.times(),
        cores,
        idle,
        resent: 0,
    };
    Ok((bulk, generator))
}

impl Shared {
    /// The turns of a rep, each when it is due.
    async fn turns(
        &self,
        rep: u32,
        offset: Duration,
        lists: &mpsc::Sender<Vec<ActualLrp>>,
    ) -> Result<(), BenchmarkError> {
        let expected = self.options.instances_of(rep);
        let request = models::ActualLrPsRequest {
            cell_id: cell(rep),
            ..models::ActualLrPsRequest::default()
        };
        for trial in 0..self.options.trials {
            let due = self.begin + self.options.cycle * trial + offset;
            sleep_until(due).await;
            let begun = Instant::now();
            self.late.note(begun - due);
            let place = self.place().await;
            let sent = Instant::now();
            let answer = self
                .bbs
                .call::<models::ActualLrPsResponse>(path::ACTUAL_LRPS, &request);
            let records = answer.await.map_err(failed(LOOPING))?.actual_lrps;
            self.fetch.note(sent.elapsed());
            drop(place);
            self.turn.note(begun.elapsed());
            counted(LOOPING, expected, records.len())?;
            // Whoever does not take it any more has told why.
            if lists.send(records).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// What follows from the turns of a rep: a start for each instance, and some claims.
    async fn follow(
        &self,
        mut lists: mpsc::Receiver<Vec<ActualLrp>>,
        mut random: StdRng,
    ) -> Result<(), BenchmarkError> {
        while let Some(records) = lists.recv().await {
            for record in records {
                // A start after a claim writes as well.
                let claims = random.random::<f64>() * 100.0 < self.options.percent_writes / 2.0;
                let key = record.actual_lrp_key.unwrap_or_default();
                let instance = record.actual_lrp_instance_key.unwrap_or_default();
                self.report(key, instance, claims).await?;
            }
        }
        Ok(())
    }

    async fn report(
        &self,
        key: ActualLrpKey,
        instance: ActualLrpInstanceKey,
        claims: bool,
    ) -> Result<(), BenchmarkError> {
        let place = self.place().await;
        let sent = Instant::now();
        let started = start(&self.bbs, key.clone(), instance.clone()).await;
        started.map_err(failed(LOOPING))?;
        self.start.note(sent.elapsed());
        drop(place);
        if claims {
            let _place = self.place().await;
            let sent = Instant::now();
            let claimed = claim(&self.bbs, key, instance).await;
            claimed.map_err(failed(LOOPING))?;
            self.claim.note(sent.elapsed());
        }
        Ok(())
    }

    /// A place among the calls in flight, once there is one.
    async fn place(&self) -> Option<SemaphorePermit<'_>> {
        let asked = Instant::now();
        // Nobody closes the semaphore, so there always is one.
        let place = self.places.acquire().await.ok();
        self.waited.note(asked.elapsed());
        place
    }
}
