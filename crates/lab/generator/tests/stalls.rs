//! Latencies from the intended send, against targets that stand still at known times:
//! ten rates, three shapes of stalls, merged over one to four threads.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use crate::target::{Behaviour, Target};
use crate::workload::{open, plain, run};
use lab_load::arrivals::Process;
use lab_load::{Model, Segment};

const DELAY: f64 = 0.001;
const LENGTH: f64 = 2.0;
const SEED: u64 = 1;
/// Low enough that a debug build catches up after a stall in no time to speak of.
const RATES: [f64; 10] = [
    40.0, 50.0, 70.0, 100.0, 120.0, 150.0, 200.0, 250.0, 300.0, 400.0,
];
const QUANTILES: [f64; 8] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0];
/// Stalls in seconds from the first request, as begin and end: one long one, several
/// that are equal, a short one behind a long one.
const SHAPES: [&[(f64, f64)]; 3] = [
    &[(0.5, 0.9)],
    &[(0.3, 0.5), (0.9, 1.1), (1.5, 1.7)],
    &[(0.2, 0.6), (1.4, 1.45)],
];
/// Cases that run at the same time.
const AT_ONCE: usize = 5;
/// What target and generator take, in test builds, for each request that waited for the
/// end of a stall: the last of them is answered that much later.
const CATCH_UP: f64 = 20e-6;
/// A machine that does something else at the wrong moment spoils a case, which is then
/// tried again.
const TRIES: usize = 3;

/// One rate, one shape, so many threads.
#[derive(Debug, Clone)]
struct Case {
    rate: f64,
    stalls: Vec<(f64, f64)>,
    threads: u32,
}

impl Case {
    fn new(rate: f64, shape: &[(f64, f64)], threads: u32) -> Self {
        // An arrival at the very moment at which a stall begins would be a matter of
        // luck, so stalls begin half-way between two.
        let between = |begin: f64| ((begin * rate).floor() + 0.5) / rate;
        let stalls = shape.iter().map(|(begin, end)| (between(*begin), *end));
        Self {
            rate,
            stalls: stalls.collect(),
            threads,
        }
    }

    fn segment(&self) -> Segment {
        open(Process::Constant, self.rate, LENGTH)
    }

    /// The latency of each arrival, ascending, if nothing but the target took time.
    fn expected(&self) -> Vec<f64> {
        let segment = self.segment();
        let Model::Open(arrivals) = &segment.model else {
            panic!("an open loop");
        };
        let times = arrivals.schedule(&segment.length, SEED);
        let times: Vec<f64> = times.map(|time| time as f64 * 1e-9).collect();
        let after_stalls = |at: f64| {
            let stall = self
                .stalls
                .iter()
                .find(|(begin, end)| (*begin..*end).contains(&at));
            stall.map_or(at, |(_, end)| *end)
        };
        let latency = |time: &f64| {
            // Stalls count from the first request.
            let time = time - times[0];
            after_stalls(after_stalls(time) + DELAY) - time
        };
        let mut latencies: Vec<f64> = times.iter().map(latency).collect();
        latencies.sort_by(f64::total_cmp);
        latencies
    }

    /// The latencies at [`QUANTILES`] as the generator saw them.
    fn seen(&self) -> Vec<f64> {
        let seconds = |(begin, end): &(f64, f64)| {
            (
                Duration::from_secs_f64(*begin),
                Duration::from_secs_f64(*end),
            )
        };
        let behaviour = Behaviour {
            delay: Duration::from_secs_f64(DELAY),
            stops: self.stalls.iter().map(seconds).collect(),
            ..Behaviour::default()
        };
        let target = Target::start(0, behaviour).unwrap();
        // As many connections as arrivals can wait: the target alone sets the latencies.
        let mut workload = plain(target.address, self.waiting() as u32 + 20);
        (workload.threads, workload.share.threads) = (self.threads, self.threads);
        workload.seed = SEED;
        let total = run(workload, &self.segment()).total;
        let seen = total.requests();
        // Exact whatever the machine does.
        let planned = (self.rate * LENGTH) as u64;
        assert_eq!(
            (total.planned, seen.sent, seen.answered),
            (planned, planned, planned)
        );
        let quantile = |quantile| seen.intended.quantile(quantile).unwrap().as_secs_f64();
        QUANTILES.into_iter().map(quantile).collect()
    }

    /// Most arrivals that wait for the end of a stall.
    fn waiting(&self) -> f64 {
        let stalls = self.stalls.iter().map(|(begin, end)| end - begin);
        stalls.fold(0.0, f64::max) * self.rate
    }

    /// What is wrong with a run beside which the machine added so much, if anything is.
    fn wrong(&self, seen: &[f64], floor: f64) -> Option<String> {
        let expected = self.expected();
        QUANTILES.into_iter().zip(seen).find_map(|(quantile, seen)| {
            let rank = (quantile * expected.len() as f64 * (1.0 - 1e-12)).ceil() as usize;
            let expected = expected[rank.max(1) - 1];
            let allowed = expected * 0.01 + 20e-6 + floor + self.waiting() * CATCH_UP;
            ((seen - expected).abs() > allowed).then(|| {
                format!("{self:?}, seed {SEED}, p{quantile}: {seen}, expected {expected} ± {allowed}")
            })
        })
    }
}

/// Runs cases at the same time, beside one without stalls that shows what the machine
/// adds meanwhile. Gives those that went wrong, and how.
fn run_together(cases: &[Case]) -> Vec<(Case, String)> {
    std::thread::scope(|scope| {
        let quiet = Case::new(200.0, &[], 1);
        let floor = scope.spawn(move || quiet.seen());
        let runs: Vec<_> = cases
            .iter()
            .map(|case| (case, scope.spawn(|| case.seen())))
            .collect();
        // At the 99th percentile of the quiet one.
        let floor = (floor.join().unwrap()[4] - DELAY).max(0.0);
        let wrong = runs.into_iter().filter_map(|(case, run)| {
            let wrong = case.wrong(&run.join().unwrap(), floor)?;
            Some((case.clone(), wrong))
        });
        wrong.collect()
    })
}

#[test]
fn latencies_count_from_the_intended_time_while_the_target_stands_still() {
    let cases = SHAPES.iter().enumerate().flat_map(|(number, shape)| {
        let numbered = RATES.iter().enumerate();
        numbered.map(move |(rate, per_second)| {
            Case::new(*per_second, shape, 1 + (rate + number) as u32 % 4)
        })
    });
    let mut cases: Vec<Case> = cases.collect();
    // Neighbours run together, and should not all be fast ones.
    cases.sort_by_key(|case| case.rate as u32 % 7);
    let mut wrong = Vec::new();
    for _ in 0..TRIES {
        wrong = cases.chunks(AT_ONCE).flat_map(run_together).collect();
        if wrong.is_empty() {
            return;
        }
        cases = wrong.iter().map(|(case, _)| case.clone()).collect();
    }
    panic!("after {TRIES} tries: {wrong:#?}");
}
