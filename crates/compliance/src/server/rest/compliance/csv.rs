//! Compliance of a directive as a table for spreadsheets: a row for each message.

use csv::push_quoted;
use serde_json::{Map, Value};

use super::view::{NodeShown, View};

/// The columns, as Rudder has them.
const HEAD: [&str; 7] = [
    "Rule",
    "Block",
    "Component",
    "Node",
    "Value",
    "Status",
    "Message",
];

/// Rows that are being made.
struct Table {
    text: String,
}

impl Table {
    fn row(&mut self, cells: [&str; 7]) {
        for (place, cell) in cells.into_iter().enumerate() {
            if place > 0 {
                self.text.push(',');
            }
            push_quoted(&mut self.text, cell);
        }
        self.text.push('\n');
    }

    /// The messages of components, which are in a block of this name.
    fn components(&mut self, (rule, node): (&str, &str), block: &str, all: &[&Map<String, Value>]) {
        for component in all {
            let name = text(component, "name");
            let within: Vec<_> = objects(component, "components").collect();
            if !within.is_empty() {
                let path = match block {
                    "" => name.to_owned(),
                    block => format!("{block},{name}"),
                };
                self.components((rule, node), &path, &within);
            }
            for value in objects(component, "values") {
                for report in objects(value, "reports") {
                    let (value, status) = (text(value, "value"), text(report, "status"));
                    let message = text(report, "message");
                    self.row([rule, block, name, node, value, status, message]);
                }
            }
        }
    }
}

fn text<'a>(object: &'a Map<String, Value>, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn objects<'a>(
    object: &'a Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = &'a Map<String, Value>> {
    let list = object.get(key).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_object)
}

impl View {
    /// A directive on these nodes.
    pub(super) fn csv(&self, directive: &str, nodes: &[NodeShown]) -> String {
        let mut table = Table {
            text: String::new(),
        };
        table.row(HEAD);
        for node in nodes {
            for ((rule, of), components) in &node.trees {
                if of == directive {
                    let all: Vec<_> = components.iter().map(|(_, one)| one).collect();
                    let about = (self.rule_name(rule), &*node.node.hostname);
                    table.components(about, "", &all);
                }
            }
        }
        table.text
    }
}
