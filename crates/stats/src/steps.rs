//! How many intervals hold at a time, as a step function.

/// The number of intervals that contain `t`, for every `t`: concurrency over
/// time. Exact; nothing is sampled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Steps {
    /// Each change: when, and the level from then on. Ascending, no time twice.
    changes: Vec<(i64, u64)>,
}

impl Steps {
    /// Counts half-open intervals `[start, end)`. An interval that ends where it
    /// starts, or before, holds at no time and changes nothing.
    pub fn of_intervals(intervals: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let mut starts = Vec::new();
        let mut ends = Vec::new();
        for (start, end) in intervals {
            if start < end {
                starts.push(start);
                ends.push(end);
            }
        }
        starts.sort_unstable();
        ends.sort_unstable();

        let mut changes: Vec<(i64, u64)> = Vec::new();
        let (mut started, mut ended) = (0, 0);
        while ended < ends.len() {
            let now = starts
                .get(started)
                .map_or(ends[ended], |start| ends[ended].min(*start));
            started += starts[started..]
                .iter()
                .take_while(|start| **start == now)
                .count();
            ended += ends[ended..].iter().take_while(|end| **end == now).count();
            let level = (started - ended) as u64;
            if changes.last().map_or(0, |(_, before)| *before) != level {
                changes.push((now, level));
            }
        }
        Self { changes }
    }

    /// The highest level; 0 when there are no intervals.
    pub fn maximum(&self) -> u64 {
        self.changes
            .iter()
            .map(|(_, level)| *level)
            .max()
            .unwrap_or(0)
    }

    /// The highest level inside each of `buckets` equal buckets; bucket `i` is
    /// `[start + i * width, start + (i + 1) * width)`. A peak shorter than a
    /// bucket is not lost. A width below 1 counts as 1.
    pub fn maxima(&self, start: i64, width: i64, buckets: usize) -> Vec<u64> {
        let mut changes = self.changes.iter().copied().peekable();
        let mut level = 0;
        let mut from = start;
        (0..buckets)
            .map(|_| {
                while let Some((_, now)) = changes.next_if(|(at, _)| *at <= from) {
                    level = now;
                }
                let mut highest = level;
                from = from.saturating_add(width.max(1));
                while let Some((_, now)) = changes.next_if(|(at, _)| *at < from) {
                    level = now;
                    highest = highest.max(level);
                }
                highest
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_overlaps() {
        let steps = Steps::of_intervals([(0, 10), (5, 15), (10, 20), (7, 7), (9, 3)]);
        assert_eq!(steps.maximum(), 2);
        assert_eq!(steps.maxima(-5, 5, 6), [0, 1, 2, 2, 1, 0]);
        assert_eq!(Steps::of_intervals([]).maximum(), 0);
        assert_eq!(Steps::of_intervals([]).maxima(0, 1, 2), [0, 0]);
    }

    #[test]
    fn a_short_peak_shows_in_its_bucket() {
        let steps = Steps::of_intervals([(0, 1000), (501, 502)]);
        assert_eq!(steps.maxima(0, 500, 2), [1, 2]);
    }

    proptest! {
        #[test]
        fn agrees_with_counting_at_every_instant(
            intervals in prop::collection::vec((-20i64..20, -20i64..20), 0..20),
            start in -25i64..25,
            width in 1i64..10,
            buckets in 0usize..8,
        ) {
            let steps = Steps::of_intervals(intervals.iter().copied());
            let level = |t: i64| intervals.iter().filter(|(a, b)| *a <= t && t < *b).count() as u64;
            prop_assert_eq!(steps.maximum(), (-20..20).map(level).max().unwrap_or(0));
            let expected: Vec<u64> = (0..buckets as i64)
                .map(|i| (start + i * width..start + (i + 1) * width).map(level).max().unwrap_or(0))
                .collect();
            prop_assert_eq!(steps.maxima(start, width, buckets), expected);
        }
    }
}
