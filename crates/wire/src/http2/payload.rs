//! Bodies that are sent.

use std::task::{Context, Poll};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http::HeaderMap;

/// Bytes handed to the connection at once.
const PART: usize = 64 * 1024;
/// A shorter pattern is repeated to this length first: peers take many small frames for an
/// attack (CVE-2019-9518).
const SHORTEST: usize = 16 * 1024;

/// A body to send: some bytes, and behind them a pattern again and again, so that a long
/// one takes no memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payload {
    first: Bytes,
    pattern: Bytes,
    left: u64,
}

impl Payload {
    /// `first`, and behind it `length` bytes of `pattern`, repeated. An empty pattern
    /// makes no bytes; one of 16 KiB or more takes no memory.
    pub fn filled(first: Bytes, mut pattern: Bytes, length: u64) -> Self {
        let left = if pattern.is_empty() { 0 } else { length };
        if pattern.len() < SHORTEST && left > pattern.len() as u64 {
            pattern = pattern.repeat(SHORTEST.div_ceil(pattern.len())).into();
        }
        Self {
            first,
            pattern,
            left,
        }
    }

    /// Whether all was taken.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty() && self.left == 0
    }

    /// Bytes that were not taken yet.
    pub fn len(&self) -> u64 {
        self.first.len() as u64 + self.left
    }

    /// Takes bytes from the front: at most `most`, and at least one if `most` and what is
    /// left allow.
    fn take(&mut self, most: usize) -> Bytes {
        if !self.first.is_empty() {
            return self.first.split_to(self.first.len().min(most));
        }
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let length = self.pattern.len().min(most).min(left);
        self.left -= length as u64;
        self.pattern.slice(..length)
    }
}

impl From<Bytes> for Payload {
    fn from(first: Bytes) -> Self {
        Self {
            first,
            ..Self::default()
        }
    }
}

/// A body on its way.
#[derive(Debug)]
pub(super) struct Sending {
    send: SendStream<Bytes>,
    payload: Payload,
    trailers: Option<HeaderMap>,
    ended: bool,
}

impl Sending {
    /// `ended`: the head went with the mark that nothing follows.
    pub(super) fn new(
        send: SendStream<Bytes>,
        payload: Payload,
        trailers: Option<HeaderMap>,
        ended: bool,
    ) -> Self {
        Self {
            send,
            payload,
            trailers,
            ended,
        }
    }

    /// Gives the stream up.
    pub(super) fn reset(&mut self, reason: Reason) {
        self.send.send_reset(reason);
        self.ended = true;
    }

    /// Hands to the connection what the peer lets through; ready when that was all.
    ///
    /// # Errors
    /// The peer takes no more of it.
    pub(super) fn advance(&mut self, context: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        while !self.ended {
            if self.payload.is_empty() {
                self.ended = true;
                match self.trailers.take() {
                    Some(trailers) => self.send.send_trailers(trailers)?,
                    None => self.send.send_data(Bytes::new(), true)?,
                }
                break;
            }
            let wanted = usize::try_from(self.payload.len())
                .unwrap_or(PART)
                .min(PART);
            self.send.reserve_capacity(wanted);
            if self.send.capacity() == 0 {
                match self.send.poll_capacity(context) {
                    Poll::Ready(Some(room)) => {
                        room?;
                        continue;
                    }
                    Poll::Ready(None) => return Poll::Ready(Err(Reason::CANCEL.into())),
                    Poll::Pending => return Poll::Pending,
                }
            }
            let part = self.payload.take(self.send.capacity());
            let last = self.payload.is_empty() && self.trailers.is_none();
            self.send.send_data(part, last)?;
            self.ended = last;
        }
        Poll::Ready(Ok(()))
    }

    /// Whether the peer gave the stream up.
    pub(super) fn is_reset(&mut self, context: &mut Context<'_>) -> bool {
        self.send.poll_reset(context).is_ready()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_bytes_are_taken_in_order(
            first: Vec<u8>,
            pattern: Vec<u8>,
            length in 0..3000_u64,
            mosts in prop::collection::vec(1..700_usize, 1..20),
        ) {
            let mut payload = Payload::filled(first.clone().into(), pattern.clone().into(), length);
            let mut taken = Vec::new();
            for most in mosts.iter().cycle() {
                if payload.is_empty() {
                    break;
                }
                let part = payload.take(*most);
                prop_assert!(!part.is_empty() && part.len() <= *most);
                taken.extend_from_slice(&part);
            }
            let behind = taken.split_off(first.len());
            prop_assert_eq!(taken, first);
            let expected = if pattern.is_empty() { 0 } else { length };
            prop_assert_eq!(behind.len() as u64, expected);
        }

        #[test]
        fn a_pattern_is_repeated(pattern in prop::collection::vec(any::<u8>(), 1..50), length in 0..70_000_u64) {
            let mut payload = Payload::filled(Bytes::new(), pattern.clone().into(), length);
            let mut taken = Vec::new();
            while !payload.is_empty() {
                let part = payload.take(PART);
                prop_assert!(part.len() >= SHORTEST || payload.is_empty());
                taken.extend_from_slice(&part);
            }
            let expected: Vec<u8> = pattern.iter().copied().cycle().take(length as usize).collect();
            prop_assert_eq!(taken, expected);
        }
    }
}
