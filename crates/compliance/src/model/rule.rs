//! Rules: which directives hold on which nodes.

use serde::{Deserialize, Serialize};

use super::target::{RuleTarget, TARGETS};
use super::{ModelError, check_id, check_name, yes};

/// Most directives of one rule.
pub const DIRECTIVES: usize = 10_000;

/// Directives, and the nodes they hold on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// Its identity.
    pub id: String,
    /// Its name; policies of a node are ordered by it.
    pub display_name: String,
    /// In one line.
    #[serde(default)]
    pub short_description: String,
    /// In full.
    #[serde(default)]
    pub long_description: String,
    /// Identities of its directives.
    #[serde(default)]
    pub directives: Vec<String>,
    /// The nodes: all that any of these has.
    #[serde(default)]
    pub targets: Vec<RuleTarget>,
    /// Does it hold at all?
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Is it one of those that the server makes itself?
    #[serde(default)]
    pub system: bool,
    /// The folder that people find it in.
    #[serde(default)]
    pub category_id: String,
    /// Labels, each an object of one key.
    #[serde(default)]
    pub tags: Vec<serde_json::Map<String, serde_json::Value>>,
}

impl Rule {
    /// A rule that holds nothing on no node.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            display_name: name.into(),
            short_description: String::new(),
            long_description: String::new(),
            directives: Vec::new(),
            targets: Vec::new(),
            enabled: true,
            system: false,
            category_id: String::new(),
            tags: Vec::new(),
        }
    }

    /// Checks identity, name and sizes.
    pub fn check(&self) -> Result<(), ModelError> {
        check_id("rule", &self.id)?;
        check_name("rule", &self.id, &self.display_name)?;
        let (found, most) = (self.directives.len(), DIRECTIVES);
        if found > most {
            let message = format!("{found} directives; at most {most} are kept");
            return Err(ModelError::new("rule", &self.id, message));
        }
        let found: usize = self.targets.iter().map(RuleTarget::size).sum();
        if found > TARGETS {
            let message = format!("{found} targets; at most {TARGETS} are kept");
            return Err(ModelError::new("rule", &self.id, message));
        }
        Ok(())
    }
}
