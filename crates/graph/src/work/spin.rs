//! Processor time, to the microsecond, and fixed operations.

use std::hint::black_box;

use super::calibration::Calibration;
use super::stop::Stop;
use crate::Nanos;

/// The thread's clock costs hundreds of nanoseconds to read, so it is read once for so
/// much work: about 2 % of it.
const SLICE_NS: f64 = 20_000.0;
/// Operations between two looks at whether to stop: some tens of microseconds.
const CHUNK: u64 = 1 << 14;

/// Processor time that the calling thread has used so far.
pub(crate) fn thread_cpu() -> Nanos {
    u64::try_from(wire::clock::thread_cpu().as_nanos()).unwrap_or(Nanos::MAX)
}

/// So many steps of a xorshift generator (Marsaglia 2003, "Xorshift RNGs", 64 bits). Each
/// needs the one before, so a processor cannot do several at once.
pub(crate) fn ops(count: u64) {
    let mut state = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
}

/// Operations in chunks; how many were done, fewer than asked for if it was stopped.
pub(crate) fn ops_until(count: u64, stop: &Stop) -> u64 {
    let mut left = count;
    while left > 0 && !stop.is_requested() {
        let chunk = left.min(CHUNK);
        ops(chunk);
        left -= chunk;
    }
    count - left
}

/// Keeps the processor for `target` of the thread's own time, whoever else takes it in
/// between; returns the time that was taken. Accurate to 1 % or 20 µs (in fact about a
/// microsecond), with what the clock costs counted as part of the work; the kernel's ticks
/// in the thread's name count too, as they do for every program. Shorter if it was stopped.
///
/// Time that a hypervisor took counts as the thread's where the guest is not told of it.
pub(crate) fn cpu(target: Nanos, calibration: &Calibration, stop: &Stop) -> Nanos {
    let begun = thread_cpu();
    let second = thread_cpu();
    // What a reading costs changes with what else runs: caches, other tenants. An
    // interruption between the two readings must not count as their cost.
    let clock = ((second - begun) as f64).clamp(1.0, 4.0 * calibration.clock_ns);
    let target = target as f64;
    // Half of the first reading came before `begun` was taken, half of the last comes after.
    let mut used = (second - begun) as f64 + clock;
    loop {
        let rest = target - used;
        if rest <= clock {
            // There is no room for another reading.
            let rest = rest.max(0.0);
            ops(calibration.ops_in(rest));
            return (used + rest) as Nanos;
        }
        if stop.is_requested() {
            return used as Nanos;
        }
        // The last stretch is halved and halved again: were the machine twice as slow as
        // when it was calibrated, the end would still be met.
        let slice = if rest > 2.0 * SLICE_NS {
            SLICE_NS
        } else {
            (rest - clock).max(clock) / 2.0
        };
        ops(calibration.ops_in(slice));
        used = (thread_cpu() - begun) as f64 + clock;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `cpu` took beyond its target, in the median of several tries.
    fn median_error(target: Nanos, calibration: &Calibration) -> i64 {
        let mut errors: Vec<i64> = (0..21)
            .map(|_| {
                let begun = thread_cpu();
                cpu(target, calibration, &Stop::default());
                // The reading here and the call add less than a microsecond.
                (thread_cpu() - begun).cast_signed() - target.cast_signed()
            })
            .collect();
        errors.sort_unstable();
        errors[errors.len() / 2]
    }

    #[test]
    fn processor_time_is_met() {
        let calibration = Calibration::measure();
        for target in [50_000, 200_000, 1_000_000, 10_000_000] {
            let error = median_error(target, &calibration);
            let allowed = (target / 100).max(20_000).cast_signed();
            assert!(error.abs() <= allowed, "{error} ns at {target} ns");
        }
    }

    #[test]
    fn a_wrong_calibration_does_not_change_what_is_met() {
        for factor in [0.5, 3.0] {
            let mut calibration = Calibration::measure();
            calibration.op_ns *= factor;
            let error = median_error(1_000_000, &calibration);
            assert!(error.abs() <= 20_000, "{error} ns at {factor}");
        }
    }

    #[test]
    fn it_is_met_while_others_compete() {
        let calibration = Calibration::measure();
        let others = Stop::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| ops_until(u64::MAX, &others));
            }
            let error = median_error(2_000_000, &calibration);
            others.request();
            assert!(error.abs() <= 20_000, "{error} ns");
        });
    }

    #[test]
    fn stopped_work_ends_and_says_how_much_was_done() {
        let stop = Stop::default();
        stop.request();
        assert_eq!(ops_until(1_000_000, &stop), 0);
        let took = cpu(Nanos::MAX, &Calibration::measure(), &stop);
        assert!(took < 1_000_000_000, "{took}");
        assert_eq!(ops_until(100_000, &Stop::default()), 100_000);
    }
}
