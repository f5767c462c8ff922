//! What is sent, and what streams say of what came.

use std::mem;

use super::connection::Connection;
use super::fields::Fields;
use super::flow::{Allowance, Window};
use super::frames::{self, MOST, MOST_PAYLOAD};
use super::hpack::Block;
use super::streams::{Incoming, Outgoing, StreamKey};
use crate::http2::{Http2Error, Reason, StreamError};

/// Memory of what is to be sent that is kept when all was.
const KEPT: usize = 4096;

/// What may still come of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// More.
    Open,
    /// Nothing: it is whole.
    Ended,
    /// Nothing, for the stream has failed; what came before is there.
    Failed(StreamError),
}

impl Connection {
    /// What is to be sent on the connection.
    #[inline]
    pub fn out(&self) -> &[u8] {
        self.out.get(self.sent..).unwrap_or_default()
    }

    /// So many bytes of [`out`](Self::out) were sent.
    pub fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent >= self.out.len() {
            self.out.clear();
            self.out.shrink_to(KEPT);
            self.sent = 0;
        }
        self.wake_blocked();
    }

    /// Room for bodies in what waits to be sent.
    #[inline]
    fn space(&self) -> usize {
        self.settings
            .out_bytes
            .saturating_sub(self.out.len() - self.sent)
    }

    /// Tells streams that wait for room of the connection's that there is some: as many of them as
    /// have room for a frame.
    pub(super) fn wake_blocked(&mut self) {
        if self.blocked.is_empty() {
            return;
        }
        let mut room = self.allowance.room().min(self.space());
        while room > 0
            && let Some(key) = self.blocked.pop_front()
        {
            if let Some(stream) = self.streams.get_mut(key)
                && mem::take(&mut stream.blocked)
            {
                room = room.saturating_sub(MOST_PAYLOAD);
                self.touch(key);
            }
        }
    }

    /// Whether a stream can be opened.
    ///
    /// # Errors
    /// [`Http2Error::Full`] if that is not so now, others if it never will be.
    pub fn ready(&self) -> Result<(), Http2Error> {
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }
        match self.their_goaway {
            Some((_, reason)) => return Err(Http2Error::GoAway(reason)),
            // The numbers are used up.
            None if self.next_ours > MOST => return Err(Http2Error::Closed),
            None => {}
        }
        match self.streams.count_open() < self.most_streams() {
            true => Ok(()),
            false => Err(Http2Error::Full),
        }
    }

    /// Opens a stream for a request, whose pseudo-header fields and others `write` adds in this
    /// order. `ends`: it has no body; `bodiless`: its answer has none, whatever that says.
    /// Whoever gets the key must [`release`](Self::release) it.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub fn open(
        &mut self,
        ends: bool,
        bodiless: bool,
        write: impl FnOnce(&mut Block<'_>),
    ) -> Result<StreamKey, Http2Error> {
        self.ready()?;
        let id = self.next_ours;
        self.next_ours += 2;
        let window = Window::new(self.settings.stream_window.min(MOST));
        let allowance = Allowance::new(self.their_window);
        let key = self.streams.insert(id, window, allowance);
        if let Some(stream) = self.streams.get_mut(key) {
            (stream.held, stream.bodiless) = (true, bodiless);
            stream.outgoing = outgoing(ends);
        }
        self.write_head(id, ends, write);
        Ok(key)
    }

    /// Answers a request, with the status and fields that `write` adds. `ends`: nothing follows.
    /// Nothing happens if the stream is gone, or was answered.
    pub fn answer(&mut self, key: StreamKey, ends: bool, write: impl FnOnce(&mut Block<'_>)) {
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        if stream.failed.is_some() || stream.outgoing != Outgoing::Idle {
            return;
        }
        stream.outgoing = outgoing(ends);
        let id = stream.id;
        self.write_head(id, ends, write);
        self.settle(key);
    }

    /// Sends an interim answer (1xx) before the answer.
    pub fn answer_interim(&mut self, key: StreamKey, write: impl FnOnce(&mut Block<'_>)) {
        if let Some(stream) = self.streams.get(key)
            && stream.failed.is_none()
            && stream.outgoing == Outgoing::Idle
        {
            self.write_head(stream.id, false, write);
        }
    }

    pub(super) fn write_head(&mut self, id: u32, ends: bool, write: impl FnOnce(&mut Block<'_>)) {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; frames::HEAD]);
        write(&mut self.encoder.begin(&mut self.out));
        let end_stream = if ends { frames::END_STREAM } else { 0 };
        let length = self.out.len() - start - frames::HEAD;
        if length <= MOST_PAYLOAD {
            let flags = end_stream | frames::END_HEADERS;
            let head = frames::head(length, frames::HEADERS, flags, id);
            if let Some(place) = self.out.get_mut(start..start + frames::HEAD) {
                place.copy_from_slice(&head);
            }
            return;
        }
        let block = self.out.split_off(start + frames::HEAD);
        self.out.truncate(start);
        let last = block.len().div_ceil(MOST_PAYLOAD) - 1;
        for (at, part) in block.chunks(MOST_PAYLOAD).enumerate() {
            let (kind, flags) = match at {
                0 => (frames::HEADERS, end_stream),
                at if at == last => (frames::CONTINUATION, frames::END_HEADERS),
                _ => (frames::CONTINUATION, 0),
            };
            self.out
                .extend_from_slice(&frames::head(part.len(), kind, flags, id));
            self.out.extend_from_slice(part);
        }
    }

    /// Bytes of a body that can be sent on a stream now.
    pub fn room(&self, key: StreamKey) -> usize {
        match self.streams.get(key) {
            Some(stream) if stream.failed.is_none() && stream.outgoing == Outgoing::Begun => {
                let allowance = stream.allowance.room().min(self.allowance.room());
                allowance.min(self.space())
            }
            _ => 0,
        }
    }

    /// Sends bytes of a body behind a head, and says how many there was room for. If these were not
    /// all, the stream is touched when there is room. `ends`: nothing follows when all are sent.
    pub fn send(&mut self, key: StreamKey, bytes: &[u8], ends: bool) -> usize {
        let length = self.room(key).min(bytes.len());
        let Some(stream) = self.streams.get_mut(key) else {
            return 0;
        };
        if stream.failed.is_some() || stream.outgoing != Outgoing::Begun {
            return 0;
        }
        let id = stream.id;
        let last = ends && length == bytes.len();
        stream.allowance.spend(length);
        self.allowance.spend(length);
        if last {
            stream.outgoing = Outgoing::Ended;
        }
        if length < bytes.len()
            && stream.allowance.room() > 0
            && !mem::replace(&mut stream.blocked, true)
        {
            self.blocked.push_back(key);
        }
        let mut rest = bytes.get(..length).unwrap_or_default();
        let frames = length.div_ceil(MOST_PAYLOAD).max(1);
        self.out.reserve(length + frames * frames::HEAD);
        while !rest.is_empty() || last {
            let (part, behind) = rest.split_at(rest.len().min(MOST_PAYLOAD));
            let flags = match last && behind.is_empty() {
                true => frames::END_STREAM,
                false => 0,
            };
            self.out
                .extend_from_slice(&frames::head(part.len(), frames::DATA, flags, id));
            self.out.extend_from_slice(part);
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        if last {
            self.settle(key);
        }
        self.wake_blocked();
        length
    }

    /// Ends a message with fields behind its body.
    pub fn send_trailers(&mut self, key: StreamKey, write: impl FnOnce(&mut Block<'_>)) {
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        if stream.failed.is_some() || stream.outgoing != Outgoing::Begun {
            return;
        }
        stream.outgoing = Outgoing::Ended;
        let id = stream.id;
        self.write_head(id, true, write);
        self.settle(key);
        self.wake_blocked();
    }

    /// Whether all of the message was taken to be sent.
    pub fn is_sent(&self, key: StreamKey) -> bool {
        let stream = self.streams.get(key);
        stream.is_none_or(|stream| stream.outgoing == Outgoing::Ended)
    }

    /// The head of what came; `None`: there is none yet.
    pub fn head(&self, key: StreamKey) -> Option<&Fields> {
        let stream = self.streams.get(key)?;
        (stream.incoming != Incoming::Awaited).then_some(&stream.head)
    }

    /// Forgets a head that was looked at; a long one gives its memory back.
    pub fn forget_head(&mut self, key: StreamKey) {
        if let Some(stream) = self.streams.get_mut(key) {
            stream.head.clear();
        }
    }

    /// Whether there are fields behind the body.
    pub fn has_trailers(&self, key: StreamKey) -> bool {
        let stream = self.streams.get(key);
        stream.is_some_and(|stream| stream.trailers.is_some())
    }

    /// Takes the next interim answer.
    pub fn take_interim(&mut self, key: StreamKey) -> Option<Fields> {
        let interim = &mut self.streams.get_mut(key)?.interim;
        (!interim.is_empty()).then(|| interim.remove(0))
    }

    /// What came of the body and was not used.
    #[inline]
    pub fn body(&self, key: StreamKey) -> &[u8] {
        let body = self.streams.get(key).map(|it| it.body.get(it.used..));
        body.flatten().unwrap_or_default()
    }

    /// So many bytes of the body were used: the peer may send as many more.
    pub fn use_body(&mut self, key: StreamKey, bytes: usize) {
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        let bytes = bytes.min(stream.waiting());
        stream.used += bytes;
        if stream.used == stream.body.len() {
            stream.body.clear();
            stream.used = 0;
        } else if stream.used >= stream.body.len() / 2 {
            stream.body.drain(..stream.used);
            stream.used = 0;
        }
        self.give_back_of_stream(key, bytes);
        self.give_back(bytes);
    }

    pub(super) fn give_back_of_stream(&mut self, key: StreamKey, bytes: usize) {
        if let Some(stream) = self.streams.get_mut(key)
            && stream.incoming == Incoming::Begun
            && stream.failed.is_none()
            && bytes > 0
            && let Some(more) = stream.window.give_back(bytes)
        {
            frames::window_update(stream.id, more, &mut self.out);
        }
    }

    /// What may still come of the message, behind [`body`](Self::body).
    pub fn reading(&self, key: StreamKey) -> Reading {
        match self.streams.get(key) {
            None => Reading::Failed(StreamError::Reset(Reason::CANCEL)),
            Some(stream) if stream.incoming == Incoming::Ended => Reading::Ended,
            Some(stream) => stream.failed.map_or(Reading::Open, Reading::Failed),
        }
    }

    /// Why a stream has failed, even if its message came whole; `None`: it has not.
    pub fn failure(&self, key: StreamKey) -> Option<StreamError> {
        self.streams.get(key)?.failed
    }

    /// Takes the fields behind the body.
    pub fn take_trailers(&mut self, key: StreamKey) -> Option<Fields> {
        self.streams.get_mut(key)?.trailers.take()
    }
}

fn outgoing(ends: bool) -> Outgoing {
    match ends {
        true => Outgoing::Ended,
        false => Outgoing::Begun,
    }
}
