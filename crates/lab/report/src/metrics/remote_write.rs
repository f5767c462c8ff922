//! Prometheus' remote write, version 1.0: what is posted is a message of protobuf, packed by snappy.
//!
//! Source: the specification at prometheus.io/docs/specs/prw/remote_write_spec.

use prost::Message;

use super::{Series, portions};

/// Headers of a request, beside those that say who sends it.
pub const HEADERS: [(&str, &str); 3] = [
    ("content-type", "application/x-protobuf"),
    ("content-encoding", "snappy"),
    ("x-prometheus-remote-write-version", "0.1.0"),
];

/// Samples of a request: what Prometheus itself sends at most, by its defaults.
const SAMPLES: usize = 2_000;

/// The value that ends a series, a NaN of its own.
const STALE: u64 = 0x7ff0_0000_0000_0002;

/// What is posted.
#[derive(Clone, PartialEq, Message)]
pub struct WriteRequest {
    /// Series with some of their samples.
    #[prost(message, repeated, tag = "1")]
    pub timeseries: Vec<TimeSeries>,
}

/// Samples of a series.
#[derive(Clone, PartialEq, Message)]
pub struct TimeSeries {
    /// Sorted by name; `__name__` is the metric's.
    #[prost(message, repeated, tag = "1")]
    pub labels: Vec<Label>,
    /// In order of time.
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<Sample>,
}

/// A name and a value.
#[derive(Clone, PartialEq, Message)]
pub struct Label {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Value, never empty: an empty one is the same as none.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// A number at a moment.
#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    /// The number.
    #[prost(double, tag = "1")]
    pub value: f64,
    /// Milliseconds since 1970.
    #[prost(int64, tag = "2")]
    pub timestamp: i64,
}

/// The series as requests, to be sent in this order, one after the other.
pub fn requests(all: &[Series]) -> impl Iterator<Item = WriteRequest> {
    portions(all, SAMPLES).into_iter().map(|portion| {
        let timeseries = portion.into_iter().map(|(series, samples)| TimeSeries {
            labels: labels(series),
            samples: samples.iter().map(sample).collect(),
        });
        WriteRequest {
            timeseries: timeseries.collect(),
        }
    })
}

fn labels(series: &Series) -> Vec<Label> {
    let label = |name: &str, value: &str| Label {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let own = series.labels.iter().filter(|(_, value)| !value.is_empty());
    let mut labels: Vec<Label> = own.map(|(name, value)| label(name, value)).collect();
    labels.push(label("__name__", series.metric.name));
    labels.push(label("job", "headroom"));
    labels.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    labels
}

fn sample(sample: &super::Sample) -> Sample {
    Sample {
        value: sample.value.unwrap_or(f64::from_bits(STALE)),
        timestamp: sample.unix_ns.div_euclid(1_000_000),
    }
}

/// A request as it is posted.
///
/// # Errors
/// It has more than 4 GiB, which [`requests`] never make.
pub fn body(request: &WriteRequest) -> Result<Vec<u8>, snap::Error> {
    snap::raw::Encoder::new().compress_vec(&request.encode_to_vec())
}
