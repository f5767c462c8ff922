//! Work on many things that all processors share.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Things that a thread takes at once.
const TAKEN: usize = 4;

/// Works on each of some things by so many threads; what comes of them is in their order.
pub(crate) fn shared<'a, T: Sync, U: Send>(
    threads: usize,
    all: &'a [T],
    work: impl Fn(&'a T) -> U + Sync,
) -> Vec<U> {
    shared_with(threads, all, || (), |one, ()| work(one)).0
}

/// The same, where each thread keeps something of its own; the second is what they kept.
pub(crate) fn shared_with<'a, T: Sync, U: Send, S: Send>(
    threads: usize,
    all: &'a [T],
    own: impl Fn() -> S + Sync,
    work: impl Fn(&'a T, &mut S) -> U + Sync,
) -> (Vec<U>, Vec<S>) {
    let next = AtomicUsize::new(0);
    let turn = || {
        let (mut own, mut done) = (own(), Vec::new());
        loop {
            let start = next.fetch_add(TAKEN, Ordering::Relaxed);
            let part = all.get(start..all.len().min(start.saturating_add(TAKEN)));
            let Some(part) = part.filter(|part| !part.is_empty()) else {
                return (done, own);
            };
            let part = part.iter().map(|one| work(one, &mut own));
            done.extend((start..).zip(part));
        }
    };
    let threads = if all.len() <= TAKEN { 1 } else { threads };
    let (mut done, kept) = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(turn)).collect();
        let (mut done, own) = turn();
        let mut kept = vec![own];
        for other in others {
            match other.join() {
                Ok((more, own)) => {
                    done.extend(more);
                    kept.push(own);
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        (done, kept)
    });
    done.sort_unstable_by_key(|(place, _)| *place);
    (done.into_iter().map(|(_, one)| one).collect(), kept)
}

/// Things and bytes of them that are worked on at once: unpacked and read, a run takes half a megabyte.
const GATHERED: (usize, usize) = (128, 16 << 20);

/// Things that are gathered until there are enough to be worked on at once.
pub(crate) struct Gathered<T, E, F> {
    waiting: Vec<T>,
    bytes: usize,
    failed: Option<E>,
    take: F,
}

impl<T, E, F: FnMut(Vec<T>) -> Result<(), E>> Gathered<T, E, F> {
    pub(crate) fn new(take: F) -> Self {
        Self {
            waiting: Vec::new(),
            bytes: 0,
            failed: None,
            take,
        }
    }

    /// Gathers one more of so many bytes. Nothing more is taken once taking failed.
    pub(crate) fn push(&mut self, one: T, bytes: usize) {
        self.waiting.push(one);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.waiting.len() >= GATHERED.0 || self.bytes >= GATHERED.1 {
            self.work();
        }
    }

    fn work(&mut self) {
        self.bytes = 0;
        let waiting = std::mem::take(&mut self.waiting);
        if self.failed.is_none() {
            self.failed = (self.take)(waiting).err();
        }
    }

    /// Works on the rest.
    ///
    /// # Errors
    /// The first with which taking failed.
    pub(crate) fn finish(mut self) -> Result<(), E> {
        self.work();
        self.failed.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{GATHERED, Gathered, shared};

    proptest! {
        #[test]
        fn what_comes_of_things_is_in_their_order(count in 0..100_usize, threads in 0..5_usize) {
            let all: Vec<usize> = (0..count).collect();
            let done = shared(threads, &all, |one| one * 3);
            prop_assert_eq!(done, all.iter().map(|one| one * 3).collect::<Vec<_>>());
        }

        #[test]
        fn everything_is_taken_once_and_in_order_until_it_fails(
            sizes in prop::collection::vec(0..GATHERED.1, 0..20),
            wrong in 0..40_usize,
        ) {
            let mut taken = Vec::new();
            let mut gathered = Gathered::new(|some: Vec<usize>| {
                let fails = some.contains(&wrong);
                taken.extend(some);
                if fails { Err(wrong) } else { Ok(()) }
            });
            for (number, bytes) in sizes.iter().enumerate() {
                gathered.push(number, *bytes);
                prop_assert!(gathered.bytes < GATHERED.1);
            }
            let fails = wrong < sizes.len();
            prop_assert_eq!(gathered.finish(), if fails { Err(wrong) } else { Ok(()) });
            prop_assert!(fails || taken.len() == sizes.len());
            prop_assert!(!fails || taken.contains(&wrong));
            let length = taken.len();
            prop_assert_eq!(taken, (0..length).collect::<Vec<_>>());
        }
    }
}
