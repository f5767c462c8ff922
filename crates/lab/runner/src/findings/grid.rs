//! Samples at uneven times as values at even ones, as the detectors take them.

/// Means over slots of equal length from `from_s` on. Each sample is of the time since the
/// one before. Slots of which less than half was sampled, and all after the last whole one,
/// are left out at the ends; inside, they have the value of the slot before.
pub(super) fn even(samples: &[(f64, f64)], (from_s, to_s): (f64, f64), slot_s: f64) -> Vec<f64> {
    let count = ((to_s - from_s) / slot_s).floor().max(0.0) as usize;
    let mut slots = vec![(0.0, 0.0); count];
    for pair in samples.windows(2) {
        let begin = (pair[0].0 - from_s) / slot_s;
        let end = (pair[1].0 - from_s) / slot_s;
        let first = begin.max(0.0) as usize;
        for (number, (sum, length)) in slots.iter_mut().enumerate().skip(first) {
            let within = end.min(number as f64 + 1.0) - begin.max(number as f64);
            if within <= 0.0 {
                break;
            }
            *sum += within * pair[1].1;
            *length += within;
        }
    }
    let mut before = 0.0;
    let values = slots.iter().map(|(sum, length)| {
        if *length >= 0.5 {
            before = sum / length;
        }
        before
    });
    values.collect()
}

/// How many intervals hold each of the evenly spaced moments from `from` to `to`; all in
/// nanoseconds.
pub(super) fn inside(intervals: &[(i64, i64)], from: i64, to: i64, every: i64) -> Vec<f64> {
    let mut changes: Vec<(i64, i64)> = intervals
        .iter()
        .filter(|(begin, end)| begin < end)
        .flat_map(|(begin, end)| [(*begin, 1), (*end, -1)])
        .collect();
    changes.sort_unstable();
    let (mut next, mut count) = (0, 0);
    let mut levels = Vec::new();
    let mut at = from;
    while at < to {
        while changes.get(next).is_some_and(|change| change.0 <= at) {
            count += changes[next].1;
            next += 1;
        }
        levels.push(count as f64);
        at += every;
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_the_mean_of_what_was_sampled_in_it() {
        // Late by turns, as on a busy machine.
        let samples = [(0.0, 9.0), (0.5, 1.0), (1.25, 0.5), (2.0, 0.0), (3.0, 2.0)];
        let slots = even(&samples, (0.0, 3.2), 1.0);
        assert_eq!(slots, [0.75, 0.125, 2.0]);
        assert_eq!(even(&samples, (1.0, 0.0), 1.0), [0.0; 0]);
        assert_eq!(even(&[], (0.0, 2.0), 1.0), [0.0, 0.0]);
        // Nobody looked in the second slot.
        let rare = [(0.0, 0.0), (0.9, 1.0), (2.9, 3.0)];
        assert_eq!(even(&rare, (0.0, 2.0), 1.0).len(), 2);
    }

    #[test]
    fn intervals_hold_moments_from_their_begin_to_before_their_end() {
        let intervals = [(0, 10), (5, 15), (7, 7), (20, 12)];
        assert_eq!(inside(&intervals, 0, 20, 5), [1.0, 2.0, 1.0, 0.0]);
    }
}
