//! When so many routes have gone that the memory which they took is worth giving back.

/// Fewer routes than this take too little to matter: about 5 MiB.
const LEAST: usize = 10_000;

/// How many routes there were at most since memory was given back. Knows no clock.
#[derive(Debug, Default)]
pub(super) struct ShrinkDetector {
    most: usize,
    last: usize,
}

impl ShrinkDetector {
    /// Takes note of how many there are, now and then; whether half of the most have gone, at least
    /// [`LEAST`], and no more are going: while they do, another look comes.
    pub(super) fn is_over(&mut self, routes: usize) -> bool {
        let still = routes >= self.last;
        self.last = routes;
        self.most = self.most.max(routes);
        let gone = self.most - routes;
        let over = still && gone >= LEAST && gone * 2 >= self.most;
        if over {
            self.most = routes;
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn when(counts: &[usize]) -> Vec<usize> {
        let mut shrink_detector = ShrinkDetector::default();
        let looks = counts.iter().enumerate();
        looks
            .filter_map(|(look, routes)| shrink_detector.is_over(*routes).then_some(look))
            .collect()
    }

    #[test]
    fn memory_is_given_back_once_after_many_have_gone() {
        let flood = [
            0, 400_000, 1_200_000, 600_000, 0, 0, 0, 30_000, 30_000, 0, 0,
        ];
        assert_eq!(when(&flood), [5, 10]);
    }

    #[test]
    fn coming_and_going_and_few_routes_give_nothing_back() {
        assert_eq!(when(&[100_000, 90_000, 100_000, 60_000, 60_000]), [0; 0]);
        assert_eq!(when(&[9_000, 0, 0, 9_000, 0, 0]), [0; 0]);
    }
}
