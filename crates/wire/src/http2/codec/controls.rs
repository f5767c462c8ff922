//! Frames that are received and carry no message.

use std::mem;

use super::connection::{Connection, GoAwayState, Role};
use super::frames::{self, Frame, MOST};
use super::receive::Done;
use super::streams::{Incoming, Outgoing, StreamKey};
use crate::http2::{Reason, StreamError};

impl Connection {
    pub(super) fn priority(&mut self, frame: Frame, payload: &[u8]) -> Done {
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

    pub(super) fn reset_by_peer(&mut self, frame: Frame, payload: &[u8]) -> Done {
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

    pub(super) fn settings(&mut self, frame: Frame, payload: &[u8]) -> Done {
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
        let window = self.their_window;
        for &[a, b, value @ ..] in settings {
            self.setting(u16::from_be_bytes([a, b]), u32::from_be_bytes(value))?;
        }
        // Once: a frame has room for 2,730 of them, and there are as many streams as are open.
        self.change_allowances(i64::from(self.their_window) - i64::from(window))?;
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
                self.their_window = value;
            }
            // Longer frames than all take would make other streams wait longer.
            frames::MAX_FRAME_SIZE if !(16_384..1 << 24).contains(&value) => {
                return Err(Reason::PROTOCOL_ERROR);
            }
            frames::ENABLE_CONNECT_PROTOCOL if value > 1 => return Err(Reason::PROTOCOL_ERROR),
            _ => {}
        }
        Ok(())
    }

    /// What may be sent on each stream changes with the window that streams begin with.
    fn change_allowances(&mut self, by: i64) -> Done {
        if by == 0 {
            return Ok(());
        }
        let open: Vec<StreamKey> = self.streams.open().collect();
        for key in open {
            if let Some(stream) = self.streams.get_mut(key) {
                stream.allowance.change(by)?;
            }
            if by > 0 {
                self.touch(key);
            }
        }
        Ok(())
    }

    pub(super) fn ping(&mut self, frame: Frame, payload: &[u8]) -> Done {
        if frame.stream != 0 {
            return Err(Reason::PROTOCOL_ERROR);
        }
        let payload = payload.first_chunk::<8>();
        let payload = payload.filter(|_| frame.length == 8);
        let payload = payload.ok_or(Reason::FRAME_SIZE_ERROR)?;
        if !frame.has(frames::ACK) {
            frames::ping(frames::ACK, payload, &mut self.out);
        } else if payload == super::LAST_PING && self.goaway == GoAwayState::Announced {
            // Whatever was on its way has come.
            self.goaway = GoAwayState::Said(self.last_theirs);
            frames::go_away(self.last_theirs, Reason::NO_ERROR, &mut self.out);
        }
        Ok(())
    }

    pub(super) fn go_away(&mut self, frame: Frame, payload: &[u8]) -> Done {
        if frame.stream != 0 {
            return Err(Reason::PROTOCOL_ERROR);
        }
        let last = frames::number(payload).ok_or(Reason::FRAME_SIZE_ERROR)? & MOST;
        let code = payload.get(4..).and_then(frames::number);
        let reason = Reason::from(code.ok_or(Reason::FRAME_SIZE_ERROR)?);
        self.their_goaway = Some((last, reason));
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

    pub(super) fn window_update(&mut self, frame: Frame, payload: &[u8]) -> Done {
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
