//! What each call does.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Batch, Change, Millis, Row, State};
use crate::model::{
    ApiError, ErrorName, HttpRoute, ModificationTag, RouterGroup, TcpKey, TcpMapping,
};

/// A call that changes something.
#[derive(Debug)]
pub(crate) enum Command {
    /// Writes mappings: all of them, or none.
    UpsertTcp(Vec<TcpMapping>),
    /// Removes mappings; those that are not there are no error.
    DeleteTcp(Vec<TcpMapping>),
    /// Writes routes: all of them, or none.
    UpsertHttp(Vec<HttpRoute>),
    /// Removes routes; those that are not there are no error.
    DeleteHttp(Vec<HttpRoute>),
    /// Makes a group, unless there is one of the same name and type.
    CreateGroup(RouterGroup),
    /// Replaces the reservable ports of a group.
    UpdateGroup {
        /// The group.
        guid: String,
        /// The new ports.
        reservable_ports: String,
    },
    /// Removes a group.
    DeleteGroup(String),
    /// Makes these groups if there is none at all.
    Seed(Vec<RouterGroup>),
    /// Removes what expired more than a second ago.
    Prune,
}

impl Command {
    /// Rows that it names.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::UpsertTcp(list) | Self::DeleteTcp(list) => list.len(),
            Self::UpsertHttp(list) | Self::DeleteHttp(list) => list.len(),
            _ => 1,
        }
    }
}

/// The answer of a call.
#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    /// It is done.
    Done,
    /// A group was made.
    Created(Arc<RouterGroup>),
    /// The group that there is.
    Group(Arc<RouterGroup>),
    /// There is no such group.
    NoGroup,
    /// So many rows expired.
    Pruned(usize),
}

/// What a call depends on beside the state.
pub(crate) struct Context<'a> {
    /// The time.
    pub(crate) now: Millis,
    /// Longest time to live, in seconds.
    pub(crate) max_ttl: i64,
    /// Makes a new guid.
    pub(crate) guid: &'a mut dyn FnMut() -> String,
}

/// Rows are pruned so long after they expired, in milliseconds: a heartbeat that is a
/// little late finds its row.
const GRACE: Millis = 1000;

impl Batch {
    /// Does a call on top of what the batch already holds.
    ///
    /// # Errors
    /// What the caller is to be told; the batch is as it was.
    pub(crate) fn apply(
        &mut self,
        state: &State,
        command: Command,
        context: &mut Context<'_>,
    ) -> Result<Reply, ApiError> {
        match command {
            Command::UpsertTcp(mut wanted) => {
                self.check_tcp(state, &mut wanted, context)?;
                for mapping in wanted {
                    self.upsert_tcp(state, mapping, context);
                }
            }
            Command::DeleteTcp(wanted) => {
                for mapping in &wanted {
                    mapping.check_delete().map_err(ApiError::process)?;
                }
                for mapping in wanted {
                    self.delete_tcp(state, &mapping.key());
                }
            }
            Command::UpsertHttp(mut wanted) => {
                for route in &mut wanted {
                    route.check_upsert(context.max_ttl)?;
                }
                for route in wanted {
                    self.upsert_http(state, route, context);
                }
            }
            Command::DeleteHttp(wanted) => {
                for route in &wanted {
                    route.check_delete()?;
                }
                for route in wanted {
                    let key = route.key();
                    if let Some(row) = self.http.get(&state.http, &key).cloned() {
                        self.http.put(key, None);
                        self.changes.push(Change::Http(false, row));
                    }
                }
            }
            Command::CreateGroup(group) => return self.create_group(state, group, context),
            Command::UpdateGroup {
                guid,
                reservable_ports,
            } => return self.update_group(state, &guid, reservable_ports),
            Command::DeleteGroup(guid) => {
                if self.group(state, &guid).is_none() {
                    return Ok(Reply::NoGroup);
                }
                self.groups.put(guid, None);
            }
            Command::Seed(groups) => {
                if self.groups.values(&state.groups).next().is_none() {
                    for mut group in groups {
                        if group.guid.is_empty() {
                            group.guid = (context.guid)();
                        }
                        self.groups.put(group.guid.clone(), Some(Arc::new(group)));
                    }
                }
            }
            Command::Prune => return Ok(Reply::Pruned(self.prune(state, context.now))),
        }
        Ok(Reply::Done)
    }

    fn check_tcp(
        &self,
        state: &State,
        wanted: &mut [TcpMapping],
        context: &Context<'_>,
    ) -> Result<(), ApiError> {
        let invalid = |message: String| {
            let error = ApiError::new(ErrorName::TcpRouteMappingInvalidError, message);
            ApiError::process(error)
        };
        let mut agreed: HashMap<(u16, String), bool> = HashMap::new();
        for mapping in wanted {
            mapping
                .check_upsert(context.max_ttl)
                .map_err(ApiError::process)?;
            if self.group(state, &mapping.router_group_guid).is_none() {
                let guid = &mapping.router_group_guid;
                return Err(invalid(format!("router_group_guid: {guid} not found")));
            }
            let ends_tls = mapping.terminate_frontend_tls;
            let sni = mapping.backend_sni_hostname.clone().unwrap_or_default();
            let others = *agreed
                .entry((mapping.port, sni.clone()))
                .or_insert_with(|| {
                    let known = self.similar(state, mapping.port, sni, context.now);
                    known.unwrap_or(ends_tls)
                });
            if others != ends_tls {
                return Err(invalid(format!(
                    "terminate_frontend_tls: {ends_tls} not allowed"
                )));
            }
        }
        Ok(())
    }

