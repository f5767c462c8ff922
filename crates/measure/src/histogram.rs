//! Distributions of durations, exact to three digits, that can be merged.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

/// The longest duration that is told apart; longer ones count as this.
pub const HIGHEST: Duration = Duration::from_secs(3600);
const HIGHEST_US: u64 = 3_600_000_000;
const DIGITS: u8 = 3;

/// Why a histogram could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The library refused the bounds, which are constants.
    #[error("make a histogram: {0}")]
    Bounds(String),
    /// It could not be written as text.
    #[error("write a histogram: {0}")]
    Write(String),
    /// The text is not a histogram of this form.
    #[error("read a histogram: {0}; expected HdrHistogram V2, deflated, in base64")]
    Read(String),
    /// The other histogram has values beyond this one's bounds.
    #[error("merge histograms: {0}")]
    Merge(String),
}

/// A distribution of durations from 1 µs to one hour.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

impl Histogram {
    /// An empty one.
    ///
    /// # Errors
    /// Never with the constants here; the library's answer is passed on.
    pub fn new() -> Result<Self, HistogramError> {
        hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_US, DIGITS)
            .map(Self)
            .map_err(|error| HistogramError::Bounds(error.to_string()))
    }

    /// Counts one duration; longer ones than [`HIGHEST`] count as that.
    pub fn record(&mut self, duration: Duration) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.0.saturating_record(us);
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The duration that the share `quantile` (0 to 1) of all durations does not
    /// exceed, to three digits; `None` when nothing was counted.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        (!self.0.is_empty())
            .then(|| Duration::from_micros(self.0.value_at_quantile(quantile.clamp(0.0, 1.0))))
    }

    /// Adds all durations of another histogram.
    ///
    /// # Errors
    /// When the other was read from text and holds values beyond one hour.
    pub fn merge(&mut self, other: &Self) -> Result<(), HistogramError> {
        self.0
            .add(&other.0)
            .map_err(|error| HistogramError::Merge(error.to_string()))
    }

    /// HdrHistogram V2, deflated, in base64: the form that other tools read. The
    /// values in it are microseconds.
    ///
    /// # Errors
    /// When the library cannot write it.
    pub fn to_base64(&self) -> Result<String, HistogramError> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.0, &mut bytes)
            .map_err(|error| HistogramError::Write(format!("{error:?}")))?;
        Ok(STANDARD.encode(bytes))
    }

    /// Reads what [`Histogram::to_base64`] or another tool wrote.
    ///
    /// # Errors
    /// When the text is something else.
    pub fn from_base64(text: &str) -> Result<Self, HistogramError> {
        let bytes = STANDARD
            .decode(text)
            .map_err(|error| HistogramError::Read(error.to_string()))?;
        Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map(Self)
            .map_err(|error| HistogramError::Read(format!("{error:?}")))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(micros: &[u64]) -> Histogram {
        let mut histogram = Histogram::new().unwrap();
        for us in micros {
            histogram.record(Duration::from_micros(*us));
        }
        histogram
    }

    #[test]
    fn values_beyond_the_bounds_count_at_the_bound() {
        let histogram = of(&[u64::MAX, 0]);
        assert_eq!(histogram.count(), 2);
        let highest = histogram.quantile(1.0).unwrap().as_secs_f64();
        assert!((highest / HIGHEST.as_secs_f64() - 1.0).abs() < 0.001);
    }

    #[test]
    fn nothing_counted_has_no_quantile() {
        assert_eq!(of(&[]).quantile(0.5), None);
    }

    #[test]
    fn other_text_is_refused() {
        assert!(Histogram::from_base64("not base64!").is_err());
        assert!(Histogram::from_base64("AAAA").is_err());
    }

    proptest! {
        #[test]
        fn text_keeps_everything(micros in proptest::collection::vec(1u64..3_600_000_000, 0..200)) {
            let histogram = of(&micros);
            let read = Histogram::from_base64(&histogram.to_base64().unwrap()).unwrap();
            prop_assert_eq!(read, histogram);
        }

        #[test]
        fn merged_is_as_if_counted_together(
            a in proptest::collection::vec(1u64..3_600_000_000, 0..100),
            b in proptest::collection::vec(1u64..3_600_000_000, 0..100),
        ) {
            let mut merged = of(&a);
            merged.merge(&of(&b)).unwrap();
            let together = of(&[a, b].concat());
            prop_assert_eq!(merged.count(), together.count());
            for quantile in [0.0, 0.5, 0.99, 1.0] {
                prop_assert_eq!(merged.quantile(quantile), together.quantile(quantile));
            }
        }

        #[test]
        fn the_median_is_right_to_three_digits(
            mut micros in proptest::collection::vec(1u64..3_600_000_000, 1..200),
        ) {
            let got = of(&micros).quantile(0.5).unwrap().as_micros() as f64;
            micros.sort_unstable();
            let exact = micros[micros.len().div_ceil(2) - 1] as f64;
            prop_assert!((got / exact - 1.0).abs() < 0.001, "{} {}", got, exact);
        }
    }
}
