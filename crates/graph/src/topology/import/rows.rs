//! Rows of calls as a graph: the call graphs of Alibaba's traces
//! (cluster-trace-microservices-v2021 and v2022), or any file of that form.
//!
//! A file of comma-separated values whose first line names the columns, in any order:
//!
//! | column | |
//! |---|---|
//! | `traceid` | all rows of a request have the same |
//! | `rpcid` (v2022: `rpc_id`) | a dotted path: `0.1.2` is the second call by the callee of `0.1` |
//! | `um`, `dm` | who calls (upstream), who is called; empty, `NAN` or `(?)`: not known |
//! | `rt` | milliseconds; below zero in the callee's own record of an RPC |
//! | `timestamp` | milliseconds; optional, without it calls are one after the other |
//! | `rpctype` | optional: `rpc`, `http`, `mq` (nobody waits), `db`, `mc` |
//! | `interface` | optional: becomes the path |
//!
//! A call may be recorded by both sides, with the same `rpcid`: both become one. A name
//! that one row lacks is taken from the rows above and below it.

use std::collections::HashMap;
use std::io::{self, BufRead, Read};

use super::calls::{Made, Merged, Trace, Visit};
use super::{Imported, TraceError};
use crate::Nanos;

/// How much is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLimits {
    /// Rows, beyond which the rest is left out. A row takes about 200 bytes of memory.
    pub rows: u64,
}

impl Default for RowLimits {
    fn default() -> Self {
        Self { rows: 2_000_000 }
    }
}

/// Longest line, in bytes; a longer one is left out.
const MOST_LINE: u64 = 64 * 1024;

/// Longest time of a call: a day.
const MOST_MS: f64 = 86_400_000.0;