    /// Whether the backends of a port and server name have the router end TLS; `None`:
    /// there are none. All of them agree, so any of them tells.
    fn similar(&self, state: &State, port: u16, sni: String, now: Millis) -> Option<bool> {
        let first = TcpKey {
            port,
            sni,
            router_group_guid: String::new(),
            backend_ip: String::new(),
            backend_port: 0,
            backend_tls_port: i64::MIN,
            enable_backend_mtls: false,
        };
        let within = |key: &TcpKey| key.port == port && key.sni == first.sni;
        let mut rows = self.tcp.range(&state.tcp, &first, within);
        let row = rows.find(|row| row.expires > now);
        row.map(|row| row.value.terminate_frontend_tls)
    }

    fn upsert_tcp(&mut self, state: &State, wanted: TcpMapping, context: &mut Context<'_>) {
        let key = wanted.key();
        // Renewed by another instance, which has the ports of one that ended, the row would have
        // routers ask for the certificate of the ended one for ever.
        let proves = wanted.backend_tls_port > 0 && !wanted.instance_id.is_empty();
        let known = self.tcp.get(&state.tcp, &key);
        if known.is_some_and(|row| proves && row.value.instance_id != wanted.instance_id) {
            self.delete_tcp(state, &key);
        }
        let known = self.tcp.get(&state.tcp, &key);
        let (id, value) = match known {
            Some(row) => (row.id, row.value.renewed(&wanted)),
            None => {
                let modification_tag = new_tag(context);
                let value = TcpMapping {
                    modification_tag,
                    ..wanted
                };
                (self.new_id(state), value)
            }
        };
        let expires = expiry(value.ttl, context);
        let row = Arc::new(Row { id, expires, value });
        self.tcp.put(key, Some(Arc::clone(&row)));
        self.changes.push(Change::Tcp(true, row));
    }

    fn delete_tcp(&mut self, state: &State, key: &TcpKey) {
        if let Some(row) = self.tcp.get(&state.tcp, key).cloned() {
            self.tcp.put(key.clone(), None);
            self.changes.push(Change::Tcp(false, row));
        }
    }

    fn upsert_http(&mut self, state: &State, wanted: HttpRoute, context: &mut Context<'_>) {
        let key = wanted.key();
        let known = self.http.get(&state.http, &key);
        let (id, value) = match known {
            Some(row) => (row.id, row.value.renewed(&wanted)),
            None => {
                let modification_tag = new_tag(context);
                let value = HttpRoute {
                    modification_tag,
                    ..wanted
                };
                (self.new_id(state), value)
            }
        };
        let expires = expiry(value.ttl, context);
        let row = Arc::new(Row { id, expires, value });
        self.http.put(key, Some(Arc::clone(&row)));
        self.changes.push(Change::Http(true, row));
    }

    fn new_id(&mut self, state: &State) -> i64 {
        self.new_rows += 1;
        state.last_id + self.new_rows
    }

    fn group<'a>(&'a self, state: &'a State, guid: &str) -> Option<&'a Arc<RouterGroup>> {
        self.groups.get(&state.groups, guid)
    }

    fn create_group(
        &mut self,
        state: &State,
        mut group: RouterGroup,
        context: &mut Context<'_>,
    ) -> Result<Reply, ApiError> {
        let mut groups = self.groups.values(&state.groups);
        if let Some(known) = groups.find(|known| known.name == group.name) {
            if known.kind == group.kind {
                return Ok(Reply::Group(Arc::clone(known)));
            }
            return Err(ApiError::process("Router group name must be unique"));
        }
        drop(groups);
        group.check().map_err(ApiError::process)?;
        group.guid = (context.guid)();
        let group = Arc::new(group);
        self.groups
            .put(group.guid.clone(), Some(Arc::clone(&group)));
        Ok(Reply::Created(group))
    }

    fn update_group(
        &mut self,
        state: &State,
        guid: &str,
        reservable_ports: String,
    ) -> Result<Reply, ApiError> {
        let Some(known) = self.group(state, guid) else {
            let message = format!("router group '{guid}' does not exist");
            return Err(ApiError::new(ErrorName::ResourceNotFoundError, message));
        };
        if known.reservable_ports == reservable_ports {
            return Ok(Reply::Group(Arc::clone(known)));
        }
        let group = RouterGroup {
            reservable_ports,
            ..RouterGroup::clone(known)
        };
        group.check().map_err(ApiError::process)?;
        let group = Arc::new(group);
        self.groups.put(guid.to_owned(), Some(Arc::clone(&group)));
        Ok(Reply::Group(group))
    }

    fn prune(&mut self, state: &State, now: Millis) -> usize {
        let before = self.changes.len();
        let limit = now - GRACE;
        for (key, row) in &state.tcp {
            let now = self.tcp.get(&state.tcp, key);
            if row.expires < limit && now.is_some_and(|now| now.expires < limit) {
                self.delete_tcp(state, key);
            }
        }
        for (key, row) in &state.http {
            let now = self.http.get(&state.http, key).cloned();
            if row.expires < limit
                && let Some(now) = now.filter(|now| now.expires < limit)
            {
                self.http.put(key.clone(), None);
                self.changes.push(Change::Http(false, now));
            }
        }
        self.changes.len() - before
    }
}

fn new_tag(context: &mut Context<'_>) -> ModificationTag {
    ModificationTag {
        guid: (context.guid)(),
        index: 0,
    }
}

fn expiry(ttl: Option<i64>, context: &Context<'_>) -> Millis {
    context.now + ttl.unwrap_or(context.max_ttl) * 1000
}
