//! What an event of the poller is about.

use wire::slab::Key;

/// What a token of the poller stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// A client's connection.
    Client(Key),
    /// A connection to a backend.
    Backend(Key),
    /// A listener, by its number.
    Listener(u32),
    /// A client's connection of HTTP/2.
    Front(Key),
    /// A backend's connection of HTTP/2.
    Back(Key),
    /// Another thread calls.
    Waker,
}

impl Token {
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Client(key) => key.token(0),
            Self::Backend(key) => key.token(1),
            Self::Listener(index) => Key::of(index.into()).token(2),
            Self::Waker => Key::of(0).token(3),
            Self::Front(key) => key.token(4),
            Self::Back(key) => key.token(5),
        }
    }

    pub(super) fn of(number: u64) -> Self {
        match Key::of_token(number) {
            (0, key) => Self::Client(key),
            (1, key) => Self::Backend(key),
            (2, key) => Self::Listener(key.index()),
            (4, key) => Self::Front(key),
            (5, key) => Self::Back(key),
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
            Token::Client(key),
            Token::Backend(key),
            Token::Listener(1),
            Token::Waker,
            Token::Front(key),
            Token::Back(key),
        ];
        for token in tokens {
            assert_eq!(Token::of(token.number()), token);
        }
    }
}
