//! The query language of dynamic groups: Rudder's flat list of criteria, and `and`, `or`, `not`
//! nested in it.

mod compiled;
mod criterion;
pub mod value;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use compiled::{CompiledQuery, Scan, Subject};

use super::attributes::{Comparator, ObjectType};

/// Most criteria of one query, nested ones too.
pub const CRITERIA: usize = 1_000;
/// Deepest nesting of `and`, `or` and `not`.
pub const DEPTH: usize = 16;
/// Longest value of a criterion, in bytes.
pub const VALUE_BYTES: usize = 4_096;

/// Which nodes belong to a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// Is the root server among the nodes that can be found?
    #[serde(default)]
    pub select: Select,
    /// Must all criteria hold, or any?
    #[serde(default)]
    pub composition: Composition,
    /// Are the nodes meant that are *not* found?
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transform: Option<Transform>,
    /// The criteria; without any, no node is found. Those on one kind of element that must all
    /// hold must hold of the same element.
    #[serde(rename = "where", default)]
    pub criteria: Vec<Condition>,
}

/// What a query can find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Select {
    /// All nodes but the root server.
    #[default]
    Node,
    /// The root server, too.
    NodeAndPolicyServer,
}

/// How criteria are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Composition {
    /// All hold.
    #[default]
    And,
    /// Any holds.
    Or,
}

/// What becomes of the nodes that are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transform {
    /// They are the result.
    Identity,
    /// All others are.
    Invert,
}

/// One entry of the list of criteria.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, try_from = "ConditionFields")]
pub enum Condition {
    /// A criterion.
    Criterion(Criterion),
    /// All of these hold.
    And {
        /// The conditions.
        and: Vec<Condition>,
    },
    /// Any of these holds.
    Or {
        /// The conditions.
        or: Vec<Condition>,
    },
    /// This does not hold.
    Not {
        /// The condition.
        not: Box<Condition>,
    },
}

/// What a condition may have: read so, a mistake in one field is told as such, which an untagged
/// form would not.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConditionFields {
    object_type: Option<ObjectType>,
    attribute: Option<String>,
    comparator: Option<Comparator>,
    #[serde(default)]
    value: String,
    and: Option<Vec<Condition>>,
    or: Option<Vec<Condition>>,
    not: Option<Box<Condition>>,
}

impl TryFrom<ConditionFields> for Condition {
    type Error = &'static str;

    fn try_from(fields: ConditionFields) -> Result<Self, &'static str> {
        let ConditionFields {
            object_type,
            attribute,
            comparator,
            value,
            and,
            or,
            not,
        } = fields;
        let criterion = (object_type, attribute, comparator);
        Ok(match (criterion, and, or, not) {
            ((Some(object_type), Some(attribute), Some(comparator)), None, None, None) => {
                Self::Criterion(Criterion {
                    object_type,
                    attribute,
                    comparator,
                    value,
                })
            }
            ((None, None, None), Some(and), None, None) => Self::And { and },
            ((None, None, None), None, Some(or), None) => Self::Or { or },
            ((None, None, None), None, None, Some(not)) => Self::Not { not },
            _ => {
                return Err("expected objectType, attribute and comparator, or and, or, not alone");
            }
        })
    }
}

/// A criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Criterion {
    /// The kind of object.
    pub object_type: ObjectType,
    /// Its attribute.
    pub attribute: String,
    /// How it is compared.
    pub comparator: Comparator,
    /// With what; nothing for `exists` and `notExists`.
    #[serde(default)]
    pub value: String,
}

impl Criterion {
    /// A criterion.
    pub fn new(
        object_type: ObjectType,
        attribute: impl Into<String>,
        comparator: Comparator,
        value: impl Into<String>,
    ) -> Self {
        Self {
            object_type,
            attribute: attribute.into(),
            comparator,
            value: value.into(),
        }
    }

    /// That a node belongs to a group.
    pub fn in_group(group: impl Into<String>) -> Self {
        Self::new(ObjectType::Group, "nodeGroupId", Comparator::Eq, group)
    }
}

impl From<Criterion> for Condition {
    fn from(criterion: Criterion) -> Self {
        Self::Criterion(criterion)
    }
}

/// A query that cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("criterion {place} of the query: {message}")]
pub struct QueryError {
    /// The place of the criterion, counted from 1 in the order of the text.
    pub place: usize,
    /// What was found, what was expected.
    pub message: String,
}

impl Query {
    /// A query of nodes that meet all criteria.
    pub fn all_of(criteria: impl IntoIterator<Item = Criterion>) -> Self {
        Self {
            select: Select::Node,
            composition: Composition::And,
            transform: None,
            criteria: criteria.into_iter().map(Condition::from).collect(),
        }
    }

    /// Are the nodes meant that are not found?
    pub fn is_inverted(&self) -> bool {
        self.transform == Some(Transform::Invert)
    }

    /// The groups that a node must belong to before anything else, in the order of the query:
    /// what its members inherit from.
    pub fn parents(&self) -> impl Iterator<Item = &str> {
        let all = (self.composition == Composition::And).then_some(&self.criteria);
        all.into_iter()
            .flatten()
            .filter_map(|condition| match condition {
                Condition::Criterion(one) if one.object_type == ObjectType::Group => {
                    Some(one.value.as_str())
                }
                _ => None,
            })
    }

    /// All groups that it mentions.
    pub fn groups(&self) -> Vec<&str> {
        let mut found = Vec::new();
        let mut left: Vec<&Condition> = self.criteria.iter().collect();
        while let Some(condition) = left.pop() {
            match condition {
                Condition::Criterion(one) if one.object_type == ObjectType::Group => {
                    found.push(one.value.as_str());
                }
                Condition::Criterion(_) => {}
                Condition::And { and: inner } | Condition::Or { or: inner } => left.extend(inner),
                Condition::Not { not } => left.push(not),
            }
        }
        found
    }
}
