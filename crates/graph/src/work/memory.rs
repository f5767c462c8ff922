//! Walks over a working set.

use std::sync::atomic::{AtomicU32, Ordering};

use stats::SplitMix;

use super::error::WorkError;
use super::stop::Stop;

/// Touches between two looks at whether to stop: a millisecond if every one misses all
/// caches.
const CHUNK: u64 = 1 << 13;
/// Bytes of a cache line, of every machine this runs on.
const LINE: u64 = 64;

/// A cache line; only its first word is read.
#[repr(align(64))]
struct Line {
    /// The line to go to.
    next: u32,
}

/// Memory whose cache lines form one circle in a random order. A walk along it meets every
/// line before it meets one again, and no prefetcher foresees the way: each step costs the
/// latency of the smallest memory that holds the set.
pub(crate) struct WorkingSet {
    lines: Vec<Line>,
    /// Where the last walk ended. Walks at the same time begin at the same line.
    at: AtomicU32,
}

impl WorkingSet {
    /// Lays it out, which touches all of it: walks meet no page fault.
    ///
    /// # Errors
    /// When it is larger than `most` bytes, or the system gives no memory.
    pub(crate) fn new(bytes: u64, most: u64) -> Result<Self, WorkError> {
        let too_much = |most| WorkError::TooMuch {
            what: "a working set in bytes",
            found: bytes,
            most,
        };
        // Lines are counted in 32 bits.
        let most = most.min(u64::from(u32::MAX) * LINE);
        if bytes > most {
            return Err(too_much(most));
        }
        let count = u32::try_from(bytes.div_ceil(LINE).max(1)).map_err(|_| too_much(most))?;
        let mut lines = Vec::new();
        lines
            .try_reserve_exact(count as usize)
            .map_err(|_| too_much(most))?;
        lines.extend((0..count).map(|next| Line { next }));
        // Sattolo's shuffle (1986) makes one circle of all. A fixed seed makes the same
        // circle in every run.
        let mut random = SplitMix::new(u64::from(count));
        for index in (1..lines.len()).rev() {
            let other = random.below(index);
            let (low, high) = lines.split_at_mut(index);
            if let (Some(low), Some(high)) = (low.get_mut(other), high.first_mut()) {
                std::mem::swap(&mut low.next, &mut high.next);
            }
        }
        Ok(Self {
            lines,
            at: AtomicU32::new(0),
        })
    }

    /// Goes on from where the last walk ended, over so many lines; how many were touched,
    /// fewer than asked for if it was stopped.
    pub(crate) fn walk(&self, touches: u64, stop: &Stop) -> u64 {
        let mut at = self.at.load(Ordering::Relaxed);
        let mut left = touches;
        while left > 0 && !stop.is_requested() {
            let chunk = left.min(CHUNK);
            for _ in 0..chunk {
                at = self.lines.get(at as usize).map_or(0, |line| line.next);
            }
            left -= chunk;
        }
        self.at.store(at, Ordering::Relaxed);
        touches - left
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_walk_meets_every_line_once(bytes in 0_u64..100_000) {
            let set = WorkingSet::new(bytes, 1 << 20).unwrap();
            let count = bytes.div_ceil(64).max(1);
            prop_assert_eq!(set.lines.len() as u64, count);
            let mut met = vec![false; set.lines.len()];
            for _ in 0..count {
                set.walk(1, &Stop::default());
                let at = set.at.load(Ordering::Relaxed) as usize;
                prop_assert!(!std::mem::replace(&mut met[at], true));
            }
            prop_assert_eq!(set.at.load(Ordering::Relaxed), 0, "the circle is closed");
        }
    }

    #[test]
    fn a_line_is_a_cache_line() {
        assert_eq!(size_of::<Line>() as u64, LINE);
    }

    #[test]
    fn too_much_is_refused() {
        for (bytes, most) in [(1025, 1024), (u64::MAX, u64::MAX), (1 << 62, u64::MAX)] {
            let error = WorkingSet::new(bytes, most).err().unwrap();
            assert_eq!(error.cause(), "too-much");
            assert!(error.to_string().contains(&bytes.to_string()), "{error}");
        }
    }

    #[test]
    fn a_walk_can_be_stopped() {
        let set = WorkingSet::new(4096, 4096).unwrap();
        assert_eq!(set.walk(1_000_000, &Stop::default()), 1_000_000);
        let stop = Stop::default();
        stop.request();
        assert_eq!(set.walk(1_000_000, &stop), 0);
    }
}
