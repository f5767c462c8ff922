//! Heads and bodies of HTTP/2 and gRPC, and what of them means something here.

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header,
};
use wire::http2::{Answer, Payload, grpc as framing};

use super::grpc;
use crate::script::Outcome;
use crate::service::message::{self, FAILED, MOST_FAILED, TIMEOUT};
use crate::service::outbox::FILLER;
use crate::service::plan::{CallPlan, REVISION};
use crate::service::reply::Reply;
use crate::service::request_state::{ActiveRequest, Attempt};
use crate::{Nanos, topology::Protocol};
use traces::context;
use traces::failure;

/// The request of a call; `None`: its path or callee has no form in HTTP/2.
pub(in crate::service) fn request(
    active: &ActiveRequest,
    call: &CallPlan,
    attempt: &Attempt,
    protocol: Protocol,
    now: Nanos,
) -> Option<(Request<()>, Payload)> {
    let (plan, state) = (&active.plan, &active.state);
    let path = call.path_or(&state.path);
    let is_grpc = protocol == Protocol::Grpc;
    let mut uri = http::uri::Parts::default();
    uri.scheme = Some(Scheme::HTTP);
    uri.authority = Authority::try_from(call.peer.as_bytes()).ok();
    uri.path_and_query = Some(if is_grpc {
        PathAndQuery::from_static(grpc::METHOD)
    } else {
        PathAndQuery::try_from(path).ok()?
    });
    let mut request = Request::new(());
    *request.uri_mut() = Uri::from_parts(uri).ok()?;
    if is_grpc || attempt.bytes > 0 {
        *request.method_mut() = Method::POST;
    }
    let fields = request.headers_mut();
    put(fields, REVISION, &plan.fingerprint);
    let mut lines = Vec::with_capacity(256);
    context::write(
        plan.topology.tracing.forms(),
        &attempt.context(state),
        &mut lines,
    );
    put_lines(fields, &lines);
    let left = attempt.deadline.saturating_sub(now).max(1);
    if is_grpc {
        put_kind(fields, grpc::CONTENT_TYPE);
        fields.insert(header::TE, HeaderValue::from_static("trailers"));
        put(fields, grpc::PATH, path);
        put(fields, grpc::TIMEOUT, grpc::timeout(left).as_bytes());
        return Some((request, message_of(attempt.bytes)));
    }
    fields.insert(TIMEOUT, HeaderValue::from(message::milliseconds(left)));
    Some((request, filled(Vec::new(), attempt.bytes)))
}

/// What a request asks for.
pub(in crate::service) struct Ask<'a> {
    pub(in crate::service) path: &'a [u8],
    pub(in crate::service) deadline: Nanos,
    /// The method is HEAD.
    pub(in crate::service) bodiless: bool,
}

/// Parses a head; `Err`: the status, or gRPC's code, that refuses it.
pub(in crate::service) fn parse_request(
    head: &http::request::Parts,
    protocol: Protocol,
    started: Nanos,
) -> Result<Ask<'_>, u16> {
    let field = |name: &str| head.headers.get(name).map(HeaderValue::as_bytes);
    if protocol == Protocol::Grpc {
        let kind = field("content-type").unwrap_or_default();
        if head.method != Method::POST || !kind.starts_with(grpc::CONTENT_TYPE.as_bytes()) {
            return Err(415);
        }
        if head.uri.path() != grpc::METHOD {
            return Err(501);
        }
        let length = field(grpc::TIMEOUT).and_then(grpc::read_timeout);
        return Ok(Ask {
            path: field(grpc::PATH).unwrap_or(b"/"),
            deadline: length.map_or(Nanos::MAX, |length| started.saturating_add(length)),
            bodiless: false,
        });
    }
    if ![Method::GET, Method::HEAD, Method::POST].contains(&head.method) {
        return Err(405);
    }
    Ok(Ask {
        path: head.uri.path().as_bytes(),
        deadline: message::deadline(field(TIMEOUT), started),
        bodiless: head.method == Method::HEAD,
    })
}