/// Why a file of rows makes no graph.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// The file cannot be read.
    #[error("cannot read the rows: {0}")]
    Read(#[from] io::Error),
    /// A column is missing.
    #[error("the first line names no column \"{missing}\"; found {found}")]
    Column {
        /// The column.
        missing: &'static str,
        /// The first line.
        found: String,
    },
    /// No row can be used.
    #[error("no row can be used; line {line}: {why}")]
    NoRow {
        /// The first that cannot, counted from 1.
        line: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The rows make no graph.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Reads rows and makes them a graph. Rows that cannot be used are counted in a warning.
///
/// # Errors
/// A file that cannot be read, lacks a column or has no row that can be used; rows without
/// a call.
pub fn rows(name: &str, mut input: impl BufRead, limits: RowLimits) -> Result<Imported, RowError> {
    let mut line = Vec::new();
    read_line(&mut input, &mut line)?;
    let columns = Columns::of(&String::from_utf8_lossy(&line))?;
    let mut traces: Vec<Vec<Call>> = Vec::new();
    let mut trace_of: HashMap<String, usize> = HashMap::new();
    let (mut number, mut used, mut left_out) = (1, 0, 0);
    let mut first_wrong = None;
    let mut warnings = Vec::new();
    while read_line(&mut input, &mut line)? {
        number += 1;
        if line.is_empty() {
            continue;
        }
        if used == limits.rows {
            warnings.push(format!(
                "{name}: the rows from line {number} on are left out; {} were read",
                limits.rows
            ));
            break;
        }
        match columns.row(&String::from_utf8_lossy(&line)) {
            Ok((trace, row)) => {
                used += 1;
                let place = *trace_of.entry(trace).or_insert_with(|| {
                    traces.push(Vec::new());
                    traces.len() - 1
                });
                traces[place].push(row);
            }
            Err(why) => {
                left_out += 1;
                first_wrong.get_or_insert((number, why));
            }
        }
    }
    if used == 0 {
        let (line, why) = first_wrong.unwrap_or((1, "there are no rows"));
        return Err(RowError::NoRow { line, why });
    }
    if let Some((line, why)) = first_wrong {
        warnings.push(format!(
            "{name}: {left_out} of {} rows are left out; line {line}: {why}",
            left_out + used
        ));
    }
    let mut merged = Merged::default();
    let mut unnamed = 0;
    for rows in traces {
        let (trace, without_name) = assembled(rows);
        unnamed += without_name;
        merged.add(&trace);
    }
    if unnamed > 0 {
        warnings.push(format!(
            "{name}: {unnamed} calls are left out: no row names who was called"
        ));
    }
    let mut imported = merged.graph(name)?;
    warnings.append(&mut imported.warnings);
    Ok(Imported {
        warnings,
        ..imported
    })
}

/// Reads a line without its end; false at the end of the file. A line that is too long is
/// read to its end, and empty.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut length = 0;
    loop {
        let read = input.by_ref().take(MOST_LINE).read_until(b'\n', line)?;
        length += read as u64;
        let whole = read == 0 || line.ends_with(b"\n");
        if whole {
            break;
        }
        if length >= MOST_LINE {
            line.clear();
        }
    }
    while line.last().is_some_and(|byte| b"\r\n".contains(byte)) {
        line.pop();
    }
    if length > MOST_LINE {
        line.clear();
    }
    Ok(length > 0)
}

/// Where each column stands.
struct Columns {
    trace: usize,
    rpc: usize,
    caller: usize,
    callee: usize,
    took: usize,
    at: Option<usize>,
    kind: Option<usize>,
    interface: Option<usize>,
}

impl Columns {
    fn of(header: &str) -> Result<Self, RowError> {
        let names = fields(header.trim_start_matches('\u{feff}'));
        let find = |name: &str| {
            let mut names = names.iter();
            names.position(|found| found.trim().eq_ignore_ascii_case(name))
        };
        let needed = |missing: &'static str| {
            find(missing).ok_or_else(|| RowError::Column {
                missing,
                found: format!("\"{}\"", header.chars().take(100).collect::<String>()),
            })
        };
        Ok(Self {
            trace: needed("traceid")?,
            rpc: find("rpc_id").map_or_else(|| needed("rpcid"), Ok)?,
            caller: needed("um")?,
            callee: needed("dm")?,
            took: needed("rt")?,
            at: find("timestamp"),
            kind: find("rpctype"),
            interface: find("interface"),
        })
    }

    fn row(&self, line: &str) -> Result<(String, Call), &'static str> {
        let fields = fields(line);
        let get = |place: usize| fields.get(place).map_or("", |field| field.trim());
        let trace = get(self.trace);
        if trace.is_empty() {
            return Err("it has no traceid");
        }
        let rpc = get(self.rpc);
        let dotted = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !rpc.split('.').all(dotted) {
            return Err("its rpcid is no dotted path such as 0.1.2");
        }
        let number = |text: &str| text.parse().ok().filter(|ms: &f64| ms.is_finite());
        let took = number(get(self.took)).filter(|ms| ms.abs() <= MOST_MS);
        let took = took.ok_or("its rt is no number of milliseconds of at most a day")?;
        let at = self.at.and_then(|place| number(get(place)));
        let known = |place| {
            Some(get(place))
                .filter(|name| is_known(name))
                .map(str::to_owned)
        };
        let by_callee = took < 0.0;
        let call = Call {
            rpc: rpc.to_owned(),
            caller: known(self.caller),
            callee: known(self.callee),
            there_and_back: (!by_callee).then_some(took),
            within: by_callee.then_some(-took),
            parent: None,
            at: nanos(at.unwrap_or(0.0)),
            waits: self
                .kind
                .is_none_or(|place| !get(place).eq_ignore_ascii_case("mq")),
            interface: self.interface.and_then(known).unwrap_or_default(),
        };
        Ok((trace.to_owned(), call))
    }
}

fn is_known(name: &str) -> bool {
    !name.is_empty() && !name.eq_ignore_ascii_case("nan") && name != "(?)"
}

fn nanos(ms: f64) -> Nanos {
    (ms.max(0.0) * 1e6).round() as Nanos
}

/// The fields of a line; one in quotes may hold commas, and quotes that are doubled.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let Some(field) = fields.last_mut() else {
            break;
        };
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' if quoted || field.is_empty() => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => field.push(other),
        }
    }
    fields
}

/// A call, by one or both records of it.
struct Call {
    rpc: String,
    caller: Option<String>,
    callee: Option<String>,
    interface: String,
    waits: bool,
    at: Nanos,
    /// By the caller's record, in milliseconds.
    there_and_back: Option<f64>,
    /// By the callee's record.
    within: Option<f64>,
    parent: Option<usize>,
}

impl Call {
    /// Takes another record of the same call; false if it is of another.
    fn take(&mut self, other: &Self) -> bool {
        let same = |one: &Option<String>, other: &Option<String>| {
            one.is_none() || other.is_none() || one == other
        };
        let twice = match other.within {
            Some(_) => self.within.is_some(),
            None => self.there_and_back.is_some(),
        };
        if twice || !same(&self.caller, &other.caller) || !same(&self.callee, &other.callee) {
            return false;
        }
        if other.there_and_back.is_some() {
            self.at = other.at;
        }
        self.there_and_back = self.there_and_back.or(other.there_and_back);
        self.within = self.within.or(other.within);
        self.caller = self.caller.take().or_else(|| other.caller.clone());
        self.callee = self.callee.take().or_else(|| other.callee.clone());
        if self.interface.is_empty() {
            self.interface.clone_from(&other.interface);
        }
        true
    }

