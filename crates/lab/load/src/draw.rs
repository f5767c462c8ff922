//! Random numbers that depend on where they are used and on nothing else: the same seed,
//! arrival and place give the same number on any thread and any machine, in any order.

/// SplitMix64 (Steele, Lea and Flood 2014): the state is a counter, so a generator can
/// be made anew for every place at no cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draws {
    state: u64,
}

impl Draws {
    /// The generator of one place, told by a seed and by numbers that name the place.
    pub(crate) fn at(seed: u64, place: [u64; 2]) -> Self {
        let state = place.iter().fold(mix(seed), |state, number| {
            mix(state.wrapping_add(GOLDEN) ^ mix(*number))
        });
        Self { state }
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A number from 0 to 1, without 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * UNIT
    }

    /// An exponential number of mean 1; above 0, at most 37.
    pub(crate) fn exponential(&mut self) -> f64 {
        // From (0, 1], so that the logarithm is finite; minus zero would be no gap at all.
        let uniform = ((self.bits() >> 11) + 1) as f64 * UNIT;
        (-uniform.ln()).max(UNIT)
    }

    /// A whole number below `bound`, each equally likely to within 2^-64; 0 for a
    /// bound of 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }
}

/// 2^64 divided by the golden ratio, made odd: the step of SplitMix64.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// 2^-53: what lies between neighbouring results of [`Draws::unit`].
const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;

/// The finalizer of SplitMix64: a bijection in which every bit depends on every bit.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_published_sequence() {
        // The first outputs of SplitMix64 from state 0.
        let mut draws = Draws { state: 0 };
        assert_eq!(draws.bits(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(draws.bits(), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn neighbouring_places_are_unrelated() {
        let mut ones = 0;
        for arrival in 0..1_000 {
            let here = Draws::at(1, [arrival, 0]).bits();
            ones += (here ^ Draws::at(1, [arrival + 1, 0]).bits()).count_ones();
            ones += (here ^ Draws::at(1, [arrival, 1]).bits()).count_ones();
            ones += (here ^ Draws::at(2, [arrival, 0]).bits()).count_ones();
        }
        // 96,000 of 192,000 bits, standard deviation 219.
        assert!((95_000..97_000).contains(&ones), "{ones}");
    }

    #[test]
    fn means_are_right() {
        let mut draws = Draws::at(7, [0, 0]);
        let n = 100_000;
        let unit: f64 = (0..n).map(|_| draws.unit()).sum::<f64>() / f64::from(n);
        let exponential: f64 = (0..n).map(|_| draws.exponential()).sum::<f64>() / f64::from(n);
        let below = (0..n).map(|_| draws.below(10) as f64).sum::<f64>() / f64::from(n);
        assert!((unit - 0.5).abs() < 0.005, "{unit}");
        assert!((exponential - 1.0).abs() < 0.015, "{exponential}");
        assert!((below - 4.5).abs() < 0.05, "{below}");
    }
}
