//! What a machine keeps from threads when nothing of ours disturbs them: moments in which one
//! that never sleeps does not run, and the time by which sleeps end too late.

use std::io;
use std::time::Duration;

use rustix::thread::{ClockId, CpuSet, clock_nanosleep_absolute, sched_getaffinity};

use crate::clock;

/// Spins for `length` and hands over each time between two neighbouring readings of the clock,
/// in nanoseconds.
pub fn spin(length: Duration, mut note: impl FnMut(u64)) {
    let length = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
    let begun = clock::now();
    let mut last = begun;
    while last - begun < length {
        let now = clock::now();
        note(now - last);
        last = now;
    }
}

/// Sleeps for one of `pauses` after the other until `length` is over or they end, with the
/// least timer slack, and hands over each pause and by how much it ended too late. The slack
/// stays with the calling thread.
///
/// # Errors
/// When the system refuses to sleep.
pub fn sleep(
    length: Duration,
    pauses: impl IntoIterator<Item = Duration>,
    mut note: impl FnMut(Duration, Duration),
) -> io::Result<()> {
    clock::precise_timers();
    let now = || Duration::from_nanos(clock::now());
    let end = now() + length;
    for pause in pauses {
        if now() >= end {
            break;
        }
        let due = now() + pause;
        match clock_nanosleep_absolute(ClockId::Monotonic, &clock::timespec(due)) {
            Ok(()) => note(pause, now().saturating_sub(due)),
            // A signal ended it early.
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Does something on every processor that this process may use, on all at once, by threads of
/// this name; each is told its processor, and whether it could be pinned there.
///
/// # Errors
/// What was being done, and what the system said: when processors cannot be asked for, or a
/// thread cannot be started or panicked.
pub fn on_each_processor<T: Send + 'static>(
    name: &str,
    act: impl Fn(u32, io::Result<()>) -> T + Clone + Send + 'static,
) -> Result<Vec<T>, (&'static str, io::Error)> {
    let allowed = sched_getaffinity(None);
    let allowed = allowed.map_err(|errno| ("ask for processors", errno.into()))?;
    let all = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let mut threads = Vec::new();
    for cpu in all.filter_map(|cpu| u32::try_from(cpu).ok()) {
        let act = act.clone();
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || act(cpu, clock::pin_to(cpu)));
        threads.push(thread.map_err(|error| ("start a thread", error))?);
    }
    let ended = threads.into_iter().map(std::thread::JoinHandle::join);
    let panicked = |_| ("measure", io::Error::other("the thread panicked"));
    ended.map(|ended| ended.map_err(panicked)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_between_readings_fill_the_length() {
        let (mut sum, length) = (0, Duration::from_millis(2));
        spin(length, |between| sum += between);
        assert!(u128::from(sum) >= length.as_nanos());
    }

    #[test]
    fn each_sleep_is_told_with_its_pause_until_they_end() {
        let pauses = [1, 2, 3].map(Duration::from_micros);
        let mut told = Vec::new();
        sleep(Duration::MAX / 2, pauses, |pause, _| told.push(pause)).unwrap();
        assert_eq!(told, pauses);
        sleep(Duration::ZERO, pauses, |_, _| {
            panic!("nothing is left to sleep")
        })
        .unwrap();
    }

    #[test]
    fn every_allowed_processor_has_its_thread() {
        let seen = on_each_processor("test", |cpu, pinned| {
            pinned.unwrap();
            let own = sched_getaffinity(None).unwrap();
            assert!(own.is_set(cpu as usize));
            assert_eq!(own.count(), 1);
            cpu
        });
        let allowed = sched_getaffinity(None).unwrap();
        let all = seen.unwrap();
        assert_eq!(all.len(), allowed.count() as usize);
        assert!(all.iter().all(|cpu| allowed.is_set(*cpu as usize)));
        let (doing, error) =
            on_each_processor("test", |_, _| -> () { panic!("planted") }).unwrap_err();
        assert_eq!(
            (doing, &*error.to_string()),
            ("measure", "the thread panicked")
        );
    }
}
