//! How late sleeping ends.

use std::time::Duration;

use super::CalibrateError;

/// Sleeps of 100 µs to 1 ms until `length` is over; how late each ended.
pub(crate) fn lateness(length: Duration) -> Result<Vec<Duration>, CalibrateError> {
    let thread = std::thread::Builder::new().name("timer".into());
    // A thread of its own: the slack, which the generator's threads ask for too, stays with it.
    let thread = thread.spawn(move || {
        let mut late = Vec::new();
        let slept = wire::floor::sleep(length, (0..).map(pause), |_, by| late.push(by));
        slept.map(|()| late).map_err(failed("sleep"))
    });
    let thread = thread.map_err(failed("start a thread"))?;
    thread.join().unwrap_or_else(|_| {
        Err(failed("sleep")(std::io::Error::other(
            "the thread panicked",
        )))
    })
}

/// Pauses spread evenly over 100 µs to 1 ms, without a pattern that a periodic
/// disturbance could meet (the golden ratio's multiples).
fn pause(index: usize) -> Duration {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let share = (index as f64 * GOLDEN).fract();
    Duration::from_micros(100) + Duration::from_micros(900).mul_f64(share)
}

pub(crate) fn failed(doing: &'static str) -> impl Fn(std::io::Error) -> CalibrateError {
    move |found| CalibrateError::Measure { doing, found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_spread_over_their_range() {
        let mut tenths = [0; 10];
        for index in 0..1000 {
            let us = pause(index).as_secs_f64() * 1e6;
            assert!((100.0..1000.0).contains(&us), "{us}");
            tenths[((us - 100.0) / 90.0) as usize] += 1;
        }
        assert!(
            tenths.iter().all(|count| (90..=110).contains(count)),
            "{tenths:?}"
        );
    }
}
