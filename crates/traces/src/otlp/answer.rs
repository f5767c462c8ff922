//! What a collector answers (`collector/trace/v1/trace_service.proto` of opentelemetry-proto, and
//! `google/rpc/status.proto`, as OTLP's specification asks for).

use prost::Message;
use serde::Serialize;

/// An answer to spans of which some were not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partial<'a> {
    /// Spans that were not taken.
    pub rejected: u64,
    /// Why.
    pub why: &'a str,
}

/// `ExportTraceServiceResponse`.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

/// `ExportTracePartialSuccess`.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct PartialSuccess {
    /// As a text in JSON, as every number of 64 bits.
    #[prost(int64, tag = "1")]
    #[serde(with = "super::json::number")]
    rejected_spans: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// `google.rpc.Status`, without its code, which HTTP tells.
#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
}

impl Partial<'_> {
    fn message(self) -> Response {
        let success = PartialSuccess {
            rejected_spans: i64::try_from(self.rejected).unwrap_or(i64::MAX),
            error_message: self.why.to_owned(),
        };
        Response {
            partial_success: (self.rejected > 0).then_some(success),
        }
    }

    /// As the body of an answer in protobuf: none, if all were taken.
    pub fn protobuf(self) -> Vec<u8> {
        self.message().encode_to_vec()
    }

    /// As the body of an answer in JSON.
    pub fn json(self) -> Vec<u8> {
        match self.rejected {
            0 => b"{}".to_vec(),
            // Neither a text nor a number of these messages can fail to be written.
            _ => serde_json::to_vec(&self.message()).unwrap_or_default(),
        }
    }
}

/// Spans that a collector did not take, by the body of its answer in protobuf. One that is no such
/// message tells of none.
pub fn rejected(answer: &[u8]) -> u64 {
    let response = Response::decode(answer).unwrap_or_default();
    let partial = response.partial_success.unwrap_or_default();
    u64::try_from(partial.rejected_spans).unwrap_or(0)
}

/// Why a request was refused, as the body of an answer in protobuf.
pub fn status_protobuf(why: &str) -> Vec<u8> {
    let message = why.to_owned();
    Status { message }.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_as_the_specification_has_them() {
        let all = Partial {
            rejected: 0,
            why: "",
        };
        assert_eq!((all.protobuf(), all.json()), (Vec::new(), b"{}".to_vec()));
        let some = Partial {
            rejected: 3,
            why: "no",
        };
        assert_eq!(some.protobuf(), b"\x0a\x06\x08\x03\x12\x02no");
        assert_eq!((rejected(&some.protobuf()), rejected(b"")), (3, 0));
        assert_eq!(rejected(b"<html>"), 0);
        assert_eq!(
            some.json(),
            br#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"no"}}"#
        );
        assert_eq!(status_protobuf("no"), b"\x12\x02no");
    }
}
