//! What is wrong with a technique of calls: methods and parameters that there are not, texts that
//! no agent can read, names of nothing.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::Read;
use crate::agent::condition::holds;
use crate::definitions::Wrong;
use crate::model::methods::{METHODS, of};
use crate::model::technique::{Action, Body, MethodItem, Methods, Technique};

/// Marks that delimit reports, which no name in them may have.
const DELIMITERS: [&str; 3] = ["@@", "##", "@#"];

pub(super) fn check(technique: &Technique, read: &Read<'_>) -> Vec<Wrong> {
    let Body::Methods(methods) = &technique.body else {
        return Vec::new();
    };
    let mut check = Check {
        read,
        technique: &technique.id,
        names: names(&technique.id, methods),
        ids: BTreeSet::new(),
        sets: Vec::new(),
        wrong: Vec::new(),
    };
    if methods.items.is_empty() {
        let message = "the technique asks nothing; expected items: calls of methods, or blocks";
        check.report(&["items".to_owned()], message);
    }
    for (at, param) in methods.params.iter().enumerate() {
        if let Err(error) = param.constraints.check_itself() {
            let path = ["params", &at.to_string(), "constraints", "regex"].map(str::to_owned);
            check.report(&path, error);
        }
    }
    check.items(&methods.items, &[], 0);
    check.wrong
}

/// The names that `${TECHNIQUE.NAME}` may have: parameters, and variables that calls set under
/// the technique's name. None if a call sets some whose names only the agent knows.
fn names(technique: &str, methods: &Methods) -> Option<BTreeSet<String>> {
    let mut names: BTreeSet<String> = methods.params.iter().map(|one| one.name.clone()).collect();
    let mut left: Vec<&MethodItem> = methods.items.iter().collect();
    while let Some(item) = left.pop() {
        match &item.action {
            Action::Block { items } => left.extend(items),
            Action::Call { method, params } if method.starts_with("variable_string") => {
                let text = |name: &str| {
                    let found = params.iter().find(|(known, _)| known == name);
                    found.and_then(|(_, value)| value.as_str()).unwrap_or("")
                };
                let (prefix, name) = (text("prefix"), text("name"));
                if prefix.contains("${") || (prefix == technique && name.contains("${")) {
                    return None;
                }
                if prefix == technique {
                    names.insert(name.to_owned());
                }
            }
            Action::Call { .. } => {}
        }
    }
    Some(names)
}

struct Check<'c> {
    read: &'c Read<'c>,
    technique: &'c str,
    names: Option<BTreeSet<String>>,
    /// Identities so far.
    ids: BTreeSet<String>,
    /// The sets of `foreach` around an item: their name, and the keys that each has.
    sets: Vec<(String, BTreeSet<String>)>,
    wrong: Vec<Wrong>,
}

