//! What a node is expected to report.
//!
//! Compliance is computed from these types. Their JSON, which generation of policies writes, is
//! Rudder's since 7.1 (column `configuration` of `nodeconfigurations`), with its short names.

mod json;
#[cfg(test)]
pub(crate) mod tests;

use serde::Deserialize;
use thiserror::Error;

use crate::model::mode::{Modes, PolicyMode};
use crate::model::reporting::ReportingLogic;

/// What is expected of one node with one configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ExpectedReports {
    /// How the node works.
    #[serde(rename = "ms")]
    pub modes: Modes,
    /// By rule.
    #[serde(rename = "rs")]
    pub rules: Vec<ExpectedRule>,
    /// Directives that gave way to others.
    #[serde(rename = "os", default)]
    pub overrides: Vec<Override>,
}

/// What is expected of a rule's directives.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ExpectedRule {
    /// The rule.
    #[serde(rename = "rid")]
    pub id: String,
    /// Its directives.
    #[serde(rename = "ds")]
    pub directives: Vec<ExpectedDirective>,
}

/// What is expected of a directive.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ExpectedDirective {
    /// The directive.
    #[serde(rename = "did")]
    pub id: String,
    /// Its own policy mode.
    #[serde(rename = "pm", default)]
    pub policy_mode: Option<PolicyMode>,
    /// Its policy types (`rudderSystem` …); none means that it is a user's.
    #[serde(rename = "t", default)]
    pub types: Vec<String>,
    /// Its schedule.
    #[serde(rename = "sid", default)]
    pub schedule: Option<String>,
    /// Its components.
    #[serde(rename = "cs")]
    pub components: Vec<Component>,
}

/// A component, or a block of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "json::ComponentJson")]
pub enum Component {
    /// A component with its values.
    Values {
        /// Its name.
        name: String,
        /// One value for each of its instances.
        values: Vec<ExpectedValue>,
    },
    /// Components that are reported together.
    Block {
        /// Its name.
        name: String,
        /// Its identifier.
        id: Option<String>,
        /// What becomes of its components' statuses.
        logic: ReportingLogic,
        /// Its components.
        components: Vec<Component>,
    },
}

/// A value that a component is expected to report as its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectedValue {
    /// Reports are found by component and key.
    Key {
        /// With the node's own values. What only the agent knows is still `${…}` in it.
        expanded: String,
        /// As it was written.
        unexpanded: String,
    },
    /// Reports are found by the identifier of the method call.
    Id {
        /// The identifier.
        id: String,
        /// What is shown as the value while nothing is reported.
        value: String,
    },
}

/// A directive of a rule that another took the place of.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Override {
    /// What gave way.
    #[serde(rename = "p")]
    pub policy: PolicyId,
    /// What took its place.
    #[serde(rename = "ob")]
    pub overridden_by: PolicyId,
}

/// A directive as a rule brings it to a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
pub struct PolicyId {
    /// The rule.
    #[serde(rename = "rid")]
    pub rule: String,
    /// The directive.
    #[serde(rename = "did")]
    pub directive: String,
}

/// Expected reports cannot be read.
#[derive(Debug, Error)]
pub enum ExpectedError {
    /// More bytes than the limit.
    #[error("reading expected reports: {found} bytes, expected at most {limit}")]
    TooLong {
        /// Bytes of the text.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// Other JSON.
    #[error("reading expected reports: {0}; expected Rudder's JSON since 7.1")]
    Json(#[from] serde_json::Error),
}

impl ExpectedReports {
    /// Reads JSON. Keys that are not known are left out.
    ///
    /// # Errors
    /// Other JSON, blocks nested more than some 60 deep, or more than `limit` bytes.
    pub fn from_json(text: &str, limit: usize) -> Result<Self, ExpectedError> {
        if text.len() > limit {
            let found = text.len();
            return Err(ExpectedError::TooLong { found, limit });
        }
        Ok(serde_json::from_str(text)?)
    }
}
