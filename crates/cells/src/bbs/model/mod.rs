//! The rules, as plain functions: a record, a request and the time go in, the
//! new record or an error of the protocol comes out. No I/O, no clock, no
//! randomness.

pub mod actual;
pub mod convergence;
pub mod desired;
pub mod evacuation;
pub mod events;
pub mod group;
pub mod slot;
pub mod suspect;
pub mod task;
pub mod validate;
pub mod versions;

#[cfg(test)]
mod actual_tests;
#[cfg(test)]
mod convergence_tests;
#[cfg(test)]
mod task_tests;

/// What a rule may need beside records and request.
pub struct Context<'a> {
    /// The time in nanoseconds since 1970.
    pub now: i64,
    /// Gives a new random guid, for the epoch of a new record.
    pub new_guid: &'a mut dyn FnMut() -> String,
}

/// Longest reason or placement error that is kept, in bytes.
pub(crate) const REASON_BYTES: usize = 1024;
const TRUNCATED: &str = "(truncated)";

/// Cuts a text for people that has 1,024 bytes or more to at most 1,024, never
/// inside a character; a cut text says so at its end.
pub fn truncate(mut text: String) -> String {
    if text.len() >= REASON_BYTES {
        text.truncate(text.floor_char_boundary(REASON_BYTES - TRUNCATED.len()));
        text.push_str(TRUNCATED);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::truncate;

    #[test]
    fn a_long_ascii_text_becomes_exactly_1024_bytes() {
        let text = truncate("x".repeat(2000));
        assert_eq!(text.len(), 1024);
        assert!(text.ends_with("x(truncated)"));
        assert!(truncate("x".repeat(1024)).ends_with("x(truncated)"));
        assert_eq!(truncate("x".repeat(1023)), "x".repeat(1023));
    }

    proptest! {
        #[test]
        fn no_text_is_longer_than_the_limit(text in "\\PC{0,600}") {
            let cut = truncate(text.clone());
            prop_assert!(cut.len() <= 1024);
            if text.len() < 1024 {
                prop_assert_eq!(cut, text);
            }
        }
    }
}
