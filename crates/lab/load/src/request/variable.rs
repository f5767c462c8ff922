//! The variables of templates.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;

use stats::SplitMix;
use units::{UnitError, Word};
use uuid::Builder;

use super::Table;
use super::zipf::Zipf;

/// Names that values taken from answers may not have.
pub(super) const NAMES: [&str; 6] = ["uniform", "zipf", "seq", "uuid", "random", "line"];

/// Most hexadecimal digits of `{random N}`.
const MOST_DIGITS: u64 = 4_096;
/// Most ranks of `{zipf S N}`.
const MOST_RANKS: u64 = 1 << 50;

/// What stands for a variable when a request is written.
#[derive(Debug, Clone)]
pub(super) enum Variable {
    /// A whole number: the smallest, and how many there are besides it.
    Uniform { low: i64, more: u64 },
    /// A rank.
    Zipf(Zipf),
    /// The number of the arrival.
    Seq,
    /// A random UUID (version 4).
    Uuid,
    /// So many random hexadecimal digits.
    Random(u64),
    /// A field of a table's row.
    Line {
        column: Arc<Column>,
        /// `Some`: a random row. The number of the table makes all its columns agree.
        random: Option<u64>,
    },
    /// A value that an earlier step of the journey took, by its number.
    Taken(usize),
}

/// A column of a table, as one text.
#[derive(Debug, Default)]
pub(super) struct Column {
    text: String,
    ends: Vec<usize>,
}

impl Column {
    fn of(table: &Table, index: usize) -> Self {
        let mut column = Self::default();
        for row in &table.rows {
            column.text += row.get(index).map_or("", String::as_str);
            column.ends.push(column.text.len());
        }
        column
    }

    fn rows(&self) -> u64 {
        self.ends.len() as u64
    }

    /// The field of row `index`; nothing beyond the end.
    fn get(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.ends
            .get(index)
            .map_or("", |&end| &self.text[start..end])
    }

    /// The first field for which `wrong` holds, with its row's number from 1.
    pub(super) fn find(&self, wrong: impl Fn(&str) -> bool) -> Option<(usize, &str)> {
        (0..self.ends.len())
            .map(|index| (index + 1, self.get(index)))
            .find(|(_, field)| wrong(field))
    }
}

/// What names mean where a template stands.
pub(super) struct Scope<'m> {
    pub(super) tables: &'m BTreeMap<String, Table>,
    /// Columns in use, so that each is kept once.
    pub(super) columns: BTreeMap<(&'m str, usize), Arc<Column>>,
    /// Values of the journey in the order in which steps take them.
    pub(super) taken: Vec<String>,
    /// How many of these the steps before have taken.
    pub(super) known: usize,
}

impl Variable {
    /// Reads the inside of `{…}`.
    pub(super) fn parse(text: &str, scope: &mut Scope<'_>) -> Result<Self, UnitError> {
        let words = Word::all(text);
        let all = 0..text.len();
        let plain = |variable: Self, arguments: &[Word<'_>]| match arguments {
            [] => Ok(variable),
            [word, ..] => Err(word.error(format!("{{{}}} has no parameters", words[0].text))),
        };
        let forms = |form: &str| Err(UnitError::new(all.clone(), format!("expected {{{form}}}")));
        let Some((name, arguments)) = words.split_first() else {
            return Err(UnitError::new(all, "an empty variable"));
        };
        match (name.text, arguments) {
            ("seq", arguments) => plain(Self::Seq, arguments),
            ("uuid", arguments) => plain(Self::Uuid, arguments),
            ("uniform", [low, high]) => uniform(low, high),
            ("uniform", _) => forms("uniform 0 100000"),
            ("zipf", [s, n]) => zipf(s, n),
            ("zipf", _) => forms("zipf 1.1 100000"),
            ("random", [digits]) => count(digits, 1..=MOST_DIGITS).map(Self::Random),
            ("random", _) => forms("random 16"),
            ("line", [field]) => line(field, false, scope),
            ("line", [field, order]) if order.text == "random" => line(field, true, scope),
            ("line", [_, order]) => Err(order
                .error("rows are taken in order, or at random with \"random\"")
                .meant(order.text, ["random"])),
            ("line", _) => forms("line users.email"),
            (_, arguments) => taken(name, arguments, scope),
        }
    }

    /// Writes the value of a variable that is made here, for this arrival; nothing for
    /// those that have a [`text`](Self::text). `position` tells the variables of a mix
    /// apart.
    pub(super) fn write_made(&self, seed: u64, arrival: u64, position: u64, out: &mut Vec<u8>) {
        let draws = || SplitMix::at(seed, [arrival, position]);
        // Writing into a vector cannot fail.
        let _ = match self {
            Self::Uniform { low, more } => {
                let above = match more.checked_add(1) {
                    Some(count) => draws().below_u64(count),
                    None => draws().bits(),
                };
                write!(out, "{}", low.wrapping_add_unsigned(above))
            }
            Self::Zipf(zipf) => write!(out, "{}", zipf.draw(&mut draws())),
            Self::Seq => write!(out, "{arrival}"),
            Self::Uuid => {
                let mut draws = draws();
                let random = u128::from(draws.bits()) << 64 | u128::from(draws.bits());
                let uuid = Builder::from_random_bytes(random.to_be_bytes()).into_uuid();
                write!(out, "{uuid}")
            }
            Self::Random(digits) => {
                let mut draws = draws();
                let mut left = *digits;
                while left > 0 {
                    let now = left.min(16);
                    let _ = write!(
                        out,
                        "{:0width$x}",
                        draws.bits() >> (64 - 4 * now),
                        width = now as usize
                    );
                    left -= now;
                }
                Ok(())
            }
            Self::Line { .. } | Self::Taken(_) => Ok(()),
        };
    }

