//! The table as the facts describe it, slow and plain.

use std::collections::BTreeMap;

use super::*;

/// What the model knows of an endpoint.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Known {
    pub(super) identity: &'static str,
    pub(super) tls: bool,
    pub(super) app: &'static str,
    pub(super) modification: (&'static str, u32),
    pub(super) stale_after: Nanos,
}

/// A route of the model.
#[derive(Debug, Clone, Default)]
pub(super) struct Route {
    pub(super) url: &'static str,
    pub(super) endpoints: Vec<(Known, Nanos)>,
    emptied: Nanos,
}

/// All routes by their key.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) routes: BTreeMap<String, Route>,
    pub(super) empty_pool_stays: Nanos,
}

fn newer(known: (&str, u32), than: (&str, u32)) -> bool {
    known.0.is_empty() || than.0.is_empty() || known.0 != than.0 || known.1 < than.1
}

impl Model {
    pub(super) fn register(
        &mut self,
        uri: &str,
        endpoint: Known,
        url: &'static str,
        now: Nanos,
    ) -> Registered {
        let new = !self.routes.contains_key(&normal(uri));
        let route = self.routes.entry(normal(uri)).or_default();
        let known = route
            .endpoints
            .iter_mut()
            .find(|known| known.0.identity == endpoint.identity);
        let registered = match known {
            None => {
                route.endpoints.push((endpoint, now));
                Registered::Added { route: new }
            }
            Some(known) if known.0 == endpoint => {
                known.1 = now;
                if route.url == url {
                    Registered::Refreshed
                } else {
                    Registered::Updated
                }
            }
            Some(known) if newer(known.0.modification, endpoint.modification) => {
                *known = (endpoint, now);
                Registered::Updated
            }
            Some(_) => return Registered::Ignored,
        };
        route.url = url;
        registered
    }

    pub(super) fn unregister(
        &mut self,
        uri: &str,
        identity: &str,
        modification: (&str, u32),
        now: Nanos,
    ) -> Unregistered {
        let Some(route) = self.routes.get_mut(&normal(uri)) else {
            return Unregistered::Ignored;
        };
        let at = route.endpoints.iter().position(|known| {
            let tag = known.0.modification;
            known.0.identity == identity && (tag == modification || newer(tag, modification))
        });
        let Some(at) = at else {
            return Unregistered::Ignored;
        };
        route.endpoints.remove(at);
        route.emptied = now;
        let gone = route.endpoints.is_empty() && self.empty_pool_stays == 0;
        if gone {
            self.routes.remove(&normal(uri));
        }
        Unregistered::Removed { route: gone }
    }

    pub(super) fn prune(&mut self, now: Nanos) -> Pruned {
        let mut pruned = Pruned::default();
        let stays = self.empty_pool_stays;
        self.routes.retain(|_, route| {
            let before = route.endpoints.len();
            route
                .endpoints
                .retain(|(known, refreshed)| known.tls || now - refreshed <= known.stale_after);
            let removed = before - route.endpoints.len();
            pruned.endpoints += removed;
            if removed > 0 {
                route.emptied = now;
            }
            let keep = !route.endpoints.is_empty() || now - route.emptied < stays;
            pruned.routes += usize::from(!keep);
            keep
        });
        pruned
    }

    /// As [`found`](super::found) writes it.
    pub(super) fn found(&self, host: &str, path: &str) -> String {
        let host = host.split(':').next().unwrap();
        if host.is_empty() {
            return "-".to_owned();
        }
        let labels: Vec<&str> = host.split('.').collect();
        for replaced in 0..labels.len() {
            let host = match replaced {
                0 => host.to_owned(),
                _ => format!("*.{}", labels[replaced..].join(".")),
            };
            let segments: Vec<_> = normal(&format!("{host}{path}"))
                .split('/')
                .map(str::to_owned)
                .collect();
            let prefixes = || {
                (1..=segments.len())
                    .rev()
                    .map(|end| segments[..end].join("/"))
            };
            let there = |key: &String| self.routes.contains_key(key);
            let full = |key: &String| there(key) && !self.routes[key].endpoints.is_empty();
            if let Some(key) = prefixes().find(full) {
                return key;
            }
            if let Some(key) = prefixes().find(there) {
                return format!("({key})");
            }
        }
        "-".to_owned()
    }
}

/// A uri as a key.
fn normal(uri: &str) -> String {
    let uri = uri.split('?').next().unwrap().trim_end_matches('/');
    uri.to_ascii_lowercase()
}
