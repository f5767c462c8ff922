//! What is expected of a directive, for all nodes of which the same is expected.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::CompileError;
use crate::model::reporting::ReportingLogic;
use crate::reports::expected::{Component, ExpectedValue};

/// Blocks inside of blocks.
const DEPTH: usize = 32;

/// Components of a directive, as few bytes as matching takes. Values that are a node's own are
/// left out, and so is what is only shown.
#[derive(Debug)]
pub struct Shape {
    /// Hash of texts, nodes and values, made where the shape is: one that is shared is looked up in
    /// turn.
    hash: u64,
    /// All texts, one after another.
    text: Box<str>,
    /// Before each component stands its block.
    pub(super) nodes: Box<[Node]>,
    pub(super) values: Box<[Value]>,
    /// Values with identifiers, sorted by these.
    by_id: Box<[u32]>,
    /// Components with values, sorted by their names.
    by_name: Box<[u32]>,
}

/// A part of a shape's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Span {
    start: u32,
    length: u32,
}

/// A component or a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) name: Span,
    /// The node after the last inside of this one.
    pub(super) end: u32,
    pub(super) first_value: u32,
    pub(super) value_count: u32,
    pub(super) logic: Logic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Logic {
    /// No block.
    Values,
    Weighted,
    Focus(Span),
    FocusWorst,
    WorstSum,
    WorstOne,
    Disabled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Value {
    /// The component.
    pub(super) node: u32,
    pub(super) kind: ValueKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ValueKind {
    /// The same on all nodes.
    Constant(Span),
    /// The number of a text among those of a node's directive.
    Own(u32),
    /// Found by this identifier.
    Id(Span),
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        // What is sorted follows of these.
        (self.hash, &self.text, &self.nodes, &self.values)
            == (other.hash, &other.text, &other.nodes, &other.values)
    }
}

impl Eq for Shape {}

impl Hash for Shape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Shape {
    /// Makes a shape of a directive's components, and appends what is the node's own. Nothing is
    /// found in it before a [pool](ShapePool) has it.
    pub(super) fn compile(
        components: &[Component],
        own: &mut OwnTexts,
    ) -> Result<Self, CompileError> {
        let mut build = Build {
            own_from: own.ends.len(),
            own,
            text: String::new(),
            nodes: Vec::new(),
            values: Vec::new(),
        };
        build.components(components, 0)?;
        let Build {
            text,
            nodes,
            values,
            ..
        } = build;
        let mut hasher = DefaultHasher::new();
        (&text, &nodes, &values).hash(&mut hasher);
        Ok(Self {
            hash: hasher.finish(),
            text: text.into(),
            nodes: nodes.into(),
            values: values.into(),
            by_id: Box::default(),
            by_name: Box::default(),
        })
    }

    /// Sorts what is found by identifiers and names.
    fn sort(&mut self) {
        let shape = &*self;
        let mut by_id = shape.indices(&shape.values, |value| shape.id(value).is_some());
        by_id.sort_by_key(|value| {
            shape
                .values
                .get(*value as usize)
                .and_then(|value| shape.id(value))
        });
        let mut by_name = shape.indices(&shape.nodes, |node| node.logic == Logic::Values);
        by_name.sort_by_key(|node| shape.name(*node));
        (self.by_id, self.by_name) = (by_id.into(), by_name.into());
    }

    fn indices<T>(&self, all: &[T], wanted: impl Fn(&T) -> bool) -> Vec<u32> {
        let numbered = (0_u32..).zip(all);
        numbered
            .filter(|(_, one)| wanted(one))
            .map(|(index, _)| index)
            .collect()
    }

    pub(super) fn text(&self, span: Span) -> &str {
        let start = span.start as usize;
        self.text
            .get(start..start + span.length as usize)
            .unwrap_or_default()
    }

    pub(super) fn name(&self, node: u32) -> &str {
        self.nodes
            .get(node as usize)
            .map_or("", |node| self.text(node.name))
    }

    fn id(&self, value: &Value) -> Option<&str> {
        match value.kind {
            ValueKind::Id(span) => Some(self.text(span)),
            _ => None,
        }
    }

    /// The values with this identifier.
    pub(super) fn with_id(&self, id: &str) -> &[u32] {
        let id_of = |value: &u32| {
            let value = self.values.get(*value as usize);
            value.and_then(|value| self.id(value)).unwrap_or_default()
        };
        equal_range(&self.by_id, id, id_of)
    }

    /// The components with this name.
    pub(super) fn with_name(&self, name: &str) -> &[u32] {
        equal_range(&self.by_name, name, |node| self.name(*node))
    }

    /// How many values are expected.
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// Bytes of memory, without those of allocation.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.text.len()
            + size_of_val(&*self.nodes)
            + size_of_val(&*self.values)
            + size_of_val(&*self.by_id)
            + size_of_val(&*self.by_name)
    }
}

