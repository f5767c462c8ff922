//! The health protocol of gRPC: `grpc.health.v1.Health/Check`.
//!
//! Messages and statuses are those of `grpc/health/v1/health.proto`.

use bytes::Bytes;
use http_body_util::Full;
use prost::Message;
use wire::http2::{Answer, grpc};

use super::value::Value;

/// The call.
const METHOD: &str = "/grpc.health.v1.Health/Check";
/// Most bytes of an answer, whose message has two.
const ANSWER_BYTES: usize = 64 << 10;
/// The status of a server that serves.
const SERVING: i32 = 1;

#[derive(Clone, PartialEq, Message)]
struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, Message)]
struct HealthCheckResponse {
    #[prost(int32, tag = "1")]
    status: i32,
}

/// Asks a server whether it serves; the value is 1 if it does.
///
/// # Errors
/// When it says anything else, or nothing.
pub(super) async fn check(host: &str, service: &str) -> Result<Value, String> {
    let question = HealthCheckRequest {
        service: service.to_owned(),
    };
    let framed = grpc::frame(&question.encode_to_vec()).map_err(|error| error.to_string())?;
    let head = grpc::request(false, host, METHOD).map_err(|error| error.to_string())?;
    let request = head.map(|()| Full::new(framed));
    let answer = net::http2_exchange(host, None, request, ANSWER_BYTES).await;
    let answer = answer.map_err(|error| error.to_string())?;
    let status = grpc::status(&Answer {
        status: answer.status.as_u16(),
        headers: answer.headers,
        trailers: answer.trailers,
        body_bytes: answer.body.len() as u64,
        body: Vec::new(),
    });
    if status.code != 0 {
        return Err(format!("gRPC status {}: {}", status.code, status.message));
    }
    serves(&answer.body)
}

fn serves(body: &Bytes) -> Result<Value, String> {
    let message = grpc::message(body).map_err(|error| error.to_string())?;
    let answer = HealthCheckResponse::decode(message)
        .map_err(|error| format!("the answer is no HealthCheckResponse: {error}"))?;
    match answer.status {
        SERVING => Ok(Value::Number(f64::from(SERVING))),
        0 => Err("it says UNKNOWN".to_owned()),
        2 => Err("it says NOT_SERVING".to_owned()),
        3 => Err("it says SERVICE_UNKNOWN".to_owned()),
        other => Err(format!(
            "it says status {other}, which the protocol does not have"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_serving_is_well() {
        let says = |message: &[u8]| serves(&grpc::frame(message).unwrap());
        assert_eq!(says(&[8, 1]), Ok(Value::Number(1.0)));
        assert_eq!(says(&[8, 2]), Err("it says NOT_SERVING".into()));
        // Proto3 leaves out a 0.
        assert_eq!(says(&[]), Err("it says UNKNOWN".into()));
        assert!(says(&[8, 9]).unwrap_err().contains("status 9"));
        assert!(says(&[255]).unwrap_err().contains("no HealthCheckResponse"));
        assert!(serves(&Bytes::from_static(b"x")).is_err());
    }
}
