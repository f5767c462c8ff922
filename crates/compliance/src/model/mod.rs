//! What an administrator defines and what nodes are: nodes and their inventories, groups and
//! their queries, techniques, directives, rules, parameters, and the small rules that need
//! nothing else. JSON shapes are those of Rudder's REST API where it shows the object.

/// An enum of which each value has a word, by which JSON has it too.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$of:meta])* $value:ident $word:tt,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$of])* #[serde(rename = $word)] $value,)*
        }

        impl $name {
            /// Rudder's word for it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$value => $word,)* }
            }
        }
    };
}

pub mod attributes;
pub mod constraint;
pub mod directive;
pub mod expiration;
pub mod group;
pub mod ids;
pub mod inventory;
pub mod methods;
pub mod mode;
pub mod node;
pub mod node_set;
pub mod property;
pub mod query;
pub mod reporting;
pub mod rule;
pub mod schedule;
pub mod target;
pub mod technique;

#[cfg(test)]
mod tests;

/// Longest identity of an object, in bytes.
pub const ID_BYTES: usize = 255;
/// Longest name of an object, in bytes.
pub const NAME_BYTES: usize = 1_024;

/// The default of what is so unless it is said otherwise.
pub(crate) fn yes() -> bool {
    true
}

/// An object that cannot be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} \"{id}\": {message}")]
pub struct ModelError {
    /// What it is: `rule`, `group` and so on.
    pub kind: &'static str,
    /// Its identity, shortened if it is too long.
    pub id: String,
    /// What was found, what was expected.
    pub message: String,
    /// The field that is wrong, in the words of a folder's files; empty for the whole.
    pub field: &'static str,
}

impl ModelError {
    /// An error about the object of this kind and identity.
    pub fn new(kind: &'static str, id: &str, message: impl Into<String>) -> Self {
        let end = id.floor_char_boundary(64);
        Self {
            kind,
            id: id[..end].to_owned(),
            message: message.into(),
            field: "",
        }
    }

    /// An error about a field of it.
    #[must_use]
    pub fn of(mut self, field: &'static str) -> Self {
        self.field = field;
        self
    }
}

/// Checks an identity: 1 to [`ID_BYTES`] bytes, without control characters and without the
/// delimiters of a run log, which no report could carry.
pub fn check_id(kind: &'static str, id: &str) -> Result<(), ModelError> {
    let wrong = |message: &str| Err(ModelError::new(kind, id, message).of("id"));
    if id.is_empty() {
        return wrong("the identity is empty");
    }
    if id.len() > ID_BYTES {
        return wrong("the identity is longer than 255 bytes");
    }
    if id.chars().any(char::is_control) {
        return wrong("the identity has a control character");
    }
    if ["@@", "##", "@#"].iter().any(|mark| id.contains(mark)) {
        return wrong("the identity has @@, ## or @#, which delimit reports");
    }
    Ok(())
}

/// Checks a name for people: not empty, at most [`NAME_BYTES`] bytes.
pub fn check_name(kind: &'static str, id: &str, name: &str) -> Result<(), ModelError> {
    if name.is_empty() {
        return Err(ModelError::new(kind, id, "the name is empty"));
    }
    if name.len() > NAME_BYTES {
        let message = "the name is longer than 1,024 bytes";
        return Err(ModelError::new(kind, id, message));
    }
    Ok(())
}
