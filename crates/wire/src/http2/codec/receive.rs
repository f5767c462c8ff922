//! Frames that are received.

use std::mem;

use super::connection::{Connection, Role};
use super::frames::{self, Frame, MOST_PAYLOAD, PREFACE};
use super::streams::{Incoming, StreamKey};
use crate::http2::{Reason, StreamError};

/// Bytes beside [`Settings::out_bytes`](super::Settings::out_bytes) that may wait to be sent
/// before no more is read: answers to what a peer sends without reading.
const MOST_BEHIND: usize = 64 * 1024;
/// Bytes of heads that wait to be looked at before no more is read.
const MOST_OPENED: usize = 256 * 1024;
/// Frames of `DATA` without a byte and an end, beside one for each with bytes (CVE-2019-9518).
const MOST_EMPTY: usize = 100;
/// Memory of input and blocks that is kept.
pub(super) const KEPT: usize = 4096;

/// What is done with a frame: what is wrong ends the connection.
pub(super) type Done = Result<(), Reason>;

impl Connection {
    /// Takes what came. What happened is then to be asked for; an error is in
    /// [`ended`](Self::ended), and what the peer is told of it in [`out`](Self::out).
    pub fn receive(&mut self, mut bytes: &[u8]) {
        let mut input = mem::take(&mut self.input);
        while !input.is_empty() {
            let missing = missing(&input).min(bytes.len());
            let (more, rest) = bytes.split_at(missing);
            input.extend_from_slice(more);
            bytes = rest;
            let used = self.read(&input);
            input.drain(..used);
            if used == 0 && (missing == 0 || bytes.is_empty()) {
                break;
            }
        }
        if input.is_empty() {
            let used = self.read(bytes);
            bytes = bytes.get(used..).unwrap_or_default();
        }
        input.extend_from_slice(bytes);
        if self.ended.is_some() {
            return;
        }
        if input.is_empty() {
            input.shrink_to(KEPT);
        }
        self.input = input;
    }

    /// Whether no more is taken in until heads were looked at and bytes were sent. What was
    /// received waits; [`receive`](Self::receive) goes on with it, also without new bytes.
    pub fn is_paused(&self) -> bool {
        self.ended.is_none()
            && (self.opened_bytes > MOST_OPENED
                || self.out.len() - self.sent > self.settings.out_bytes + MOST_BEHIND)
    }

    /// Whether frames wait that could be read.
    pub fn has_input(&self) -> bool {
        !self.input.is_empty() && missing(&self.input) == 0 && self.ended.is_none()
    }

    /// Reads whole frames, and says how many bytes these are.
    fn read(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        if self.preface > 0 {
            let expected = &PREFACE[PREFACE.len() - self.preface..];
            at = expected.len().min(bytes.len());
            if expected[..at] != bytes[..at] {
                self.break_off(Reason::PROTOCOL_ERROR);
            }
            self.preface -= at;
        }
        loop {
            if self.ended.is_some() {
                return bytes.len();
            }
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(frame) = Frame::read(rest) else {
                return at;
            };
            if frame.length > MOST_PAYLOAD {
                self.break_off(Reason::FRAME_SIZE_ERROR);
                continue;
            }
            let Some(payload) = rest.get(frames::HEAD..frames::HEAD + frame.length) else {
                return at;
            };
            if self.is_paused() {
                return at;
            }
            at += frames::HEAD + frame.length;
            if let Err(reason) = self.frame(frame, payload) {
                self.break_off(reason);
            }
        }
    }

    #[inline]
    fn frame(&mut self, frame: Frame, payload: &[u8]) -> Done {
        if self.continuing.is_some() != (frame.kind == frames::CONTINUATION) {
            return Err(Reason::PROTOCOL_ERROR);
        }
        if !self.greeted && (frame.kind != frames::SETTINGS || frame.has(frames::ACK)) {
            return Err(Reason::PROTOCOL_ERROR);
        }
        match frame.kind {
            frames::DATA => self.data(frame, payload),
            frames::HEADERS => self.headers(frame, payload),
            frames::CONTINUATION => self.continuation(frame, payload),
            frames::PRIORITY => self.priority(frame, payload),
            frames::RST_STREAM => self.reset_by_peer(frame, payload),
            frames::SETTINGS => self.settings(frame, payload),
            frames::PING => self.ping(frame, payload),
            frames::GOAWAY => self.go_away(frame, payload),
            frames::WINDOW_UPDATE => self.window_update(frame, payload),
            // Nobody asked for any.
            frames::PUSH_PROMISE => Err(Reason::PROTOCOL_ERROR),
            _ => Ok(()),
        }
    }

