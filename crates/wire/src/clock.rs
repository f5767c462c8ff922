//! Nanoseconds, as an event loop counts them.

use std::time::Duration;

use rustix::thread::ClockId;

/// Nanoseconds of the monotonic clock. Its zero has no meaning; reading it costs about
/// twenty nanoseconds and no call into the kernel.
pub fn now() -> u64 {
    nanoseconds(rustix::time::clock_gettime(ClockId::Monotonic))
}

/// Processor time that the calling thread has used so far, user and system.
pub fn thread_cpu() -> Duration {
    Duration::from_nanos(nanoseconds(rustix::time::clock_gettime(
        ClockId::ThreadCPUTime,
    )))
}

/// Sleeps for a moment, to the precision that [`precise_timers`] asked for. A signal
/// ends the sleep early.
pub fn nap(length: Duration) {
    let length = timespec(length);
    // A nap that a signal cut short is as good as a whole one to its callers.
    let _ = rustix::thread::nanosleep(&length);
}

/// Asks the kernel to wake the calling thread at the moment that it asked for. By
/// default timers of a thread may be up to 50 µs late so that wake-ups can be shared.
pub fn precise_timers() {
    // Refused only by kernels without the setting, which then has no cost.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Pins the calling thread to one processor.
///
/// # Errors
/// When there is no such processor, or this process may not use it.
pub fn pin_to(cpu: u32) -> std::io::Result<()> {
    let cpu = cpu as usize;
    if cpu >= rustix::thread::CpuSet::MAX_CPU {
        return Err(rustix::io::Errno::INVAL.into());
    }
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// A duration as the kernel takes it.
pub(crate) fn timespec(length: Duration) -> rustix::time::Timespec {
    rustix::time::Timespec {
        tv_sec: i64::try_from(length.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(length.subsec_nanos()),
    }
}

fn nanoseconds(time: rustix::time::Timespec) -> u64 {
    // Neither clock is negative, and 2^64 ns are 584 years.
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_rise() {
        let (wall, cpu) = (now(), thread_cpu());
        nap(Duration::from_micros(10));
        assert!(now() > wall);
        assert!(thread_cpu() > cpu);
    }

    #[test]
    fn a_processor_that_is_not_there_is_refused() {
        assert!(pin_to(u32::MAX).is_err());
    }
}
