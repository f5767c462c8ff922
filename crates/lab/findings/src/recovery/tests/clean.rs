//! Series in which nothing happened.

use super::noise::{NOISES, Source};
use crate::recovery::{Effect, Signal, Window, Worse, recovery};

/// Of 200 series for each kind of noise, length of the hold and direction.
#[test]
fn noise_is_called_an_effect_once_in_a_hundred_times() {
    let (mut claimed, mut all) = (0, 0);
    let mut told = String::new();
    for noise in NOISES {
        for (hold, after) in [(30, 100), (30, 600), (300, 3000)] {
            let claims = (0..200).filter(|seed| {
                let mut source = Source::new(noise, 3.0, 1000 + seed);
                let points: Vec<(f64, f64)> = (0..hold + after)
                    .map(|at| (f64::from(at), source.around(100.0)))
                    .collect();
                let window = Window {
                    hold_begin_s: 0.0,
                    fault_begin_s: f64::from(hold) - 0.5,
                    fault_end_s: f64::from(hold) + 9.5,
                    until_s: f64::from(hold + after),
                    steady_s: 10.0,
                };
                let found = recovery(Signal::Samples(&points), &window, Worse::Either);
                matches!(found.unwrap(), Effect::Seen(_))
            });
            let claims = claims.count();
            told += &format!("{noise:?} {hold} {after}: {claims}\n");
            claimed += claims;
            all += 200;
        }
    }
    println!("{claimed} of {all} clean series show an effect");
    assert!(claimed * 100 <= all, "{claimed} of {all}\n{told}");
}
