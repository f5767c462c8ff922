//! What can only be checked once all files were read: names of other objects, and values against
//! their techniques.

use std::collections::{BTreeMap, BTreeSet};

use document::{Problem, Problems};
use units::nearest;

use super::{Read, Reading, calls, groups};
use crate::definitions::{Definitions, Wrong};
use crate::model::directive::Directive;
use crate::model::property::GlobalParameter;
use crate::model::rule::Rule;
use crate::model::schedule::{AgentRun, ScheduleError};
use crate::model::technique::{Body, Technique};
use crate::policy::system::is_reserved;

/// Names that are listed as often as one of them is missed.
const FEW: usize = 20;

impl Reading<'_> {
    /// Checks all objects; what is wrong is added to the problems.
    pub(super) fn check(&mut self) {
        let mut found = Vec::new();
        let mut listed = Listed::default();
        let all = &self.definitions;
        if let Some(read) = &self.settings {
            found.extend(shown(read, run(&all.settings.agent_run)));
        }
        if let Some(read) = &self.parameters {
            found.extend(shown(read, parameters(&all.parameters)));
        }
        for (id, group) in &all.groups {
            let mut wrong = all.check_group(group);
            if let Some(read) = self.groups.get(id) {
                wrong.extend(groups::check(read));
            }
            listed.once(&mut wrong);
            found.extend(placed(&self.groups, id, id, wrong));
        }
        for (key, technique) in &all.techniques {
            let read = self.techniques.get(key);
            let mut wrong: Vec<_> = read
                .map(|read| calls::check(technique, read))
                .unwrap_or_default();
            if wrong.is_empty() {
                // What it finds has no place but the whole.
                wrong.extend(Wrong::of(technique.check()));
            }
            wrong.extend(version(technique));
            listed.once(&mut wrong);
            found.extend(placed(&self.techniques, key, &technique.id, wrong));
        }
        for (id, directive) in &all.directives {
            let mut wrong = all.check_directive(directive);
            if let Some(read) = self.directives.get(id) {
                let technique = format!(
                    "{}/{}",
                    directive.technique_name, directive.technique_version
                );
                let technique = all.techniques.get(&technique);
                wrong.extend(no_texts(directive, technique, read));
            }
            listed.once(&mut wrong);
            found.extend(placed(&self.directives, id, id, wrong));
        }
        for (id, rule) in &all.rules {
            let mut wrong = all.check_rule(rule);
            wrong.extend(twice(rule));
            listed.once(&mut wrong);
            found.extend(placed(&self.rules, id, id, wrong));
        }
        self.problems.extend(found);
    }
}

