//! How large a request's head is, as gorouter measures it: without what frames its body, with
//! the id and the trace that the router has given it by then.

use wire::http1::{RequestBody, RequestHead};

use super::admit::part_of;
use super::exchange::Exchange;
use super::target::escaped;

/// More than the router adds to a head, in bytes and in fields.
const ADDED: usize = 4096;
const ADDED_FIELDS: usize = 16;

/// Whether a head has as many bytes as are too many, or more fields than it may have.
pub(super) fn is_too_large(
    head: &RequestHead,
    exchange: &Exchange,
    too_many_bytes: usize,
    most_fields: usize,
) -> bool {
    // Measuring costs a look at every field. Escaping makes three bytes of one at most.
    let longest = head.bytes().len().saturating_mul(3).saturating_add(ADDED);
    let fields = head.fields().count();
    if longest < too_many_bytes && fields + ADDED_FIELDS <= most_fields {
        return false;
    }
    let (bytes, fields) = measured(head, exchange);
    bytes >= too_many_bytes || fields > most_fields
}

/// Bytes and fields of a head.
fn measured(head: &RequestHead, exchange: &Exchange) -> (usize, usize) {
    let target = &exchange.target;
    let path = escaped(part_of(head.target(), &target.path));
    let query = part_of(head.target(), &target.query);
    let uri = path.len().max(1) + usize::from(target.has_query) + query.len();
    // Two spaces and a line's end; the name of the host's field, its colon and space, too.
    let line = head.method().len() + uri + "HTTP/1.1".len() + 4;
    let mut bytes = line + exchange.host.len() + 8;
    let mut fields = 0;
    for (name, value) in head.fields() {
        if !is_framing(head, name) && !is_own(name) {
            bytes += name.len() + value.len() + 4;
            fields += 1;
        }
    }
    for (_, field) in exchange.request.lines() {
        let name = memchr::memchr(b':', field).map_or(field, |at| &field[..at]);
        if is_own(name) {
            bytes += field.len();
            fields += 1;
        }
    }
    (bytes, fields)
}

/// Whether Go's server takes a field out of the others.
fn is_framing(head: &RequestHead, name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"Host")
        || name.eq_ignore_ascii_case(b"Transfer-Encoding")
        || (head.body() == RequestBody::Chunked && name.eq_ignore_ascii_case(b"Trailer"))
}

/// Whether the router may have set a field itself, in place of the client's or beside it.
fn is_own(name: &[u8]) -> bool {
    let own = [
        &b"X-Vcap-Request-Id"[..],
        b"B3",
        b"Traceparent",
        b"Tracestate",
    ];
    let b3 = name.get(..5).unwrap_or_default();
    b3.eq_ignore_ascii_case(b"X-B3-") || own.iter().any(|own| name.eq_ignore_ascii_case(own))
}
