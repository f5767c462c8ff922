//! Metrics of OpenTelemetry's protocol (OTLP 1), as they are posted to `/v1/metrics`.
//!
//! Source: opentelemetry-proto, collector/metrics/v1 and metrics/v1. Every number is a gauge.

use prost::Message;

use super::{Series, portions};

/// Header of a request, beside those that say who sends it.
pub const HEADERS: [(&str, &str); 1] = [("content-type", "application/x-protobuf")];

/// Points of a request: some hundred bytes each, where collectors take 4 MiB.
const POINTS: usize = 10_000;

/// The flag of a point that ends a series.
const NO_RECORDED_VALUE: u32 = 1;

/// What is posted.
#[derive(Clone, PartialEq, Message)]
pub struct ExportMetricsServiceRequest {
    /// By what they are about.
    #[prost(message, repeated, tag = "1")]
    pub resource_metrics: Vec<ResourceMetrics>,
}

/// Metrics of a resource.
#[derive(Clone, PartialEq, Message)]
pub struct ResourceMetrics {
    /// What they are about.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// By who found them.
    #[prost(message, repeated, tag = "2")]
    pub scope_metrics: Vec<ScopeMetrics>,
}

/// What metrics are about.
#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    /// `service.name` and `service.instance.id`.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// Metrics that one program found.
#[derive(Clone, PartialEq, Message)]
pub struct ScopeMetrics {
    /// The program.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    /// The metrics.
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<Metric>,
}

/// Who found metrics.
#[derive(Clone, PartialEq, Message)]
pub struct Scope {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// A metric with points of its series.
#[derive(Clone, PartialEq, Message)]
pub struct Metric {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// What it tells.
    #[prost(string, tag = "2")]
    pub description: String,
    /// Unit, as UCUM writes it.
    #[prost(string, tag = "3")]
    pub unit: String,
    /// Its points.
    #[prost(message, optional, tag = "5")]
    pub gauge: Option<Gauge>,
}

/// Points of numbers that go up and down.
#[derive(Clone, PartialEq, Message)]
pub struct Gauge {
    /// In order of time within a series.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
}

/// A number at a moment.
#[derive(Clone, PartialEq, Message)]
pub struct NumberDataPoint {
    /// Nanoseconds since 1970.
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    /// The number.
    #[prost(double, optional, tag = "4")]
    pub as_double: Option<f64>,
    /// What tells its series apart.
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<KeyValue>,
    /// 1: from here on there is no such number.
    #[prost(uint32, tag = "8")]
    pub flags: u32,
}

/// A name and a value.
#[derive(Clone, PartialEq, Message)]
pub struct KeyValue {
    /// Name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

/// A value; here always a text.
#[derive(Clone, PartialEq, Message)]
pub struct AnyValue {
    /// The text.
    #[prost(string, optional, tag = "1")]
    pub string_value: Option<String>,
}

/// What is answered.
#[derive(Clone, PartialEq, Message)]
pub struct ExportMetricsServiceResponse {
    /// What was not taken.
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<PartialSuccess>,
}

/// Points that were not taken.
#[derive(Clone, PartialEq, Message)]
pub struct PartialSuccess {
    /// How many.
    #[prost(int64, tag = "1")]
    pub rejected_data_points: i64,
    /// Why; without points that were refused it is a warning.
    #[prost(string, tag = "2")]
    pub error_message: String,
}

/// The series of a run as requests, to be sent in this order, one after the other.
pub fn requests(all: &[Series], run: &str) -> impl Iterator<Item = ExportMetricsServiceRequest> {
    let resource = Resource {
        attributes: vec![
            attribute("service.name", "headroom"),
            attribute("service.instance.id", run),
        ],
    };
    portions(all, POINTS).into_iter().map(move |portion| {
        let mut metrics: Vec<Metric> = Vec::new();
        for (series, samples) in portion {
            let points = samples.iter().map(|sample| point(series, sample));
            if metrics
                .last()
                .is_none_or(|last| last.name != series.metric.name)
            {
                metrics.push(Metric {
                    name: series.metric.name.to_owned(),
                    description: series.metric.about.to_owned(),
                    unit: series.metric.unit.to_owned(),
                    gauge: Some(Gauge::default()),
                });
            }
            if let Some(gauge) = metrics.last_mut().and_then(|last| last.gauge.as_mut()) {
                gauge.data_points.extend(points);
            }
        }
        ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(resource.clone()),
                scope_metrics: vec![ScopeMetrics {
                    scope: Some(Scope {
                        name: "headroom".to_owned(),
                    }),
                    metrics,
                }],
            }],
        }
    })
}

fn point(series: &Series, sample: &super::Sample) -> NumberDataPoint {
    let labels = series.labels.iter().filter(|(_, value)| !value.is_empty());
    NumberDataPoint {
        // Runs began after 1970.
        time_unix_nano: u64::try_from(sample.unix_ns).unwrap_or(0),
        as_double: sample.value,
        attributes: labels.map(|(name, value)| attribute(name, value)).collect(),
        flags: match sample.value {
            Some(_) => 0,
            None => NO_RECORDED_VALUE,
        },
    }
}

fn attribute(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            string_value: Some(value.to_owned()),
        }),
    }
}

/// A request as it is posted.
#[must_use]
pub fn body(request: &ExportMetricsServiceRequest) -> Vec<u8> {
    request.encode_to_vec()
}

/// What an answer says of points that were not taken; nothing if all were, or if it cannot be read.
#[must_use]
pub fn refused(answer: &[u8]) -> Option<String> {
    let answer = ExportMetricsServiceResponse::decode(answer).ok()?;
    let refused = answer.partial_success?;
    let count = refused.rejected_data_points;
    (count > 0).then(|| format!("{count} points: {}", refused.error_message))
}
