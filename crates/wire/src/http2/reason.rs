//! Codes of errors (RFC 9113 section 7).

use std::fmt;

/// Why a stream or a connection ended, as one side tells the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reason(u32);

impl Reason {
    /// Nothing is wrong.
    pub const NO_ERROR: Self = Self(0);
    /// The peer broke the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// Something is wrong on the side that says so.
    pub const INTERNAL_ERROR: Self = Self(2);
    /// The peer sent more than was allowed.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// Settings were not acknowledged in time.
    pub const SETTINGS_TIMEOUT: Self = Self(4);
    /// A frame for a stream that had ended.
    pub const STREAM_CLOSED: Self = Self(5);
    /// A frame of a wrong size.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// Nothing was done with the stream.
    pub const REFUSED_STREAM: Self = Self(7);
    /// Nobody needs the stream any more.
    pub const CANCEL: Self = Self(8);
    /// Compression of fields is broken.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// The connection of a tunnel broke.
    pub const CONNECT_ERROR: Self = Self(10);
    /// The peer behaves as an attacker does.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);
    /// TLS is too weak.
    pub const INADEQUATE_SECURITY: Self = Self(12);
    /// The request wants HTTP/1.1.
    pub const HTTP_1_1_REQUIRED: Self = Self(13);

    /// What it means; empty: nobody knows.
    pub const fn description(self) -> &'static str {
        match self.0 {
            0 => "not a result of an error",
            1 => "unspecific protocol error detected",
            2 => "unexpected internal error encountered",
            3 => "flow-control protocol violated",
            4 => "settings ACK not received in timely manner",
            5 => "received frame when stream half-closed",
            6 => "frame with invalid size",
            7 => "refused stream before processing any application logic",
            8 => "stream no longer needed",
            9 => "unable to maintain the header compression context",
            10 => {
                "connection established in response to a CONNECT request was reset or abnormally closed"
            }
            11 => "detected excessive load generating behavior",
            12 => "security properties do not meet minimum requirements",
            13 => "endpoint requires HTTP/1.1",
            _ => "",
        }
    }
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
        match self.0 {
            0 => f.write_str("NO_ERROR"),
            1 => f.write_str("PROTOCOL_ERROR"),
            2 => f.write_str("INTERNAL_ERROR"),
            3 => f.write_str("FLOW_CONTROL_ERROR"),
            4 => f.write_str("SETTINGS_TIMEOUT"),
            5 => f.write_str("STREAM_CLOSED"),
            6 => f.write_str("FRAME_SIZE_ERROR"),
            7 => f.write_str("REFUSED_STREAM"),
            8 => f.write_str("CANCEL"),
            9 => f.write_str("COMPRESSION_ERROR"),
            10 => f.write_str("CONNECT_ERROR"),
            11 => f.write_str("ENHANCE_YOUR_CALM"),
            12 => f.write_str("INADEQUATE_SECURITY"),
            13 => f.write_str("HTTP_1_1_REQUIRED"),
            code => write!(f, "Reason({code})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.description() {
            "" => write!(f, "unknown reason {}", self.0),
            text => f.write_str(text),
        }
    }
}
