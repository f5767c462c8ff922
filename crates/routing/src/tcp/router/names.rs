//! Finds the addresses of backends that are known by name.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use telemetry::{Fields, Logger};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::tcp::table::Backend;

/// Longest wait for one name.
const LONGEST: Duration = Duration::from_secs(5);

/// Addresses that are kept of a name.
const MOST_ADDRESSES: usize = 64;

/// Looks names up, one after the other, on a task of its own: a slow answer holds up no
/// other change. Ends when it is dropped.
pub(super) struct Names {
    wanted: watch::Sender<Vec<Arc<Backend>>>,
    logger: Logger,
    started: bool,
}

impl Names {
    pub(super) fn new(logger: Logger) -> Self {
        Self {
            wanted: watch::Sender::new(Vec::new()),
            logger,
            started: false,
        }
    }

    /// Looks for these, and forgets those that it has not looked for yet.
    pub(super) fn find(&mut self, backends: Vec<Arc<Backend>>) {
        if backends.is_empty() {
            return;
        }
        self.wanted.send_replace(backends);
        if !self.started {
            self.started = true;
            tokio::spawn(net::boxed(look_up(
                self.wanted.subscribe(),
                self.logger.clone(),
            )));
        }
    }
}

async fn look_up(mut wanted: watch::Receiver<Vec<Arc<Backend>>>, logger: Logger) {
    wanted.mark_changed();
    while wanted.changed().await.is_ok() {
        let backends = wanted.borrow_and_update().clone();
        let mut found = HashMap::new();
        for backend in &backends {
            let Some(host) = backend.host() else { continue };
            if !found.contains_key(host) {
                let addresses = addresses_of(host, &logger).await;
                found.insert(host.to_owned(), addresses);
            }
            if let Some(Some(addresses)) = found.get(host) {
                backend.found_at(addresses);
            }
            if wanted.has_changed().unwrap_or(true) {
                break;
            }
        }
    }
}

/// The addresses of a name. One that is not found keeps what was known of it before.
async fn addresses_of(host: &str, logger: &Logger) -> Option<Arc<[IpAddr]>> {
    let cause = match timeout(LONGEST, tokio::net::lookup_host((host, 0))).await {
        Ok(Ok(found)) => {
            let found = found.map(|address| address.ip()).take(MOST_ADDRESSES);
            let addresses: Arc<[IpAddr]> = found.collect();
            if !addresses.is_empty() {
                return Some(addresses);
            }
            "it has no address".to_owned()
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", LONGEST.as_secs()),
    };
    logger.error("look-up", &cause, Fields::new().and("host", host));
    None
}
