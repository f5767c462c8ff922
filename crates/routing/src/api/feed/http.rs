//! HTTP routes for the table of the HTTP router.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use net::Shutdown;
use telemetry::{Fields, Logger};
use tokio::sync::mpsc;

use super::WAITING;
use crate::api::client::{ApiClient, ClientError, ClientSettings, FollowSettings, Update, follow};
use crate::api::model::{HttpKey, HttpRoute};
use crate::table::{Modification, Nanos, Registration, RouteKey, Table};

/// Time between two whole lists: half of gorouter's `prune_stale_droplets_interval`.
const FULL_EVERY: Duration = Duration::from_secs(15);

/// Keeps the routes of the routing API in a table, until `shutdown`.
///
/// # Errors
/// When the settings cannot be used. What goes wrong later is logged and tried again.
pub async fn run(
    settings: &ClientSettings,
    table: Arc<Table>,
    logger: Logger,
    mut shutdown: Shutdown,
) -> Result<(), ClientError> {
    let client = ApiClient::new(settings)?;
    let (updates, mut news) = mpsc::channel(WAITING);
    let follow_settings = FollowSettings {
        full_every: FULL_EVERY,
        ..FollowSettings::default()
    };
    let follow = follow(&client, &follow_settings, &updates, &logger);
    let carry = async {
        let mut feed = Feed::new(table, logger.clone());
        while let Some(update) = news.recv().await {
            feed.apply(update, wire::clock::now());
        }
    };
    tokio::select! {
        () = follow => {}
        () = carry => {}
        () = shutdown.asked() => {}
    }
    Ok(())
}

/// What the routing API has brought into a table.
struct Feed {
    table: Arc<Table>,
    known: HashMap<HttpKey, Modification>,
    logger: Logger,
}

impl Feed {
    fn new(table: Arc<Table>, logger: Logger) -> Self {
        Self {
            table,
            known: HashMap::new(),
            logger,
        }
    }

    fn apply(&mut self, update: Update<HttpRoute>, now: Nanos) {
        match update {
            Update::Upsert(route) => {
                self.register(&route, now);
                self.known.insert(route.key(), tag(&route));
            }
            Update::Delete(route) => {
                let key = route.key();
                self.unregister(&key, &tag(&route), now);
                self.known.remove(&key);
            }
            Update::Full(routes) => {
                let mut known = HashMap::with_capacity(routes.len());
                for route in &routes {
                    self.register(route, now);
                    known.insert(route.key(), tag(route));
                }
                let before = std::mem::replace(&mut self.known, known);
                for (key, tag) in before {
                    if !self.known.contains_key(&key) {
                        self.unregister(&key, &tag, now);
                    }
                }
            }
        }
    }

    fn register(&self, route: &HttpRoute, now: Nanos) {
        let Some(key) = self.key(&route.route) else {
            return;
        };
        let ttl = route.ttl.and_then(|ttl| u64::try_from(ttl).ok());
        let registration = Registration {
            identity: &identity(&route.ip, route.port),
            server_name: &route.log_guid,
            app: &route.log_guid,
            stale_after: Duration::from_secs(ttl.unwrap_or(0)),
            modification_guid: &route.modification_tag.guid,
            modification_index: route.modification_tag.index,
            route_service_url: &route.route_service_url,
            ..Registration::default()
        };
        self.table.register_with(&key, &registration, now);
    }

    fn unregister(&self, route: &HttpKey, tag: &Modification, now: Nanos) {
        if let Some(key) = self.key(&route.route) {
            let identity = identity(&route.ip, route.port);
            self.table.unregister(&key, &identity, tag, now);
        }
    }

    fn key<'a>(&self, route: &'a str) -> Option<RouteKey<'a>> {
        let key = RouteKey::new(route);
        let refused = |error| self.logger.error("bad-route", &error, Fields::new());
        key.map_err(refused).ok()
    }
}

fn tag(route: &HttpRoute) -> Modification {
    Modification {
        guid: route.modification_tag.guid.as_str().into(),
        index: route.modification_tag.index,
    }
}

fn identity(ip: &str, port: u16) -> String {
    if ip.contains(':') && !ip.starts_with('[') {
        format!("[{ip}]:{port}")
    } else {
        format!("{ip}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::model::ModificationTag;
    use crate::table::TableSettings;
    use telemetry::{Level, Sink};

    fn route(name: &str, host: u8, index: u32) -> HttpRoute {
        HttpRoute {
            route: name.into(),
            ip: format!("10.0.0.{host}"),
            port: 80,
            ttl: Some(60),
            modification_tag: ModificationTag {
                guid: "guid".into(),
                index,
            },
            ..HttpRoute::default()
        }
    }

    fn endpoints(table: &Table) -> Vec<String> {
        let mut all: Vec<_> = table
            .pools()
            .iter()
            .flat_map(|pool| {
                let key = pool.key().to_owned();
                let endpoints = pool.endpoints();
                let all = endpoints.iter();
                all.map(|one| format!("{key} {}", one.identity()))
                    .collect::<Vec<_>>()
            })
            .collect();
        all.sort();
        all
    }

    #[test]
    fn updates_reach_the_table_and_a_whole_list_removes_what_is_gone() {
        let table = Arc::new(Table::new(TableSettings::default()));
        let logger = Logger::new("feed", Sink::nothing(), Level::Error);
        let mut feed = Feed::new(Arc::clone(&table), logger);
        feed.apply(
            Update::Full(vec![route("a.b", 1, 0), route("c.d", 1, 0)]),
            1,
        );
        feed.apply(Update::Upsert(route("a.b", 2, 0)), 2);
        assert_eq!(
            endpoints(&table),
            ["a.b 10.0.0.1:80", "a.b 10.0.0.2:80", "c.d 10.0.0.1:80"]
        );
        feed.apply(Update::Full(vec![route("a.b", 2, 1)]), 3);
        assert_eq!(endpoints(&table), ["a.b 10.0.0.2:80"]);
        feed.apply(Update::Delete(route("a.b", 2, 1)), 4);
        assert_eq!(endpoints(&table), Vec::<String>::new());
        feed.apply(Update::Upsert(route("/nowhere", 2, 1)), 5);
        assert!(table.is_empty());
    }
}
