//! Pools: so many workers do work of a kind at once, what comes beyond them waits, and numbers
//! tell how many wait and for how long.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use telemetry::prometheus::{Kind, Page};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::mutex::lock;

/// Most workers that a pool can be given.
pub const WORKERS_MOST: usize = 10_000;

/// A pool cannot have so many workers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: expected a number of workers from 1 to {WORKERS_MOST}, found {found}")]
pub struct PoolSizeError {
    /// The setting of the pool.
    pub setting: &'static str,
    /// What it was set to.
    pub found: usize,
}

/// Can a pool have so many workers?
pub(crate) fn check(setting: &'static str, found: usize) -> Result<(), PoolSizeError> {
    let fits = (1..=WORKERS_MOST).contains(&found);
    fits.then_some(()).ok_or(PoolSizeError { setting, found })
}

/// Workers for one kind of work; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Pool(Arc<PoolInner>);

#[derive(Debug)]
struct PoolInner {
    name: &'static str,
    workers: usize,
    permits: Arc<Semaphore>,
    numbers: Mutex<Numbers>,
}

#[derive(Debug, Default)]
struct Numbers {
    /// Since when each piece of work has waited that waits for a worker here, in the order in
    /// which they came.
    waiting: BTreeMap<u64, Instant>,
    next: u64,
    begun: u64,
    waited: Duration,
    busy: Duration,
}

/// What is known of a pool at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PoolCounts {
    name: &'static str,
    workers: usize,
    busy: usize,
    queued: usize,
    oldest: Duration,
    begun: u64,
    waited: Duration,
    busy_for: Duration,
}

/// A worker at work; it is free when this is dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    pool: Pool,
    began: Instant,
    /// Nobody closes the semaphore, so there always is one.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Pool {
    /// A pool under the name that metrics give it. Of less than one worker nothing would ever
    /// come, so there is at least one.
    pub(crate) fn new(name: &'static str, workers: usize) -> Self {
        let workers = workers.clamp(1, WORKERS_MOST);
        Self(Arc::new(PoolInner {
            name,
            workers,
            permits: Arc::new(Semaphore::new(workers)),
            numbers: Mutex::default(),
        }))
    }

    /// Workers, busy or not.
    pub(crate) fn workers(&self) -> usize {
        self.0.workers
    }

    /// Workers at work.
    pub(crate) fn busy(&self) -> usize {
        self.0.workers - self.0.permits.available_permits().min(self.0.workers)
    }

    /// A worker, once there is one, for work that has waited since then. Those who ask first get
    /// one first.
    pub(crate) async fn worker(&self, since: Instant) -> Worker {
        let permits = || Arc::clone(&self.0.permits);
        let permit = match permits().try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => {
                let _waiter = Waiter::new(self, since);
                permits().acquire_owned().await.ok()
            }
        };
        let began = Instant::now();
        let mut numbers = self.lock();
        numbers.begun += 1;
        numbers.waited += began.saturating_duration_since(since);
        drop(numbers);
        Worker {
            pool: self.clone(),
            began,
            _permit: permit,
        }
    }

    /// What is known of it, with what waits in a queue before it: how much, and the first of it
    /// since when.
    pub(crate) fn counts(&self, queued: usize, first: Option<Instant>) -> PoolCounts {
        let numbers = self.lock();
        let first = first.into_iter().chain(numbers.waiting.values().copied());
        PoolCounts {
            name: self.0.name,
            workers: self.0.workers,
            busy: self.busy(),
            queued: queued + numbers.waiting.len(),
            oldest: first.min().map_or(Duration::ZERO, |first| first.elapsed()),
            begun: numbers.begun,
            waited: numbers.waited,
            busy_for: numbers.busy,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Numbers> {
        lock(&self.0.numbers)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.pool.lock().busy += self.began.elapsed();
    }
}

/// Work that waits for a worker, until it has one or is given up.
struct Waiter<'a> {
    pool: &'a Pool,
    number: u64,
}

impl<'a> Waiter<'a> {
    fn new(pool: &'a Pool, since: Instant) -> Self {
        let mut numbers = pool.lock();
        let number = numbers.next;
        numbers.next += 1;
        numbers.waiting.insert(number, since);
        drop(numbers);
        Self { pool, number }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.pool.lock().waiting.remove(&self.number);
    }
}

