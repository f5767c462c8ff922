//! The scheduler in virtual time: the BBS's core and the rep's containers are the real ones; the
//! network, the disk's latency, the executor and the moments of death are drawn from a seed.
//!
//! Messages are delayed, lost, doubled and overtake each other; the BBS, the auctioneer and cells
//! die and come back, and cells are cut off for longer than their presence lasts. After each change
//! its records must be sound, each pass of convergence must find what a full one finds, and once
//! the faults are over everything that was desired and acknowledged must come about.
//!
//! `HEADROOM_SEEDS=100000 cargo test --release -p cells simulation` runs more of it;
//! `HEADROOM_SEED=17` one of them.

mod auctioneer;
mod bbs;
mod cell;
mod client;
pub(crate) mod core;
mod event;
mod reps;
mod world;

use super::apply::Command;

/// Seeds of a usual test run.
const SEEDS: u64 = 500;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn whatever_fails_for_a_while_everything_desired_comes_about() {
    if let Some(seed) = number("HEADROOM_SEED") {
        return world::run(seed, true).unwrap();
    }
    let seeds = number("HEADROOM_SEEDS").unwrap_or(SEEDS);
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for seed in (thread..seeds).step_by(threads as usize) {
                    let run = std::panic::catch_unwind(|| world::run(seed, true));
                    let came_about = matches!(&run, Ok(Ok(())));
                    assert!(came_about, "{run:?}; HEADROOM_SEED={seed} repeats it");
                }
            });
        }
    });
}

#[test]
fn without_convergence_it_does_not() {
    let failed = (0..20).filter(|seed| world::run(*seed, false).is_err());
    assert!(failed.count() > 10);
}
