//! What is wrong with an object among the others: names of what is not there, and values that
//! its technique does not accept.

use serde_json::Value;

use super::Definitions;
use crate::model::ModelError;
use crate::model::directive::Directive;
use crate::model::expiration;
use crate::model::group::Group;
use crate::model::ids::{GroupIx, Interner};
use crate::model::property::GlobalParameter;
use crate::model::query::{CompiledQuery, Query};
use crate::model::rule::Rule;
use crate::model::target::Target;
use crate::model::technique::{Body, Technique};
use crate::policy::compile::{CompileError, compile};
use crate::policy::system::is_reserved;

/// Directives that a technique would break, of which its refusal tells.
const BROKEN: usize = 10;

/// Something wrong with an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wrong {
    /// Where, in the words of the folder's files: keys, and places in lists.
    pub path: Vec<String>,
    /// What was found, what was expected.
    pub message: String,
    /// A name that is not known, what such names are of, and those that are known.
    pub near: Option<(String, &'static str, Vec<String>)>,
    /// Is the key wrong, not its value?
    pub key: bool,
}

impl Wrong {
    /// What is wrong at a place.
    pub fn at(path: Vec<String>, message: impl Into<String>) -> Self {
        Self {
            path,
            message: message.into(),
            ..Self::default()
        }
    }

    /// What the object itself finds.
    pub fn of(checked: Result<(), ModelError>) -> Vec<Self> {
        let wrong = checked.err().map(|error| {
            let field = Some(error.field).filter(|field| !field.is_empty());
            Self::at(field.map(Into::into).into_iter().collect(), error.message)
        });
        wrong.into_iter().collect()
    }
}

impl Definitions {
    /// What is wrong with a group that stands beside all this.
    pub fn check_group(&self, group: &Group) -> Vec<Wrong> {
        let mut wrong = Wrong::of(group.check());
        wrong.extend(group.query.as_ref().and_then(Self::query));
        wrong.extend(self.groups_named(group));
        for property in &group.properties {
            let path = vec!["properties".into(), property.name.clone()];
            wrong.extend(expired(&property.name, &property.value, path));
        }
        wrong
    }

    /// What is wrong with a global parameter; its value is what is found at the path `value`.
    pub fn check_parameter(parameter: &GlobalParameter) -> Vec<Wrong> {
        let mut wrong = Wrong::of(parameter.check());
        let path = vec!["value".into()];
        wrong.extend(expired(&parameter.id, &parameter.value, path));
        wrong
    }

    /// What is wrong with a technique that stands beside all this. Directives of it must still
    /// have values that it accepts.
    pub fn check_technique(&self, technique: &Technique) -> Vec<Wrong> {
        let mut wrong = Wrong::of(technique.check());
        let users = self.directives.values().filter(|one| {
            one.technique_name == technique.id && one.technique_version == technique.version
        });
        // What was wrong before must not stand in the way of its repair.
        let broken = users
            .filter(|one| self.values(one).is_none())
            .filter_map(|one| {
                let found = accepted(technique, one)?;
                Some(Wrong {
                    path: Vec::new(),
                    message: format!("the directive \"{}\" of it: {}", one.id, found.message),
                    ..Wrong::default()
                })
            });
        wrong.extend(broken.take(BROKEN));
        wrong
    }

    /// What is wrong with a directive that stands beside all this.
    pub fn check_directive(&self, directive: &Directive) -> Vec<Wrong> {
        let mut wrong = Wrong::of(directive.check());
        wrong.extend(self.values(directive));
        wrong
    }

    fn query(query: &Query) -> Option<Wrong> {
        let mut groups = Interner::<GroupIx>::default();
        let compiled = CompiledQuery::new(query, &mut |id| groups.intern(id));
        compiled.err().map(|error| Wrong {
            path: vec!["query".into(), "where".into()],
            message: error.to_string(),
            ..Wrong::default()
        })
    }

    fn values(&self, directive: &Directive) -> Option<Wrong> {
        let key = format!(
            "{}/{}",
            directive.technique_name, directive.technique_version
        );
        let techniques = &self.techniques;
        let Some(technique) = techniques.get(&key) else {
            let known = techniques.keys().cloned().collect();
            return Some(Wrong {
                path: vec!["technique".into()],
                message: format!("there is no technique \"{key}\""),
                near: Some((key, "techniques", known)),
                ..Wrong::default()
            });
        };
        accepted(technique, directive)
    }

    /// What is wrong with a rule that stands beside all this.
    pub fn check_rule(&self, rule: &Rule) -> Vec<Wrong> {
        let mut wrong = Wrong::of(rule.check());
        for (at, id) in rule.directives.iter().enumerate() {
            if !self.directives.contains_key(id) {
                let known = self.directives.keys().cloned().collect();
                wrong.push(Wrong {
                    path: vec!["directives".into(), at.to_string()],
                    message: format!("there is no directive \"{id}\""),
                    near: Some((id.clone(), "directives", known)),
                    ..Wrong::default()
                });
            }
        }
        for (at, target) in rule.targets.iter().enumerate() {
            for simple in target.simple() {
                if let Target::Group(id) = simple
                    && !self.groups.contains_key(id)
                    && !is_reserved(id)
                {
                    let known = self.groups.keys().cloned().collect();
                    wrong.push(Wrong {
                        path: vec!["targets".into(), at.to_string()],
                        message: format!("there is no group \"{id}\""),
                        near: Some((id.clone(), "groups", known)),
                        ..Wrong::default()
                    });
                }
            }
        }
        wrong
    }
}

/// What is wrong with a property that says how long compliance is kept.
fn expired(name: &str, value: &Value, path: Vec<String>) -> Option<Wrong> {
    let found = expiration::check(value).err();
    let message = found.filter(|_| name == expiration::PROPERTY)?;
    Some(Wrong::at(path, message))
}

/// What a technique does not accept of a directive's values.
fn accepted(technique: &Technique, directive: &Directive) -> Option<Wrong> {
    if let Some(wrong) = unknown_parameter(technique, directive) {
        return Some(wrong);
    }
    let error = compile(technique, &[directive]).err()?;
    let path = match &error {
        CompileError::Value { variable, .. } => vec!["params".into(), variable.clone()],
        _ => Vec::new(),
    };
    Some(Wrong {
        path,
        message: error.to_string(),
        ..Wrong::default()
    })
}

/// A value for a parameter that a technique of calls has not; it would have no effect.
fn unknown_parameter(technique: &Technique, directive: &Directive) -> Option<Wrong> {
    let Body::Methods(methods) = &technique.body else {
        return None;
    };
    let names = || {
        let all = methods.params.iter();
        all.flat_map(|param| [param.name.as_str(), param.id.as_str()])
    };
    let values = &directive.parameters.section.vars;
    let other = values
        .iter()
        .find(|value| names().all(|name| name != value.var.name))?;
    let name = other.var.name.clone();
    let known = methods.params.iter().map(|param| param.name.clone());
    Some(Wrong {
        path: vec!["params".into(), name.clone()],
        message: format!("the technique has no parameter \"{name}\""),
        near: Some((name, "parameters of it", known.collect())),
        key: true,
    })
}
