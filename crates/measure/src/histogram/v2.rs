//! The field's common form: HdrHistogram V2, deflated; values are microseconds.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use super::bins::{self, bin_of, values_of};
use super::{Histogram, HistogramError};

const DIGITS: u8 = 3;

impl Histogram {
    /// HdrHistogram V2, deflated: the form that other tools read. The values in it are
    /// microseconds.
    ///
    /// # Errors
    /// When the library cannot write it.
    pub fn to_v2(&self) -> Result<Vec<u8>, HistogramError> {
        let wrong = |error: String| HistogramError::Write(error);
        let mut theirs = hdrhistogram::Histogram::new_with_bounds(1, bins::HIGHEST, DIGITS)
            .map_err(|error| wrong(error.to_string()))?;
        for (bin, count) in self.store.counts() {
            theirs.saturating_record_n(values_of(bin).0, count);
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&theirs, &mut bytes)
            .map_err(|error| wrong(format!("{error:?}")))?;
        Ok(bytes)
    }

    /// Reads what [`Histogram::to_v2`] or another tool wrote. Values beyond one hour
    /// count as one hour; finer bins are joined.
    ///
    /// # Errors
    /// When the bytes are something else.
    pub fn from_v2(bytes: &[u8]) -> Result<Self, HistogramError> {
        let theirs: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut &*bytes)
            .map_err(|error| HistogramError::Read(format!("{error:?}")))?;
        let mut ours = Self::new();
        for bin in theirs.iter_recorded() {
            let value = theirs.lowest_equivalent(bin.value_iterated_to());
            ours.add(bin_of(value.min(bins::HIGHEST)), bin.count_at_value());
        }
        Ok(ours)
    }

    /// [`Histogram::to_v2`] in base64.
    ///
    /// # Errors
    /// When the library cannot write it.
    pub fn to_base64(&self) -> Result<String, HistogramError> {
        Ok(STANDARD.encode(self.to_v2()?))
    }

    /// Reads what [`Histogram::to_base64`] or another tool wrote.
    ///
    /// # Errors
    /// When the text is something else.
    pub fn from_base64(text: &str) -> Result<Self, HistogramError> {
        let bytes = STANDARD
            .decode(text)
            .map_err(|error| HistogramError::Read(error.to_string()))?;
        Self::from_v2(&bytes)
    }
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.to_base64().map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_base64(&text).map_err(serde::de::Error::custom)
    }
}
