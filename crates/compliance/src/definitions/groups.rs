//! Groups that name others by their queries: such as are not there, and circles, in which nobody could
//! say who belongs to them.

use std::collections::{BTreeSet, VecDeque};

use super::{Definitions, Wrong};
use crate::model::attributes::ObjectType;
use crate::model::group::Group;
use crate::model::query::Condition;
use crate::policy::system::is_reserved;

impl Definitions {
    /// What is wrong with the groups that a group's query names.
    pub(super) fn groups_named(&self, group: &Group) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        for (id, path) in named(group) {
            if let Some(way) = circle(self, &group.id, &id) {
                let message = match way.len() {
                    0 | 1 => "the group's query names the group itself".to_owned(),
                    _ => format!("groups name each other in a circle: {}", way.join(" → ")),
                };
                wrong.push(Wrong::at(path, message));
            } else if !self.groups.contains_key(&id) && !is_reserved(&id) {
                let known = self.groups.keys().cloned().collect();
                wrong.push(Wrong {
                    near: Some((id.clone(), "groups", known)),
                    ..Wrong::at(path, format!("there is no group \"{id}\""))
                });
            }
        }
        wrong
    }
}

/// The groups that a query names, and where.
fn named(group: &Group) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let Some(query) = &group.query else {
        return found;
    };
    let path = vec!["query".to_owned(), "where".to_owned()];
    let mut left = vec![(&query.criteria[..], path)];
    let mut place = |list: &[Condition], path: &[String]| {
        for (at, condition) in list.iter().enumerate() {
            let Condition::Criterion(one) = condition else {
                continue;
            };
            if one.object_type == ObjectType::Group && !one.value.is_empty() {
                let steps = [at.to_string(), "value".to_owned()];
                found.push((one.value.clone(), [path, &steps].concat()));
            }
        }
    };
    // Bounded: queries are nested to a depth that is checked before.
    while let Some((list, path)) = left.pop() {
        place(list, &path);
        for (at, condition) in list.iter().enumerate() {
            let within = |key: &str| [&path[..], &[at.to_string(), key.to_owned()]].concat();
            match condition {
                Condition::Criterion(_) => {}
                Condition::And { and } => left.push((and, within("and"))),
                Condition::Or { or } => left.push((or, within("or"))),
                // One condition stands there by itself, not in a list.
                Condition::Not { not } => left.push((std::slice::from_ref(&**not), within("not"))),
            }
        }
    }
    found
}

/// The way from a group over one that it names back to itself, the shortest.
fn circle(all: &Definitions, group: &str, first: &str) -> Option<Vec<String>> {
    if group == first {
        return Some(vec![group.to_owned()]);
    }
    let mut seen = BTreeSet::from([first]);
    let mut left = VecDeque::from([vec![group, first]]);
    while let Some(way) = left.pop_front() {
        let last = all.groups.get(*way.last()?);
        let query = last.and_then(|one| one.query.as_ref());
        for next in query.map(|query| query.groups()).unwrap_or_default() {
            if next == group {
                let way = way.iter().copied().chain([group]);
                return Some(way.map(str::to_owned).collect());
            }
            if seen.insert(next) {
                left.push_back([&way[..], &[next]].concat());
            }
        }
    }
    None
}
