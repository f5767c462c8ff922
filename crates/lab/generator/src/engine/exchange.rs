//! The one exchange that a place carries at a time.

use lab_load::request::Visit;
use wire::http2::StreamKey;

use super::conversation::ResponseCapture;
use super::sampling::{End, Sample};

/// Why a request is sent later than it was meant to be, if it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Delay {
    /// Nothing kept it from being sent but this thread.
    #[default]
    Own,
    /// A connection had to be opened.
    Opening,
    /// All connections were busy and no more may be opened.
    Capped,
}

/// A request and its answer.
#[derive(Default)]
pub(super) struct Exchange {
    /// The journey that the request is part of.
    pub(super) visit: Option<Visit>,
    /// Its kind, as an index.
    pub(super) kind: usize,
    /// When it was meant to be sent, in nanoseconds from the start of the segment.
    pub(super) intended: u64,
    /// When it was sent.
    pub(super) sent: u64,
    /// Whether it was sent before, on a connection that the target was closing.
    pub(super) again: bool,
    /// Whether it is counted as sent.
    pub(super) counted: bool,
    /// Why it was sent later than it was due, if it was.
    pub(super) delay: Delay,
    /// How late it was found to be short of a connection, in nanoseconds.
    pub(super) found_late: u64,
    /// How late it was sent by the thread's own fault, in nanoseconds.
    pub(super) late: u64,
    /// How late any request was, then, that the target had not caught up with.
    pub(super) burst: u64,
    /// How much sooner a connection might have been free for it, had this thread read every answer
    /// at once.
    pub(super) pooled: u64,
    /// Whether its journey has left a transaction open that it goes on with.
    pub(super) holds: bool,
    /// Whether something of the answer has come in.
    pub(super) answering: bool,
    pub(super) kept: ResponseCapture,
    /// Its stream, where a connection carries several.
    pub(super) stream: Option<StreamKey>,
}

impl Exchange {
    /// Says why it is sent later than meant, unless it was sent before.
    pub(super) fn put_off(&mut self, delay: Delay) {
        if !self.counted {
            self.delay = delay;
        }
    }

    /// Makes it that of a request which was not sent before.
    pub(super) fn renew(&mut self, intended: u64) {
        self.intended = intended;
        (self.again, self.counted) = (false, false);
        self.found_late = 0;
    }

    /// Its sample in a segment that began at `zero`.
    pub(super) fn sample(&self, zero: u64, end: End) -> Sample {
        let sent = self.counted.then(|| self.sent.saturating_sub(zero));
        Sample {
            kind: self.kind,
            intended: self.intended.saturating_sub(zero),
            sent,
            waited: self.delay != Delay::Own,
            end,
        }
    }
}
