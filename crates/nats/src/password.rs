//! A password that no log shows.

use std::fmt;

/// A password. Its `Debug` form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Takes a password.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The password, to be sent.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether `guess` is the password. Takes as long for any guess of a length.
    pub fn is(&self, guess: &str) -> bool {
        let pairs = self.0.bytes().zip(guess.bytes());
        let difference = pairs.fold(0, |seen, (ours, theirs)| seen | (ours ^ theirs));
        self.0.len() == guess.len() && std::hint::black_box(difference) == 0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_compared_whole_and_never_shown() {
        let password = Password::new("secret");
        assert!(password.is("secret"));
        for guess in ["", "secre", "secrets", "Secret"] {
            assert!(!password.is(guess), "{guess}");
        }
        assert_eq!(format!("{password:?}"), "Password(..)");
    }
}
