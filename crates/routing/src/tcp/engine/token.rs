//! What an event of the poller is about.

use wire::slab::Key;

/// What a token of the poller stands for.
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
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Waker => Key::of(0).token(0),
            Self::Listener(key) => key.token(1),
            Self::Client(key) => key.token(2),
            Self::Backend(key) => key.token(3),
        }
    }

    pub(super) fn of(number: u64) -> Self {
        match Key::of_token(number) {
            (1, key) => Self::Listener(key),
            (2, key) => Self::Client(key),
            (3, key) => Self::Backend(key),
            _ => Self::Waker,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back() {
        let key = Key::of(u64::from(u32::MAX) << 32 | 77);
        let tokens = [
            Token::Waker,
            Token::Listener(key),
            Token::Client(key),
            Token::Backend(key),
        ];
        for token in tokens {
            assert_eq!(Token::of(token.number()), token);
        }
    }
}
