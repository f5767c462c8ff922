//! How sure a share is.

use stats::{SplitMix, nearest_rank};

use crate::finding::Share;

/// Most blocks; neighbours within one may be as alike as they like.
const BLOCKS: usize = 20;

const RESAMPLES: usize = 400;

/// The ratio of the sums of `(part, whole)` over the run, in order of time, and its interval of
/// 95 % over resamples of blocks (Künsch, "The jackknife and the bootstrap for general stationary observations",
/// 1989). The draw is fixed: the same run gives the same interval. `None`: no whole.
pub(super) fn share_of(pieces: &[(f64, f64)]) -> Option<Share> {
    let per_block = pieces.len().div_ceil(BLOCKS).max(1);
    let blocks: Vec<(f64, f64)> = pieces.chunks(per_block).map(sums).collect();
    let ratio = |(part, whole): (f64, f64)| part / whole;
    let value = ratio(sums(&blocks));
    if !value.is_finite() {
        return None;
    }
    let mut random = SplitMix::new(blocks.len() as u64);
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn: Vec<_> = blocks
                .iter()
                .map(|_| blocks[random.below(blocks.len())])
                .collect();
            ratio(sums(&drawn))
        })
        .filter(|ratio| ratio.is_finite())
        .collect();
    ratios.sort_by(f64::total_cmp);
    Some(Share {
        value,
        low: nearest_rank(&ratios, 0.025)?.min(value),
        high: nearest_rank(&ratios, 0.975)?.max(value),
    })
}

/// The share of equal pieces of the time in which something was so; see [`share_of`].
pub(super) fn share_of_time(flags: impl Iterator<Item = bool>) -> Option<Share> {
    let pieces: Vec<(f64, f64)> = flags.map(|flag| (f64::from(u8::from(flag)), 1.0)).collect();
    share_of(&pieces)
}

/// Parts beside their wholes.
pub(super) fn pairs(parts: &[f64], wholes: &[f64]) -> Vec<(f64, f64)> {
    parts.iter().copied().zip(wholes.iter().copied()).collect()
}

/// Sums of the parts and of the wholes.
pub(super) fn sums(pieces: &[(f64, f64)]) -> (f64, f64) {
    let add = |all: (f64, f64), one: &(f64, f64)| (all.0 + one.0, all.1 + one.1);
    pieces.iter().fold((0.0, 0.0), add)
}

/// Means of so many neighbours; what fills no block at the end is left out.
pub(super) fn means(values: &[f64], per_block: usize) -> Vec<f64> {
    let blocks = values.chunks_exact(per_block.max(1));
    blocks.filter_map(stats::mean).collect()
}

/// The longest run of `true`: where it begins and ends.
pub(super) fn longest(flags: impl IntoIterator<Item = bool>) -> (usize, usize) {
    let (mut best, mut begin) = ((0, 0), 0);
    for (at, flag) in flags.into_iter().enumerate() {
        if !flag {
            begin = at + 1;
        } else if at + 1 - begin > best.1 - best.0 {
            best = (begin, at + 1);
        }
    }
    best
}
