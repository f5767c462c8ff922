//! Techniques: what can be configured, with which variables, and what an agent reports of it.

mod check;
pub(crate) mod in_order;

use serde::{Deserialize, Serialize};

use super::constraint::Constraint;
use super::mode::PolicyMode;
use super::reporting::ReportingLogic;
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
pub struct MethodItem {
    /// Its identity, and that of its reports.
    #[serde(default)]
    pub id: String,
    /// Its name, that of the component; a call without one is named by its method.
    #[serde(default)]
    pub name: String,
    /// The condition under which it runs; always without one.
    #[serde(default)]
    pub condition: String,
    /// A mode of its own; that of a block is for all in it that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_mode_override: Option<PolicyMode>,
    /// Whether a call is reported, how reports of what is in a block are summed up.
    #[serde(default)]
    pub reporting: Reporting,
    /// Makes one of it for each of these sets of values.
    #[serde(default)]
    pub foreach: Vec<serde_json::Map<String, serde_json::Value>>,
    /// `${NAME.KEY}` stands for a value of the set; `item` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreach_name: Option<String>,
    /// What it does.
    #[serde(flatten)]
    pub action: Action,
}

/// What a method item does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Action {
    /// Calls a method.
    Call {
        /// The method: `file_content`.
        method: String,
        /// Values of the method's parameters; the first is the one that reports name.
        #[serde(default, with = "in_order")]
        params: Vec<(String, serde_json::Value)>,
    },
    /// Does what is in it.
    Block {
        /// Calls and blocks.
        items: Vec<MethodItem>,
    },
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

impl Technique {
    /// Identity and version as one text.
    pub fn key(&self) -> String {
        technique_key(&self.id, &self.version)
    }

    /// Checks identity, name, sizes, depth, and that blocks and methods are named.
    pub fn check(&self) -> Result<(), ModelError> {
        check_id("technique", &self.id)?;
        check_id("technique", &self.version).map_err(|error| error.of("version"))?;
        check_name("technique", &self.id, &self.name)?;
        if self.version.contains('/') {
            let message = format!(
                "the version \"{}\" has a /; expected one such as 1.0",
                self.version
            );
            return Err(ModelError::new("technique", &self.id, message).of("version"));
        }
        let mut items = 0;
        let found = match &self.body {
            Body::Sections(sections) => check::check_sections(sections, 0, &mut items),
            Body::Methods(methods) => check::check_methods(&methods.items, 0, &mut items),
        };
        found.map_err(|message| ModelError::new("technique", &self.key(), message))
    }
}

impl Methods {
    /// Gives calls and blocks without an identity one of their place, and parameters their name.
    pub fn identify(&mut self, technique: &str) {
        number(&mut self.items, technique);
        for param in self.params.iter_mut().filter(|param| param.id.is_empty()) {
            param.id.clone_from(&param.name);
        }
    }
}

fn number(items: &mut [MethodItem], prefix: &str) {
    for (place, item) in (1..).zip(items) {
        if item.id.is_empty() {
            item.id = format!("{prefix}-{place}");
        }
        let prefix = item.id.clone();
        if let Action::Block { items } = &mut item.action {
            number(items, &prefix);
        }
    }
}

/// Identity and version of a technique as one text: `userManagement/8.0`.
pub fn technique_key(id: &str, version: &str) -> String {
    format!("{id}/{version}")
}