/// Lists of known names that were shown: one that is long is shown once.
#[derive(Default)]
struct Listed(BTreeSet<&'static str>);

impl Listed {
    /// Leaves out the lists that were shown before. A name that is near is told each time.
    fn once(&mut self, wrong: &mut [Wrong]) {
        for one in wrong {
            if let Some((word, what, known)) = &one.near
                && known.len() > FEW
                && nearest(word, known.iter().map(String::as_str)).is_none()
                && !self.0.insert(what)
            {
                one.near = None;
            }
        }
    }
}

fn path(steps: &[&str]) -> Vec<String> {
    steps.iter().map(ToString::to_string).collect()
}

/// The schedule of all agents.
fn run(run: &AgentRun) -> Vec<Wrong> {
    let Err(error) = run.check() else {
        return Vec::new();
    };
    let key = match error {
        ScheduleError::Interval(_) => "interval",
        ScheduleError::Start(hour, _) if hour > 23 => "startHour",
        ScheduleError::Start(..) => "startMinute",
        ScheduleError::Splay(_) => "splaytime",
    };
    vec![Wrong::at(path(&["agentRun", key]), error.to_string())]
}

fn parameters(all: &BTreeMap<String, GlobalParameter>) -> Vec<Wrong> {
    let wrong = all.iter().flat_map(|(id, parameter)| {
        let found = Definitions::check_parameter(parameter).into_iter();
        found.map(|one| Wrong {
            key: one.path != ["value"],
            ..Wrong::at(path(&[id]), one.message)
        })
    });
    wrong.collect()
}

/// A version is compared with others, so that it must be one.
fn version(technique: &Technique) -> Option<Wrong> {
    let version = technique.version.as_str();
    let end = version.find(['-', '~', '+']).unwrap_or(version.len());
    let mut numbers = version[..end].split('.');
    let right =
        numbers.all(|one| !one.is_empty() && one.bytes().all(|digit| digit.is_ascii_digit()));
    let message = format!("\"{version}\" is no version; expected numbers such as 1.0");
    (!right).then(|| Wrong::at(path(&["version"]), message))
}

/// Lists and tables for parameters of calls, which are texts.
fn no_texts(directive: &Directive, technique: Option<&Technique>, read: &Read<'_>) -> Vec<Wrong> {
    if !matches!(technique.map(|one| &one.body), Some(Body::Methods(_))) {
        return Vec::new();
    }
    let names = directive.parameters.section.vars.iter();
    let wrong = names.filter_map(|one| {
        let steps = ["params", one.var.name.as_str()];
        read.has(&steps[..1], steps[1]).then_some(())?;
        let kind = match read.at(&steps).value {
            document::Value::Table(_) => "a table",
            document::Value::List(_) => "a list",
            _ => return None,
        };
        Some(Wrong::at(
            path(&steps),
            format!(
                "the parameter \"{}\" is {kind}; expected a text",
                one.var.name
            ),
        ))
    });
    wrong.collect()
}

/// Directives that a rule names twice.
fn twice(rule: &Rule) -> Vec<Wrong> {
    let all = rule.directives.iter().enumerate();
    let again = all.filter(|(at, id)| rule.directives[..*at].contains(id));
    let wrong = again.map(|(at, id)| {
        Wrong::at(
            path(&["directives", &at.to_string()]),
            format!("the rule names the directive \"{id}\" twice"),
        )
    });
    wrong.collect()
}

/// An identity that is a path, or a part of one, which the REST API could not name.
fn identity(id: &str) -> Option<Wrong> {
    let wrong = id.contains('/') || id == "." || id == "..";
    let message = format!("the id \"{id}\" is a path; expected a name without /");
    wrong.then(|| Wrong::at(path(&["id"]), message))
}

/// What is wrong with an object, at its places.
fn placed(
    places: &super::Places<'_>,
    key: &str,
    id: &str,
    mut wrong: Vec<Wrong>,
) -> Option<Problems> {
    if is_reserved(id) {
        wrong.push(Wrong::at(
            path(&["id"]),
            format!("\"{id}\" is one of the server's own; choose another id"),
        ));
    }
    wrong.extend(identity(id));
    shown(places.get(key)?, wrong)
}

fn shown(read: &Read<'_>, wrong: Vec<Wrong>) -> Option<Problems> {
    if wrong.is_empty() {
        return None;
    }
    let problems = wrong.into_iter().map(|one| problem(read, one)).collect();
    Some(Problems::of(&read.file.source, problems))
}

fn problem(read: &Read<'_>, wrong: Wrong) -> Problem {
    let path: Vec<&str> = wrong.path.iter().map(String::as_str).collect();
    let (node, key) = read.way(&path);
    let span = match key.filter(|_| wrong.key) {
        Some(key) => key.clone(),
        // A whole file is marked at its start.
        None if std::ptr::eq(node, &read.node) => 0..0,
        None => node.span.clone(),
    };
    let problem = Problem::new(span, wrong.message);
    match &wrong.near {
        None => problem,
        Some((word, what, known)) => {
            problem.suggest_from(word, what, known.iter().map(String::as_str))
        }
    }
}
