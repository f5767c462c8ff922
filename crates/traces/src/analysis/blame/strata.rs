//! Counts and times of both sides, apart by the origin of visits.
//!
//! What a visit does and how long it takes depends on its origin. More orders among the same
//! requests change what the visits of a service do in the mean, and no service: so each kind is
//! compared with its like. Of counts that is the test of Cochran (1954) and of Mantel and Haenszel
//! (1959), of ranks that of van Elteren (1960).

use std::collections::{BTreeMap, BTreeSet};

use stats::{normal_quantile, rank_sum};

/// Kinds with fewer are taken together: names with numbers in them would leave nothing to compare.
const FEWEST: u64 = 16;

/// Some of all, on each side.
pub(super) type Pair = ((u64, u64), (u64, u64));

/// Counts of both sides, by kind.
#[derive(Debug, Clone)]
pub(super) struct Strata(Vec<Pair>);

impl Strata {
    /// `before` says what a kind had that was not there before, by how many there are now: `None`,
    /// if it is not compared.
    pub(super) fn of<K: Ord>(
        a: &BTreeMap<K, (u64, u64)>,
        b: &BTreeMap<K, (u64, u64)>,
        before: impl Fn(u64) -> Option<(u64, u64)>,
    ) -> Self {
        let kinds: BTreeSet<&K> = a.keys().chain(b.keys()).collect();
        let mut few: Pair = ((0, 0), (0, 0));
        let mut all = Vec::new();
        let add = |sum: (u64, u64), one: (u64, u64)| (sum.0 + one.0, sum.1 + one.1);
        for kind in kinds {
            let of = |side: &BTreeMap<K, (u64, u64)>| side.get(kind).copied().unwrap_or((0, 0));
            let pair = (of(a), of(b));
            match pair.0.1 + pair.1.1 < FEWEST {
                true => few = (add(few.0, pair.0), add(few.1, pair.1)),
                false => all.push(pair),
            }
        }
        all.push(few);
        let comparable = all.into_iter().filter_map(|(a, b)| match (a.1, b.1) {
            (_, 0) => None,
            (0, now) => Some((before(now)?, b)),
            _ => Some((a, b)),
        });
        Self(comparable.collect())
    }

    /// The shares of both sides, of visits as B has them; `None`: there is nothing to compare.
    pub(super) fn shares(&self) -> Option<(f64, f64)> {
        let share = |(some, all): (u64, u64)| some as f64 / all.max(1) as f64;
        let all: u64 = self.0.iter().map(|(_, b)| b.1).sum();
        let sum = |of: fn(&Pair) -> (u64, u64)| -> f64 {
            let each = self.0.iter().map(|one| share(of(one)) * one.1.1 as f64);
            each.sum::<f64>() / all as f64
        };
        (all > 0).then(|| (sum(|one| one.0), sum(|one| one.1)))
    }

    /// Whether the share grew, beyond chance, kind by kind. One kind alone is not asked: a test of
    /// all visits together tells more of it.
    pub(super) fn grew(&self, chance: f64) -> bool {
        if self.0.len() < 2 {
            return !self.0.is_empty();
        }
        let (mut more, mut variance) = (0.0, 0.0);
        for (a, b) in &self.0 {
            let (n, m) = (a.1 as f64, b.1 as f64);
            let (some, all) = ((a.0 + b.0) as f64, n + m);
            more += b.0 as f64 - m * some / all;
            variance += n * m * some * (all - some) / (all * all * (all - 1.0).max(1.0));
        }
        variance > 0.0 && (more - 0.5) / variance.sqrt() > -normal_quantile(chance)
    }
}

