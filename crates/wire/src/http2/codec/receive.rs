//! Frames that are received.

use std::mem;

use super::connection::{Connection, Continuing, Farewell, Role};
use super::fields::Fields;
use super::flow::{Allowance, Window};
use super::frames::{self, Frame, MOST, MOST_PAYLOAD, PREFACE};
use super::hpack::Decoded;
use super::streams::{Incoming, Outgoing, StreamKey};
use crate::http2::{Reason, StreamError};

/// Bytes beside [`Settings::out_bytes`](super::Settings::out_bytes) that may wait to be sent
/// before no more is read: answers to what a peer sends without reading.
const MOST_BEHIND: usize = 64 * 1024;
/// Bytes of heads that wait to be looked at before no more is read.
const MOST_OPENED: usize = 256 * 1024;
/// Frames of one block beside those that its bytes need (CVE-2024-27316).
const MOST_CONTINUATIONS: usize = 8;
/// Frames of `DATA` without a byte and an end, beside one for each with bytes (CVE-2019-9518).
const MOST_EMPTY: usize = 100;
/// Interim answers that wait to be looked at, of one stream.
const MOST_INTERIM: usize = 16;
/// Memory of input and blocks that is kept.
const KEPT: usize = 4096;

/// What is done with a frame: what is wrong ends the connection.
type Done = Result<(), Reason>;

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
    fn is_idle(&self, id: u32) -> bool {
        match (self.role, id % 2) {
            (Role::Server, 1) => id > self.last_theirs,
            (Role::Client, 1) => id >= self.next_ours,
            _ => true,
        }
    }

    /// A rule was broken on a stream, which ends with that.
    fn stream_error(&mut self, id: u32, reason: Reason) -> Done {
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

    fn is_cut(&self, id: u32) -> bool {
        self.cut.contains(&id)
    }

    fn headers(&mut self, frame: Frame, payload: &[u8]) -> Done {
        let id = frame.stream;
        if id == 0 || (id % 2 == 0) {
            return Err(Reason::PROTOCOL_ERROR);
        }
        let mut block = frame.unpadded(payload)?;
        let mut malformed = false;
        if frame.has(frames::WITH_PRIORITY) {
            let (priority, rest) = block.split_at_checked(5).ok_or(Reason::FRAME_SIZE_ERROR)?;
            malformed = frames::number(priority).is_some_and(|it| it & MOST == id);
            block = rest;
        }
        let ends = frame.has(frames::END_STREAM);
        if frame.has(frames::END_HEADERS) {
            return self.message(id, ends, malformed, block);
        }
        self.block.clear();
        self.block.extend_from_slice(block);
        self.continuing = Some(Continuing {
            stream: id,
            ends,
            malformed,
            frames: 0,
        });
        Ok(())
    }

    fn continuation(&mut self, frame: Frame, payload: &[u8]) -> Done {
        let most = (self.settings.head_bytes as usize).saturating_add(MOST_PAYLOAD);
        let most_frames = MOST_CONTINUATIONS + most / MOST_PAYLOAD * 2;
        let Some(continuing) = &mut self.continuing else {
            return Err(Reason::PROTOCOL_ERROR);
        };
        if continuing.stream != frame.stream {
            return Err(Reason::PROTOCOL_ERROR);
        }
        continuing.frames += 1;
        if self.block.len() + payload.len() > most || continuing.frames > most_frames {
            return Err(Reason::ENHANCE_YOUR_CALM);
        }
        self.block.extend_from_slice(payload);
        if !frame.has(frames::END_HEADERS) {
            return Ok(());
        }
        let (id, ends, malformed) = (continuing.stream, continuing.ends, continuing.malformed);
        self.continuing = None;
        let mut block = mem::take(&mut self.block);
        let done = self.message(id, ends, malformed, &block);
        block.clear();
        block.shrink_to(KEPT);
        self.block = block;
        done
    }

    /// A whole block came. It is read whatever becomes of its stream, for the table's sake.
    fn message(&mut self, id: u32, ends: bool, malformed: bool, block: &[u8]) -> Done {
        let mut fields = mem::take(&mut self.scratch);
        fields.clear();
        let most = self.settings.head_bytes as usize;
        let decoded = self.decoder.decode(block, &mut fields, most);
        let decoded = match decoded {
            Ok(_) if malformed => Decoded::Malformed,
            Ok(decoded) => decoded,
            Err(_) => return Err(Reason::COMPRESSION_ERROR),
        };
        let done = match (self.streams.find(id), self.role) {
            (Some(key), _) => self.further(key, id, ends, decoded, &mut fields),
            (None, Role::Server) if id > self.last_theirs => {
                self.request(id, ends, decoded, &mut fields)
            }
            (None, Role::Client) if self.is_idle(id) => Err(Reason::PROTOCOL_ERROR),
            // Late, for a stream that was given up here.
            (None, _) if self.is_cut(id) || (self.cut_forgotten && id != self.last_theirs) => {
                Ok(())
            }
            (None, Role::Server) if id == self.last_theirs => Err(Reason::STREAM_CLOSED),
            (None, Role::Server) => Err(Reason::PROTOCOL_ERROR),
            (None, Role::Client) => Err(Reason::STREAM_CLOSED),
        };
        self.scratch = fields;
        done
    }

    /// A client opens a stream.
    fn request(&mut self, id: u32, ends: bool, decoded: Decoded, fields: &mut Fields) -> Done {
        self.last_theirs = id;
        if let Farewell::Said(last) = self.farewell
            && id > last
        {
            return Ok(());
        }
        let most = self.settings.streams as usize;
        if self.streams.count_open() >= most || self.streams.count() >= most.saturating_mul(2) {
            frames::reset(id, Reason::REFUSED_STREAM, &mut self.out);
            self.remember_cut(id);
            return Ok(());
        }
        match decoded {
            Decoded::TooLarge => {
                self.write_head(id, true, |block| block.status(431));
                if !ends {
                    frames::reset(id, Reason::NO_ERROR, &mut self.out);
                    self.remember_cut(id);
                }
                return Ok(());
            }
            Decoded::Good if self.may_be_request(fields, ends) => {}
            _ => return self.stream_error(id, Reason::PROTOCOL_ERROR),
        }
        let window = Window::new(self.settings.stream_window.min(MOST));
        let key = self
            .streams
            .insert(id, window, Allowance::new(self.their_window));
        if let Some(stream) = self.streams.get_mut(key) {
            stream.expected = fields.content_length();
            stream.incoming = match ends {
                true => Incoming::Ended,
                false => Incoming::Begun,
            };
            mem::swap(&mut stream.head, fields);
            self.opened_bytes += stream.head.memory();
        }
        self.opened.push_back(key);
        Ok(())
    }

    /// Whether these can be the fields of a request (RFC 9113 section 8.3.1).
    fn may_be_request(&self, fields: &Fields, ends: bool) -> bool {
        if ends && fields.content_length().is_some_and(|length| length > 0) {
            return false;
        }
        let (scheme, path) = (fields.scheme().is_some(), fields.path().is_some());
        let shape = match (fields.method(), fields.protocol()) {
            (b"", _) => false,
            (b"CONNECT", None) => !scheme && !path && fields.authority().is_some(),
            (b"CONNECT", Some(_)) => scheme && path && self.settings.extended_connect,
            (_, protocol) => scheme && path && protocol.is_none(),
        };
        shape && fields.status().is_none()
    }

    /// A head or trailers came on a stream that is open.
    fn further(
        &mut self,
        key: StreamKey,
        id: u32,
        ends: bool,
        decoded: Decoded,
        fields: &mut Fields,
    ) -> Done {
        let Some(stream) = self.streams.get_mut(key) else {
            return Ok(());
        };
        let of_request = !fields.method().is_empty()
            || fields.scheme().is_some()
            || fields.authority().is_some()
            || fields.path().is_some()
            || fields.protocol().is_some();
        let good = decoded == Decoded::Good && !of_request;
        let wrong = match (stream.incoming, fields.status()) {
            (Incoming::Ended, _) => Some(Reason::STREAM_CLOSED),
            _ if !good => Some(Reason::PROTOCOL_ERROR),
            // Another protocol has no streams, and an interim answer is followed by another one.
            (Incoming::Awaited, Some(100..=199)) if !ends && fields.status() != Some(101) => {
                if stream.interim.len() < MOST_INTERIM {
                    stream.interim.push(mem::take(fields));
                    None
                } else {
                    Some(Reason::ENHANCE_YOUR_CALM)
                }
            }
            (Incoming::Awaited, Some(200..)) => {
                let status = fields.status();
                let none = stream.bodiless || matches!(status, Some(204 | 304));
                stream.expected = fields.content_length().filter(|_| !none);
                mem::swap(&mut stream.head, fields);
                stream.incoming = Incoming::Begun;
                match ends && stream.expected.is_some_and(|length| length > 0) {
                    true => Some(Reason::PROTOCOL_ERROR),
                    false => None,
                }
            }
            (Incoming::Begun, None) if ends && stream.expected.is_none_or(|left| left == 0) => {
                stream.trailers = Some(mem::take(fields));
                None
            }
            _ => Some(Reason::PROTOCOL_ERROR),
        };
        if let Some(reason) = wrong {
            return self.stream_error(id, reason);
        }
        if ends {
            stream.incoming = Incoming::Ended;
        }
        self.touch(key);
        self.settle(key);
        Ok(())
    }

    fn priority(&mut self, frame: Frame, payload: &[u8]) -> Done {
        let id = frame.stream;
        if id == 0 {
            return Err(Reason::PROTOCOL_ERROR);
        }
        let wrong = match (frame.length, frames::number(payload)) {
            (5, Some(on)) if on & MOST == id => Reason::PROTOCOL_ERROR,
            (5, _) => return Ok(()),
            _ => Reason::FRAME_SIZE_ERROR,
        };
        match self.streams.find(id) {
            Some(_) => self.stream_error(id, wrong),
            None => Err(wrong),
        }
    }

    fn reset_by_peer(&mut self, frame: Frame, payload: &[u8]) -> Done {
        let id = frame.stream;
        if frame.length != 4 {
            return Err(Reason::FRAME_SIZE_ERROR);
        }
        if id == 0 || self.is_idle(id) {
            return Err(Reason::PROTOCOL_ERROR);
        }
        let reason = Reason::from(frames::number(payload).unwrap_or_default());
        let Some(key) = self.streams.find(id) else {
            return Ok(());
        };
        if let Some(stream) = self.streams.get_mut(key) {
            if self.role == Role::Server && !stream.held {
                self.reset_early += 1;
                if self.reset_early > self.settings.early_resets {
                    return Err(Reason::ENHANCE_YOUR_CALM);
                }
            }
            if self.role == Role::Client && stream.incoming == Incoming::Ended {
                // The answer is whole; the rest of the request is not needed.
                stream.outgoing = Outgoing::Ended;
                self.touch(key);
                self.settle(key);
                return Ok(());
            }
        }
        let error = match reason {
            Reason::REFUSED_STREAM => StreamError::Refused,
            reason => StreamError::Reset(reason),
        };
        self.fail(key, error);
        Ok(())
    }

    fn settings(&mut self, frame: Frame, payload: &[u8]) -> Done {
        if frame.stream != 0 {
            return Err(Reason::PROTOCOL_ERROR);
        }
        if frame.has(frames::ACK) {
            return match frame.length {
                0 => Ok(()),
                _ => Err(Reason::FRAME_SIZE_ERROR),
            };
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Reason::FRAME_SIZE_ERROR);
        }
        for &[a, b, value @ ..] in settings {
            self.setting(u16::from_be_bytes([a, b]), u32::from_be_bytes(value))?;
        }
        let said = settings.iter().any(|it| it.starts_with(&[0, 3]));
        if !mem::replace(&mut self.greeted, true) && !said {
            // Nothing was said of how many: there is no limit.
            self.their_streams = u32::MAX;
        }
        frames::settings_ack(&mut self.out);
        Ok(())
    }

    fn setting(&mut self, setting: u16, value: u32) -> Done {
        match setting {
            frames::HEADER_TABLE_SIZE => self.encoder.resize(value as usize),
            frames::ENABLE_PUSH if value > 1 || (value == 1 && self.role == Role::Client) => {
                return Err(Reason::PROTOCOL_ERROR);
            }
            frames::MAX_CONCURRENT_STREAMS => self.their_streams = value,
            frames::INITIAL_WINDOW_SIZE => {
                if value > MOST {
                    return Err(Reason::FLOW_CONTROL_ERROR);
                }
                let by = i64::from(value) - i64::from(self.their_window);
                self.their_window = value;
                let open: Vec<StreamKey> = self.streams.open().collect();
                for key in open {
                    if let Some(stream) = self.streams.get_mut(key) {
                        stream.allowance.change(by)?;
                    }
                    if by > 0 {
                        self.touch(key);
                    }
                }
            }
            // Longer frames than all take would make other streams wait longer.
            frames::MAX_FRAME_SIZE if !(16_384..1 << 24).contains(&value) => {
                return Err(Reason::PROTOCOL_ERROR);
            }
            frames::ENABLE_CONNECT_PROTOCOL => match value {
                0 | 1 => self.their_connect = value == 1,
                _ => return Err(Reason::PROTOCOL_ERROR),
            },
            _ => {}
        }
        Ok(())
    }

    fn ping(&mut self, frame: Frame, payload: &[u8]) -> Done {
        if frame.stream != 0 {
            return Err(Reason::PROTOCOL_ERROR);
        }
        let payload = payload.first_chunk::<8>();
        let payload = payload.filter(|_| frame.length == 8);
        let payload = payload.ok_or(Reason::FRAME_SIZE_ERROR)?;
        if !frame.has(frames::ACK) {
            frames::ping(frames::ACK, payload, &mut self.out);
        } else if payload == super::LAST_PING && self.farewell == Farewell::Announced {
            // Whatever was on its way has come.
            self.farewell = Farewell::Said(self.last_theirs);
            frames::go_away(self.last_theirs, Reason::NO_ERROR, &mut self.out);
        }
        Ok(())
    }

    fn go_away(&mut self, frame: Frame, payload: &[u8]) -> Done {
        if frame.stream != 0 {
            return Err(Reason::PROTOCOL_ERROR);
        }
        let last = frames::number(payload).ok_or(Reason::FRAME_SIZE_ERROR)? & MOST;
        let code = payload.get(4..).and_then(frames::number);
        let reason = Reason::from(code.ok_or(Reason::FRAME_SIZE_ERROR)?);
        self.their_farewell = Some((last, reason));
        if self.role == Role::Server {
            return Ok(());
        }
        // What was left out was not looked at, and can be asked again elsewhere.
        let error = match reason {
            Reason::NO_ERROR => StreamError::Refused,
            reason => StreamError::GoAway(reason),
        };
        let left_out = |key: &StreamKey| self.streams.get(*key).is_some_and(|it| it.id > last);
        let left_out: Vec<StreamKey> = self.streams.open().filter(left_out).collect();
        for key in left_out {
            self.fail(key, error);
        }
        Ok(())
    }

    fn window_update(&mut self, frame: Frame, payload: &[u8]) -> Done {
        let id = frame.stream;
        if frame.length != 4 {
            return Err(Reason::FRAME_SIZE_ERROR);
        }
        let more = frames::number(payload).unwrap_or_default() & MOST;
        if id == 0 {
            if more == 0 {
                return Err(Reason::PROTOCOL_ERROR);
            }
            self.allowance.change(i64::from(more))?;
            self.wake_blocked();
            return Ok(());
        }
        if self.is_idle(id) {
            return Err(Reason::PROTOCOL_ERROR);
        }
        let Some(key) = self.streams.find(id) else {
            return Ok(());
        };
        if more == 0 {
            return self.stream_error(id, Reason::PROTOCOL_ERROR);
        }
        if let Some(stream) = self.streams.get_mut(key)
            && let Err(reason) = stream.allowance.change(i64::from(more))
        {
            return self.stream_error(id, reason);
        }
        self.touch(key);
        Ok(())
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
