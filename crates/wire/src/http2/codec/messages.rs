//! Heads and trailers that are received.

use std::mem;

use super::connection::{Connection, Continuing, GoAwayState, Role};
use super::fields::Fields;
use super::flow::{Allowance, Window};
use super::frames::{self, Frame, MOST, MOST_PAYLOAD};
use super::hpack::Decoded;
use super::receive::{Done, KEPT};
use super::streams::{Incoming, StreamKey};
use crate::http2::Reason;

/// Frames of one block beside those that its bytes need (CVE-2024-27316).
const MOST_CONTINUATIONS: usize = 8;
/// Interim answers that wait to be looked at, of one stream.
const MOST_INTERIM: usize = 16;

impl Connection {
    pub(super) fn headers(&mut self, frame: Frame, payload: &[u8]) -> Done {
        let id = frame.stream;
        if id.is_multiple_of(2) {
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

    pub(super) fn continuation(&mut self, frame: Frame, payload: &[u8]) -> Done {
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
            (None, _) if self.is_cut(id) => Ok(()),
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
        if let GoAwayState::Said(last) = self.goaway
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
}
