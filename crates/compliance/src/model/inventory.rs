//! Inventories of a fleet in little memory: equal elements of different nodes are kept once.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::ModelError;
use super::attributes::{OBJECT_TYPES, ObjectType};
use super::ids::{Interner, TextIx};

/// Most elements of one node's inventory.
pub const ELEMENTS: usize = 50_000;
/// Longest value of an attribute, in bytes.
pub const VALUE_BYTES: usize = 4_096;
/// Rows of departed inventories that are put up with before the pool is made anew.
const SLACK: usize = 65_536;

/// Elements of one node, as read: attributes by Rudder's names, with their values as text.
/// Of the environment the attributes are `name` and `value`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Inventory {
    /// The elements of each kind.
    pub elements: BTreeMap<ObjectType, Vec<BTreeMap<String, String>>>,
}

impl Inventory {
    /// Adds an element.
    pub fn push(&mut self, kind: ObjectType, fields: &[(&str, &str)]) {
        let fields = fields
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        self.elements.entry(kind).or_default().push(fields);
    }

    /// Checks sizes and names.
    pub fn check(&self, node: &str) -> Result<(), ModelError> {
        let wrong = |message: String| Err(ModelError::new("inventory of", node, message));
        let found: usize = self.elements.values().map(Vec::len).sum();
        if found > ELEMENTS {
            return wrong(format!("{found} elements; at most {ELEMENTS} are kept"));
        }
        for (kind, elements) in &self.elements {
            let name = kind.name();
            if !kind.is_element() {
                return wrong(format!("{name} is no kind of element"));
            }
            for (attribute, value) in elements.iter().flatten() {
                if kind.column(attribute).is_none() {
                    let known = kind.attributes().iter().map(|(name, _)| *name);
                    let hint = units::UnitError::new(0..0, "")
                        .meant(attribute, known)
                        .hint();
                    return wrong(format!("{name} has no attribute \"{attribute}\"{hint}"));
                }
                if value.len() > VALUE_BYTES {
                    let found = value.len();
                    return wrong(format!(
                        "{attribute} of {name} has {found} bytes; at most {VALUE_BYTES} are kept"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The rows of one kind of element: a text for each attribute.
#[derive(Debug, Clone, Default)]
struct Rows {
    width: usize,
    cells: Vec<TextIx>,
    known: HashMap<Box<[TextIx]>, u32>,
}

impl Rows {
    fn row(&self, row: u32) -> &[TextIx] {
        let start = row as usize * self.width;
        self.cells.get(start..start + self.width).unwrap_or(&[])
    }

    fn intern(&mut self, cells: &[TextIx]) -> u32 {
        if let Some(&row) = self.known.get(cells) {
            return row;
        }
        let row = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        self.cells.extend_from_slice(cells);
        self.known.insert(cells.into(), row);
        row
    }
}

/// Elements of one node in a pool: for each kind its rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PooledInventory {
    rows: [Box<[u32]>; OBJECT_TYPES],
}

impl PooledInventory {
    /// The rows of a kind of element.
    pub fn rows(&self, kind: ObjectType) -> &[u32] {
        &self.rows[kind as usize]
    }
}

/// The elements of all nodes.
#[derive(Debug, Clone)]
pub struct InventoryPool {
    texts: Interner<TextIx>,
    kinds: Vec<Rows>,
    /// Rows after the pool was last made anew.
    settled: usize,
}

/// The text of an attribute that an element does not have.
const ABSENT: TextIx = TextIx(0);

impl Default for InventoryPool {
    fn default() -> Self {
        let mut texts = Interner::default();
        texts.intern("");
        let kinds = ObjectType::ALL.iter().map(|kind| Rows {
            width: kind.attributes().len(),
            ..Rows::default()
        });
        Self {
            texts,
            kinds: kinds.collect(),
            settled: 0,
        }
    }
}

impl InventoryPool {
    /// Takes an inventory that has been checked; empty values count as absent.
    pub fn intern(&mut self, inventory: &Inventory) -> PooledInventory {
        let mut pooled = PooledInventory::default();
        let mut cells = Vec::new();
        for (&kind, elements) in &inventory.elements {
            let rows = elements.iter().map(|element| {
                cells.clear();
                let names = kind.attributes().iter();
                cells.extend(names.map(|(name, _)| match element.get(*name) {
                    Some(value) => self.texts.intern(value),
                    None => ABSENT,
                }));
                self.kinds[kind as usize].intern(&cells)
            });
            pooled.rows[kind as usize] = rows.collect();
        }
        pooled
    }

    /// The value of an attribute of an element.
    pub fn value(&self, kind: ObjectType, row: u32, column: usize) -> Option<&str> {
        let text = *self.kinds[kind as usize].row(row).get(column)?;
        (text != ABSENT).then(|| self.texts.text(text))
    }

    /// How many different elements of a kind there are.
    pub fn distinct(&self, kind: ObjectType) -> usize {
        self.kinds[kind as usize].known.len()
    }

    fn total(&self) -> usize {
        self.kinds.iter().map(|rows| rows.known.len()).sum()
    }

    /// Has the pool so many rows that it should be made anew from the inventories in use?
    pub fn is_slack(&self) -> bool {
        self.total() > 2 * self.settled + SLACK
    }

    /// Makes the pool anew from the inventories in use, whose numbers change with it.
    pub fn compact<'i>(&mut self, used: impl Iterator<Item = &'i mut PooledInventory>) {
        let mut fresh = Self::default();
        let mut moved: Vec<HashMap<u32, u32>> = vec![HashMap::new(); OBJECT_TYPES];
        let mut cells = Vec::new();
        for inventory in used {
            for (kind, rows) in inventory.rows.iter_mut().enumerate() {
                for row in rows.iter_mut() {
                    *row = *moved[kind].entry(*row).or_insert_with(|| {
                        cells.clear();
                        let old = self.kinds[kind].row(*row).iter();
                        cells.extend(old.map(|&text| fresh.texts.intern(self.texts.text(text))));
                        fresh.kinds[kind].intern(&cells)
                    });
                }
            }
        }
        fresh.settled = fresh.total();
        *self = fresh;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_processes(numbers: std::ops::Range<usize>) -> Inventory {
        let mut inventory = Inventory::default();
        for number in numbers {
            let pid = number.to_string();
            inventory.push(ObjectType::Process, &[("pid", &pid), ("name", "sshd")]);
        }
        inventory.push(ObjectType::Software, &[("cn", "bash")]);
        inventory
    }

    #[test]
    fn equal_elements_are_kept_once() {
        let mut pool = InventoryPool::default();
        let a = pool.intern(&of_processes(0..3));
        let b = pool.intern(&of_processes(1..4));
        assert_eq!(pool.distinct(ObjectType::Process), 4);
        assert_eq!(pool.distinct(ObjectType::Software), 1);
        assert_eq!(a.rows(ObjectType::Software), b.rows(ObjectType::Software));
        let row = b.rows(ObjectType::Process)[2];
        assert_eq!(pool.value(ObjectType::Process, row, 0), Some("3"));
        assert_eq!(pool.value(ObjectType::Process, row, 2), None);
    }

    #[test]
    fn a_pool_made_anew_holds_what_is_used_and_no_more() {
        let mut pool = InventoryPool::default();
        let mut kept = pool.intern(&of_processes(0..10));
        let mut day = 10;
        while !pool.is_slack() {
            kept = pool.intern(&of_processes(day..day + 10_000));
            day += 10_000;
        }
        assert!(pool.texts.len() > SLACK);
        pool.compact(std::iter::once(&mut kept));
        assert_eq!(pool.distinct(ObjectType::Process), 10_000);
        assert!(!pool.is_slack());
        let last = kept.rows(ObjectType::Process)[9_999];
        let expected = (day - 1).to_string();
        assert_eq!(
            pool.value(ObjectType::Process, last, 0),
            Some(expected.as_str())
        );
    }

    #[test]
    fn unknown_attributes_and_long_values_are_refused() {
        let mut inventory = Inventory::default();
        inventory.push(ObjectType::Software, &[("softwareVersoin", "1")]);
        assert_eq!(
            inventory.check("n1").unwrap_err().to_string(),
            "inventory of \"n1\": software has no attribute \"softwareVersoin\"; did you mean \
             \"softwareVersion\"?"
        );
        let mut inventory = Inventory::default();
        inventory.push(ObjectType::Software, &[("cn", &"x".repeat(5_000))]);
        assert!(inventory.check("n1").is_err());
        let mut inventory = Inventory::default();
        inventory.push(ObjectType::Group, &[]);
        assert!(inventory.check("n1").is_err());
    }
}
