//! What can only be checked once all files were read: names of other objects, and values against
//! their techniques.

use document::{Problem, Problems};

use super::{Read, Reading};
use crate::model::directive::Directive;
use crate::model::ids::{GroupIx, Interner};
use crate::model::query::{CompiledQuery, Query};
use crate::model::rule::Rule;
use crate::model::target::Target;
use crate::model::technique::{Body, Technique};
use crate::policy::compile::{CompileError, compile};
use crate::policy::system::is_reserved;

impl Reading<'_> {
    /// Checks all objects; what is wrong is added to the problems.
    pub(super) fn check(&mut self) {
        let mut found = Vec::new();
        let all = &self.definitions;
        for (id, group) in &all.groups {
            let mut wrong = of_check(group.check());
            if let Some(query) = &group.query {
                wrong.extend(self.query(query));
            }
            found.extend(placed(&self.groups, id, wrong, is_reserved(id)));
        }
        for (key, technique) in &all.techniques {
            let wrong = of_check(technique.check());
            let reserved = is_reserved(&technique.id);
            found.extend(placed(&self.techniques, key, wrong, reserved));
        }
        for (id, directive) in &all.directives {
            let mut wrong = of_check(directive.check());
            wrong.extend(self.directive(directive));
            found.extend(placed(&self.directives, id, wrong, is_reserved(id)));
        }
        for (id, rule) in &all.rules {
            let mut wrong = of_check(rule.check());
            wrong.extend(self.rule(rule));
            found.extend(placed(&self.rules, id, wrong, is_reserved(id)));
        }
        self.problems.extend(found);
    }

    fn query(&self, query: &Query) -> Option<Wrong> {
        let mut groups = Interner::<GroupIx>::default();
        let compiled = CompiledQuery::new(query, &mut |id| groups.intern(id));
        compiled.err().map(|error| Wrong {
            path: vec!["query".into(), "where".into()],
            message: error.to_string(),
            near: None,
        })
    }

    fn directive(&self, directive: &Directive) -> Option<Wrong> {
        let key = format!(
            "{}/{}",
            directive.technique_name, directive.technique_version
        );
        let techniques = &self.definitions.techniques;
        let Some(technique) = techniques.get(&key) else {
            let known = techniques.keys().cloned().collect();
            return Some(Wrong {
                path: vec!["technique".into()],
                message: format!("there is no technique \"{key}\""),
                near: Some((key, "techniques", known)),
            });
        };
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
            near: None,
        })
    }

    fn rule(&self, rule: &Rule) -> Vec<Wrong> {
        let all = &self.definitions;
        let mut wrong = Vec::new();
        for (at, id) in rule.directives.iter().enumerate() {
            if !all.directives.contains_key(id) {
                let known = all.directives.keys().cloned().collect();
                wrong.push(Wrong {
                    path: vec!["directives".into(), at.to_string()],
                    message: format!("there is no directive \"{id}\""),
                    near: Some((id.clone(), "directives", known)),
                });
            }
        }
        for (at, target) in rule.targets.iter().enumerate() {
            for simple in target.simple() {
                if let Target::Group(id) = simple
                    && !all.groups.contains_key(id)
                    && !is_reserved(id)
                {
                    let known = all.groups.keys().cloned().collect();
                    wrong.push(Wrong {
                        path: vec!["targets".into(), at.to_string()],
                        message: format!("there is no group \"{id}\""),
                        near: Some((id.clone(), "groups", known)),
                    });
                }
            }
        }
        wrong
    }
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
    })
}

/// Something wrong, and where it stands in its file.
struct Wrong {
    path: Vec<String>,
    message: String,
    /// A name that is not known, what such names are of, and those that are known.
    near: Option<(String, &'static str, Vec<String>)>,
}

fn of_check(checked: Result<(), crate::model::ModelError>) -> Vec<Wrong> {
    let wrong = checked.err().map(|error| Wrong {
        path: Vec::new(),
        message: error.message,
        near: None,
    });
    wrong.into_iter().collect()
}

/// What is wrong with an object, at its places.
fn placed(
    places: &super::Places<'_>,
    id: &str,
    mut wrong: Vec<Wrong>,
    reserved: bool,
) -> Option<Problems> {
    if reserved {
        wrong.push(Wrong {
            path: vec!["id".into()],
            message: format!("\"{id}\" is one of the server's own; choose another id"),
            near: None,
        });
    }
    let read = places.get(id).filter(|_| !wrong.is_empty())?;
    let problems = wrong.into_iter().map(|one| problem(read, one)).collect();
    Some(Problems::of(&read.file.source, problems))
}

fn problem(read: &Read<'_>, wrong: Wrong) -> Problem {
    let path: Vec<&str> = wrong.path.iter().map(String::as_str).collect();
    let node = read.at(&path);
    // A whole file is marked at its start.
    let span = if std::ptr::eq(node, &read.node) {
        0..0
    } else {
        node.span.clone()
    };
    let problem = Problem::new(span, wrong.message);
    match &wrong.near {
        None => problem,
        Some((word, what, known)) => {
            problem.suggest_from(word, what, known.iter().map(String::as_str))
        }
    }
}
