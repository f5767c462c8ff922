//! A small source of randomness, fixed by its seed.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// 2014). The same seed gives the same numbers on every machine and in every version,
/// so that whatever was drawn from it can be repeated.
#[derive(Debug, Clone)]
pub struct SplitMix(u64);

impl SplitMix {
    /// A source for this seed; any seed is as good as another.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to 1, neither included.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// A whole number below `bound`; 0 for a bound of 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // The bias of the product is below bound / 2^64.
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
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
        near(sample(&mut SplitMix::exponential), 1.0, 1.0);
        near(sample(&mut SplitMix::normal), 0.0, 1.0);
        near(sample(&mut |random| random.below(3) as f64), 1.0, 2.0 / 3.0);
        assert_eq!(random.below(0), 0);
    }
}
