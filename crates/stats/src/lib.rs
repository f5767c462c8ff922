//! Percentiles, shares of variance, concurrency: pure functions over numbers.
//!
//! Every number that the laboratory prints is computed by one of these, so that
//! a name means the same thing everywhere. There is one definition of a
//! percentile: [`nearest_rank`].

mod moments;
mod rank;
mod steps;

pub use moments::{covariance, mean, share_of_variance, variance};
pub use rank::nearest_rank;
pub use steps::Steps;
