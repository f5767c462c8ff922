//! Directives: a technique with the values of its variables.

use serde::{Deserialize, Serialize};

use super::mode::{PolicyMode, or_default};
use super::{ModelError, check_id, check_name, yes};

/// The lowest priority there is; 0 is the highest.
pub const LOWEST_PRIORITY: u8 = 10;
/// Most values of one directive.
pub const VALUES: usize = 100_000;
/// Longest value, in bytes.
pub const VALUE_BYTES: usize = 1 << 20;
/// Deepest nesting of sections.
pub const SECTION_DEPTH: usize = 16;

/// A technique, and the values of its variables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Directive {
    /// Its identity.
    pub id: String,
    /// Its name; policies of a rule are ordered by it.
    pub display_name: String,
    /// In one line.
    #[serde(default)]
    pub short_description: String,
    /// In full.
    #[serde(default)]
    pub long_description: String,
    /// Identity of the technique.
    pub technique_name: String,
    /// Version of the technique.
    pub technique_version: String,
    /// Values of the technique's variables.
    #[serde(default)]
    pub parameters: Parameters,
    /// 0 to 10; of directives of a technique that a node has once the one with the lowest
    /// number holds.
    #[serde(default = "middle")]
    pub priority: u8,
    /// Does it hold at all?
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Is it one of those that the server makes itself?
    #[serde(default)]
    pub system: bool,
    /// Audit or enforce, if set for it.
    #[serde(default, with = "or_default")]
    pub policy_mode: Option<PolicyMode>,
    /// Labels, each an object of one key.
    #[serde(default)]
    pub tags: Vec<serde_json::Map<String, serde_json::Value>>,
    /// The campaign in whose windows alone it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_id: Option<String>,
}

fn middle() -> u8 {
    5
}

/// The tree of sections with values, as the REST API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// The root, named `sections`.
    pub section: SectionValues,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            section: SectionValues {
                name: "sections".into(),
                ..SectionValues::default()
            },
        }
    }
}

/// Values of one section. A section of several instances is there once for each.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SectionValues {
    /// The section's name.
    pub name: String,
    /// Values of its variables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vars: Vec<Variable>,
    /// Sections within it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<Section>,
}

/// One value, as the REST API wraps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    /// Name and value.
    pub var: VariableValue,
}

/// The value of a variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableValue {
    /// The variable's name.
    pub name: String,
    /// Its value: text with variables, or a computed value after `eval:`.
    pub value: String,
}

/// One section, as the REST API wraps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// The section.
    pub section: SectionValues,
}

impl SectionValues {
    /// A section of this name without values.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// With one more value.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.vars.push(Variable {
            var: VariableValue {
                name: name.into(),
                value: value.into(),
            },
        });
        self
    }

    /// With one more section in it.
    #[must_use]
    pub fn with_section(mut self, section: Self) -> Self {
        self.sections.push(Section { section });
        self
    }

    /// The value of a variable of this very section.
    pub fn value(&self, name: &str) -> Option<&str> {
        let found = self.vars.iter().find(|one| one.var.name == name);
        found.map(|one| one.var.value.as_str())
    }

    /// The instances of a section in it.
    pub fn instances<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s Self> {
        let all = self.sections.iter().map(|one| &one.section);
        all.filter(move |section| section.name == name)
    }

    /// The value of a variable of this section or of one within it, the first found.
    pub fn value_anywhere(&self, name: &str) -> Option<&str> {
        self.value(name).or_else(|| {
            let mut within = self.sections.iter();
            within.find_map(|one| one.section.value_anywhere(name))
        })
    }

    fn check(&self, depth: usize, values: &mut usize) -> Result<(), String> {
        if depth > SECTION_DEPTH {
            return Err(format!(
                "sections are nested deeper than {SECTION_DEPTH} at \"{}\"",
                self.name
            ));
        }
        *values += self.vars.len() + self.sections.len();
        if *values > VALUES {
            return Err(format!("more than {VALUES} values and sections"));
        }
        for Variable { var } in &self.vars {
            if var.value.len() > VALUE_BYTES {
                return Err(format!(
                    "the value of \"{}\" has {} bytes; at most {VALUE_BYTES} are kept",
                    var.name,
                    var.value.len()
                ));
            }
        }
        let mut within = self.sections.iter();
        within.try_for_each(|one| one.section.check(depth + 1, values))
    }
}

impl Directive {
    /// A directive of a technique, without values.
    pub fn new(id: impl Into<String>, name: impl Into<String>, technique: (&str, &str)) -> Self {
        Self {
            id: id.into(),
            display_name: name.into(),
            short_description: String::new(),
            long_description: String::new(),
            technique_name: technique.0.into(),
            technique_version: technique.1.into(),
            parameters: Parameters::default(),
            priority: middle(),
            enabled: true,
            system: false,
            policy_mode: None,
            tags: Vec::new(),
            schedule_id: None,
        }
    }

    /// Checks identity, name, priority and sizes; whether the values fit the technique is
    /// found out when they are compiled.
    pub fn check(&self) -> Result<(), ModelError> {
        check_id("directive", &self.id)?;
        check_name("directive", &self.id, &self.display_name)?;
        check_id("directive", &self.technique_name).map_err(|error| error.of("technique"))?;
        let wrong = |message: String| Err(ModelError::new("directive", &self.id, message));
        if self.priority > LOWEST_PRIORITY {
            let found = self.priority;
            let message = format!("priority {found}; expected 0 (highest) to 10");
            return Err(ModelError::new("directive", &self.id, message).of("priority"));
        }
        match self.parameters.section.check(0, &mut 0) {
            Ok(()) => Ok(()),
            Err(message) => wrong(message),
        }
    }
}
