//! The words that stand for what has few values.

use crate::acceptance::{KeyStatus, NodeStatus};
use crate::server::state::Access;

/// The word of a standing.
pub(super) const STANDINGS: [(NodeStatus, &str); 2] = [
    (NodeStatus::Pending, "pending"),
    (NodeStatus::Accepted, "accepted"),
];
/// The word of what a token allows, as Rudder has it.
pub(crate) const ACCESSES: [(Access, &str); 2] = [(Access::Read, "ro"), (Access::Write, "rw")];
/// The word of a key's status.
pub(super) const KEYS: [(KeyStatus, &str); 2] = [
    (KeyStatus::Undefined, "undefined"),
    (KeyStatus::Certified, "certified"),
];

/// The word of something; empty where it has none.
pub(super) fn word<T: PartialEq>(words: &[(T, &'static str)], of: &T) -> &'static str {
    let found = words.iter().find(|(one, _)| one == of);
    found.map_or("", |(_, word)| word)
}

/// What a word stands for.
pub(super) fn parse_word<T: Copy>(words: &[(T, &str)], word: &str) -> Result<T, super::RowError> {
    let found = words.iter().find(|(_, known)| *known == word);
    let found = found.map(|(meant, _)| *meant);
    found.ok_or_else(|| format!("the word {word:?} is not known").into())
}
