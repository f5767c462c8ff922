//! Percentiles, shares of variance and time, concurrency: pure functions over numbers.
