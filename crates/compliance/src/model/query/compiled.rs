//! Queries, ready to be asked of nodes.

use super::super::attributes::{AttributeType, ObjectType};
use super::super::ids::{GroupIx, NodeIx};
use super::super::inventory::{InventoryPool, PooledInventory};
use super::super::node::{Node, NodeKind};
use super::super::node_set::NodeSet;
use super::criterion::{KeyTest, ValueTest};
use super::{CRITERIA, Composition, Condition, Criterion, DEPTH, Query, QueryError, Select};

/// A node, as queries see it.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// Its number.
    pub ix: NodeIx,
    /// The node.
    pub node: &'a Node,
    /// Its inventory.
    pub inventory: &'a PooledInventory,
    /// The pool of its inventory.
    pub pool: &'a InventoryPool,
    /// Identity of the server's installation.
    pub instance_id: &'a str,
}

/// A query, ready to be asked of nodes.
#[derive(Debug, Clone)]
pub struct CompiledQuery {
    select: Select,
    inverted: bool,
    test: Test,
    /// How many tests of elements there are: each remembers what it found.
    elements: usize,
}

#[derive(Debug, Clone)]
enum Test {
    All(Vec<Test>),
    Any(Vec<Test>),
    Not(Box<Test>),
    Node(usize, ValueTest),
    /// Some element meets all of these.
    Element {
        number: usize,
        kind: ObjectType,
        columns: Vec<(usize, ValueTest)>,
    },
    Environment(KeyTest),
    Properties(KeyTest),
    Group(GroupIx),
}

/// What a query found of elements that many nodes share, while it is asked of many nodes.
#[derive(Debug, Default)]
pub struct Scan {
    /// Of each test by row: 0 not asked yet, 1 no, 2 yes.
    found: Vec<Vec<u8>>,
}

struct Compiler<'a> {
    group: &'a mut dyn FnMut(&str) -> GroupIx,
    place: usize,
    elements: usize,
}

impl CompiledQuery {
    /// Makes a query ready; `group` gives the number of a group, known or not.
    ///
    /// # Errors
    /// Names the criterion that is wrong, and what was expected.
    pub fn new(query: &Query, group: &mut dyn FnMut(&str) -> GroupIx) -> Result<Self, QueryError> {
        let mut compiler = Compiler {
            group,
            place: 0,
            elements: 0,
        };
        let test = match query.composition {
            // As in Rudder, a query that asks for nothing finds nothing.
            Composition::And if !query.criteria.is_empty() => compiler.all(&query.criteria, 0)?,
            _ => Test::Any(compiler.each(&query.criteria, 0)?),
        };
        Ok(Self {
            select: query.select,
            inverted: query.is_inverted(),
            test,
            elements: compiler.elements,
        })
    }

    /// Does the node belong to the result? `member` says whether it belongs to a group.
    pub fn matches(
        &self,
        subject: &Subject<'_>,
        member: &dyn Fn(GroupIx) -> bool,
        scan: &mut Scan,
    ) -> bool {
        let candidate = match self.select {
            Select::Node => subject.node.kind != NodeKind::Root,
            Select::NodeAndPolicyServer => true,
        };
        scan.found.resize_with(self.elements, Vec::new);
        candidate && self.test.holds(subject, member, scan) != self.inverted
    }

    /// All nodes of the result.
    pub fn find<'a>(
        &self,
        subjects: impl Iterator<Item = Subject<'a>>,
        member: impl Fn(GroupIx, NodeIx) -> bool,
    ) -> NodeSet {
        let mut scan = Scan::default();
        let mut found = NodeSet::default();
        for subject in subjects {
            let within = |group| member(group, subject.ix);
            if self.matches(&subject, &within, &mut scan) {
                found.insert(subject.ix);
            }
        }
        found
    }
}

