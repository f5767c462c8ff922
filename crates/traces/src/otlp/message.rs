//! The part of OpenTelemetry's messages that is used here
//! (`opentelemetry/proto/trace/v1/trace.proto` and those it needs), in protobuf and in the
//! JSON form that OTLP defines: ids as hexadecimal digits, numbers of 64 bits as texts.

use prost::{Message, Oneof};
use serde::{Deserialize, Serialize};

use super::json;

/// `ExportTraceServiceRequest`, and `TracesData`, which is the same.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Traces {
    #[prost(message, repeated, tag = "1")]
    #[serde(alias = "batches", deserialize_with = "json::some")]
    pub(super) resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    // Its name before OTLP 0.15, with the same tag in protobuf.
    #[serde(alias = "instrumentationLibrarySpans")]
    #[serde(deserialize_with = "json::some")]
    pub(super) scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json::some")]
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "json::some")]
    pub(super) spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Scope {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::some")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    #[serde(deserialize_with = "json::some")]
    pub(super) version: String,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(with = "json::hex")]
    pub(super) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(with = "json::hex")]
    pub(super) span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    #[serde(with = "json::hex", skip_serializing_if = "Vec::is_empty")]
    pub(super) parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    #[serde(deserialize_with = "json::some")]
    pub(super) name: String,
    /// 0 unspecified, 1 internal, 2 server, 3 client, 4 producer, 5 consumer.
    #[prost(int32, tag = "6")]
    #[serde(deserialize_with = "json::kind")]
    pub(super) kind: i32,
    #[prost(fixed64, tag = "7")]
    #[serde(with = "json::number")]
    pub(super) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    #[serde(with = "json::number")]
    pub(super) end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    #[serde(deserialize_with = "json::some")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    #[serde(deserialize_with = "json::some")]
    pub(super) flags: u32,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "String::is_empty")]
    #[serde(deserialize_with = "json::some")]
    pub(super) message: String,
    /// 0 unset, 1 ok, 2 error.
    #[prost(int32, tag = "3")]
    #[serde(deserialize_with = "json::code")]
    pub(super) code: i32,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::some")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

/// Fractions, lists, maps and bytes are values too; they read as none.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(from = "json::AnyValue", into = "json::AnyValue")]
pub(super) struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 2, 3")]
    pub(super) value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(int64, tag = "3")]
    Int(i64),
}
