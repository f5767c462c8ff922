//! Randomness that is fixed by its seed, and hashes: the same on every machine and in every
//! version, as what they decide is promised to repeat.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// 2014). The state is a counter, so a source can be made anew for every place at no cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitMix(u64);

impl SplitMix {
    /// A source for this seed; any seed is as good as another.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The source of one place, told by a seed and by numbers that name the place; it depends
    /// on nothing else.
    pub fn at(seed: u64, place: [u64; 2]) -> Self {
        let state = place.iter().fold(finalize(seed), |state, number| {
            finalize(state.wrapping_add(GOLDEN) ^ finalize(*number))
        });
        Self(state)
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        finalize(self.0)
    }

    /// A number from 0 to 1, without 1: a multiple of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number from 0 to 1, neither included.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// A whole number below `bound`, each equally likely to within 2^-64; 0 for a bound of 0.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        self.below_u64(bound as u64) as usize
    }

    /// As [`below`](Self::below), whatever the size of an address.
    #[inline]
    pub fn below_u64(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// An exponential number of mean 1.
    pub fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// A normal number of mean 0 and deviation 1 (Box and Muller, 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// 2^64 divided by the golden ratio, made odd: the step of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of SplitMix64: a bijection in which every bit depends on every bit.
#[inline]
fn finalize(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// FNV-1a of 64 bits (Fowler, Noll and Vo); a seed of 0 gives the published hash.
#[inline]
pub fn fnv1a(seed: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().fold(seed ^ 0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_published_sequence() {
        // First outputs for seed 1234567 as in the reference implementation.
        let mut random = SplitMix::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }

    /// Computed apart from this code: what a file with a seed decides must stay.
    #[test]
    fn a_place_always_has_the_same_numbers() {
        let mut random = SplitMix::at(7, [3, 1]);
        assert_eq!(random.bits(), 8_914_079_843_109_918_922);
        assert_eq!(random.bits(), 5_346_787_445_232_826_751);
    }

    #[test]
    fn neighbouring_places_are_unrelated() {
        let mut ones = 0;
        for arrival in 0..1_000 {
            let here = SplitMix::at(1, [arrival, 0]).bits();
            ones += (here ^ SplitMix::at(1, [arrival + 1, 0]).bits()).count_ones();
            ones += (here ^ SplitMix::at(1, [arrival, 1]).bits()).count_ones();
            ones += (here ^ SplitMix::at(2, [arrival, 0]).bits()).count_ones();
        }
        // 96,000 of 192,000 bits, standard deviation 219.
        assert!((95_000..97_000).contains(&ones), "{ones}");
    }

    #[test]
    fn hashes_are_the_published_ones() {
        assert_eq!(fnv1a(0, *b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(0, *b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(0, *b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut random = SplitMix::new(7);
        let mut sample = |draw: &mut dyn FnMut(&mut SplitMix) -> f64| {
            let values: Vec<f64> = (0..100_000).map(|_| draw(&mut random)).collect();
            (
                crate::mean(&values).unwrap(),
                crate::variance(&values).unwrap(),
            )
        };
        let near = |(mean, variance): (f64, f64), m: f64, v: f64| {
            assert!(
                (mean - m).abs() < 0.02 && (variance - v).abs() < 0.03,
                "{mean} {variance}"
            );
        };
        near(sample(&mut SplitMix::uniform), 0.5, 1.0 / 12.0);
        near(sample(&mut SplitMix::unit), 0.5, 1.0 / 12.0);
        near(sample(&mut SplitMix::exponential), 1.0, 1.0);
        near(sample(&mut SplitMix::normal), 0.0, 1.0);
        near(sample(&mut |random| random.below(3) as f64), 1.0, 2.0 / 3.0);
        assert_eq!(random.below(0), 0);
    }
}
