//! Processor time of the threads of processes, from `/proc/PID/task`.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

/// Processor time of one thread since the sample before.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadTime {
    /// Its process.
    pub pid: u32,
    /// Its id.
    pub tid: u32,
    /// In cores.
    pub cores: f64,
    /// Time in which it could have run and had no processor, by the same measure.
    pub waited: f64,
}

/// What one look at the threads of some processes found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadTimes {
    /// Threads that ran since the look before, those that used most first.
    pub busy: Vec<ThreadTime>,
    /// Threads that were beyond [`Threads::MOST`], and not looked at.
    pub unread: u64,
}

/// Time on a processor, and time of waiting for one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Times {
    ran: Duration,
    waited: Duration,
}

/// Follows the threads of some processes.
#[derive(Debug, Default)]
pub struct Threads {
    last: Read,
    /// When the last look began.
    last_at: Option<Instant>,
}

/// Times of each thread, and when they were read: reading many takes a while, and a busy machine
/// may keep the reader from it for longer than from one look to the next.
type Read = HashMap<(u32, u32), (Times, Instant)>;

impl Threads {
    /// Most threads that are looked at, of all processes together.
    pub const MOST: usize = 2_000;

    /// Looks at the threads of these processes. The first look at a thread that was there
    /// before the first look at all counts for nothing: nobody knows when it ran.
    pub fn sample(&mut self, pids: &[u32]) -> ThreadTimes {
        let now = Instant::now();
        let mut found = ThreadTimes::default();
        let mut times = HashMap::with_capacity(self.last.len());
        for pid in pids {
            // One that cannot be read has ended.
            let entries = fs::read_dir(format!("/proc/{pid}/task"));
            for entry in entries.into_iter().flatten().flatten() {
                if times.len() >= Self::MOST {
                    found.unread += 1;
                    continue;
                }
                let tid = entry.file_name().to_str().and_then(|tid| tid.parse().ok());
                let Some(tid) = tid else { continue };
                let Ok(text) = fs::read_to_string(entry.path().join("schedstat")) else {
                    continue;
                };
                let Some(time) = Times::of(&text) else {
                    continue;
                };
                times.insert((*pid, tid), (time, Instant::now()));
            }
        }
        if let Some(last_at) = self.last_at {
            found.busy = self.since(&times, last_at);
        }
        (self.last, self.last_at) = (times, Some(now));
        found
    }

    fn since(&self, times: &Read, last_at: Instant) -> Vec<ThreadTime> {
        let busy = times.iter().map(|(&(pid, tid), (time, at))| {
            // A thread with the number of an older one has used less than that.
            let before = self
                .last
                .get(&(pid, tid))
                .filter(|(before, _)| before.ran <= time.ran && before.waited <= time.waited);
            let (before, since) = before.copied().unwrap_or((Times::default(), last_at));
            let passed = at.saturating_duration_since(since).as_secs_f64();
            let share = |now: Duration, before| match passed > 0.0 {
                true => (now - before).as_secs_f64() / passed,
                false => 0.0,
            };
            // Nobody runs longer than the time that passed; the rest is what the reading took.
            let cores = share(time.ran, before.ran).min(1.0);
            ThreadTime {
                pid,
                tid,
                cores,
                waited: share(time.waited, before.waited).min(1.0 - cores),
            }
        });
        let mut busy: Vec<ThreadTime> = busy.filter(|thread| thread.cores > 0.0).collect();
        busy.sort_by(|a, b| b.cores.total_cmp(&a.cores).then(a.tid.cmp(&b.tid)));
        busy
    }
}

/// The name of a thread, at most 15 bytes; `None`: it has ended.
pub fn thread_name(pid: u32, tid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

impl Times {
    /// From `/proc/PID/task/TID/schedstat`: nanoseconds on a processor, then nanoseconds in
    /// which it could have run and had none, then how often it ran.
    fn of(schedstat: &str) -> Option<Self> {
        let mut numbers = schedstat.split_ascii_whitespace().map(str::parse);
        let mut next = || numbers.next()?.ok().map(Duration::from_nanos);
        Some(Self {
            ran: next()?,
            waited: next()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_thread_that_burns_comes_first_and_has_its_name() {
        static DONE: AtomicBool = AtomicBool::new(false);
        let own = std::process::id();
        let mut threads = Threads::default();
        assert_eq!(threads.sample(&[own]).busy, [], "nothing was before");
        let burning = std::thread::Builder::new()
            .name("burns".to_owned())
            .spawn(|| {
                while !DONE.load(Ordering::Relaxed) {
                    std::hint::spin_loop()
                }
            })
            .unwrap();
        // Until it has run for a while, however busy the machine is.
        let named = |threads: &mut Threads| {
            std::thread::sleep(Duration::from_millis(50));
            let busy = threads.sample(&[own]).busy;
            assert!(busy.is_sorted_by(|a, b| a.cores >= b.cores));
            let names = busy.iter().filter_map(|one| thread_name(own, one.tid));
            names.into_iter().any(|name| name == "burns")
        };
        assert!((0..200).any(|_| named(&mut threads)));
        DONE.store(true, Ordering::Relaxed);
        burning.join().unwrap();
    }

    #[test]
    fn what_passed_between_two_looks_is_what_counts() {
        let second = Duration::from_secs(1);
        let times = |ran, waited| Times { ran, waited };
        let none = Duration::ZERO;
        let began = Instant::now();
        let before = [
            ((1, 1), (times(second * 5, second), began)),
            ((1, 2), (times(second * 9, none), began)),
            ((1, 3), (times(second, none), began)),
            ((1, 5), (times(second, none), began + second)),
        ];
        let threads = Threads {
            last: HashMap::from(before),
            last_at: None,
        };
        let after = [
            ((1, 1), (times(second * 6, second * 2), began + second * 2)),
            ((1, 2), (times(second * 9, none), began + second * 2)),
            // Another thread with the number of one that has ended.
            ((1, 3), (times(second / 2, none), began + second * 2)),
            ((2, 4), (times(second * 2, second), began + second * 2)),
            // Read a second late before, and three seconds late now.
            ((1, 5), (times(second * 2, none), began + second * 5)),
        ];
        let busy = threads.since(&HashMap::from(after), began);
        let told: Vec<_> = busy
            .iter()
            .map(|one| (one.tid, one.cores, one.waited))
            .collect();
        assert_eq!(
            told,
            [(4, 1.0, 0.0), (1, 0.5, 0.5), (3, 0.25, 0.0), (5, 0.25, 0.0)]
        );
    }

    #[test]
    fn processes_that_have_ended_and_odd_texts_say_nothing() {
        assert_eq!(
            Threads::default().sample(&[u32::MAX]),
            ThreadTimes::default()
        );
        assert_eq!(thread_name(u32::MAX, 1), None);
        let nanos = Duration::from_nanos;
        let times = Times {
            ran: nanos(12),
            waited: nanos(7),
        };
        assert_eq!(Times::of("12 7 3\n"), Some(times));
        assert_eq!(Times::of("12"), None);
        assert_eq!(Times::of("-1 x"), None);
    }
}
