//! What an event of the poller is about, in the 64 bits that it carries.

use super::slots::Key;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// Another thread has an order for this one.
    Waker,
    /// A listener.
    Listener(Key),
    /// A session's client.
    Client(Key),
    /// A session's backend.
    Backend(Key),
}

impl Token {
    pub(super) fn pack(self) -> u64 {
        let (kind, key) = match self {
            Self::Waker => return 0,
            Self::Listener(key) => (1, key),
            Self::Client(key) => (2, key),
            Self::Backend(key) => (3, key),
        };
        // Slots are below 2^30: a process has fewer descriptors.
        u64::from(key.generation) << 32 | u64::from(key.slot) << 2 | kind
    }

    pub(super) fn unpack(bits: u64) -> Self {
        let key = Key {
            slot: (bits as u32) >> 2,
            generation: (bits >> 32) as u32,
        };
        match bits & 3 {
            0 => Self::Waker,
            1 => Self::Listener(key),
            2 => Self::Client(key),
            _ => Self::Backend(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back() {
        let key = Key {
            slot: (1 << 30) - 1,
            generation: u32::MAX,
        };
        let tokens = [
            Token::Waker,
            Token::Listener(key),
            Token::Client(key),
            Token::Backend(key),
        ];
        for token in tokens {
            assert_eq!(Token::unpack(token.pack()), token);
        }
    }
}
