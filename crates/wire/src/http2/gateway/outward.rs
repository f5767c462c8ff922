//! A body of HTTP/1.1 on its way to HTTP/2.

use super::inward::Failed;
use super::{ROOM, heads};
use crate::http1::Sink;
use crate::http2::codec::{Connection, StreamKey};

/// One body on its way: the parts that wait for the peer's leave to be sent.
#[derive(Debug, Default)]
pub(super) struct Outward {
    parts: Parts,
    /// The last part is among them.
    whole: bool,
    ended: bool,
}

/// What a scanner found behind a head.
#[derive(Debug, Default)]
pub(super) struct Parts {
    data: Vec<u8>,
    /// Bytes of these that were sent.
    sent: usize,
    /// Fields behind them, as lines.
    trailers: Option<Vec<u8>>,
}

impl Parts {
    /// Whether there is nothing to send.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting() == 0 && self.trailers.is_none()
    }

    fn waiting(&self) -> usize {
        self.data.len() - self.sent
    }
}

impl Sink for Parts {
    fn body(&mut self, part: &[u8]) {
        self.data.extend_from_slice(part);
    }

    fn trailers(&mut self, fields: &[u8]) {
        self.trailers = Some(fields.to_vec());
    }
}

impl Outward {
    /// A body behind a head that was sent; `ended`: with the mark that there is none.
    pub(super) fn new(parts: Parts, ended: bool) -> Self {
        Self {
            parts,
            whole: ended,
            ended,
        }
    }

    /// Where parts are put.
    pub(super) fn parts(&mut self) -> &mut Parts {
        &mut self.parts
    }

    /// Says that all parts are there.
    pub(super) fn finish(&mut self) {
        self.whole = true;
    }

    /// Whether no more should be read for now.
    pub(super) fn is_full(&self) -> bool {
        self.parts.waiting() >= ROOM
    }

    /// Whether all parts are there.
    pub(super) fn whole(&self) -> bool {
        self.whole
    }

    /// Whether there is something that waits for the peer's leave.
    pub(super) fn has_more(&self) -> bool {
        !self.ended && (self.whole || !self.parts.is_empty())
    }

    /// Whether everything was sent.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Sends what the peer lets through.
    ///
    /// # Errors
    /// When the stream has failed.
    pub(super) fn advance(
        &mut self,
        connection: &mut Connection,
        key: StreamKey,
    ) -> Result<(), Failed> {
        if self.ended {
            return Ok(());
        }
        if connection.failure(key).is_some() {
            return Err(Failed);
        }
        let parts = &mut self.parts;
        if parts.waiting() > 0 || (self.whole && parts.trailers.is_none()) {
            let rest = parts.data.get(parts.sent..).unwrap_or_default();
            let last = self.whole && parts.trailers.is_none();
            parts.sent += connection.send(key, rest, last);
            if parts.waiting() > 0 {
                if parts.sent > ROOM {
                    parts.data.drain(..parts.sent);
                    parts.sent = 0;
                }
                return Ok(());
            }
            parts.data.clear();
            parts.data.shrink_to(ROOM);
            parts.sent = 0;
            self.ended = last;
        }
        if self.whole
            && let Some(trailers) = parts.trailers.take()
        {
            self.ended = true;
            connection.send_trailers(key, |block| heads::write_trailers(&trailers, block));
        }
        Ok(())
    }
}
