//! A policy as an agent reads it.

use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::model::mode::{ComplianceMode, PolicyMode};
use crate::reports::expected::{Component, ExpectedValue};

/// Most calls and components of one policy.
pub const ITEMS: usize = 200_000;

/// A policy cannot be read.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// More bytes than the limit.
    #[error("reading a policy: {found} bytes, expected at most {limit}")]
    TooLong {
        /// Bytes of the text.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// More calls than [`ITEMS`].
    #[error("reading a policy: {found} calls and components, expected at most {ITEMS}")]
    TooMany {
        /// How many there are.
        found: usize,
    },
    /// Other JSON.
    #[error("reading a policy: {0}; expected what the server generates for a node")]
    Json(#[from] serde_json::Error),
}

/// The policy of a node.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentPolicy {
    /// Which configuration it is.
    pub config_id: String,
    /// The node.
    pub node_id: String,
    /// Which reports are sent.
    pub compliance_mode: ComplianceMode,
    /// When it runs.
    pub schedule: RunTimes,
    /// Conditions that the node's groups set.
    pub conditions: Vec<String>,
    /// The node's properties; none are told if nothing of the policy is for the agent to look up.
    #[serde(default)]
    pub properties: Map<String, Value>,
    /// Directives in their order.
    pub policies: Vec<DirectivePolicy>,
}

/// When an agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunTimes {
    /// Minutes from one run to the next.
    pub interval: u16,
    /// Seconds after midnight, UTC, of the first run of a day.
    pub first_run: u32,
}

impl RunTimes {
    /// Seconds from `now`, in seconds since 1970, to the next run: above 0, at most the interval.
    pub fn until_next(self, now: i64) -> u64 {
        let interval = i64::from(self.interval.max(1)) * 60;
        let since = (now - i64::from(self.first_run)).rem_euclid(interval);
        u64::try_from(interval - since).unwrap_or(1)
    }
}

/// A directive on a node.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "DirectiveJson")]
pub struct DirectivePolicy {
    /// The rule that brings it.
    pub rule: String,
    /// The directive.
    pub directive: String,
    /// Its technique's name, as reports tell it.
    pub technique: String,
    /// Audit or enforce.
    pub mode: PolicyMode,
    /// The campaign in whose windows alone it runs.
    pub schedule: Option<String>,
    /// What it asks.
    pub calls: Vec<Call>,
}

/// A call of a method.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Call {
    /// Identity of its reports.
    pub id: String,
    /// The method; empty for a component of a technique that is no list of calls.
    pub method: String,
    /// The component that it reports.
    pub component: String,
    /// The condition under which it is made; empty for always.
    #[serde(default)]
    pub condition: String,
    /// A mode of its own.
    #[serde(default)]
    pub mode: Option<PolicyMode>,
    /// Is it reported?
    #[serde(default = "crate::model::yes")]
    pub reported: bool,
    /// Parameters in the order of the method.
    pub params: Vec<(String, String)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DirectiveJson {
    rule: String,
    directive: String,
    technique_name: String,
    mode: PolicyMode,
    #[serde(default)]
    schedule: Option<String>,
    #[serde(default)]
    calls: Vec<Call>,
    #[serde(default)]
    components: Vec<Component>,
}

impl From<DirectiveJson> for DirectivePolicy {
    fn from(json: DirectiveJson) -> Self {
        let mut calls = json.calls;
        of_components(json.components, &mut calls);
        Self {
            rule: json.rule,
            directive: json.directive,
            technique: json.technique_name,
            mode: json.mode,
            schedule: json.schedule,
            calls,
        }
    }
}

/// A call without a method for each value that is expected.
fn of_components(components: Vec<Component>, calls: &mut Vec<Call>) {
    for component in components {
        match component {
            Component::Block { components, .. } => of_components(components, calls),
            Component::Values { name, values } => {
                calls.extend(values.into_iter().map(|value| {
                    let (id, key) = match value {
                        ExpectedValue::Id { id, value } => (id, value),
                        ExpectedValue::Key { expanded, .. } => ("0".into(), expanded),
                    };
                    Call {
                        id,
                        method: String::new(),
                        component: name.clone(),
                        condition: String::new(),
                        mode: None,
                        reported: true,
                        params: vec![("key".into(), key)],
                    }
                }));
            }
        }
    }
}

impl AgentPolicy {
    /// Reads a policy of at most `limit` bytes.
    ///
    /// # Errors
    /// Other JSON, or more than a limit.
    pub fn from_json(text: &str, limit: usize) -> Result<Self, PolicyError> {
        if text.len() > limit {
            let found = text.len();
            return Err(PolicyError::TooLong { found, limit });
        }
        let policy: Self = serde_json::from_str(text)?;
        let found = policy.policies.iter().map(|one| one.calls.len()).sum();
        if found > ITEMS {
            return Err(PolicyError::TooMany { found });
        }
        Ok(policy)
    }
}

#[cfg(test)]
mod tests {
    use super::RunTimes;

    #[test]
    fn the_next_run_is_later_and_within_an_interval() {
        let times = RunTimes {
            interval: 5,
            first_run: 90,
        };
        for (now, until) in [(0, 90), (89, 1), (90, 300), (91, 299), (86_400 + 390, 300)] {
            assert_eq!(times.until_next(now), until, "{now}");
        }
    }
}
