//! A directive, made ready for all nodes: what of it is the same everywhere is kept once, and
//! what differs is a list of texts with variables.

use std::collections::HashMap;
use std::sync::Arc;

use super::digest::{Digest, Digester};
use super::template::{References, Template, Token};
use crate::model::constraint::CompiledConstraint;
use crate::model::mode::PolicyMode;
use crate::model::reporting::ReportingLogic;

mod methods;
mod sections;

pub use self::build::compile;
mod build;

/// Most texts of one compiled directive.
pub const TEXTS: usize = 500_000;

/// A directive that cannot be made ready.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// There is no such technique.
    #[error("there is no technique {0}")]
    NoTechnique(String),
    /// A value cannot be read.
    #[error("the variable \"{variable}\": {message}")]
    Value {
        /// The variable.
        variable: String,
        /// What is wrong.
        message: String,
    },
    /// Too much of something.
    #[error("it has more than {TEXTS} values, calls and blocks; is a foreach inside another?")]
    Size,
}

/// The place of a text in [`Compiled::texts`].
pub type TextRef = u32;

/// A variable's name and its values.
pub type VariableValues = (Arc<str>, Box<[TextRef]>);

/// What compiling gave.
pub type CompileResult = Result<Arc<Compiled>, CompileError>;

/// A text of a directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// As it is written in the directive.
    pub source: Arc<str>,
    /// What it stands for.
    pub form: Form,
}

/// What a text stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// The same on all nodes.
    Constant(Arc<str>),
    /// Its place among the texts that are expanded on each node.
    Expanded(u32),
}

/// A component that is expected to be reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Component {
    /// One with values.
    Values {
        /// Its name.
        name: TextRef,
        /// What is expected.
        values: Box<[ExpectedValue]>,
    },
    /// A block of components.
    Block {
        /// Its name.
        name: TextRef,
        /// Its identity.
        id: Option<Arc<str>>,
        /// How reports are summed up.
        logic: ReportingLogic,
        /// What is in it.
        components: Box<[Component]>,
    },
}

/// A value that is expected to be reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectedValue {
    /// `None`: the component has no key.
    None,
    /// The value of a key.
    Key(TextRef),
    /// The value of a call with a stable identity.
    WithId(Arc<str>, TextRef),
}

/// What the agent does: a call of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Identity of its reports.
    pub id: Arc<str>,
    /// The method.
    pub method: Arc<str>,
    /// The component that it reports.
    pub name: TextRef,
    /// The condition under which it runs; empty for always.
    pub condition: TextRef,
    /// A mode of its own.
    pub mode: Option<PolicyMode>,
    /// Is it reported?
    pub reported: bool,
    /// Parameters of the method.
    pub params: Box<[(Arc<str>, TextRef)]>,
}

/// A directive, or several of a merged technique, ready for all nodes.
#[derive(Debug)]
pub struct Compiled {
    /// Identity of the technique.
    pub technique: Arc<str>,
    /// Version of the technique.
    pub version: Arc<str>,
    /// Name of the technique.
    pub name: Arc<str>,
    /// Is it one of the server's own?
    pub system: bool,
    /// The campaign in whose windows alone it runs.
    pub schedule: Option<Arc<str>>,
    /// All its texts.
    pub texts: Box<[Text]>,
    /// The texts that are expanded on each node, each with the name of its variable.
    pub expanded: Box<[(Template, Arc<str>)]>,
    /// What is expected to be reported.
    pub components: Box<[Component]>,
    /// Variables and their values, of the form with sections.
    pub variables: Box<[VariableValues]>,
    /// Calls of methods, of the form with methods.
    pub calls: Box<[Call]>,
    /// What is checked of an expanded text.
    pub checks: Box<[(u32, Arc<CompiledConstraint>)]>,
    /// What its texts name.
    pub mentions: References,
    /// How many values are expected to be reported.
    pub value_count: u32,
    /// Hash of all that agents and reports see of it.
    pub digest: Digest,
}

