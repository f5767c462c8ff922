//! TCP routes, on their way to the routing API.
//!
//! What waits is the last that is to be said of each route: however slow the API is, no more
//! waits than there are routes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use telemetry::{Fields, Logger};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::metrics::Metrics;
use super::registration::{Key, Registration, TcpMapping};
use crate::mutex::lock;

/// Routes that one call names.
const PER_CALL: usize = 500;
/// Routes that may wait; more are said again in the next round.
const MOST: usize = 1_000_000;
/// Pauses after calls that failed: the first, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(15)];

/// Why a routing API did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RoutingApiError {
    /// It will not take these rows, however often they are sent.
    #[error("{0}")]
    Refused(String),
    /// It did not answer, or could not.
    #[error("{0}")]
    Failed(String),
}

/// A routing API. Whoever makes one sees to its tokens and to TLS.
pub trait RoutingApi: Send + Sync + 'static {
    /// Writes rows, each with this time to live; all or none.
    fn upsert(
        &self,
        rows: Vec<TcpMapping>,
        ttl: Duration,
    ) -> net::BoxFuture<Result<(), RoutingApiError>>;

    /// Removes rows. Those that are not there are no error.
    fn delete(&self, rows: Vec<TcpMapping>) -> net::BoxFuture<Result<(), RoutingApiError>>;
}

/// A row to be written, or one to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RowChange {
    Upsert(TcpMapping),
    Delete(TcpMapping),
}

/// What waits for the routing API.
#[derive(Default)]
pub(super) struct TcpRoutes {
    waiting: Mutex<BTreeMap<Key, RowChange>>,
    added: Notify,
}

impl TcpRoutes {
    /// Adds a route that is to be written.
    pub(super) fn register(&self, registration: &Registration) {
        if let Registration::Tcp(mapping) = registration {
            self.add(registration.key(), RowChange::Upsert(mapping.clone()));
        }
    }

    /// Adds a route that is to be removed.
    pub(super) fn unregister(&self, registration: &Registration) {
        if let Registration::Tcp(mapping) = registration {
            self.add(registration.key(), RowChange::Delete(mapping.clone()));
        }
    }

    fn add(&self, key: Key, said: RowChange) {
        let mut waiting = lock(&self.waiting);
        if waiting.len() < MOST || waiting.contains_key(&key) {
            waiting.insert(key, said);
            self.added.notify_one();
        }
    }

    /// Takes the first ones, all of a kind.
    fn take(&self) -> Vec<(Key, RowChange)> {
        let mut waiting = lock(&self.waiting);
        let Some(first) = waiting.values().next() else {
            return Vec::new();
        };
        let upserts = matches!(first, RowChange::Upsert(_));
        let of_kind = |said: &RowChange| matches!(said, RowChange::Upsert(_)) == upserts;
        let keys = waiting.iter().filter(|(_, said)| of_kind(said));
        let keys: Vec<_> = keys.map(|(key, _)| key.clone()).take(PER_CALL).collect();
        let taken = keys
            .into_iter()
            .filter_map(|key| waiting.remove_entry(&key));
        taken.collect()
    }

    /// Puts back what could not be sent, unless there is something newer to send.
    fn put_back(&self, taken: Vec<(Key, RowChange)>) {
        let mut waiting = lock(&self.waiting);
        for (key, said) in taken {
            waiting.entry(key).or_insert(said);
        }
    }

    fn len(&self) -> usize {
        lock(&self.waiting).len()
    }
}

/// Says what waits to a routing API.
pub(super) struct Carrier {
    pub(super) routes: Arc<TcpRoutes>,
    pub(super) api: Arc<dyn RoutingApi>,
    /// How long a row lives that is not written again.
    pub(super) ttl: Duration,
    pub(super) metrics: Arc<Metrics>,
    pub(super) logger: Logger,
}

