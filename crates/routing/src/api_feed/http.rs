//! HTTP routes for the table of the HTTP router.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use net::Shutdown;
use telemetry::{Fields, Level, Logger};
use tokio::sync::mpsc;

use super::WAITING;
use crate::registry::line_budget::LineBudget;
use crate::registry::{RegistryCounters, RegistryTotals};
use crate::table::{Modification, Nanos, Registered, Registration, RouteKey, Table};
use routing_api::client::{ApiClient, FollowSettings, Update, follow};
use routing_api::model::{HttpKey, HttpRoute};

/// Time between two whole lists: half of gorouter's `prune_stale_droplets_interval`.
const FULL_EVERY: Duration = Duration::from_secs(15);

/// Lines about single routes that are written in a second: every whole list says again what
/// is wrong with it.
const LINES_PER_SECOND: u32 = 50;

/// The routing API says nothing of components.
const COMPONENT: &str = "";

/// Keeps the routes of the routing API in a table, until `shutdown`. What became of them is
/// counted in `counters`; a route that is refused is logged, too. What goes wrong with the
/// API is logged and tried again.
pub async fn run(
    client: ApiClient,
    table: Arc<Table>,
    counters: Arc<RegistryCounters>,
    logger: Logger,
    mut shutdown: Shutdown,
) {
    let (updates, mut news) = mpsc::channel(WAITING);
    let follow_settings = FollowSettings {
        full_every: FULL_EVERY,
        ..FollowSettings::default()
    };
    let follow = follow(&client, &follow_settings, &updates, &logger);
    let carry = async {
        let mut feed = Feed::new(table, counters, logger.clone());
        while let Some(update) = news.recv().await {
            feed.apply(update, wire::clock::now());
        }
    };
    tokio::select! {
        () = follow => {}
        () = carry => {}
        () = shutdown.requested() => {}
    }
}

/// What the routing API has brought into a table.
struct Feed {
    table: Arc<Table>,
    counters: Arc<RegistryCounters>,
    known: HashMap<HttpKey, Modification>,
    lines: LineBudget,
    logger: Logger,
}

impl Feed {
    fn new(table: Arc<Table>, counters: Arc<RegistryCounters>, logger: Logger) -> Self {
        Self {
            table,
            counters,
            known: HashMap::new(),
            lines: LineBudget::new(LINES_PER_SECOND),
            logger,
        }
    }

    fn apply(&mut self, update: Update<HttpRoute>, now: Nanos) {
        let counters = Arc::clone(&self.counters);
        counters.with(|totals| {
            match update {
                Update::Upsert(route) => {
                    self.register(&route, now, totals);
                    self.known.insert(route.key(), tag(&route));
                }
                Update::Delete(route) => {
                    let key = route.key();
                    self.unregister(&key, &tag(&route), now, totals);
                    self.known.remove(&key);
                }
                Update::Full(routes) => self.replace(&routes, now, totals),
            }
            let left_out = self.lines.left_out(now);
            if left_out > 0 {
                totals.lines_left_out += left_out;
                let fields = Fields::new().and("lines", left_out);
                self.logger.info("lines-left-out", fields);
            }
        });
    }

    /// Registers what is in a whole list, and unregisters what was known before and is not.
    fn replace(&mut self, routes: &[HttpRoute], now: Nanos, totals: &mut RegistryTotals) {
        let mut known = HashMap::with_capacity(routes.len());
        for route in routes {
            self.register(route, now, totals);
            known.insert(route.key(), tag(route));
        }
        let before = std::mem::replace(&mut self.known, known);
        for (key, tag) in before {
            if !self.known.contains_key(&key) {
                self.unregister(&key, &tag, now, totals);
            }
        }
    }

    fn register(&mut self, route: &HttpRoute, now: Nanos, totals: &mut RegistryTotals) {
        let key = match RouteKey::new(&route.route) {
            Ok(key) => key,
            Err(error) => {
                totals.invalid_routes += 1;
                return self.refused("bad-route", route, &error, now);
            }
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
        let registered = self.table.register_with(&key, &registration, now);
        totals.registered(COMPONENT, registered);
        if let Registered::Refused(bound) = registered {
            self.refused("registration-refused", route, &bound, now);
        }
    }

    fn unregister(
        &self,
        route: &HttpKey,
        tag: &Modification,
        now: Nanos,
        totals: &mut RegistryTotals,
    ) {
        // One that was never taken was refused, and counted, when it came.
        if let Ok(key) = RouteKey::new(&route.route) {
            let identity = identity(&route.ip, route.port);
            let unregistered = self.table.unregister(&key, &identity, tag, now);
            totals.unregistered(COMPONENT, unregistered);
        }
    }

    fn refused(&mut self, what: &str, route: &HttpRoute, why: &dyn Display, now: Nanos) {
        if self.logger.enabled(Level::Error) && self.lines.take(now) {
            let fields = Fields::new()
                .and("uri", &route.route)
                .and("backend", identity(&route.ip, route.port));
            self.logger.error(what, why, fields);
        }
    }
}

fn tag(route: &HttpRoute) -> Modification {
    (&route.modification_tag).into()
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
    use crate::table::TableSettings;
    use routing_api::model::ModificationTag;
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

    fn feed(settings: TableSettings) -> (Feed, Arc<Table>, Sink) {
        let table = Arc::new(Table::new(settings));
        let sink = Sink::memory();
        let logger = Logger::new("feed", sink.clone(), Level::Info);
        let feed = Feed::new(Arc::clone(&table), Arc::default(), logger);
        (feed, table, sink)
    }

    #[test]
    fn updates_reach_the_table_and_a_whole_list_removes_what_is_gone() {
        let (mut feed, table, _) = feed(TableSettings::default());
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
        let totals = feed.counters.totals();
        let all = totals.all_components();
        assert_eq!((all.added, all.unregistered, totals.removed), (3, 3, 3));
    }

    #[test]
    fn what_the_table_refuses_is_counted_and_logged_up_to_a_bound() {
        let (mut feed, table, sink) = feed(TableSettings {
            most_endpoints: 2,
            ..TableSettings::default()
        });
        feed.apply(Update::Upsert(route("/nowhere", 2, 1)), 1);
        assert!(table.is_empty());
        feed.apply(
            Update::Full((0..100).map(|host| route("a.b", host, 0)).collect()),
            2,
        );
        assert_eq!(endpoints(&table).len(), 2);
        let totals = feed.counters.totals();
        assert_eq!((totals.invalid_routes, totals.refused), (1, 98));
        let lines = sink.kept();
        assert_eq!(lines.lines().count(), LINES_PER_SECOND as usize, "{lines}");
        assert!(lines.contains("bad-route") && lines.contains("/nowhere"));
        assert!(lines.contains("registration-refused") && lines.contains("10.0.0.2:80"));
        feed.apply(Update::Delete(route("a.b", 0, 0)), 2_000_000_000);
        let left_out = 1 + 98 - u64::from(LINES_PER_SECOND);
        assert_eq!(feed.counters.totals().lines_left_out, left_out);
        assert!(sink.kept().contains("lines-left-out"));
    }
}
