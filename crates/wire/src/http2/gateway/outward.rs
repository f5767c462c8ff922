//! A body of HTTP/1.1 on its way to HTTP/2.

use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use h2::{Reason, SendStream};
use http::HeaderMap;

use super::ROOM;
use super::heads;
use crate::http1::Sink;

/// One body on its way: the parts that wait for the peer's leave to be sent.
#[derive(Debug)]
pub(super) struct Outward {
    send: SendStream<Bytes>,
    parts: Parts,
    /// The last part is among them.
    whole: bool,
    ended: bool,
}

/// What a scanner found behind a head.
#[derive(Debug, Default)]
pub(super) struct Parts {
    data: BytesMut,
    trailers: Option<HeaderMap>,
}

impl Parts {
    /// Whether there is nothing to send.
    pub(super) fn is_empty(&self) -> bool {
        self.data.is_empty() && self.trailers.is_none()
    }
}

impl Sink for Parts {
    fn body(&mut self, part: &[u8]) {
        self.data.extend_from_slice(part);
    }

    fn trailers(&mut self, fields: &[u8]) {
        self.trailers = Some(heads::trailers(fields));
    }
}

impl Outward {
    /// A body behind a head that was sent; `ended`: with the mark that there is none.
    pub(super) fn new(send: SendStream<Bytes>, ended: bool) -> Self {
        Self {
            send,
            parts: Parts::default(),
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
        self.parts.data.len() >= ROOM
    }

    /// Whether all parts are there.
    pub(super) fn whole(&self) -> bool {
        self.whole
    }

    /// Whether there is something that waits for the peer's leave.
    pub(super) fn has_more(&self) -> bool {
        !self.ended && (self.whole || !self.parts.is_empty())
    }

    /// Ready when the peer has given the stream up.
    pub(super) fn poll_reset(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.send.poll_reset(context).map(drop)
    }

    /// Whether everything was sent.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Gives up.
    pub(super) fn reset(&mut self, reason: Reason) {
        self.send.send_reset(reason);
    }

    /// Sends what the peer lets through; an error when it has reset the stream.
    pub(super) fn advance(&mut self, context: &mut Context<'_>) -> Result<(), h2::Error> {
        if self.ended {
            return Ok(());
        }
        if let Poll::Ready(reset) = self.send.poll_reset(context) {
            return Err(reset?.into());
        }
        while !self.parts.data.is_empty() {
            let waiting = self.parts.data.len();
            self.send.reserve_capacity(waiting);
            while self.send.capacity() == 0 {
                match self.send.poll_capacity(context) {
                    Poll::Ready(Some(room)) => {
                        room?;
                    }
                    Poll::Ready(None) => return Err(Reason::CANCEL.into()),
                    Poll::Pending => return Ok(()),
                }
            }
            let room = self.send.capacity().min(waiting);
            let part = self.parts.data.split_to(room).freeze();
            let last = self.whole && self.parts.is_empty();
            self.send.send_data(part, last)?;
            self.ended |= last;
        }
        if self.whole && !self.ended {
            self.ended = true;
            match self.parts.trailers.take() {
                Some(trailers) => self.send.send_trailers(trailers)?,
                None => self.send.send_data(Bytes::new(), true)?,
            }
        }
        Ok(())
    }
}