/// Collects the texts of a directive; equal ones are kept once.
#[derive(Default)]
struct Texts {
    texts: Vec<Text>,
    expanded: Vec<(Template, Arc<str>)>,
    known: HashMap<(Arc<str>, Template), TextRef>,
    checks: Vec<(u32, Arc<CompiledConstraint>)>,
    mentions: References,
}

impl Texts {
    /// # Errors
    /// Too many texts.
    fn add(
        &mut self,
        variable: &str,
        source: &str,
        template: Template,
    ) -> Result<TextRef, CompileError> {
        let key = (Arc::from(source), template);
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        if self.texts.len() >= TEXTS {
            return Err(CompileError::Size);
        }
        let (source, template) = key.clone();
        self.mentions.add(&template);
        let form = match &template[..] {
            [] => Form::Constant("".into()),
            [Token::Text(text)] => Form::Constant(Arc::clone(text)),
            _ => {
                self.expanded.push((template, variable.into()));
                Form::Expanded(self.expanded.len() as u32 - 1)
            }
        };
        let at = self.texts.len() as TextRef;
        self.texts.push(Text { source, form });
        self.known.insert(key, at);
        Ok(at)
    }

    /// A text without variables.
    fn plain(&mut self, text: &str) -> Result<TextRef, CompileError> {
        self.add("", text, vec![Token::Text(text.into())])
    }

    /// Has a text checked: now if it is the same everywhere, else on each node.
    fn check(
        &mut self,
        variable: &str,
        at: TextRef,
        constraint: &Arc<CompiledConstraint>,
    ) -> Result<(), CompileError> {
        match self.texts.get(at as usize).map(|text| &text.form) {
            Some(Form::Constant(text)) => {
                constraint
                    .check(text)
                    .map_err(|message| CompileError::Value {
                        variable: variable.to_owned(),
                        message,
                    })
            }
            Some(Form::Expanded(slot)) if !constraint.accepts_any_text() => {
                self.checks.push((*slot, Arc::clone(constraint)));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Compiled {
    fn hash(&self) -> Digest {
        let mut all = Digester::new("directive");
        for text in [&self.technique, &self.version, &self.name] {
            all.text(text);
        }
        all.optional(self.schedule.as_deref());
        all.number(u64::from(self.system));
        for text in &self.texts {
            all.text(&text.source);
            match &text.form {
                Form::Constant(text) => all.optional(Some(text)),
                Form::Expanded(slot) => all.number(u64::from(*slot) + 2),
            }
        }
        hash_components(&self.components, &mut all);
        for (name, values) in &self.variables {
            all.text(name);
            values.iter().for_each(|&value| all.number(value.into()));
        }
        for call in &self.calls {
            all.text(&call.id);
            all.text(&call.method);
            all.optional(call.mode.map(PolicyMode::name));
            all.number(u64::from(call.reported));
            all.number(call.name.into());
            all.number(call.condition.into());
            all.number(call.params.len() as u64);
            for (name, value) in &call.params {
                all.text(name);
                all.number((*value).into());
            }
        }
        all.finish()
    }
}

fn hash_components(components: &[Component], all: &mut Digester) {
    all.number(components.len() as u64);
    for component in components {
        match component {
            Component::Values { name, values } => {
                all.number(0);
                all.number((*name).into());
                all.number(values.len() as u64);
                for value in values {
                    match value {
                        ExpectedValue::None => all.number(u64::MAX),
                        ExpectedValue::Key(text) => all.number((*text).into()),
                        ExpectedValue::WithId(id, text) => {
                            all.text(id);
                            all.number((*text).into());
                        }
                    }
                }
            }
            Component::Block {
                name,
                id,
                logic,
                components,
            } => {
                all.number(1);
                all.number((*name).into());
                all.optional(id.as_deref());
                all.text(&logic.to_string());
                hash_components(components, all);
            }
        }
    }
}

/// How many values these components expect.
fn count_values(components: &[Component]) -> u32 {
    let counts = components.iter().map(|component| match component {
        Component::Values { values, .. } => values.len() as u32,
        Component::Block { components, .. } => count_values(components),
    });
    counts.sum()
}