/// Writes the numbers of pools, in families named after the program.
pub(crate) fn write(page: &mut Page, program: &str, pools: &[PoolCounts]) {
    if pools.is_empty() {
        return;
    }
    let mut family = |kind, name: &str, help, value: &dyn Fn(&PoolCounts) -> f64| {
        let values = pools.iter().map(|pool| (pool.name, value(pool)));
        page.family(
            kind,
            &format!("{program}_pool_{name}"),
            help,
            "pool",
            values,
        );
    };
    family(
        Kind::Gauge,
        "workers",
        "Workers of the pool, busy or not.",
        &|pool| pool.workers as f64,
    );
    family(Kind::Gauge, "busy", "Workers at work.", &|pool| {
        pool.busy as f64
    });
    family(Kind::Gauge, "queued", "What waits for a worker.", &|pool| {
        pool.queued as f64
    });
    family(
        Kind::Gauge,
        "oldest_wait_seconds",
        "How long what waits longest has waited.",
        &|pool| pool.oldest.as_secs_f64(),
    );
    family(
        Kind::Counter,
        "begun_total",
        "Pieces of work that got a worker.",
        &|pool| pool.begun as f64,
    );
    family(
        Kind::Counter,
        "wait_seconds_sum",
        "Time that these had waited, from when they were to be done.",
        &|pool| pool.waited.as_secs_f64(),
    );
    family(
        Kind::Counter,
        "busy_seconds_sum",
        "Time that workers took over what they have done.",
        &|pool| pool.busy_for.as_secs_f64(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pool: &Pool, queued: usize, first: Option<Instant>) -> String {
        let mut page = Page::new();
        write(&mut page, "x", &[pool.counts(queued, first)]);
        page.into_text()
    }

    #[test]
    fn a_pool_has_from_one_to_ten_thousand_workers() {
        assert_eq!(check("pool", 1), Ok(()));
        assert_eq!(check("pool", 10_000), Ok(()));
        for found in [0, 10_001, usize::MAX] {
            assert_eq!(
                check("pool", found).unwrap_err().to_string(),
                format!("pool: expected a number of workers from 1 to 10000, found {found}")
            );
        }
    }

    #[tokio::test]
    async fn what_is_beyond_the_workers_waits_and_is_counted() {
        let pool = Pool::new("calls", 2);
        let now = Instant::now();
        let before = now.checked_sub(Duration::from_secs(90)).unwrap_or(now);
        let first = pool.worker(before).await;
        let second = pool.worker(now).await;
        assert_eq!(pool.busy(), 2);
        let third = tokio::spawn({
            let pool = pool.clone();
            async move { pool.worker(before).await }
        });
        while pool.counts(0, None).queued == 0 {
            tokio::task::yield_now().await;
        }
        let counts = pool.counts(5, Some(now));
        assert_eq!((counts.queued, counts.busy, counts.begun), (6, 2, 2));
        assert!(counts.oldest >= now - before);
        let told = text(&pool, 5, None);
        assert!(
            told.contains("x_pool_workers{pool=\"calls\"} 2\n"),
            "{told}"
        );
        assert!(told.contains("x_pool_queued{pool=\"calls\"} 6\n"), "{told}");
        drop(first);
        let third = third.await.unwrap();
        let counts = pool.counts(0, None);
        assert_eq!((counts.queued, counts.busy, counts.begun), (0, 2, 3));
        assert_eq!(counts.oldest, Duration::ZERO);
        assert!(counts.waited >= 2 * (now - before));
        drop((second, third));
        assert_eq!(pool.busy(), 0);
        assert!(pool.counts(0, None).busy_for > Duration::ZERO);
    }

    #[tokio::test]
    async fn whoever_gives_up_waits_no_more() {
        let pool = Pool::new("calls", 1);
        let _worker = pool.worker(Instant::now()).await;
        let wait = pool.worker(Instant::now());
        assert!(
            tokio::time::timeout(Duration::from_millis(1), wait)
                .await
                .is_err()
        );
        assert_eq!(pool.counts(0, None).queued, 0);
    }

    #[test]
    fn without_pools_nothing_is_written() {
        let mut page = Page::new();
        write(&mut page, "x", &[]);
        assert_eq!(page.into_text(), "");
    }
}