impl Carrier {
    /// Says what waits, for ever. What fails is said again, or what has become of it by then.
    pub(super) async fn run(self) {
        let [least, most] = PAUSES;
        let mut pause = least;
        loop {
            self.metrics.tcp_waiting.set(self.routes.len() as u64);
            let taken = self.routes.take();
            if taken.is_empty() {
                self.routes.added.notified().await;
                continue;
            }
            match self.send_changes(&taken).await {
                Ok(()) => pause = least,
                // One that it will not take must not hold the others up.
                Err(RoutingApiError::Refused(_)) if taken.len() > 1 => self.one_by_one(taken).await,
                // It comes again in the next round, as long as it is there.
                Err(RoutingApiError::Refused(_)) => {}
                Err(RoutingApiError::Failed(_)) => {
                    self.routes.put_back(taken);
                    sleep(pause).await;
                    pause = (pause * 2).min(most);
                }
            }
        }
    }

    async fn one_by_one(&self, taken: Vec<(Key, RowChange)>) {
        for one in taken {
            let one = vec![one];
            if let Err(RoutingApiError::Failed(_)) = self.send_changes(&one).await {
                self.routes.put_back(one);
            }
        }
    }

    async fn send_changes(&self, taken: &[(Key, RowChange)]) -> Result<(), RoutingApiError> {
        let (mut upserts, mut deletes) = (Vec::new(), Vec::new());
        for (_, said) in taken {
            match said {
                RowChange::Upsert(mapping) => upserts.push(mapping.clone()),
                RowChange::Delete(mapping) => deletes.push(mapping.clone()),
            }
        }
        let (what, call) = match upserts.is_empty() {
            false => ("unable-to-upsert", self.api.upsert(upserts, self.ttl)),
            true => ("unable-to-delete", self.api.delete(deletes)),
        };
        self.metrics.tcp_calls.add(1);
        let called = call.await;
        if let Err(cause) = &called {
            self.metrics.failed_tcp_calls.add(1);
            let fields = Fields::new().and("routes", taken.len());
            self.logger.error(what, cause, fields);
        }
        called
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(port: u16) -> Registration {
        Registration::Tcp(TcpMapping {
            router_group_guid: "g".into(),
            external_port: port,
            backend_ip: "10.0.0.1".into(),
            backend_port: 61_000,
            backend_tls_port: -1,
            ..TcpMapping::default()
        })
    }

    fn taken(routes: &TcpRoutes) -> Vec<(bool, u16)> {
        let of = |said: RowChange| match said {
            RowChange::Upsert(mapping) => (true, mapping.external_port),
            RowChange::Delete(mapping) => (false, mapping.external_port),
        };
        routes
            .take()
            .into_iter()
            .map(|(_, said)| of(said))
            .collect()
    }

    #[test]
    fn the_last_word_counts_and_a_call_has_one_kind() {
        let routes = TcpRoutes::default();
        routes.register(&route(1));
        routes.register(&route(2));
        routes.unregister(&route(1));
        routes.register(&route(3));
        assert_eq!(taken(&routes), [(false, 1)]);
        assert_eq!(taken(&routes), [(true, 2), (true, 3)]);
        assert!(taken(&routes).is_empty());
    }

    #[test]
    fn what_failed_waits_unless_there_is_something_newer() {
        let routes = TcpRoutes::default();
        routes.register(&route(1));
        routes.register(&route(2));
        let failed = routes.take();
        routes.unregister(&route(1));
        routes.put_back(failed);
        assert_eq!(taken(&routes), [(false, 1)]);
        assert_eq!(taken(&routes), [(true, 2)]);
    }

    #[test]
    fn a_call_has_a_bound() {
        let routes = TcpRoutes::default();
        for port in 1..=1200 {
            routes.register(&route(port));
        }
        let calls: Vec<_> = (0..4).map(|_| routes.take().len()).collect();
        assert_eq!(calls, [500, 500, 200, 0]);
    }
}
