//! Ranks by Zipf's law.

use stats::SplitMix;

/// Draws ranks from 1 to n, rank k with a probability proportional to k^-s.
///
/// Rejection-inversion (Hörmann and Derflinger 1996): exact, without a table, and with
/// less than 1.1 draws on average whatever s and n are.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Zipf {
    s: f64,
    n: f64,
    /// The integral of the hat at its left end.
    left: f64,
    /// And at its right end.
    right: f64,
    /// Ranks this near above the drawn point need no test.
    near: f64,
}

impl Zipf {
    /// `s` from 0 (all ranks alike) to 100, `n` from 1 to 2^50.
    pub(super) fn new(s: f64, n: u64) -> Self {
        let n = n as f64;
        Self {
            s,
            n,
            left: integral(s, 1.5) - 1.0,
            right: integral(s, n + 0.5),
            near: 2.0 - inverse(s, integral(s, 2.5) - density(s, 2.0)),
        }
    }

    pub(super) fn draw(&self, draws: &mut SplitMix) -> u64 {
        // One draw in ten is refused, so this bound is never met but by numbers that
        // are no numbers.
        const MOST_DRAWS: u32 = 1_000;
        for _ in 0..MOST_DRAWS {
            let u = self.right + draws.unit() * (self.left - self.right);
            let x = inverse(self.s, u);
            let rank = x.round().clamp(1.0, self.n);
            if rank - x <= self.near || u >= integral(self.s, rank + 0.5) - density(self.s, rank) {
                return rank as u64;
            }
        }
        1
    }
}

fn density(s: f64, x: f64) -> f64 {
    (-s * x.ln()).exp()
}

/// (x^(1-s) - 1) / (1 - s), and ln x where s is 1.
fn integral(s: f64, x: f64) -> f64 {
    let log = x.ln();
    let t = (1.0 - s) * log;
    match t.abs() > 1e-8 {
        true => t.exp_m1() / t * log,
        false => (1.0 + t / 2.0) * log,
    }
}

/// The inverse of [`integral`].
fn inverse(s: f64, u: f64) -> f64 {
    // Rounding may leave the range that the integral has.
    let t = (u * (1.0 - s)).max(-1.0);
    let log = match t.abs() > 1e-8 {
        true => t.ln_1p() / t * u,
        false => (1.0 - t / 2.0) * u,
    };
    log.exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_the_law() {
        for (s, n) in [
            (0.0, 10),
            (0.5, 10),
            (1.0, 10),
            (1.1, 50),
            (2.5, 5),
            (1.1, 1),
        ] {
            let zipf = Zipf::new(s, n);
            let runs = 200_000;
            let mut counts = vec![0_u32; n as usize];
            let mut draws = SplitMix::at(11, [0, 0]);
            for _ in 0..runs {
                counts[zipf.draw(&mut draws) as usize - 1] += 1;
            }
            let whole: f64 = (1..=n).map(|k| density(s, k as f64)).sum();
            let chi: f64 = (1..=n)
                .zip(&counts)
                .map(|(k, &count)| {
                    let expected = f64::from(runs) * density(s, k as f64) / whole;
                    (f64::from(count) - expected).powi(2) / expected
                })
                .sum();
            // Mean of chi squared n - 1, standard deviation sqrt(2 (n - 1)).
            let free = (n - 1) as f64;
            assert!(
                chi <= free + 4.5 * (2.0 * free).sqrt() + 1e-9,
                "s {s}, n {n}: {chi}"
            );
        }
    }

    #[test]
    fn extreme_parameters_stay_within_bounds() {
        for s in [0.0, 1e-9, 1.0, 1.000_000_001, 20.0, 100.0] {
            for n in [1, 2, 100_000, 1 << 50] {
                let zipf = Zipf::new(s, n);
                let mut draws = SplitMix::at(5, [n, 0]);
                for _ in 0..200 {
                    let rank = zipf.draw(&mut draws);
                    assert!((1..=n).contains(&rank), "s {s}, n {n}: {rank}");
                }
            }
        }
    }
}
