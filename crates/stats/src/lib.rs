//! Percentiles, shares of variance, concurrency, limits: pure functions over numbers.
//!
//! Every number that the laboratory prints is computed by one of these, so that
//! a name means the same thing everywhere. There is one definition of a
//! percentile: [`nearest_rank`].

mod autocorrelation;
mod bessel;
mod cusum;
mod divisive;
mod fisher;
mod goodness;
mod hodges_lehmann;
mod holm;
mod mann_whitney;
mod mid_ranks;
mod minimise;
mod moments;
mod quantile_interval;
mod random;
mod rank;
mod rank_sum;
#[cfg(test)]
mod reference;
mod robust;
mod saturation;
mod scalability;
mod sign_flip;
mod signed_rank;
mod spending;
mod steps;
mod student;
mod survival;
mod t_test;
mod threshold;
mod trend;
mod warmup;

pub use autocorrelation::{autocorrelation, autocorrelation_time, batch_means, independent_values};
pub use cusum::{Alarm, cusum};
pub use divisive::divisive;
pub use fisher::larger_by_chance;
pub use goodness::{Goodness, kolmogorov_smirnov};
pub use hodges_lehmann::HodgesLehmann;
pub use holm::holm;
pub use mann_whitney::{MannWhitney, mann_whitney};
pub use moments::{covariance, mean, share_of_variance, sum, variance};
pub use quantile_interval::quantile_ranks;
pub use random::{SplitMix, fnv1a};
pub use rank::nearest_rank;
pub use rank_sum::rank_sum;
pub use robust::{level_and_spread, robust_slope};
pub use saturation::{Saturation, saturation};
pub use scalability::{FitError, Peak, Scalability, Scaling, scalability};
pub use sign_flip::sign_flip;
pub use signed_rank::{SignedRank, signed_rank};
pub use spending::{Spending, sequential_tails};
pub use steps::Steps;
pub use student::{normal_probability, normal_quantile, student_quantile, student_tail};
pub use survival::{Lasted, MedianLasted, median_lasted};
pub use t_test::t_test;
pub use threshold::{Answer, Threshold};
pub use trend::{Trend, trend};
pub use warmup::{FEWEST_BATCHES, WarmUp, mser};
