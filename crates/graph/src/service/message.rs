//! The heads of requests and answers, and what of them means something here.

use http::StatusCode;
use wire::http1::write;

use super::outbox::Outbox;
use super::plan::{CallPlan, REVISION};
use super::reply::Reply;
use super::request_state::{ActiveRequest, Attempt};
use crate::Nanos;
use traces::context;
use wire::deadlines::NEVER;

/// How many milliseconds the caller will wait (Envoy's field).
pub(super) const TIMEOUT: &str = "x-envoy-expected-rq-timeout-ms";
/// The field of an answer that says which edge failed, and why.
pub(super) const FAILED: &str = "x-headroom-failed";
/// Bytes of that which are kept.
pub(super) const MOST_FAILED: usize = 256;
const MILLISECOND: Nanos = 1_000_000;

/// Writes the request of a call, as a whole.
pub(super) fn write_request(
    active: &ActiveRequest,
    call: &CallPlan,
    attempt: &Attempt,
    now: Nanos,
    outbox: &mut Outbox,
) {
    let (plan, state) = (&active.plan, &active.state);
    let out = outbox.write_buffer();
    let method: &[u8] = if attempt.bytes > 0 { b"POST " } else { b"GET " };
    out.extend_from_slice(method);
    out.extend_from_slice(call.path_or(&state.path));
    out.extend_from_slice(&call.head);
    context::write(plan.topology.tracing.forms(), &attempt.context(state), out);
    out.extend_from_slice(TIMEOUT.as_bytes());
    out.extend_from_slice(b": ");
    let left = attempt.deadline.saturating_sub(now);
    write::decimal(milliseconds(left), out);
    if attempt.bytes > 0 {
        out.extend_from_slice(b"\r\nContent-Length: ");
        write::decimal(attempt.bytes, out);
    }
    out.extend_from_slice(b"\r\n\r\n");
    outbox.fill(attempt.bytes);
}

/// A length of time as callees are told it: at least one millisecond.
pub(super) fn milliseconds(length: Nanos) -> u64 {
    length.div_ceil(MILLISECOND).max(1)
}

/// When the request must have been answered, by what its caller says.
pub(super) fn deadline(timeout: Option<&[u8]>, started: Nanos) -> Nanos {
    let milliseconds = timeout
        .and_then(|text| std::str::from_utf8(text).ok())
        .and_then(|text| text.parse::<u64>().ok());
    match milliseconds {
        // Envoy: no time-out.
        None | Some(0) => NEVER,
        Some(length) => started.saturating_add(length.saturating_mul(MILLISECOND)),
    }
}

/// The path of a target in any of its forms, without the query.
pub(super) fn path(target: &[u8]) -> &[u8] {
    let path = match target {
        [b'/', ..] => target,
        _ => {
            let after = |at: usize| target.get(at + 3..).unwrap_or_default();
            let rest = memchr(b"://", target).map_or(target, after);
            let slash = rest.iter().position(|byte| *byte == b'/');
            slash.and_then(|at| rest.get(at..)).unwrap_or(b"/")
        }
    };
    let end = path.iter().position(|byte| matches!(byte, b'?' | b'#'));
    end.and_then(|end| path.get(..end)).unwrap_or(path)
}

fn memchr(needle: &[u8], text: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|part| part == needle)
}

/// Writes the head of an answer.
pub(super) fn write_answer(
    active: &ActiveRequest,
    reply: Reply,
    keep_alive: bool,
    out: &mut Vec<u8>,
) {
    let (status, state) = (reply.status, &active.state);
    if status == 200 {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n");
    } else {
        out.extend_from_slice(b"HTTP/1.1 ");
        write::decimal(u64::from(status), out);
        out.push(b' ');
        out.extend_from_slice(reason(status));
        out.extend_from_slice(b"\r\nContent-Type: text/plain; charset=utf-8\r\n");
    }
    write::field(REVISION.as_bytes(), &active.plan.fingerprint, out);
    if let Some(failed) = reply.failed(state) {
        write::field(FAILED.as_bytes(), failed, out);
    }
    if !keep_alive {
        out.extend_from_slice(b"Connection: close\r\n");
    } else if state.old {
        // HTTP/1.0 must be told that the connection goes on.
        out.extend_from_slice(b"Connection: keep-alive\r\n");
    }
    out.extend_from_slice(b"Content-Length: ");
    write::decimal(reply.length(active), out);
    out.extend_from_slice(b"\r\n\r\n");
}

/// Writes a refusal, after which the connection ends.
pub(super) fn write_refusal(status: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write::decimal(u64::from(status), out);
    out.push(b' ');
    out.extend_from_slice(reason(status));
    if status == 405 {
        out.extend_from_slice(b"\r\nAllow: GET, HEAD, POST");
    }
    out.extend_from_slice(b"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
}

fn reason(status: u16) -> &'static [u8] {
    let known = || StatusCode::from_u16(status).ok()?.canonical_reason();
    match status {
        // As RFC 9110 has it.
        413 => b"Content Too Large",
        // A client goes by the number.
        _ => known().unwrap_or("Status").as_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_all_forms() {
        for (target, expected) in [
            ("/", "/"),
            ("/a/b?c=/d", "/a/b"),
            ("/a#b", "/a"),
            ("http://host:80/a?b", "/a"),
            ("http://host", "/"),
            ("http://host?a=/b", "/b"),
            ("*", "/"),
        ] {
            let found = path(target.as_bytes());
            assert_eq!(found, expected.as_bytes(), "{target}");
        }
    }

    #[test]
    fn a_caller_says_how_long_it_waits() {
        let of = |value: &str| deadline(Some(value.as_bytes()), 5);
        assert_eq!(deadline(None, 5), NEVER);
        assert_eq!(of("20"), 20 * MILLISECOND + 5);
        assert_eq!(of("0"), NEVER);
        assert_eq!(of("soon"), NEVER);
        assert_eq!(of("18446744073709551615"), NEVER);
    }
}