/// Of values in the order of time, those of each kind on both sides that has some on both; kinds
/// with few are taken together.
pub(super) fn apart<K: Ord, V: Copy>(a: &[(K, V)], b: &[(K, V)]) -> Vec<(Vec<V>, Vec<V>)> {
    let mut kinds: BTreeMap<&K, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
    for (at, (kind, _)) in a.iter().enumerate() {
        kinds.entry(kind).or_default().0.push(at);
    }
    for (at, (kind, _)) in b.iter().enumerate() {
        kinds.entry(kind).or_default().1.push(at);
    }
    let mut few = (Vec::new(), Vec::new());
    let mut all = Vec::new();
    for (_, (of_a, of_b)) in kinds {
        match ((of_a.len() + of_b.len()) as u64) < FEWEST {
            true => {
                few.0.extend(of_a);
                few.1.extend(of_b);
            }
            false => all.push((of_a, of_b)),
        }
    }
    few.0.sort_unstable();
    few.1.sort_unstable();
    all.push(few);
    let values = |places: Vec<usize>, of: &[(K, V)]| -> Vec<V> {
        places.into_iter().map(|at| of[at].1).collect()
    };
    all.into_iter()
        .filter(|(of_a, of_b)| !of_a.is_empty() && !of_b.is_empty())
        .map(|(of_a, of_b)| (values(of_a, a), values(of_b, b)))
        .collect()
}

/// The rank-sum statistic of all kinds together, as a standard normal deviate.
pub(super) fn rank_sums<'v>(kinds: impl Iterator<Item = (&'v [f64], &'v [f64])>) -> Option<f64> {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (a, b) in kinds {
        let Some(deviate) = rank_sum(a, b) else {
            continue;
        };
        let (n, m) = (a.len() as f64, b.len() as f64);
        let weight = n * m / (n + m + 1.0);
        sum += deviate * weight.sqrt();
        weights += weight;
    }
    (weights > 0.0).then(|| sum / weights.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strata(pairs: &[Pair]) -> Strata {
        let side = |of: fn(&Pair) -> (u64, u64)| -> BTreeMap<usize, (u64, u64)> {
            pairs.iter().map(of).enumerate().collect()
        };
        Strata::of(&side(|one| one.0), &side(|one| one.1), |_| None)
    }

    #[test]
    fn another_mix_of_the_same_is_no_growth() {
        // All orders do it and no other does: of 1,000, 100 orders are 450 now.
        let mix = strata(&[((100, 100), (450, 450)), ((0, 900), (0, 550))]);
        assert_eq!(mix.shares(), Some((0.45, 0.45)));
        assert!(!mix.grew(0.05));
    }

    #[test]
    fn growth_within_kinds_is_seen_whatever_the_mix() {
        let grew = strata(&[((1, 100), (90, 450)), ((9, 900), (110, 550))]);
        let (a, b) = grew.shares().unwrap();
        assert!((a - 0.01).abs() < 1e-9 && (b - 0.2).abs() < 1e-9, "{a} {b}");
        assert!(grew.grew(1e-6));
    }

    #[test]
    fn kinds_without_a_like_are_not_compared_and_small_ones_are_one() {
        assert_eq!(
            strata(&[((0, 100), (0, 0)), ((0, 0), (50, 50))]).shares(),
            None
        );
        let numbers: Vec<Pair> = (0..100).map(|_| ((0, 1), (1, 1))).collect();
        assert_eq!(strata(&numbers).shares(), Some((0.0, 1.0)));
        assert!(strata(&numbers).grew(0.001));
    }

    #[test]
    fn ranks_of_kinds_add_up_to_those_of_one() {
        let values = |from: u32| -> Vec<f64> { (from..from + 40).map(f64::from).collect() };
        let (low, high) = (values(0), values(1_000));
        let same = [(&low[..], &low[..]), (&high[..], &high[..])];
        assert!(rank_sums(same.into_iter()).unwrap().abs() < 1e-9);
        let more = [(&low[..], &high[..]), (&low[..], &high[..])];
        assert!(rank_sums(more.into_iter()).unwrap() > 2.0);
        let pooled = apart(
            &[("a", 1.0), ("b", 2.0)],
            &[("a", 3.0), ("b", 4.0), ("c", 5.0)],
        );
        assert_eq!(pooled, [(vec![1.0, 2.0], vec![3.0, 4.0, 5.0])]);
    }
}
