//! Whether a policy is enforced or only audited, and what agents report of it.

use serde::{Deserialize, Serialize};

use super::schedule::AgentRun;

words! {
    /// What an agent does about a difference.
    #[derive(PartialOrd, Ord)]
    PolicyMode {
        /// It reports the difference.
        Audit "audit",
        /// It repairs it.
        Enforce "enforce",
    }
}

/// The mode of everything that sets none, and whether anything may set one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(
    default,
    expecting = "{mode: audit or enforce, overridable: true or false}"
)]
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

/// The modes that some nodes or directives set for themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModesSet {
    /// Does one set none?
    pub unset: bool,
    /// Does one audit?
    pub audit: bool,
    /// Does one enforce?
    pub enforce: bool,
}

impl ModesSet {
    /// With one more.
    #[must_use]
    pub fn with(mut self, mode: Option<PolicyMode>) -> Self {
        match mode {
            None => self.unset = true,
            Some(PolicyMode::Audit) => self.audit = true,
            Some(PolicyMode::Enforce) => self.enforce = true,
        }
        self
    }

    fn any(self) -> bool {
        self.audit || self.enforce
    }
}

impl FromIterator<Option<PolicyMode>> for ModesSet {
    fn from_iter<I: IntoIterator<Item = Option<PolicyMode>>>(modes: I) -> Self {
        modes.into_iter().fold(Self::default(), Self::with)
    }
}

/// The word for the mode of a rule as a whole, as Rudder's REST API has it: what is global
/// decides unless it may be overridden. Else nodes and directives that set no mode have the global
/// one, unless all nodes or all directives set none: then only the others count. Both modes are
/// `mixed`, a rule without directives has `none`.
pub fn word_of_rule(
    global: GlobalPolicyMode,
    directives: ModesSet,
    nodes: ModesSet,
) -> &'static str {
    if directives == ModesSet::default() {
        return "none";
    }
    let (mut unset, mut audit, mut enforce) = (false, false, false);
    if global.overridable {
        for (counted, other) in [(directives, nodes), (nodes, directives)] {
            if counted.any() || !other.any() {
                unset |= counted.unset;
                audit |= counted.audit;
                enforce |= counted.enforce;
            }
        }
    }
    if unset || !(audit || enforce) {
        audit |= global.mode == PolicyMode::Audit;
        enforce |= global.mode == PolicyMode::Enforce;
    }
    match (audit, enforce) {
        (true, true) => "mixed",
        (true, false) => PolicyMode::Audit.name(),
        _ => PolicyMode::Enforce.name(),
    }
}

words! {
    /// Which reports agents send.
    #[derive(Default)]
    ComplianceMode {
        /// All.
        #[default]
        FullCompliance "full-compliance",
        /// What is not as it should be or was not; no report means that all is well.
        ChangesOnly "changes-only",
        /// None.
        ReportsDisabled "reports-disabled",
    }
}

/// Global and node settings that reports depend on, in the short names of Rudder's expected
/// reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modes {
    /// The global policy mode.
    #[serde(rename = "gpm")]
    pub global: GlobalPolicyMode,
    /// The node's own policy mode.
    #[serde(rename = "npm", default, skip_serializing_if = "Option::is_none")]
    pub node: Option<PolicyMode>,
    /// Which reports agents send.
    #[serde(rename = "gcm")]
    pub compliance: ComplianceMode,
    /// When agents run.
    #[serde(rename = "gar")]
    pub run: AgentRun,
    /// When this agent runs.
    #[serde(rename = "nar", default, skip_serializing_if = "Option::is_none")]
    pub node_run: Option<AgentRun>,
}

impl Modes {
    /// The schedule that counts for the node.
    pub fn agent_run(&self) -> AgentRun {
        self.node_run.unwrap_or(self.run)
    }

    /// The mode in which a directive runs on the node, by [`resolve`].
    pub fn policy_mode(&self, directive: Option<PolicyMode>, system: bool) -> PolicyMode {
        resolve(system, self.global, self.node, directive)
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
