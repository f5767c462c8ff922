//! What an event of the poller is about.

use wire::slab::Key;

/// What a token of the poller stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// A caller's connection.
    Session(Key),
    /// A connection to a callee.
    Link(Key),
    /// A caller's connection of HTTP/2.
    Front(Key),
    /// A connection of HTTP/2 to a callee.
    Channel(Key),
    /// The listener of an instance, by its place in the thread.
    Listener(u32),
    /// Another thread calls.
    Waker,
}

impl Token {
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Session(key) => key.token(0),
            Self::Link(key) => key.token(1),
            Self::Listener(index) => Key::of(index.into()).token(2),
            Self::Waker => Key::of(0).token(3),
            Self::Front(key) => key.token(4),
            Self::Channel(key) => key.token(5),
        }
    }

    pub(super) fn of(number: u64) -> Self {
        match Key::of_token(number) {
            (0, key) => Self::Session(key),
            (1, key) => Self::Link(key),
            (2, key) => Self::Listener(key.index()),
            (4, key) => Self::Front(key),
            (5, key) => Self::Channel(key),
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
            Token::Session(key),
            Token::Link(key),
            Token::Front(key),
            Token::Channel(key),
            Token::Listener(1),
            Token::Waker,
        ];
        for token in tokens {
            assert_eq!(Token::of(token.number()), token);
        }
    }
}