    /// Whether no stream with this number was ever opened.
    pub(super) fn is_idle(&self, id: u32) -> bool {
        match (self.role, id % 2) {
            (Role::Server, 1) => id > self.last_theirs,
            (Role::Client, 1) => id >= self.next_ours,
            _ => true,
        }
    }

    /// A rule was broken on a stream, which ends with that.
    pub(super) fn stream_error(&mut self, id: u32, reason: Reason) -> Done {
        frames::reset(id, reason, &mut self.out);
        self.remember_cut(id);
        if let Some(key) = self.streams.find(id) {
            self.fail(key, StreamError::Protocol(reason));
        }
        self.broken += 1;
        match self.broken > self.settings.broken_streams {
            true => Err(Reason::ENHANCE_YOUR_CALM),
            false => Ok(()),
        }
    }

    fn data(&mut self, frame: Frame, payload: &[u8]) -> Done {
        let id = frame.stream;
        if id == 0 || self.is_idle(id) {
            return Err(Reason::PROTOCOL_ERROR);
        }
        self.window.take(payload.len())?;
        let part = frame.unpadded(payload)?;
        let ends = frame.has(frames::END_STREAM);
        if !part.is_empty() {
            self.empty_frames = self.empty_frames.saturating_sub(1);
        } else if !ends {
            self.empty_frames += 1;
            if self.empty_frames > MOST_EMPTY {
                return Err(Reason::ENHANCE_YOUR_CALM);
            }
        }
        let Some(key) = self.streams.find(id) else {
            self.give_back(payload.len());
            return match self.is_cut(id) {
                true => Ok(()),
                false => self.stream_error(id, Reason::STREAM_CLOSED),
            };
        };
        let taken = self.take_data(key, payload.len(), part, ends);
        if let Err(reason) = taken {
            self.give_back(payload.len());
            return self.stream_error(id, reason);
        }
        // Padding is out of the way at once.
        let padding = payload.len() - part.len();
        self.give_back(padding);
        self.give_back_of_stream(key, padding);
        self.touch(key);
        self.settle(key);
        Ok(())
    }

    fn take_data(&mut self, key: StreamKey, all: usize, part: &[u8], ends: bool) -> Done {
        let Some(stream) = self.streams.get_mut(key) else {
            return Ok(());
        };
        match stream.incoming {
            Incoming::Awaited => return Err(Reason::PROTOCOL_ERROR),
            Incoming::Begun => {}
            Incoming::Ended => return Err(Reason::STREAM_CLOSED),
        }
        stream.window.take(all)?;
        if let Some(expected) = &mut stream.expected {
            let left = expected.checked_sub(part.len() as u64);
            *expected = left.ok_or(Reason::PROTOCOL_ERROR)?;
            if ends && *expected > 0 {
                return Err(Reason::PROTOCOL_ERROR);
            }
        }
        stream.body.extend_from_slice(part);
        if ends {
            stream.incoming = Incoming::Ended;
        }
        Ok(())
    }

    /// Whether a stream that is over was given up here, or may have been.
    pub(super) fn is_cut(&self, id: u32) -> bool {
        self.cut.contains(&id) || (self.cut_forgotten && id != self.last_theirs)
    }
}

/// How many bytes the frame that begins there lacks; 0: it is whole, or too long.
fn missing(input: &[u8]) -> usize {
    match Frame::read(input) {
        None => frames::HEAD - input.len(),
        Some(frame) if frame.length > MOST_PAYLOAD => 0,
        Some(frame) => (frames::HEAD + frame.length).saturating_sub(input.len()),
    }
}
