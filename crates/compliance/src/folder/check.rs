//! What can only be checked once all files were read: names of other objects, and values against
//! their techniques.

use document::{Problem, Problems};

use super::{Read, Reading};
use crate::definitions::Wrong;
use crate::policy::system::is_reserved;

impl Reading<'_> {
    /// Checks all objects; what is wrong is added to the problems.
    pub(super) fn check(&mut self) {
        let mut found = Vec::new();
        let all = &self.definitions;
        for (id, group) in &all.groups {
            let wrong = all.check_group(group);
            found.extend(placed(&self.groups, id, wrong, is_reserved(id)));
        }
        for (key, technique) in &all.techniques {
            let wrong = Wrong::of(technique.check());
            let reserved = is_reserved(&technique.id);
            found.extend(placed(&self.techniques, key, wrong, reserved));
        }
        for (id, directive) in &all.directives {
            let wrong = all.check_directive(directive);
            found.extend(placed(&self.directives, id, wrong, is_reserved(id)));
        }
        for (id, rule) in &all.rules {
            let wrong = all.check_rule(rule);
            found.extend(placed(&self.rules, id, wrong, is_reserved(id)));
        }
        self.problems.extend(found);
    }
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
