//! Compliance as a table for spreadsheets: a row for each message.

use std::collections::BTreeMap;

use csv::push_quoted;
use serde_json::{Map, Value};

use super::tree::Component;
use super::view::{NodeShown, View};

/// A column; its name is its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Rule,
    Directive,
    Block,
    Component,
    Node,
    Value,
    Status,
    Message,
}

use Column as C;

/// What a table is of. Each has the columns, in the order, that Rudder gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    Node,
    RuleByDirective,
    RuleByNode,
    DirectiveByRule,
    DirectiveByNode,
    GroupByRule,
    GroupByNode,
}

impl Table {
    /// The columns in front of value, status and message.
    fn columns(self) -> &'static [Column] {
        match self {
            Self::Node => &[C::Rule, C::Directive, C::Block, C::Component],
            Self::RuleByDirective => &[C::Directive, C::Block, C::Component, C::Node],
            Self::RuleByNode => &[C::Node, C::Directive, C::Block, C::Component],
            Self::DirectiveByRule => &[C::Rule, C::Block, C::Component, C::Node],
            Self::DirectiveByNode => &[C::Node, C::Rule, C::Block, C::Component],
            Self::GroupByRule => &[C::Rule, C::Directive, C::Block, C::Component, C::Node],
            Self::GroupByNode => &[C::Node, C::Rule, C::Directive, C::Block, C::Component],
        }
    }
}

/// What the rows of a directive on a node have in common.
#[derive(Debug, Clone, Copy)]
struct RowContext<'a> {
    rule: &'a str,
    directive: &'a str,
    node: &'a str,
}

/// Rows that are being made.
struct Rows {
    columns: Vec<Column>,
    text: String,
}

impl Rows {
    fn of(table: Table) -> Self {
        let mut columns = table.columns().to_vec();
        columns.extend([C::Value, C::Status, C::Message]);
        let mut rows = Self {
            columns,
            text: String::new(),
        };
        rows.row(|column| match column {
            C::Rule => "Rule",
            C::Directive => "Directive",
            C::Block => "Block",
            C::Component => "Component",
            C::Node => "Node",
            C::Value => "Value",
            C::Status => "Status",
            C::Message => "Message",
        });
        rows
    }

    fn row<'a>(&mut self, cell: impl Fn(Column) -> &'a str) {
        for (place, column) in self.columns.iter().enumerate() {
            if place > 0 {
                self.text.push(',');
            }
            push_quoted(&mut self.text, cell(*column));
        }
        self.text.push('\n');
    }

    /// The messages of components, which are in a block of this name.
    fn components<'a>(
        &mut self,
        about: RowContext<'_>,
        block: &str,
        all: impl IntoIterator<Item = &'a Component>,
    ) {
        for component in all {
            let name = text(&component.object, "name");
            if !component.within.is_empty() {
                let path = match block {
                    "" => name.to_owned(),
                    block => format!("{block},{name}"),
                };
                self.components(about, &path, &component.within);
            }
            for value in objects(&component.object, "values") {
                for report in objects(value, "reports") {
                    self.row(|column| match column {
                        C::Rule => about.rule,
                        C::Directive => about.directive,
                        C::Block => block,
                        C::Component => name,
                        C::Node => about.node,
                        C::Value => text(value, "value"),
                        C::Status => text(report, "status"),
                        C::Message => text(report, "message"),
                    });
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
    /// What these nodes show, as a table.
    pub(super) fn csv(&self, table: Table, nodes: &[NodeShown]) -> String {
        let mut rows = Rows::of(table);
        // Sorted as its columns are: by node first, or not.
        if rows.columns.first() == Some(&C::Node) {
            for node in nodes {
                self.rows(&mut rows, std::slice::from_ref(node));
            }
        } else {
            self.rows(&mut rows, nodes);
        }
        rows.text
    }

    /// Rows by rule and directive, and of each by node.
    fn rows(&self, rows: &mut Rows, nodes: &[NodeShown]) {
        let mut having: BTreeMap<(&str, &str), Vec<&NodeShown>> = BTreeMap::new();
        for node in nodes {
            let shown = node.directives.iter();
            for one in shown.filter(|one| one.types.has(self.types)) {
                let key = (&*one.rule, &*one.directive);
                having.entry(key).or_default().push(node);
            }
        }
        for ((rule, directive), nodes) in having {
            let key = (rule.to_owned(), directive.to_owned());
            for node in nodes {
                let about = RowContext {
                    rule: self.rule_name(rule),
                    directive: self.directive_name(directive),
                    node: &node.node.hostname,
                };
                let all = node.trees.get(&key).into_iter().flatten();
                rows.components(about, "", all);
            }
        }
    }
}
