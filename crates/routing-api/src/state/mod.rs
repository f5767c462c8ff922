//! All rows in memory, and what each call does to them. Pure.
//!
//! A call works on a [`Batch`], a layer over the [`State`]. A batch that reached the disk
//! is merged; one that did not is dropped, and nothing happened.

mod apply;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

use commit::Layer;

use super::model::{HttpKey, HttpRoute, RouterGroup, TcpKey, TcpMapping};

pub(crate) use apply::{Command, Context, Reply};

/// Milliseconds since 1970.
pub(crate) type Millis = i64;

/// A mapping or a route as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row<T> {
    /// Its number in the database, from 1.
    pub(crate) id: i64,
    /// When it expires.
    pub(crate) expires: Millis,
    /// What it says.
    pub(crate) value: T,
}

/// Rows by their keys.
pub(crate) type Rows<K, T> = BTreeMap<K, Arc<Row<T>>>;

/// Everything that is kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    pub(crate) tcp: Rows<TcpKey, TcpMapping>,
    pub(crate) http: Rows<HttpKey, HttpRoute>,
    /// Router groups by their guids.
    pub(crate) groups: BTreeMap<String, Arc<RouterGroup>>,
    /// The highest number that a row ever had, as far as is known.
    pub(crate) last_id: i64,
    /// Whether the database is out of reach, so that another server may have changed it.
    pub(crate) lost: bool,
}

/// Rows that differ from those of the state below.
type RowLayer<K, T> = Layer<K, Arc<Row<T>>>;

/// What the database has to do for a layer.
fn writes<K: Ord + Hash, T>(layer: &RowLayer<K, T>, below: &Rows<K, T>) -> RowWrites<T> {
    let mut writes = RowWrites {
        put: Vec::new(),
        gone: Vec::new(),
    };
    for (key, row) in layer.changes() {
        let old = below.get(key).map(|row| row.id);
        let new = row.map(|row| row.id);
        writes.gone.extend(old.filter(|_| old != new));
        writes.put.extend(row.cloned());
    }
    writes
}

/// Rows of one table that a batch puts and removes.
#[derive(Debug)]
pub(crate) struct RowWrites<T> {
    /// New, or in place of the row of the same number.
    pub(crate) put: Vec<Arc<Row<T>>>,
    /// Numbers of rows that are gone.
    pub(crate) gone: Vec<i64>,
}

/// All that a batch asks of a database: one transaction.
#[derive(Debug)]
pub(crate) struct Writes {
    pub(crate) tcp: RowWrites<TcpMapping>,
    pub(crate) http: RowWrites<HttpRoute>,
    /// Groups, new or in place of the one of the same guid.
    pub(crate) put_groups: Vec<Arc<RouterGroup>>,
    /// Guids of groups that are gone.
    pub(crate) gone_groups: Vec<String>,
}

/// What happened to a row, for subscribers.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// A TCP mapping was written (`true`) or removed.
    Tcp(bool, Arc<Row<TcpMapping>>),
    /// An HTTP route was written (`true`) or removed.
    Http(bool, Arc<Row<HttpRoute>>),
}

/// Changes over a state that are not yet durable.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    tcp: RowLayer<TcpKey, TcpMapping>,
    http: RowLayer<HttpKey, HttpRoute>,
    groups: Layer<String, Arc<RouterGroup>>,
    /// What subscribers learn, in order.
    pub(crate) changes: Vec<Change>,
    /// Rows that were made.
    new_rows: i64,
}

impl Batch {
    /// Whether there is nothing to make durable.
    pub(crate) fn is_empty(&self) -> bool {
        self.tcp.is_empty() && self.http.is_empty() && self.groups.is_empty()
    }

    /// What the database has to do.
    pub(crate) fn writes(&self, state: &State) -> Writes {
        let groups = || self.groups.changes();
        let gone = groups().filter(|(_, group)| group.is_none());
        Writes {
            tcp: writes(&self.tcp, &state.tcp),
            http: writes(&self.http, &state.http),
            put_groups: groups().filter_map(|(_, group)| group.cloned()).collect(),
            gone_groups: gone.map(|(guid, _)| guid.clone()).collect(),
        }
    }
}

impl State {
    /// Makes a batch part of the state.
    pub(crate) fn merge(&mut self, batch: Batch) {
        self.last_id += batch.new_rows;
        batch.tcp.merge_into(&mut self.tcp);
        batch.http.merge_into(&mut self.http);
        batch.groups.merge_into(&mut self.groups);
    }

    /// Adds a row as the database has it.
    pub(crate) fn load_tcp(&mut self, row: Row<TcpMapping>) {
        self.last_id = self.last_id.max(row.id);
        self.tcp.insert(row.value.key(), Arc::new(row));
    }

    /// Adds a row as the database has it.
    pub(crate) fn load_http(&mut self, row: Row<HttpRoute>) {
        self.last_id = self.last_id.max(row.id);
        self.http.insert(row.value.key(), Arc::new(row));
    }

    /// Adds a group as the database has it.
    pub(crate) fn load_group(&mut self, group: RouterGroup) {
        self.groups.insert(group.guid.clone(), Arc::new(group));
    }

    /// Mappings that have not expired, of these isolation segments; none named: of all.
    pub(crate) fn tcp_mappings(
        &self,
        segments: &[String],
        now: Millis,
    ) -> Vec<Arc<Row<TcpMapping>>> {
        let wanted = |row: &&Arc<Row<TcpMapping>>| {
            let segment = &row.value.isolation_segment;
            row.expires > now && (segments.is_empty() || segments.contains(segment))
        };
        self.tcp.values().filter(wanted).cloned().collect()
    }

    /// Routes that have not expired.
    pub(crate) fn http_routes(&self, now: Millis) -> Vec<Arc<Row<HttpRoute>>> {
        let live = self.http.values().filter(|row| row.expires > now);
        live.cloned().collect()
    }
}
