//! Recorded and received, brought into one form.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Which epoch of the replay stands for which epoch of the recording.
#[derive(Default)]
pub struct Epochs {
    recorded: HashMap<String, usize>,
    received: HashMap<String, usize>,
}

#[derive(Clone, Copy)]
pub enum Side {
    Recorded,
    Received,
}

const EPOCH: &str = "$epoch";

/// Masks what differs from run to run; epochs stay recognisable.
pub fn mask(value: &mut Value, volatile: &[String]) {
    for path in volatile {
        let parts: Vec<String> = path
            .trim_start_matches('$')
            .replace("[*]", ".[*]")
            .split('.')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        mask_at(value, &parts);
    }
}

fn mask_at(value: &mut Value, path: &[String]) {
    match (path, value) {
        ([part, rest @ ..], Value::Array(list)) if part == "[*]" => {
            list.iter_mut().for_each(|item| mask_at(item, rest));
        }
        ([name], Value::Object(object)) => {
            if let Some(value) = object.get_mut(name)
                && !is_nothing(value)
            {
                *value = match (name.as_str(), &value) {
                    ("epoch", Value::String(epoch)) => {
                        Value::Object(Map::from_iter([(EPOCH.into(), epoch.clone().into())]))
                    }
                    // Masked before, by another recorded event of the kind.
                    ("epoch", Value::Object(_)) => return,
                    _ => "<volatile>".into(),
                };
            }
        }
        ([name, rest @ ..], Value::Object(object)) => {
            if let Some(value) = object.get_mut(name) {
                mask_at(value, rest);
            }
        }
        _ => {}
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// Drops null and empty lists and maps, for bodies that are JSON.
pub fn compact(value: &mut Value) {
    if let Value::Object(object) = value {
        object.values_mut().for_each(compact);
        object.retain(|_, value| match value {
            Value::Null => false,
            Value::Array(list) => !list.is_empty(),
            Value::Object(object) => !object.is_empty(),
            _ => true,
        });
    } else if let Value::Array(list) = value {
        list.iter_mut().for_each(compact);
    }
}

impl Epochs {
    /// The value as text that is the same on both sides when the values are.
    pub fn text(&self, side: Side, value: &Value) -> String {
        let mut value = value.clone();
        self.label(side, &mut value);
        value.to_string()
    }

    fn label(&self, side: Side, value: &mut Value) {
        match value {
            Value::Object(object) => match object.get(EPOCH) {
                Some(epoch) => {
                    let known = match side {
                        Side::Recorded => &self.recorded,
                        Side::Received => &self.received,
                    };
                    let label = known.get(epoch.as_str().unwrap());
                    *value = label
                        .map_or("new epoch".into(), |label| format!("epoch {label}"))
                        .into();
                }
                None => object
                    .values_mut()
                    .for_each(|value| self.label(side, value)),
            },
            Value::Array(list) => list.iter_mut().for_each(|value| self.label(side, value)),
            _ => {}
        }
    }

    /// Learns the epochs of two values that are equal.
    pub fn bind(&mut self, recorded: &Value, received: &Value) {
        match (recorded, received) {
            (Value::Object(left), Value::Object(right)) => {
                if let (Some(left), Some(right)) = (left.get(EPOCH), right.get(EPOCH)) {
                    let label = self.recorded.len();
                    let left = left.as_str().unwrap().to_owned();
                    let label = *self.recorded.entry(left).or_insert(label);
                    self.received
                        .insert(right.as_str().unwrap().to_owned(), label);
                    return;
                }
                for (name, left) in left {
                    right
                        .get(name)
                        .into_iter()
                        .for_each(|right| self.bind(left, right));
                }
            }
            (Value::Array(left), Value::Array(right)) => {
                left.iter()
                    .zip(right)
                    .for_each(|(left, right)| self.bind(left, right));
            }
            _ => {}
        }
    }

    /// Sorts the lists at these paths.
    pub fn sort(&self, side: Side, value: &mut Value, unordered: &[String]) {
        for path in unordered {
            let path = path.trim_start_matches("$").trim_start_matches('.');
            if let Some(rest) = path.strip_prefix("[*].") {
                for item in value.as_array_mut().into_iter().flatten() {
                    self.sort_list(side, item.get_mut(rest));
                }
            } else {
                self.sort_list(side, value.get_mut(path));
            }
        }
    }

    fn sort_list(&self, side: Side, list: Option<&mut Value>) {
        if let Some(Value::Array(list)) = list {
            list.sort_by_cached_key(|item| self.text(side, item));
        }
    }

    /// Compares two lists as multisets; returns what is only in one of them.
    pub fn differ(&mut self, recorded: &[Value], received: &[Value]) -> Vec<String> {
        let sorted = |epochs: &Self, side, list: &[Value]| {
            let mut list: Vec<(String, Value)> = list
                .iter()
                .map(|value| (epochs.text(side, value), value.clone()))
                .collect();
            list.sort_by(|left, right| left.0.cmp(&right.0));
            list
        };
        let left = sorted(self, Side::Recorded, recorded);
        let mut right = sorted(self, Side::Received, received);
        let mut missing = Vec::new();
        for (text, value) in left {
            match right.iter().position(|(other, _)| *other == text) {
                Some(at) => {
                    let (_, other) = right.remove(at);
                    self.bind(&value, &other);
                }
                None => missing.push(text),
            }
        }
        let mut found = right.into_iter().map(|(text, _)| text);
        let mut problems: Vec<String> = missing
            .into_iter()
            .map(|text| match found.next() {
                Some(other) => first_difference(&text, &other),
                None => format!("missing {text}"),
            })
            .collect();
        problems.extend(found.map(|text| format!("unexpected {text}")));
        problems
    }
}

/// Both texts from shortly before the place where they part.
fn first_difference(recorded: &str, received: &str) -> String {
    let pairs = recorded.bytes().zip(received.bytes());
    let at = pairs.take_while(|(left, right)| left == right).count();
    let cut = |text: &str| {
        let from = text.floor_char_boundary(at.saturating_sub(120));
        let to = text.floor_char_boundary(at + 120);
        text[from..to].to_owned()
    };
    format!(
        "recorded …{}…\n    received …{}…",
        cut(recorded),
        cut(received)
    )
}
