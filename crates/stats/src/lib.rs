//! Percentiles, shares of variance, concurrency, limits: pure functions over numbers.
//!
//! Every number that the laboratory prints is computed by one of these, so that
//! a name means the same thing everywhere. There is one definition of a
//! percentile: [`nearest_rank`].

mod autocorrelation;
mod bessel;
mod fisher;
mod goodness;
mod little;
mod minimise;
mod moments;
mod quantile_interval;
mod random;
mod rank;
mod rank_sum;
mod robust;
mod saturation;
mod scalability;
mod steps;
mod student;
mod survival;
mod threshold;
mod trend;
mod warmup;

pub use autocorrelation::{autocorrelation, independent_values};
pub use fisher::larger_by_chance;
pub use goodness::{Goodness, kolmogorov_smirnov};
pub use little::little_gap;
pub use moments::{covariance, mean, share_of_variance, variance};
pub use quantile_interval::quantile_ranks;
pub use random::{SplitMix, fnv1a};
pub use rank::nearest_rank;
pub use rank_sum::rank_sum;
pub use robust::{level_and_spread, robust_slope};
pub use saturation::{Saturation, saturation};
pub use scalability::{Peak, Scalability, Scaling, TooLittle, scalability};
pub use steps::Steps;
pub use student::{normal_quantile, student_quantile};
pub use survival::{Lasted, MedianLasted, median_lasted};
pub use threshold::{Answer, Threshold};
pub use trend::{Trend, trend};
pub use warmup::{FEWEST_BATCHES, WarmUp, mser, mser5};
