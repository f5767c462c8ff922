//! The order in which systems start.

use std::collections::BTreeMap;

use document::Problem;

use super::process::Found;

/// Finds systems that wait for each other, and so would never start. Each circle
/// is one problem, at the `after` that closes it.
pub(super) fn circles(systems: &[Found]) -> Vec<Problem> {
    let index: BTreeMap<&str, usize> = systems
        .iter()
        .enumerate()
        .map(|(at, found)| (found.system.name.as_str(), at))
        .collect();
    let mut search = Search {
        systems,
        index,
        seen: vec![false; systems.len()],
        path: Vec::new(),
    };
    let mut problems = Vec::new();
    for start in 0..systems.len() {
        search.visit(start, &mut problems);
    }
    problems
}

struct Search<'s> {
    systems: &'s [Found],
    index: BTreeMap<&'s str, usize>,
    seen: Vec<bool>,
    path: Vec<usize>,
}

impl Search<'_> {
    /// Follows `after` from a system. The depth is bounded by the number of systems.
    fn visit(&mut self, at: usize, problems: &mut Vec<Problem>) {
        if std::mem::replace(&mut self.seen[at], true) {
            return;
        }
        self.path.push(at);
        let found = &self.systems[at];
        for (name, span) in found.system.after.iter().zip(&found.after) {
            let Some(&next) = self.index.get(name.as_str()) else {
                continue;
            };
            match self.path.iter().position(|&on_path| on_path == next) {
                Some(from) => {
                    let circle = self.path[from..].iter().chain([&next]);
                    let names: Vec<&str> = circle
                        .map(|&at| self.systems[at].system.name.as_str())
                        .collect();
                    let message = match names.as_slice() {
                        [own, _] => format!("\"{own}\" would wait for itself"),
                        _ => format!(
                            "systems would wait for each other: {}",
                            names.join(" after ")
                        ),
                    };
                    problems.push(Problem::new(span.clone(), message).help(
                        "references such as {db.addr} need no order; drop an `after` that is not needed",
                    ));
                }
                None => self.visit(next, problems),
            }
        }
        self.path.pop();
    }
}
