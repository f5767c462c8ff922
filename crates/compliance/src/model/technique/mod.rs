//! Techniques: what can be configured, with which variables, and what an agent reports of it.

mod check;
mod in_order;

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::constraint::Constraint;
use super::mode::PolicyMode;
use super::{ModelError, check_id, check_name};

/// Most sections, variables, method calls and blocks of one technique.
pub const ITEMS: usize = 20_000;
/// Deepest nesting of sections or blocks.
pub const DEPTH: usize = 16;
/// Most instances that one `foreach` makes.
pub const FOREACH: usize = 1_000;

/// A technique of one version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Technique {
    /// Its identity.
    pub id: String,
    /// Its version: `8.0`.
    pub version: String,
    /// Its name; reports of it carry it.
    pub name: String,
    /// The folder that people find it in.
    #[serde(default)]
    pub category: String,
    /// For people.
    #[serde(default)]
    pub description: String,
    /// May a node have several directives of it?
    #[serde(default)]
    pub multi_instance: bool,
    /// How several directives of it on one node become policies.
    #[serde(default)]
    pub generation: PolicyGeneration,
    /// Is it one of the server's own?
    #[serde(default)]
    pub system: bool,
    /// What it consists of.
    pub body: Body,
}

/// How directives of a technique on one node become policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyGeneration {
    /// One policy for all of them.
    Merged,
    /// One policy each.
    #[default]
    Separated,
    /// One policy each, values passed as parameters.
    SeparatedWithParameters,
}

/// The two forms of a technique.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    /// That of `metadata.xml`: sections with variables.
    Sections(Vec<Section>),
    /// That of YAML: parameters and method calls.
    Methods(Methods),
}

/// A section of a technique.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Section {
    /// Its name, that of the component or block if it is one.
    pub name: String,
    /// May a directive have several instances of it?
    pub multivalued: bool,
    /// Is it reported?
    pub component: bool,
    /// The variable whose values are expected to be reported, one each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component_key: Option<String>,
    /// Identity of the component in reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A section with a logic is a block of the sections in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reporting: Option<ReportingLogic>,
    /// Its variables.
    pub variables: Vec<VariableSpec>,
    /// Sections in it.
    pub sections: Vec<Section>,
}

/// A variable of a section.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VariableSpec {
    /// Its name.
    pub name: String,
    /// In one line.
    pub description: String,
    /// How its value is chosen.
    pub kind: VariableKind,
    /// Values to choose from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Item>,
    /// What is a value.
    pub constraint: Constraint,
    /// Of [`VariableKind::ReportKeys`]: the values that will be reported.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub report_keys: Vec<ReportKey>,
}

/// How the value of a variable is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum VariableKind {
    /// Text.
    #[default]
    Input,
    /// One of some.
    Select1,
    /// Some of some.
    Select,
    /// Nothing is chosen: the technique lists what is reported.
    ReportKeys,
}

/// A value to choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// For people.
    pub label: String,
    /// The value.
    pub value: String,
}

/// A value that will be reported under a stable identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportKey {
    /// The value.
    pub value: String,
    /// The identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// The YAML form.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Methods {
    /// Its parameters.
    pub params: Vec<MethodParameter>,
    /// Method calls and blocks, in the order in which agents run them.
    pub items: Vec<MethodItem>,
}

/// A parameter of a technique in the YAML form.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MethodParameter {
    /// Its identity.
    pub id: String,
    /// Its name; `${TECHNIQUE.NAME}` stands for its value.
    pub name: String,
    /// For people.
    pub description: String,
    /// What is a value.
    pub constraints: Constraint,
}

/// A method call or a block of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MethodItem {
    /// A method call.
    Call(MethodCall),
    /// A block.
    Block(MethodBlock),
}

/// A call of a method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MethodCall {
    /// Identity of the call, and of its reports.
    pub id: String,
    /// Its name, that of the component; the method if it has none.
    #[serde(default)]
    pub name: String,
    /// The method: `file_content`.
    pub method: String,
    /// Values of the method's parameters; the first is the one that reports name.
    #[serde(default, with = "in_order")]
    pub params: Vec<(String, serde_json::Value)>,
    /// The condition under which it runs; always without one.
    #[serde(default)]
    pub condition: String,
    /// A mode of its own.
    #[serde(default)]
    pub policy_mode_override: Option<PolicyMode>,
    /// Whether it is reported.
    #[serde(default)]
    pub reporting: Reporting,
    /// Makes one call of each of these sets of values.
    #[serde(default)]
    pub foreach: Vec<serde_json::Map<String, serde_json::Value>>,
    /// `${NAME.KEY}` stands for a value of the set; `item` without one.
    #[serde(default)]
    pub foreach_name: Option<String>,
}

