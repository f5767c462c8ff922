//! What to look for in the logs.

use serde::{Deserialize, Serialize};

use crate::fields::Fields;
use crate::identity::Identity;
use crate::matcher::{Matcher, MatcherError};

/// Most points of a lifecycle.
pub const MAX_POINTS: usize = 64;

/// A lifecycle: how entities are told apart and which points they pass.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Definition {
    /// Name of the lifecycle.
    pub name: String,
    /// Fields that identify the entity; the first one present wins. A field with
    /// an empty text is not present. `/expression/` stands for what its only group captures
    /// in the message.
    #[serde(default)]
    pub key: Vec<String>,
    /// Identities that an entity has before its key exists. Each is a list of
    /// fields that together identify it; the first whose fields are all present
    /// wins. A line with both ties the earlier lines to the key; see
    /// [`Collector`](crate::Collector) for the rule.
    #[serde(default)]
    pub alias: Vec<Vec<String>>,
    /// Fields that say where the entity ran, or expressions as in `key`; the first one
    /// present wins.
    #[serde(default)]
    pub group: Vec<String>,
    /// Names of points in order, each with the text of its [`Matcher`].
    #[serde(default)]
    pub points: Vec<(String, String)>,
}

/// Recurring work with a start line and an end line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LoopDefinition {
    /// Name of the loop.
    pub name: String,
    /// Text of the [`Matcher`] of the first line of a turn.
    pub start: String,
    /// Text of the [`Matcher`] of the last line of a turn.
    pub end: String,
}

/// A definition that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// Entities could not be told apart.
    #[error("lifecycle `{lifecycle}` has no key; name the field that identifies an entity")]
    NoKey {
        /// Name of the lifecycle.
        lifecycle: String,
    },
    /// There is nothing to find.
    #[error("lifecycle `{lifecycle}` has no points; name at least one")]
    NoPoints {
        /// Name of the lifecycle.
        lifecycle: String,
    },
    /// More points than a lifecycle can have.
    #[error("lifecycle `{lifecycle}` has {points} points; at most {MAX_POINTS} are possible")]
    TooManyPoints {
        /// Name of the lifecycle.
        lifecycle: String,
        /// How many it has.
        points: usize,
    },
    /// An alias without fields would tie everything together.
    #[error("lifecycle `{lifecycle}` has an alias without fields; name them or remove it")]
    EmptyAlias {
        /// Name of the lifecycle.
        lifecycle: String,
    },
    /// An expression that should name entities or groups has a fault.
    #[error("`{text}` in the {of} of lifecycle `{lifecycle}`: {fault}")]
    Identity {
        /// Name of the lifecycle.
        lifecycle: String,
        /// Whether of the key or of the group.
        of: &'static str,
        /// The expression.
        text: String,
        /// What is wrong.
        fault: MatcherError,
    },
    /// A matcher has a fault.
    #[error("`{point}` of `{owner}`: {fault}")]
    Matcher {
        /// The lifecycle or loop.
        owner: String,
        /// The point; `start` or `end` of a loop.
        point: String,
        /// What is wrong.
        fault: MatcherError,
    },
}

impl Definition {
    /// Checks everything and gives the matchers of the points.
    pub(crate) fn matchers(&self) -> Result<Vec<Matcher>, DefinitionError> {
        let lifecycle = self.name.clone();
        match self.points.len() {
            0 => return Err(DefinitionError::NoPoints { lifecycle }),
            points if points > MAX_POINTS => {
                return Err(DefinitionError::TooManyPoints { lifecycle, points });
            }
            _ if self.key.is_empty() => return Err(DefinitionError::NoKey { lifecycle }),
            _ if self.alias.iter().any(Vec::is_empty) => {
                return Err(DefinitionError::EmptyAlias { lifecycle });
            }
            _ => {}
        }
        self.points
            .iter()
            .map(|(point, text)| matcher(&self.name, point, text))
            .collect()
    }
}

impl Definition {
    /// Where a line has the key.
    pub(crate) fn keys(&self, fields: &mut Fields) -> Result<Vec<Identity>, DefinitionError> {
        self.identities("key", &self.key, fields)
    }

    /// Where a line has the group.
    pub(crate) fn groups(&self, fields: &mut Fields) -> Result<Vec<Identity>, DefinitionError> {
        self.identities("group", &self.group, fields)
    }

    fn identities(
        &self,
        of: &'static str,
        texts: &[String],
        fields: &mut Fields,
    ) -> Result<Vec<Identity>, DefinitionError> {
        let read = texts.iter().map(|text| {
            Identity::parse(text, fields).map_err(|fault| DefinitionError::Identity {
                lifecycle: self.name.clone(),
                of,
                text: text.clone(),
                fault,
            })
        });
        read.collect()
    }
}

impl LoopDefinition {
    /// The matchers of start and end.
    pub(crate) fn matchers(&self) -> Result<Vec<Matcher>, DefinitionError> {
        Ok(vec![
            matcher(&self.name, "start", &self.start)?,
            matcher(&self.name, "end", &self.end)?,
        ])
    }
}

fn matcher(owner: &str, point: &str, text: &str) -> Result<Matcher, DefinitionError> {
    Matcher::parse(text).map_err(|fault| DefinitionError::Matcher {
        owner: owner.to_owned(),
        point: point.to_owned(),
        fault,
    })
}
