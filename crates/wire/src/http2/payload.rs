//! Bodies that are sent.

use bytes::{Buf as _, Bytes};
use http::HeaderMap;

use super::codec::{Connection, StreamKey};
use super::maps;

/// A shorter pattern is repeated to this length first: peers take many small frames for an
/// attack (CVE-2019-9518).
const SHORTEST: usize = 16 * 1024;

/// A body to send: some bytes, and behind them a pattern again and again, so that a long
/// one takes no memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payload {
    first: Bytes,
    pattern: Bytes,
    /// Where in the pattern the next byte is.
    at: usize,
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
            at: 0,
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

    /// The bytes at the front that stand together: none only if it is empty.
    fn front(&self) -> &[u8] {
        if !self.first.is_empty() {
            return &self.first;
        }
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let pattern = self.pattern.get(self.at..).unwrap_or_default();
        pattern.get(..left).unwrap_or(pattern)
    }

    /// So many bytes of the [`front`](Self::front) were taken.
    fn take(&mut self, length: usize) {
        match self.first.is_empty() {
            true => {
                self.left = self.left.saturating_sub(length as u64);
                self.at = (self.at + length) % self.pattern.len().max(1);
            }
            false => self.first.advance(length.min(self.first.len())),
        }
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

/// Sends what there is room for behind a head, with `trailers` behind it. Says whether that was
/// all.
pub(super) fn send(
    payload: &mut Payload,
    trailers: Option<&HeaderMap>,
    connection: &mut Connection,
    key: StreamKey,
) -> bool {
    if connection.is_sent(key) {
        return true;
    }
    loop {
        let front = payload.front();
        let last = front.len() as u64 == payload.len();
        let length = front.len();
        let sent = connection.send(key, front, last && trailers.is_none());
        payload.take(sent);
        if sent < length {
            return false;
        }
        if last {
            break;
        }
    }
    if let Some(trailers) = trailers {
        connection.send_trailers(key, |block| maps::write(trailers, block));
    }
    connection.is_sent(key)
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
                let front = payload.front();
                prop_assert!(!front.is_empty());
                let length = front.len().min(*most);
                taken.extend_from_slice(&front[..length]);
                payload.take(length);
            }
            let behind = taken.split_off(first.len());
            prop_assert_eq!(taken, first);
            let length = if pattern.is_empty() { 0 } else { length };
            let expected: Vec<u8> = pattern.iter().copied().cycle().take(length as usize).collect();
            prop_assert_eq!(behind, expected);
        }

        #[test]
        fn a_pattern_is_repeated(pattern in prop::collection::vec(any::<u8>(), 1..50), length in 0..70_000_u64) {
            let mut payload = Payload::filled(Bytes::new(), pattern.clone().into(), length);
            let mut taken = Vec::new();
            while !payload.is_empty() {
                let front = payload.front();
                let length = front.len();
                prop_assert!(length >= SHORTEST || length as u64 == payload.len());
                taken.extend_from_slice(front);
                payload.take(length);
            }
            let expected: Vec<u8> = pattern.iter().copied().cycle().take(length as usize).collect();
            prop_assert_eq!(taken, expected);
        }
    }
}
