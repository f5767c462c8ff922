//! Unary calls of gRPC over HTTP/2: a message in, a message out, and a status.

use std::cmp::Ordering;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, Method, Request, header};

use super::Answer;

/// Bytes before each message: a flag for compression and the length.
pub const PREFIX: usize = 5;

/// A message as it is sent: not compressed, behind its length.
///
/// # Errors
/// When the message is longer than the 32 bits of its length can say.
pub fn frame(message: &[u8]) -> Result<Bytes, GrpcError> {
    let length = u32::try_from(message.len()).map_err(|_| GrpcError::TooLarge(message.len()))?;
    let mut framed = BytesMut::with_capacity(PREFIX + message.len());
    framed.put_u8(0);
    framed.put_u32(length);
    framed.put_slice(message);
    Ok(framed.freeze())
}

/// The head of a call. `method` is the full one: `/package.Service/Method`.
///
/// # Errors
/// When authority or method cannot stand in a URI.
pub fn request(tls: bool, authority: &str, method: &str) -> Result<Request<()>, GrpcError> {
    Request::builder()
        .method(Method::POST)
        .uri(format!(
            "{}://{authority}{method}",
            if tls { "https" } else { "http" }
        ))
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, "trailers")
        .body(())
        .map_err(|error| GrpcError::Request(error.to_string()))
}

/// The one message in the body of a unary answer.
///
/// # Errors
/// When the body is not one whole message, or a compressed one.
pub fn message(body: &[u8]) -> Result<&[u8], GrpcError> {
    let Some((prefix, message)) = body.split_first_chunk::<PREFIX>() else {
        return Err(GrpcError::Message);
    };
    let [compressed, length @ ..] = *prefix;
    if compressed != 0 {
        return Err(GrpcError::Compressed);
    }
    if u32::from_be_bytes(length) as usize == message.len() {
        Ok(message)
    } else {
        Err(GrpcError::Message)
    }
}

/// The one message of a unary answer, of which not all need be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its start, as much as was kept.
    pub start: &'a [u8],
    /// How many bytes it has.
    pub length: u64,
    /// Whether they are compressed, as the answer's `grpc-encoding` says.
    pub compressed: bool,
}

/// The one message of an answer whose status is 0, which must have one. At least [`PREFIX`] bytes
/// of the answer's body must have been kept, and none need be.
///
/// # Errors
/// When the body is not one whole message, or a compressed one of no named encoding.
pub fn unary(answer: &Answer) -> Result<Message<'_>, GrpcError> {
    if answer.body_bytes == 0 {
        return Err(GrpcError::Missing);
    }
    let Some((prefix, start)) = answer.body.split_first_chunk::<PREFIX>() else {
        return Err(GrpcError::Cut);
    };
    let [compressed, length @ ..] = *prefix;
    let length = u64::from(u32::from_be_bytes(length));
    match answer.body_bytes.cmp(&(PREFIX as u64 + length)) {
        Ordering::Less => return Err(GrpcError::Cut),
        Ordering::Greater => return Err(GrpcError::Several),
        Ordering::Equal => {}
    }
    let encoding = answer.headers.get("grpc-encoding");
    let compressed = match compressed {
        0 => false,
        1 if encoding.is_some_and(|encoding| encoding != "identity") => true,
        1 => return Err(GrpcError::Unencoded),
        _ => return Err(GrpcError::Message),
    };
    Ok(Message {
        start,
        length,
        compressed,
    })
}

/// How a call went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// 0: well. Others as gRPC numbers them.
    pub code: u16,
    /// What the server has to say, percent-decoded; often nothing.
    pub message: String,
}

/// The status of a call: from the trailers, from the head of an answer that has nothing
/// else, or, if there is none, from the HTTP status as gRPC's mapping says.
pub fn status(answer: &Answer) -> Status {
    let from = |fields: &HeaderMap| {
        let code = fields.get("grpc-status")?.to_str().ok()?.parse().ok()?;
        let message = fields
            .get("grpc-message")
            .map(|text| percent_decoded(text.as_bytes()));
        Some(Status {
            code,
            message: message.unwrap_or_default(),
        })
    };
    answer
        .trailers
        .as_ref()
        .and_then(from)
        .or_else(|| from(&answer.headers))
        .unwrap_or_else(|| Status {
            code: code_of_http(answer.status),
            message: format!("no grpc-status; HTTP status {}", answer.status),
        })
}

/// gRPC's own table, "HTTP to gRPC Status Code Mapping".
const fn code_of_http(status: u16) -> u16 {
    match status {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502 | 503 | 504 => 14,
        _ => 2,
    }
}

fn percent_decoded(text: &[u8]) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        let escaped = match rest {
            [b'%', high, low, ..] => (*high as char)
                .to_digit(16)
                .zip((*low as char).to_digit(16)),
            _ => None,
        };
        match escaped.and_then(|(high, low)| u8::try_from(high << 4 | low).ok()) {
            Some(byte) => {
                decoded.push(byte);
                rest = &rest[3..];
            }
            None => {
                decoded.push(byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// What is wrong with a message or a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrpcError {
    /// A message that cannot be framed.
    #[error("a message of {0} bytes is longer than gRPC can carry (4 GiB)")]
    TooLarge(usize),
    /// A head that cannot be made.
    #[error("the call cannot be made: {0}; expected an authority and /package.Service/Method")]
    Request(String),
    /// A body that is not one message.
    #[error("the answer's body is not exactly one message")]
    Message,
    /// A compressed message, which was not asked for.
    #[error("the answer's message is compressed, which was not asked for")]
    Compressed,
    /// No message, though the status is 0.
    #[error("the answer has status 0 and no message")]
    Missing,
    /// A body that ends within a message.
    #[error("the answer's body ends before its message does")]
    Cut,
    /// A body that goes on behind its message.
    #[error("the answer has more than one message, and the call is unary")]
    Several,
    /// A compressed message of an answer that does not say how.
    #[error("the answer's message is compressed, and no grpc-encoding says how")]
    Unencoded,
}

impl GrpcError {
    /// The same as a short constant text, to count by.
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::TooLarge(_) => "message too large",
            Self::Request(_) => "bad grpc call",
            Self::Message => "bad grpc message",
            Self::Compressed => "compressed grpc message",
            Self::Missing => "no grpc message",
            Self::Cut => "cut grpc message",
            Self::Several => "several grpc messages",
            Self::Unencoded => "no grpc-encoding",
        }
    }
}