/// A block of method calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MethodBlock {
    /// Identity of the block.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Calls and blocks in it.
    pub items: Vec<MethodItem>,
    /// The condition under which it runs; always without one.
    #[serde(default)]
    pub condition: String,
    /// A mode for all in it that has none.
    #[serde(default)]
    pub policy_mode_override: Option<PolicyMode>,
    /// How reports of what is in it are summed up.
    #[serde(default)]
    pub reporting: Reporting,
    /// Makes one block of each of these sets of values.
    #[serde(default)]
    pub foreach: Vec<serde_json::Map<String, serde_json::Value>>,
    /// `${NAME.KEY}` stands for a value of the set; `item` without one.
    #[serde(default)]
    pub foreach_name: Option<String>,
}

/// How reports are summed up, as YAML writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reporting {
    /// `weighted`, `focus`, `focus-worst`, `disabled`, `worst-case-weighted-sum` or
    /// `worst-case-weighted-one`.
    pub mode: String,
    /// Of `focus`: the identity of the call that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl Default for Reporting {
    fn default() -> Self {
        Self {
            mode: "weighted".into(),
            id: None,
        }
    }
}

impl Reporting {
    /// The logic of it; none if nothing is reported.
    ///
    /// # Errors
    /// An unknown mode, or a focus without an identity.
    pub fn logic(&self) -> Result<Option<ReportingLogic>, String> {
        match (self.mode.as_str(), &self.id) {
            ("disabled", _) => Ok(None),
            ("focus", Some(id)) => Ok(Some(ReportingLogic::Focus(id.clone()))),
            ("focus", None) => Err("the reporting mode focus needs the id of a call".into()),
            (mode, _) => mode.parse().map(Some),
        }
    }
}

/// How the reports of a block are summed up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ReportingLogic {
    /// The sum of all.
    Weighted,
    /// The one component that is named.
    Focus(String),
    /// The worst component.
    FocusWorst,
    /// The worst status, as often as there are values.
    WorstCaseWeightedSum,
    /// The worst status, once.
    WorstCaseWeightedOne,
}

impl fmt::Display for ReportingLogic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Weighted => f.write_str("weighted"),
            Self::Focus(component) => write!(f, "focus:{component}"),
            Self::FocusWorst => f.write_str("focus-worst"),
            Self::WorstCaseWeightedSum => f.write_str("worst-case-weighted-sum"),
            Self::WorstCaseWeightedOne => f.write_str("worst-case-weighted-one"),
        }
    }
}

impl FromStr for ReportingLogic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "weighted" => Ok(Self::Weighted),
            "focus-worst" => Ok(Self::FocusWorst),
            "worst-case-weighted-sum" => Ok(Self::WorstCaseWeightedSum),
            "worst-case-weighted-one" => Ok(Self::WorstCaseWeightedOne),
            other => match other.strip_prefix("focus:") {
                Some(component) if !component.is_empty() => Ok(Self::Focus(component.into())),
                _ => Err(format!(
                    "unknown reporting mode \"{other}\"; expected weighted, focus:COMPONENT, \
                     focus-worst, worst-case-weighted-sum or worst-case-weighted-one"
                )),
            },
        }
    }
}

impl Serialize for ReportingLogic {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ReportingLogic {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

impl Technique {
    /// Identity and version as one text.
    pub fn key(&self) -> String {
        technique_key(&self.id, &self.version)
    }

    /// Checks identity, name, sizes, depth, and that blocks and methods are named.
    ///
    /// # Errors
    /// Names the technique and what is wrong.
    pub fn check(&self) -> Result<(), ModelError> {
        check_id("technique", &self.id)?;
        check_id("technique", &self.version)?;
        check_name("technique", &self.id, &self.name)?;
        let mut items = 0;
        let found = match &self.body {
            Body::Sections(sections) => check::check_sections(sections, 0, &mut items),
            Body::Methods(methods) => check::check_methods(&methods.items, 0, &mut items),
        };
        found.map_err(|message| ModelError::new("technique", &self.key(), message))
    }
}

/// Identity and version of a technique as one text: `userManagement/8.0`.
pub fn technique_key(id: &str, version: &str) -> String {
    format!("{id}/{version}")
}