impl Compiler<'_> {
    fn wrong(&self, message: impl Into<String>) -> QueryError {
        QueryError {
            place: self.place,
            message: message.into(),
        }
    }

    fn each(&mut self, list: &[Condition], depth: usize) -> Result<Vec<Test>, QueryError> {
        list.iter().map(|one| self.condition(one, depth)).collect()
    }

    /// Conditions that must all hold: those on one kind of element are asked of one element.
    fn all(&mut self, list: &[Condition], depth: usize) -> Result<Test, QueryError> {
        let mut tests: Vec<Test> = Vec::new();
        for test in self.each(list, depth)? {
            let same = match &test {
                Test::Element { kind, .. } => {
                    let asked = *kind;
                    tests.iter_mut().find_map(|one| match one {
                        Test::Element { kind, columns, .. } if *kind == asked => Some(columns),
                        _ => None,
                    })
                }
                _ => None,
            };
            match (same, test) {
                (Some(together), Test::Element { columns, .. }) => together.extend(columns),
                (_, test) => tests.push(test),
            }
        }
        Ok(Test::All(tests))
    }

    fn condition(&mut self, condition: &Condition, depth: usize) -> Result<Test, QueryError> {
        if depth > DEPTH {
            return Err(self.wrong(format!("conditions are nested deeper than {DEPTH}")));
        }
        match condition {
            Condition::Criterion(criterion) => self.criterion(criterion),
            Condition::And { and } => self.all(and, depth + 1),
            Condition::Or { or } => Ok(Test::Any(self.each(or, depth + 1)?)),
            Condition::Not { not } => Ok(Test::Not(Box::new(self.condition(not, depth + 1)?))),
        }
    }

    fn criterion(&mut self, criterion: &Criterion) -> Result<Test, QueryError> {
        self.place += 1;
        if self.place > CRITERIA {
            return Err(self.wrong(format!("a query has at most {CRITERIA} criteria")));
        }
        let kind = criterion.object_type;
        let (comparator, value) = (criterion.comparator, &criterion.value);
        let environment = [("name.value", AttributeType::KeyValue)];
        let attributes = match kind {
            ObjectType::Environment => &environment,
            _ => kind.attributes(),
        };
        let found = attributes
            .iter()
            .position(|(name, _)| *name == criterion.attribute);
        let Some(column) = found else {
            let names = attributes.iter().map(|(name, _)| *name);
            let hint = units::UnitError::new(0..0, "").meant(&criterion.attribute, names);
            let name = kind.name();
            let hint = hint.hint();
            return Err(self.wrong(format!(
                "{name} has no attribute \"{}\"{hint}",
                criterion.attribute
            )));
        };
        let attribute = attributes[column].1;
        if !attribute.comparators().contains(&comparator) {
            let known: Vec<_> = attribute
                .comparators()
                .iter()
                .map(|one| one.name())
                .collect();
            return Err(self.wrong(format!(
                "{} of {} cannot be compared by {}; expected {}",
                criterion.attribute,
                kind.name(),
                comparator.name(),
                known.join(", ")
            )));
        }
        match kind {
            ObjectType::Group => {
                if value.is_empty() {
                    return Err(self.wrong("the group's identity is empty"));
                }
                Ok(Test::Group((self.group)(value)))
            }
            ObjectType::Property => KeyTest::new(comparator, value).map(Test::Properties),
            ObjectType::Environment => KeyTest::new(comparator, value).map(Test::Environment),
            ObjectType::Node => {
                ValueTest::new(attribute, comparator, value).map(|test| Test::Node(column, test))
            }
            _ => {
                // Rudder looks in its directory for these, which knows no case of letters there.
                let attribute = match attribute {
                    AttributeType::Text if kind != ObjectType::Machine => {
                        AttributeType::ChoiceAnyCase
                    }
                    other => other,
                };
                ValueTest::new(attribute, comparator, value).map(|test| {
                    self.elements += 1;
                    // Processes are a list of the node: what is not equal is equal to none of them.
                    let denied = match kind {
                        ObjectType::Process => test.denied(),
                        _ => None,
                    };
                    let element = |test| Test::Element {
                        number: self.elements - 1,
                        kind,
                        columns: vec![(column, test)],
                    };
                    match denied {
                        Some(denied) => Test::Not(Box::new(element(denied))),
                        None => element(test),
                    }
                })
            }
        }
        .map_err(|message| self.wrong(message))
    }
}

impl Test {
    fn holds(
        &self,
        subject: &Subject<'_>,
        member: &dyn Fn(GroupIx) -> bool,
        scan: &mut Scan,
    ) -> bool {
        let pool = subject.pool;
        match self {
            Self::All(tests) => tests.iter().all(|test| test.holds(subject, member, scan)),
            Self::Any(tests) => tests.iter().any(|test| test.holds(subject, member, scan)),
            Self::Not(test) => !test.holds(subject, member, scan),
            Self::Node(column, test) => test.holds(|ask| any_of_node(subject, *column, ask)),
            Self::Properties(test) => test.holds_of_properties(&subject.node.properties),
            Self::Group(group) => member(*group),
            Self::Environment(test) => {
                let kind = ObjectType::Environment;
                let rows = subject.inventory.rows(kind).iter();
                test.holds_of_pairs(rows.filter_map(|&row| {
                    let value = pool.value(kind, row, 1).unwrap_or_default();
                    Some((pool.value(kind, row, 0)?, value))
                }))
            }
            Self::Element {
                number,
                kind,
                columns,
            } => {
                let found = &mut scan.found[*number];
                let mut rows = subject.inventory.rows(*kind).iter();
                rows.any(|&row| {
                    let at = row as usize;
                    if found.len() <= at {
                        found.resize(pool.distinct(*kind).max(at + 1), 0);
                    }
                    if found[at] == 0 {
                        let meets = columns.iter().all(|(column, test)| {
                            test.holds(|ask| pool.value(*kind, row, *column).is_some_and(ask))
                        });
                        found[at] = 1 + u8::from(meets);
                    }
                    found[at] == 2
                })
            }
        }
    }
}

/// Does a question hold of any value of an attribute of the node? Attributes by their place
/// among those of [`ObjectType::Node`]; empty values are absent.
fn any_of_node(subject: &Subject<'_>, column: usize, ask: &mut dyn FnMut(&str) -> bool) -> bool {
    let node = subject.node;
    let number;
    let text: &str = match column {
        0 => &node.os.kernel,
        1 => &node.id,
        2 => &node.hostname,
        3 => &node.os.name,
        4 => &node.os.full_name,
        5 => &node.os.version,
        6 => node.os.service_pack.as_deref().unwrap_or_default(),
        7 => &node.os.kernel_version,
        8 => &node.architecture_description,
        9 => node.state.name(),
        10 | 11 => {
            let bytes = if column == 10 { node.ram } else { node.swap };
            number = bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
            &number
        }
        12 => &node.agent.name,
        13 => &node.agent.version,
        14 => return node.accounts.iter().any(|one| ask(one)),
        15 => return node.ip_addresses.iter().any(|one| ask(one)),
        16 => &node.agent.owner,
        17 => {
            let moment = node.last_inventory;
            let moment = moment.and_then(|second| jiff::Timestamp::from_second(second).ok());
            number = moment.map(|moment| moment.to_string()).unwrap_or_default();
            &number
        }
        18 => &node.policy_server_id,
        _ => subject.instance_id,
    };
    !text.is_empty() && ask(text)
}