    /// The value of a variable that stands for text from elsewhere, which must be
    /// looked at before it is sent. `None`: made here, or a value that was not taken.
    pub(super) fn text<'v>(
        &'v self,
        seed: u64,
        arrival: u64,
        values: &'v [Option<String>],
    ) -> Option<&'v str> {
        match self {
            Self::Line { column, random } => {
                let row = match random {
                    Some(table) => SplitMix::at(seed, [arrival, *table]).below_u64(column.rows()),
                    None => arrival % column.rows().max(1),
                };
                Some(column.get(usize::try_from(row).unwrap_or(usize::MAX)))
            }
            Self::Taken(index) => values.get(*index)?.as_deref(),
            _ => None,
        }
    }
}

fn uniform(low: &Word<'_>, high: &Word<'_>) -> Result<Variable, UnitError> {
    let number = |word: &Word<'_>| {
        word.text.replace('_', "").parse::<i64>().map_err(|_| {
            word.error(format!(
                "expected a whole number of at most 64 bits, found \"{}\"",
                word.text
            ))
        })
    };
    let (from, to) = (number(low)?, number(high)?);
    match from <= to {
        true => Ok(Variable::Uniform {
            low: from,
            more: to.abs_diff(from),
        }),
        false => Err(UnitError::new(
            low.at.start..high.at.end,
            format!("the first bound, {from}, is above the second, {to}"),
        )),
    }
}

fn zipf(s: &Word<'_>, n: &Word<'_>) -> Result<Variable, UnitError> {
    let exponent = s.read(units::parse_number)?;
    if exponent > 100.0 {
        return Err(s.error("the exponent of zipf is from 0 to 100"));
    }
    Ok(Variable::Zipf(Zipf::new(
        exponent,
        count(n, 1..=MOST_RANKS)?,
    )))
}

/// Sets the rows of tables apart from other draws.
const ROWS: u64 = 1 << 32;

fn line(field: &Word<'_>, random: bool, scope: &mut Scope<'_>) -> Result<Variable, UnitError> {
    let Some((name, column)) = field.text.split_once('.') else {
        return Err(field.error("expected the name of a table and of its column: users.email"));
    };
    let tables = scope.tables;
    let found = tables
        .iter()
        .enumerate()
        .find(|(_, (known, _))| *known == name);
    let Some((number, (key, table))) = found else {
        let known: Vec<&str> = tables.keys().map(String::as_str).collect();
        let message = match known.is_empty() {
            true => format!("there is no table \"{name}\": no table is given"),
            false => format!(
                "there is no table \"{name}\"; tables are {}",
                known.join(", ")
            ),
        };
        let at = field.at.start..field.at.start + name.len();
        return Err(UnitError::new(at, message).meant(name, known));
    };
    let Some(index) = table.columns.iter().position(|known| known == column) else {
        let known: Vec<&str> = table.columns.iter().map(String::as_str).collect();
        let message = format!(
            "table \"{name}\" has no column \"{column}\"; it has {}",
            known.join(", ")
        );
        let at = field.at.start + name.len() + 1..field.at.end;
        return Err(UnitError::new(at, message).meant(column, known));
    };
    if table.rows.is_empty() {
        return Err(field.error(format!("table \"{name}\" has no rows")));
    }
    let column = scope
        .columns
        .entry((key.as_str(), index))
        .or_insert_with(|| Arc::new(Column::of(table, index)));
    Ok(Variable::Line {
        column: Arc::clone(column),
        random: random.then_some(ROWS + number as u64),
    })
}

fn taken(
    name: &Word<'_>,
    arguments: &[Word<'_>],
    scope: &Scope<'_>,
) -> Result<Variable, UnitError> {
    let known = &scope.taken[..scope.known.min(scope.taken.len())];
    if let Some(index) = known.iter().rposition(|known| known == name.text) {
        return match arguments {
            [] => Ok(Variable::Taken(index)),
            [word, ..] => Err(word.error(format!(
                "\"{}\" is a taken value and has no parameters",
                name.text
            ))),
        };
    }
    let mut names: Vec<&str> = NAMES.to_vec();
    names.extend(known.iter().map(String::as_str));
    let message = match scope.taken.iter().any(|later| later == name.text) {
        true => format!("\"{}\" is taken from an answer that comes later", name.text),
        false => format!(
            "unknown variable \"{}\"; variables are {}; to send a brace as it is, write {{{{",
            name.text,
            names.join(", ")
        ),
    };
    Err(name.error(message).meant(name.text, names))
}

fn count(word: &Word<'_>, bounds: std::ops::RangeInclusive<u64>) -> Result<u64, UnitError> {
    let number = word.read(units::parse_count)?;
    match bounds.contains(&number) {
        true => Ok(number),
        false => Err(word.error(format!(
            "expected a number from {} to {}, found {number}",
            bounds.start(),
            bounds.end()
        ))),
    }
}