    fn client_time(&self) -> Nanos {
        nanos(self.there_and_back.or(self.within).unwrap_or(0.0))
    }

    fn server_time(&self) -> Nanos {
        nanos(self.within.or(self.there_and_back).unwrap_or(0.0)).min(self.client_time())
    }
}

/// The tree of a trace, and how many calls of it cannot be named.
fn assembled(rows: Vec<Call>) -> (Trace, u64) {
    let mut calls = joined(rows);
    name(&mut calls);
    let mut trace = Trace::default();
    let mut unnamed = 0;
    let mut visit_of: Vec<Option<usize>> = Vec::with_capacity(calls.len());
    for call in &calls {
        visit_of.push(call.callee.as_ref().map(|callee| {
            // What the caller's record has more than the callee's is the way, both ways.
            let way = (call.client_time() - call.server_time()) / 2;
            trace.add(Visit {
                service: callee.clone(),
                path: call.interface.clone(),
                begun: call.at + way,
                ended: call.at + way + call.server_time(),
                ..Visit::default()
            })
        }));
    }
    // Who called first of all may have no row of its own.
    let mut entries: Vec<(String, usize)> = Vec::new();
    for (call, visit) in calls.iter().zip(&visit_of) {
        let Some(visit) = *visit else {
            unnamed += 1;
            continue;
        };
        let made = Made {
            visit,
            begun: call.at,
            ended: call.at + call.client_time(),
            waits: call.waits,
        };
        let above = call.parent.and_then(|parent| visit_of.get(parent).copied());
        let own = match (above.flatten(), &call.caller) {
            (Some(above), _) => above,
            (None, Some(caller)) => entry(&mut trace, &mut entries, caller, &made),
            (None, None) => {
                trace.roots.push(visit);
                continue;
            }
        };
        trace.visits[own].calls.push(made);
    }
    trace.roots.extend(entries.iter().map(|(_, visit)| *visit));
    (trace, unnamed)
}

/// The visit of a caller that has no row of its own; it lasts as long as its calls.
fn entry(
    trace: &mut Trace,
    entries: &mut Vec<(String, usize)>,
    caller: &str,
    made: &Made,
) -> usize {
    let known = entries.iter().find(|(name, _)| name == caller);
    let visit = known.map(|(_, visit)| *visit).unwrap_or_else(|| {
        let visit = trace.add(Visit {
            service: caller.to_owned(),
            begun: made.begun,
            ended: made.ended,
            ..Visit::default()
        });
        entries.push((caller.to_owned(), visit));
        visit
    });
    let own = &mut trace.visits[visit];
    own.begun = own.begun.min(made.begun);
    if made.waits {
        own.ended = own.ended.max(made.ended);
    }
    visit
}

/// The calls of rows, each with the one above it.
fn joined(rows: Vec<Call>) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::with_capacity(rows.len());
    let mut by_rpc: HashMap<String, Vec<usize>> = HashMap::new();
    for row in rows {
        let places = by_rpc.entry(row.rpc.clone()).or_default();
        if places.iter().any(|place| calls[*place].take(&row)) {
            continue;
        }
        places.push(calls.len());
        calls.push(row);
    }
    for call in &mut calls {
        let mut above = call.rpc.as_str();
        while let Some((upper, _)) = above.rsplit_once('.') {
            above = upper;
            call.parent = by_rpc.get(above).and_then(|places| places.first().copied());
            if call.parent.is_some() {
                break;
            }
        }
    }
    calls
}

/// Fills in names from the rows above and below: who was called calls on.
fn name(calls: &mut [Call]) {
    // Those below come first, so that a name can go up more than one row.
    let mut order: Vec<usize> = (0..calls.len()).collect();
    order.sort_by_key(|at| usize::MAX - calls[*at].rpc.matches('.').count());
    for at in &order {
        let (caller, parent) = (calls[*at].caller.clone(), calls[*at].parent);
        // Only of the row right above: between others a row is missing.
        let direct = parent.filter(|parent| {
            let depth = |call: &Call| call.rpc.matches('.').count();
            depth(&calls[*parent]) + 1 == depth(&calls[*at])
        });
        if let (Some(parent), Some(caller)) = (direct, caller) {
            calls[parent].callee.get_or_insert(caller);
        }
    }
}
