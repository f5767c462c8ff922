//! How many lines a flood may write. Pure.

use crate::table::Nanos;

const SECOND: Nanos = 1_000_000_000;

/// Lines that may be written in a second; those beyond are counted.
#[derive(Debug)]
pub(crate) struct LineBudget {
    most: u32,
    begin: Nanos,
    used: u32,
    left_out: u64,
}

impl LineBudget {
    pub(crate) fn new(most: u32) -> Self {
        Self {
            most,
            begin: 0,
            used: 0,
            left_out: 0,
        }
    }

    /// Whether one more line may be written now.
    pub(crate) fn take(&mut self, now: Nanos) -> bool {
        if now.saturating_sub(self.begin) >= SECOND {
            self.begin = now;
            self.used = 0;
        }
        let fits = self.used < self.most;
        if fits {
            self.used += 1;
        } else {
            self.left_out += 1;
        }
        fits
    }

    /// Lines that were left out since the last call, once their second is over; 0: none.
    pub(crate) fn left_out(&mut self, now: Nanos) -> u64 {
        if now.saturating_sub(self.begin) < SECOND {
            return 0;
        }
        std::mem::take(&mut self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_written() {
        let mut budget = LineBudget::new(2);
        let takes = |budget: &mut LineBudget, now| [(); 4].map(|()| budget.take(now));
        assert_eq!(takes(&mut budget, 5 * SECOND), [true, true, false, false]);
        assert_eq!(budget.left_out(5 * SECOND + 1), 0);
        assert_eq!(budget.left_out(6 * SECOND), 2);
        assert_eq!(budget.left_out(6 * SECOND), 0);
        assert_eq!(takes(&mut budget, 6 * SECOND), [true, true, false, false]);
    }
}
