//! Every prime up to a number, in memory that is used again.

use super::stop::Stop;

/// Bits of a segment: only odd numbers have one, so it spans twice as many numbers. 16 KiB
/// stay in a first-level cache beside the base primes.
const SEGMENT_BITS: u64 = 1 << 17;

/// Largest number up to which primes are sought: 10^12 has 78,498 base primes and takes
/// hours.
pub(crate) const MOST: u64 = 1_000_000_000_000;

/// A segmented sieve of Eratosthenes over odd numbers. Nothing is kept from call to call
/// but the memory, so each does the same work.
#[derive(Debug, Default)]
pub(crate) struct Sieve {
    /// Bit `i` of a segment: the odd number `low + 2 i` has a divisor.
    segment: Vec<u64>,
    /// Odd primes up to the square root, each with the next bit that it strikes, counted
    /// from the start of the segment at hand.
    base: Vec<(u32, u64)>,
}

impl Sieve {
    /// How many primes there are up to `limit` (at most [`MOST`]); `None` if it was
    /// stopped.
    pub(crate) fn count(&mut self, limit: u64, stop: &Stop) -> Option<u64> {
        if limit < 2 {
            return Some(0);
        }
        let limit = limit.min(MOST);
        self.find_base(limit.isqrt());
        let words = usize::try_from(SEGMENT_BITS / 64).unwrap_or(0);
        self.segment.resize(words, 0);
        // The odd numbers from 3 to the limit.
        let odd = (limit - 1) / 2;
        let mut found = 1;
        let mut first = 0;
        while first < odd {
            if stop.is_requested() {
                return None;
            }
            let bits = SEGMENT_BITS.min(odd - first);
            found += self.count_segment(bits);
            first += bits;
        }
        Some(found)
    }

    /// Fills `base` with the odd primes up to `root`, by trial: a square root has few.
    fn find_base(&mut self, root: u64) {
        self.base.clear();
        let mut candidate = 3_u32;
        while u64::from(candidate) <= root {
            let small = self.base.iter().map(|(prime, _)| *prime);
            let prime = small
                .take_while(|prime| u64::from(*prime).pow(2) <= u64::from(candidate))
                .all(|prime| !candidate.is_multiple_of(prime));
            if prime {
                // Bit `i` stands for 3 + 2 i; smaller multiples have smaller divisors.
                let square = u64::from(candidate).pow(2);
                self.base.push((candidate, (square - 3) / 2));
            }
            candidate += 2;
        }
    }

    fn count_segment(&mut self, bits: u64) -> u64 {
        self.segment.fill(0);
        for (prime, next) in &mut self.base {
            while *next < bits {
                if let Some(word) = self.segment.get_mut((*next / 64) as usize) {
                    *word |= 1 << (*next % 64);
                }
                *next += u64::from(*prime);
            }
            *next -= bits;
        }
        let struck: u64 = (0..bits.div_ceil(64))
            .zip(&self.segment)
            .map(|(_, word)| u64::from(word.count_ones()))
            .sum();
        bits - struck
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(limit: u64) -> u64 {
        Sieve::default().count(limit, &Stop::default()).unwrap()
    }

    #[test]
    fn counts_are_those_of_the_tables() {
        // OEIS A006880, and the number of the published program (testapi's PRIME_MAX).
        for (limit, primes) in [
            (0, 0),
            (1, 0),
            (2, 1),
            (3, 2),
            (4, 2),
            (10, 4),
            (100, 25),
            (1_000, 168),
            (10_000, 1_229),
            (100_000, 9_592),
            (250_000, 22_044),
            (1_000_000, 78_498),
        ] {
            assert_eq!(count(limit), primes, "{limit}");
        }
    }

    #[test]
    fn memory_is_used_again() {
        let mut sieve = Sieve::default();
        let stop = Stop::default();
        assert_eq!(sieve.count(1_000_000, &stop), Some(78_498));
        let memory = (sieve.segment.as_ptr(), sieve.base.as_ptr());
        assert_eq!(sieve.count(100_000, &stop), Some(9_592));
        assert_eq!(sieve.count(1_000_000, &stop), Some(78_498));
        assert_eq!((sieve.segment.as_ptr(), sieve.base.as_ptr()), memory);
    }

    #[test]
    fn it_can_be_stopped() {
        let stop = Stop::default();
        stop.request();
        assert_eq!(Sieve::default().count(MOST, &stop), None);
    }

    proptest! {
        #[test]
        fn it_agrees_with_trial_division(limit in 0_u64..5_000) {
            let prime = |n: &u64| *n >= 2 && (2..*n).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
            prop_assert_eq!(count(limit), (0..=limit).filter(prime).count() as u64);
        }

        #[test]
        fn a_limit_at_a_segments_edge_is_met(near in 0_u64..6) {
            // 3 + 2 * SEGMENT_BITS - 2 is the last number of the first segment.
            let limit = 2 * SEGMENT_BITS - 2 + near;
            let more = count(limit + 1) - count(limit);
            let prime = (2..1000).all(|d| !(limit + 1).is_multiple_of(d));
            prop_assert_eq!(more, u64::from(prime));
        }
    }
}
