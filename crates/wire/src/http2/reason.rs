//! Codes of errors (RFC 9113 section 7).

use std::fmt;

/// Why a stream or a connection ended, as one side tells the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reason(u32);

/// Codes with their names and what they mean.
macro_rules! reasons {
    ($($(#[$doc:meta])* $code:literal $name:ident: $description:literal)*) => {
        impl Reason {
            $($(#[$doc])* pub const $name: Self = Self($code);)*

            /// Name and meaning; `None`: nobody knows.
            fn known(self) -> Option<(&'static str, &'static str)> {
                match self.0 {
                    $($code => Some((stringify!($name), $description)),)*
                    _ => None,
                }
            }
        }
    };
}

reasons! {
    /// Nothing is wrong.
    0 NO_ERROR: "not a result of an error"
    /// The peer broke the protocol.
    1 PROTOCOL_ERROR: "unspecific protocol error detected"
    /// Something is wrong on the side that says so.
    2 INTERNAL_ERROR: "unexpected internal error encountered"
    /// The peer sent more than was allowed.
    3 FLOW_CONTROL_ERROR: "flow-control protocol violated"
    /// Settings were not acknowledged in time.
    4 SETTINGS_TIMEOUT: "settings ACK not received in timely manner"
    /// A frame for a stream that had ended.
    5 STREAM_CLOSED: "received frame when stream half-closed"
    /// A frame of a wrong size.
    6 FRAME_SIZE_ERROR: "frame with invalid size"
    /// Nothing was done with the stream.
    7 REFUSED_STREAM: "refused stream before processing any application logic"
    /// Nobody needs the stream any more.
    8 CANCEL: "stream no longer needed"
    /// Compression of fields is broken.
    9 COMPRESSION_ERROR: "unable to maintain the header compression context"
    /// The connection of a tunnel broke.
    10 CONNECT_ERROR: "connection established in response to a CONNECT request was reset or abnormally closed"
    /// The peer behaves as an attacker does.
    11 ENHANCE_YOUR_CALM: "detected excessive load generating behavior"
    /// TLS is too weak.
    12 INADEQUATE_SECURITY: "security properties do not meet minimum requirements"
    /// The request wants HTTP/1.1.
    13 HTTP_1_1_REQUIRED: "endpoint requires HTTP/1.1"
}

impl From<u32> for Reason {
    fn from(code: u32) -> Self {
        Self(code)
    }
}

impl From<Reason> for u32 {
    fn from(reason: Reason) -> Self {
        reason.0
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known() {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "Reason({})", self.0),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known() {
            Some((_, meaning)) => f.write_str(meaning),
            None => write!(f, "unknown reason {}", self.0),
        }
    }
}