impl Check<'_> {
    fn report(&mut self, path: &[String], message: impl Into<String>) {
        self.wrong.push(Wrong::at(path.to_vec(), message));
    }

    fn items(&mut self, items: &[MethodItem], above: &[String], depth: usize) {
        // Deeper ones are refused as such.
        if depth > crate::model::technique::DEPTH {
            return;
        }
        for (at, item) in items.iter().enumerate() {
            let path = [above, &["items".to_owned(), at.to_string()]].concat();
            let within = |key: &str| [&path[..], &[key.to_owned()]].concat();
            let keys: Vec<&str> = path.iter().map(String::as_str).collect();
            let (has_method, has_items) = (
                self.read.has(&keys, "method"),
                self.read.has(&keys, "items"),
            );
            match (has_method, has_items) {
                (true, true) => {
                    self.report(&within("items"), "an item has a method or items, not both")
                }
                (false, false) => {
                    self.report(&path, "an item needs a method, or items that are a block");
                    continue;
                }
                _ => {}
            }
            if !self.ids.insert(item.id.clone()) {
                let message = format!("\"{}\" is the id of another item too", item.id);
                self.report(&within("id"), message);
            }
            if let Some(mark) = DELIMITERS.iter().find(|mark| item.name.contains(**mark)) {
                let message = format!("the name has {mark}, which delimits reports");
                self.report(&within("name"), message);
            }
            let condition = &item.condition;
            if !condition.contains("${")
                && let Err(error) = holds(condition, &HashSet::new())
            {
                self.report(&within("condition"), error.to_string());
            }
            self.reporting(item, &path);
            let named = !item.foreach.is_empty();
            if named {
                self.foreach(item, &within("foreach"));
            }
            self.text(&item.name, &within("name"));
            self.text(condition, &within("condition"));
            match &item.action {
                Action::Call { method, params } => self.call(method, params, &path),
                Action::Block { items } => self.items(items, &path, depth + 1),
            }
            if named {
                self.sets.pop();
            }
        }
    }

    /// Takes the sets of an item's `foreach` in.
    fn foreach(&mut self, item: &MethodItem, path: &[String]) {
        for (at, set) in item.foreach.iter().enumerate() {
            for (key, value) in set {
                if let Some(text) = value.as_str() {
                    self.text(text, &[path, &[at.to_string(), key.clone()]].concat());
                }
            }
        }
        let mut sets = item.foreach.iter();
        let keys = |set: &serde_json::Map<String, Value>| set.keys().cloned().collect();
        let first: BTreeSet<String> = sets.next().map(keys).unwrap_or_default();
        let all = sets.fold(first, |all, set| {
            all.into_iter()
                .filter(|key| set.contains_key(key))
                .collect()
        });
        let name = item.foreach_name.as_deref().unwrap_or("item");
        self.sets.push((name.to_owned(), all));
    }

    fn reporting(&mut self, item: &MethodItem, path: &[String]) {
        let within = |key: &str| [path, &["reporting".to_owned(), key.to_owned()]].concat();
        match item.reporting.logic() {
            Err(error) => self.report(&within("mode"), error),
            Ok(_) => {
                let (Action::Block { items }, Some(id)) = (&item.action, &item.reporting.id) else {
                    return;
                };
                if item.reporting.mode != "focus" {
                    return;
                }
                // The name of one does as well, which may have variables.
                let known =
                    |one: &MethodItem| one.id == *id || one.name == *id || one.name.contains("${");
                if !items.iter().any(known) {
                    let ids = items.iter().map(|one| one.id.clone()).collect();
                    self.wrong.push(Wrong {
                        near: Some((id.clone(), "items of the block", ids)),
                        ..Wrong::at(within("id"), format!("the block has no item \"{id}\""))
                    });
                }
            }
        }
    }

    fn call(&mut self, method: &str, params: &[(String, Value)], path: &[String]) {
        let within = |key: &str| [path, &["params".to_owned(), key.to_owned()]].concat();
        for (name, value) in params {
            match value {
                Value::Object(_) | Value::Array(_) => {
                    let kind = if value.is_array() {
                        "a list"
                    } else {
                        "a table"
                    };
                    let message = format!("the parameter \"{name}\" is {kind}; expected a text");
                    self.report(&within(name), message);
                }
                Value::String(text) => self.text(text, &within(name)),
                _ => {}
            }
        }
        if method.is_empty() {
            let path = [path, &["method".to_owned()]].concat();
            self.report(
                &path,
                "the method has no name; expected one such as file_content",
            );
            return;
        }
        let Some(known) = of(method) else {
            let names = METHODS.iter().map(|one| one.name.to_owned()).collect();
            let path = [path, &["method".to_owned()]].concat();
            self.wrong.push(Wrong {
                near: Some((method.to_owned(), "methods", names)),
                ..Wrong::at(path, format!("there is no method \"{method}\""))
            });
            return;
        };
        for (name, _) in params {
            if known.params().all(|one| one != name) {
                let all = known.params().map(str::to_owned).collect();
                self.wrong.push(Wrong {
                    near: Some((name.clone(), "parameters of it", all)),
                    key: true,
                    ..Wrong::at(
                        within(name),
                        format!("{method} has no parameter \"{name}\""),
                    )
                });
            }
        }
        for mut names in known.required() {
            let name = names.clone().next().unwrap_or_default();
            if !names.any(|one| params.iter().any(|(given, _)| given == one)) {
                let message = format!("{method} needs the parameter \"{name}\"");
                self.report(&[path, &["params".to_owned()]].concat(), message);
            }
        }
        let mode = params.iter().find(|(name, _)| name == "mode");
        if let Some((_, Value::String(mode))) = mode
            && method.starts_with("permissions")
            && !mode.is_empty()
            && !mode.contains("${")
            && !u32::from_str_radix(mode, 8).is_ok_and(|mode| mode <= 0o7777)
        {
            let message = format!("the mode \"{mode}\" is not octal; expected as in 0644");
            self.report(&within("mode"), message);
        }
    }

    /// Checks that what a text names of the technique, or of a set, is there.
    fn text(&mut self, text: &str, path: &[String]) {
        for variable in text.split("${").skip(1) {
            let Some((variable, _)) = variable.split_once('}') else {
                continue;
            };
            let Some((of, name)) = variable.trim().split_once('.') else {
                continue;
            };
            let plain = |letter: char| letter.is_alphanumeric() || "_.-".contains(letter);
            if !name.chars().all(plain) {
                continue;
            }
            // The innermost set of this name stands before the technique.
            let set = self.sets.iter().rev().find(|(set, _)| set == of);
            let (names, what) = match (set, &self.names) {
                (Some((_, keys)), _) => (keys, "keys of its sets"),
                (None, Some(names)) if of == self.technique => (names, "parameters"),
                _ => continue,
            };
            if !names.contains(name) {
                let message = match what {
                    "parameters" => format!("the technique has no parameter \"{name}\""),
                    _ => format!("not every set of the foreach has the key \"{name}\""),
                };
                let known = names.iter().cloned().collect();
                let near = (name.to_owned(), what, known);
                self.wrong.push(Wrong {
                    near: Some(near),
                    ..Wrong::at(path.to_vec(), message)
                });
            }
        }
    }
}