/// An answer without a body that says no more than its status.
pub(in crate::service) fn refusal(status: u16, protocol: Protocol) -> Response<()> {
    if protocol == Protocol::Grpc && status != 415 {
        // All that gRPC says of such a call stands in the head ("Trailers-Only").
        let mut response = Response::new(());
        let fields = response.headers_mut();
        put_kind(fields, grpc::CONTENT_TYPE);
        fields.insert(grpc::STATUS, HeaderValue::from(grpc::code(status)));
        return response;
    }
    head_of(status)
}

/// A head without fields.
fn head_of(status: u16) -> Response<()> {
    let mut head = Response::new(());
    *head.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    head
}

/// A whole answer: head, body, trailers.
pub(in crate::service) fn answer(
    active: &mut ActiveRequest,
    protocol: Protocol,
    reply: Reply,
) -> (Response<()>, Payload, Option<HeaderMap>) {
    let is_grpc = protocol == Protocol::Grpc;
    let refused = is_grpc && grpc::code(reply.status) != 0;
    let mut head = match refused {
        true => refusal(reply.status, protocol),
        false => head_of(reply.status),
    };
    let fields = head.headers_mut();
    put(fields, REVISION, &active.plan.fingerprint);
    if let Some(failed) = reply.failed(&active.state) {
        put(fields, FAILED, failed);
        if refused {
            put(fields, "grpc-message", failed);
        }
    }
    if refused {
        return (head, Payload::default(), None);
    }
    let mut text = match is_grpc {
        true => grpc::prefix(reply.length(active)),
        false => Vec::new(),
    };
    let bytes = reply.write(active, &mut text);
    let body = filled(text, bytes);
    if is_grpc {
        put_kind(fields, grpc::CONTENT_TYPE);
        let mut trailers = HeaderMap::with_capacity(1);
        trailers.insert(grpc::STATUS, HeaderValue::from_static("0"));
        return (head, body, Some(trailers));
    }
    put_kind(fields, "text/plain; charset=utf-8");
    fields.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    let body = if active.state.bodiless {
        Payload::default()
    } else {
        body
    };
    (head, body, None)
}

/// How a call was answered: its outcome, what its answer says about a failure, the part of
/// the body that was kept.
pub(in crate::service) fn outcome(answer: &Answer, protocol: Protocol) -> (Outcome, &[u8], &[u8]) {
    let failed = answer
        .headers
        .get(FAILED)
        .or_else(|| answer.trailers.as_ref()?.get(FAILED))
        .map_or(&b""[..], HeaderValue::as_bytes);
    let failed = failed.get(..MOST_FAILED).unwrap_or(failed);
    if protocol != Protocol::Grpc {
        return (Outcome::Answered(answer.status), failed, &answer.body);
    }
    match framing::status(answer).code {
        0 if answer.body_bytes < framing::PREFIX as u64 => {
            (Outcome::Unanswered(failure::MALFORMED), failed, b"")
        }
        0 => {
            let body = grpc::body(&answer.body).unwrap_or_default();
            (Outcome::Answered(200), failed, body)
        }
        code => (Outcome::Answered(grpc::status(code)), failed, b""),
    }
}

/// A message of so many bytes of no meaning.
fn message_of(bytes: u64) -> Payload {
    filled(grpc::prefix(bytes), bytes)
}

fn filled(first: Vec<u8>, bytes: u64) -> Payload {
    Payload::filled(first.into(), Bytes::from_static(FILLER), bytes)
}

/// Sets the content type.
fn put_kind(fields: &mut HeaderMap, kind: &'static str) {
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
}

/// Sets a field; one that HTTP/2 does not allow is left out.
fn put(fields: &mut HeaderMap, name: &'static str, value: &[u8]) {
    if let Ok(value) = HeaderValue::from_bytes(value) {
        fields.insert(name, value);
    }
}

/// Adds field lines, each with its line end.
fn put_lines(fields: &mut HeaderMap, lines: &[u8]) {
    for line in lines.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
        {
            fields.append(name, value);
        }
    }
}
