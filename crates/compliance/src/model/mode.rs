//! Whether a policy is enforced or only audited.

use serde::{Deserialize, Serialize};

/// What an agent does about a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyMode {
    /// It reports the difference.
    Audit,
    /// It repairs it.
    Enforce,
}

impl PolicyMode {
    /// The word that Rudder's JSON has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::Enforce => "enforce",
        }
    }
}

/// The mode of everything that sets none, and whether anything may set one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GlobalPolicyMode {
    /// The mode.
    #[serde(rename = "m", alias = "mode")]
    pub mode: PolicyMode,
    /// May nodes and directives set another?
    #[serde(rename = "o", alias = "overridable")]
    pub overridable: bool,
}

impl Default for GlobalPolicyMode {
    fn default() -> Self {
        Self {
            mode: PolicyMode::Enforce,
            overridable: true,
        }
    }
}

/// The mode of a directive on a node. A system policy is always enforced; else what is global
/// decides unless it may be overridden; else an audited node audits; else the directive, the
/// node and what is global decide, in this order.
pub fn resolve(
    system: bool,
    global: GlobalPolicyMode,
    node: Option<PolicyMode>,
    directive: Option<PolicyMode>,
) -> PolicyMode {
    if system {
        PolicyMode::Enforce
    } else if !global.overridable {
        global.mode
    } else if node == Some(PolicyMode::Audit) {
        PolicyMode::Audit
    } else {
        directive.or(node).unwrap_or(global.mode)
    }
}

/// Serializes an unset mode as Rudder does: `default`.
pub mod or_default {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::PolicyMode;

    /// The mode's word, `default` without one.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(mode: &Option<PolicyMode>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(mode.map_or("default", PolicyMode::name))
    }

    /// Reads `audit`, `enforce`, `default` or `none`.
    ///
    /// # Errors
    /// Another word.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PolicyMode>, D::Error> {
        let word = String::deserialize(from)?;
        match word.as_str() {
            "audit" => Ok(Some(PolicyMode::Audit)),
            "enforce" => Ok(Some(PolicyMode::Enforce)),
            "default" | "none" | "" => Ok(None),
            other => Err(serde::de::Error::custom(format!(
                "unknown policy mode \"{other}\"; expected audit, enforce or default"
            ))),
        }
    }
}