fn equal_range<'a, 'b>(
    sorted: &'a [u32],
    key: &str,
    key_of: impl Fn(&u32) -> &'b str,
) -> &'a [u32] {
    let start = sorted.partition_point(|index| key_of(index) < key);
    let rest = sorted.get(start..).unwrap_or_default();
    let length = rest.iter().take_while(|index| key_of(index) == key).count();
    rest.get(..length).unwrap_or_default()
}

/// Texts that are a node's own.
#[derive(Debug, Default)]
pub(super) struct OwnTexts {
    pub(super) text: String,
    /// Where each ends.
    pub(super) ends: Vec<u32>,
}

struct Build<'a> {
    own: &'a mut OwnTexts,
    own_from: usize,
    text: String,
    nodes: Vec<Node>,
    values: Vec<Value>,
}

impl Build<'_> {
    fn components(&mut self, components: &[Component], depth: usize) -> Result<(), CompileError> {
        if depth > DEPTH {
            return Err(CompileError::TooDeep { limit: DEPTH });
        }
        for component in components {
            let place = self.nodes.len();
            let node = index(place)?;
            let first_value = index(self.values.len())?;
            let (name, logic) = match component {
                Component::Values { name, .. } => (name, Logic::Values),
                Component::Block { name, logic, .. } => (name, self.logic(logic)?),
            };
            let name = self.span(name)?;
            let (end, value_count) = (node, 0);
            self.nodes.push(Node {
                name,
                end,
                first_value,
                value_count,
                logic,
            });
            match component {
                Component::Values { values, .. } => {
                    for value in values {
                        let kind = self.value(value)?;
                        self.values.push(Value { node, kind });
                    }
                }
                Component::Block { components, .. } => self.components(components, depth + 1)?,
            }
            let end = index(self.nodes.len())?;
            let value_count = index(self.values.len())? - first_value;
            if let Some(node) = self.nodes.get_mut(place) {
                node.end = end;
                node.value_count = value_count;
            }
        }
        Ok(())
    }

    fn logic(&mut self, logic: &ReportingLogic) -> Result<Logic, CompileError> {
        Ok(match logic {
            ReportingLogic::Weighted => Logic::Weighted,
            ReportingLogic::Focus(name) => Logic::Focus(self.span(name)?),
            ReportingLogic::FocusWorst => Logic::FocusWorst,
            ReportingLogic::WorstCaseWeightedSum => Logic::WorstSum,
            ReportingLogic::WorstCaseWeightedOne => Logic::WorstOne,
            ReportingLogic::Disabled => Logic::Disabled,
        })
    }

    fn value(&mut self, value: &ExpectedValue) -> Result<ValueKind, CompileError> {
        Ok(match value {
            ExpectedValue::Id { id, .. } => ValueKind::Id(self.span(id)?),
            ExpectedValue::Key {
                expanded,
                unexpanded,
            } if expanded == unexpanded => ValueKind::Constant(self.span(expanded)?),
            ExpectedValue::Key { expanded, .. } => {
                let number = index(self.own.ends.len() - self.own_from)?;
                self.own.text.push_str(expanded);
                self.own.ends.push(index(self.own.text.len())?);
                ValueKind::Own(number)
            }
        })
    }

    fn span(&mut self, text: &str) -> Result<Span, CompileError> {
        let start = index(self.text.len())?;
        let length = index(text.len())?;
        self.text.push_str(text);
        Ok(Span { start, length })
    }
}

fn index(length: usize) -> Result<u32, CompileError> {
    u32::try_from(length).map_err(|_| CompileError::TooLong)
}

/// Shapes of a fleet, each held once.
#[derive(Debug, Default)]
pub struct ShapePool(HashSet<Arc<Shape>>);

impl ShapePool {
    /// The shape that is equal to this one.
    pub(super) fn share(&mut self, mut shape: Shape) -> Arc<Shape> {
        if let Some(shared) = self.0.get(&shape) {
            return Arc::clone(shared);
        }
        shape.sort();
        let shape = Arc::new(shape);
        self.0.insert(Arc::clone(&shape));
        shape
    }

    /// Lets go of shapes that no node has any more.
    pub fn sweep(&mut self) {
        self.0.retain(|shape| Arc::strong_count(shape) > 1);
    }

    /// How many different shapes there are, and their bytes.
    pub fn size(&self) -> (usize, usize) {
        (self.0.len(), self.0.iter().map(|shape| shape.bytes()).sum())
    }
}
