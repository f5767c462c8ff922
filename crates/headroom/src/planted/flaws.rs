//! What can be wrong with a server.

use std::fs::File;
use std::sync::mpsc::{self, Sender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use nix::time::ClockId;

/// So many at once; the others wait, or are refused.
pub(super) struct Pool {
    places: Mutex<Places>,
    freed: Condvar,
    most_waiting: usize,
}

struct Places {
    free: usize,
    waiting: usize,
}

impl Pool {
    /// `most_waiting`: `None` for any number.
    pub(super) fn new(size: usize, most_waiting: Option<usize>) -> Self {
        Self {
            places: Mutex::new(Places {
                free: size,
                waiting: 0,
            }),
            freed: Condvar::new(),
            most_waiting: most_waiting.unwrap_or(usize::MAX),
        }
    }

    /// Waits for a place, which is given back when dropped; `None`: too many wait.
    pub(super) fn enter(&self) -> Option<Place<'_>> {
        let mut places = self.places();
        if places.free == 0 && places.waiting >= self.most_waiting {
            return None;
        }
        places.waiting += 1;
        let places = self.freed.wait_while(places, |places| places.free == 0);
        let mut places = places.unwrap_or_else(PoisonError::into_inner);
        places.waiting -= 1;
        places.free -= 1;
        drop(places);
        Some(Place(self))
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Place<'a>(&'a Pool);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.places().free += 1;
        self.0.freed.notify_one();
    }
}

/// One thread that does the work of all.
pub(super) struct Burner(Sender<Sender<()>>);

impl Burner {
    /// A thread that takes so much processor time for each piece of work.
    pub(super) fn start(each: Duration) -> std::io::Result<Self> {
        let (work, pieces) = mpsc::channel::<Sender<()>>();
        let builder = thread::Builder::new().name("burner".to_owned());
        builder.spawn(move || {
            for done in pieces {
                burn(each);
                // Who asked may have gone.
                let _ = done.send(());
            }
        })?;
        Ok(Self(work))
    }

    /// Has a piece of work done, and waits for it.
    pub(super) fn burn(&self) {
        let (done, is_done) = mpsc::channel();
        if self.0.send(done).is_ok() {
            let _ = is_done.recv();
        }
    }
}

/// Uses so much processor time.
pub(super) fn burn(length: Duration) {
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    let used = || clock.now().map_or(Duration::MAX, Duration::from);
    let until = used().saturating_add(length);
    while used() < until {
        std::hint::spin_loop();
    }
}

/// Nobody passes while it is closed.
#[derive(Default)]
pub(super) struct Gate(RwLock<()>);

impl Gate {
    pub(super) fn pass(&self) {
        drop(self.0.read().unwrap_or_else(PoisonError::into_inner));
    }

    /// Closes for `length`, at times that are `every` apart.
    pub(super) fn close_again_and_again(&self, every: Duration, length: Duration) {
        let begun = Instant::now();
        for number in 1_u32.. {
            let due = begun + every.saturating_mul(number);
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let closed = self.0.write().unwrap_or_else(PoisonError::into_inner);
            thread::sleep(length);
            drop(closed);
        }
    }
}

/// Descriptors that are opened and never closed.
pub(super) struct Kept {
    most: usize,
    files: Mutex<Vec<File>>,
}

impl Kept {
    pub(super) fn up_to(most: usize) -> Self {
        Self {
            most,
            files: Mutex::default(),
        }
    }

    pub(super) fn one_more(&self) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() < self.most {
            // At the limit there are no more.
            files.extend(File::open("/dev/null"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_pool_lets_in_as_many_as_it_has_places() {
        let pool = Pool::new(3, None);
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    let place = pool.enter();
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(1));
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(place);
                });
            }
        });
        assert!((1..=3).contains(&most.into_inner()));
        let places = pool.places();
        assert_eq!((places.free, places.waiting), (3, 0));
    }

    #[test]
    fn who_would_wait_beyond_the_bound_is_refused() {
        let pool = Pool::new(1, Some(0));
        let place = pool.enter();
        assert!(place.is_some() && pool.enter().is_none());
        drop(place);
        assert!(pool.enter().is_some());
    }

    #[test]
    fn burning_takes_processor_time() {
        let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
        let before = Duration::from(clock.now().unwrap());
        burn(Duration::from_millis(5));
        assert!(Duration::from(clock.now().unwrap()) - before >= Duration::from_millis(5));
    }

    #[test]
    fn as_many_descriptors_are_kept_as_may_be() {
        let kept = Kept::up_to(2);
        (0..5).for_each(|_| kept.one_more());
        assert_eq!(kept.files.lock().unwrap().len(), 2);
    }
}
