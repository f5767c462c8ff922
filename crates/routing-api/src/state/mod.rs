//! All rows in memory, and what each call does to them. Pure.
//!
//! A call works on a [`Batch`], a layer over the [`State`]. A batch that reached the disk
//! is merged; one that did not is dropped, and nothing happened.

mod apply;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

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
}

/// Rows that differ from those of the state below; `None`: removed.
#[derive(Debug)]
pub(crate) struct Layer<K, T>(BTreeMap<K, Option<Arc<Row<T>>>>);

impl<K, T> Default for Layer<K, T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone, T> Layer<K, T> {
    fn get<'a>(&'a self, below: &'a Rows<K, T>, key: &K) -> Option<&'a Arc<Row<T>>> {
        match self.0.get(key) {
            Some(row) => row.as_ref(),
            None => below.get(key),
        }
    }

    /// The first row from `key` on that fits, in the order of keys within each layer.
    fn find<'a>(
        &'a self,
        below: &'a Rows<K, T>,
        from: &K,
        within: impl Fn(&K) -> bool,
        fits: impl Fn(&Row<T>) -> bool,
    ) -> Option<&'a Arc<Row<T>>> {
        let from = (Bound::Included(from), Bound::Unbounded);
        let above = self.0.range(from).take_while(|(key, _)| within(key));
        let mut above = above.filter_map(|(_, row)| row.as_ref());
        let below = below.range(from).take_while(|(key, _)| within(key));
        let mut below = below.filter(|(key, _)| !self.0.contains_key(key));
        above
            .find(|row| fits(row))
            .or_else(|| below.find(|(_, row)| fits(row)).map(|(_, row)| row))
    }

    fn put(&mut self, key: K, row: Option<Arc<Row<T>>>) {
        self.0.insert(key, row);
    }

    /// What the database has to do for this.
    fn writes(&self, below: &Rows<K, T>) -> RowWrites<T> {
        let mut writes = RowWrites {
            put: Vec::new(),
            gone: Vec::new(),
        };
        for (key, row) in &self.0 {
            let old = below.get(key).map(|row| row.id);
            let new = row.as_ref().map(|row| row.id);
            writes.gone.extend(old.filter(|_| old != new));
            writes.put.extend(row.clone());
        }
        writes
    }

    fn merge_into(self, rows: &mut Rows<K, T>) {
        for (key, row) in self.0 {
            match row {
                Some(row) => drop(rows.insert(key, row)),
                None => drop(rows.remove(&key)),
            }
        }
    }
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
    pub(crate) tcp: Layer<TcpKey, TcpMapping>,
    pub(crate) http: Layer<HttpKey, HttpRoute>,
    /// Groups that differ; `None`: removed.
    pub(crate) groups: BTreeMap<String, Option<Arc<RouterGroup>>>,
    /// What subscribers learn, in order.
    pub(crate) changes: Vec<Change>,
    /// Rows that were made.
    new_rows: i64,
}

impl Batch {
    /// Whether there is nothing to make durable.
    pub(crate) fn is_empty(&self) -> bool {
        self.tcp.0.is_empty() && self.http.0.is_empty() && self.groups.is_empty()
    }

    /// What the database has to do.
    pub(crate) fn writes(&self, state: &State) -> Writes {
        let gone = self.groups.iter().filter(|(_, group)| group.is_none());
        Writes {
            tcp: self.tcp.writes(&state.tcp),
            http: self.http.writes(&state.http),
            put_groups: self.groups.values().flatten().cloned().collect(),
            gone_groups: gone.map(|(guid, _)| guid.clone()).collect(),
        }
    }
}

impl State {
    /// Makes a batch part of the state and returns what subscribers learn.
    pub(crate) fn merge(&mut self, batch: Batch) -> Vec<Change> {
        self.last_id += batch.new_rows;
        batch.tcp.merge_into(&mut self.tcp);
        batch.http.merge_into(&mut self.http);
        for (guid, group) in batch.groups {
            match group {
                Some(group) => drop(self.groups.insert(guid, group)),
                None => drop(self.groups.remove(&guid)),
            }
        }
        batch.changes
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
