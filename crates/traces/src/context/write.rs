//! Writing the context of a call.

use crate::hex;
use crate::{SpanId, TraceId};

/// The context that a call carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// The trace.
    pub trace: TraceId,
    /// The client span of the call, which the callee takes as its parent.
    pub span: SpanId,
    /// The server span that makes the call; zero: none. B3 sends it along.
    pub parent: SpanId,
    /// Whether the trace is recorded.
    pub sampled: bool,
    /// B3's debug flag, as it came.
    pub debug: bool,
    /// The field lines that [`read`](super::read) said to pass on.
    pub passed: &'a [u8],
}

/// The forms in which a context is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forms {
    /// W3C's `traceparent`.
    pub w3c: bool,
    /// Zipkin's `x-b3-traceid` and its kin.
    pub b3: bool,
}

/// Appends the field lines of a context to a request's head, names in lower case. Ids are
/// sent whether or not the trace is recorded: what the callee draws follows from them.
pub fn write(forms: Forms, outgoing: &Outgoing<'_>, out: &mut Vec<u8>) {
    if forms.w3c {
        out.extend_from_slice(b"traceparent: 00-");
        hex::write_trace(outgoing.trace, out);
        out.push(b'-');
        hex::write_span(outgoing.span, out);
        out.extend_from_slice(if outgoing.sampled {
            b"-01\r\n"
        } else {
            b"-00\r\n"
        });
    }
    if forms.b3 {
        out.extend_from_slice(b"x-b3-traceid: ");
        hex::write_short_trace(outgoing.trace, out);
        out.extend_from_slice(b"\r\nx-b3-spanid: ");
        hex::write_span(outgoing.span, out);
        if outgoing.parent != SpanId::default() {
            out.extend_from_slice(b"\r\nx-b3-parentspanid: ");
            hex::write_span(outgoing.parent, out);
        }
        // The flag stands for the decision too.
        out.extend_from_slice(match (outgoing.debug, outgoing.sampled) {
            (true, _) => b"\r\nx-b3-flags: 1\r\n",
            (false, true) => b"\r\nx-b3-sampled: 1\r\n",
            (false, false) => b"\r\nx-b3-sampled: 0\r\n",
        });
    }
    out.extend_from_slice(outgoing.passed);
}
