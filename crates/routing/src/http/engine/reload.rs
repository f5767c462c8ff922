//! Settings that change while the engine runs. Connections go on: each thread takes the new
//! settings with its next turn, and what they say of handshakes counts for the next ones.

use std::sync::Arc;

use super::context::Shared;
use super::{Engine, StartError, prepare_tls};
use crate::http::pipeline::Pipeline;
use crate::http::settings::HttpSettings;
use crate::selection::SelectionSettings;

impl Shared {
    /// The same with other settings.
    fn with(&self, settings: HttpSettings) -> Result<Self, StartError> {
        let tls = prepare_tls(&settings)?;
        let settings = Arc::new(settings);
        Ok(Self {
            pipeline: Pipeline::new(Arc::clone(&settings)),
            selection: selection(&settings),
            settings,
            tls,
            resolver: Arc::clone(&self.resolver),
            table: Arc::clone(&self.table),
            healthy: Arc::clone(&self.healthy),
        })
    }
}

pub(super) fn selection(settings: &HttpSettings) -> SelectionSettings {
    SelectionSettings {
        algorithm: settings.algorithm,
        in_flight: settings.backends.in_flight,
        zone: settings.zone.as_str().into(),
        prefer_zone: settings.prefer_zone,
    }
}

impl Engine {
    /// Takes other settings: certificates, authorities, timeouts and all that is asked for
    /// with each request. Gives the names of those that differ and count only after a
    /// restart; of these the old ones stay.
    ///
    /// # Errors
    /// When a certificate or key is of no use. Then nothing has changed.
    pub fn reload(&self, settings: &HttpSettings) -> Result<Vec<&'static str>, StartError> {
        let old = self.shared.load_full();
        let (settings, kept) = merged(&old.settings, settings);
        self.shared.store(Arc::new(old.with(settings)?));
        self.threads.wake();
        Ok(kept)
    }
}

/// What can change of `new`, and of `old` what cannot; and the names of the latter that differ.
fn merged(old: &HttpSettings, new: &HttpSettings) -> (HttpSettings, Vec<&'static str>) {
    let mut merged = new.clone();
    let mut kept = Vec::new();
    // Sockets, threads and their bounds were made at the start.
    keep("listen", &old.listen, &mut merged.listen, &mut kept);
    let key = "listen_tls";
    keep(key, &old.listen_tls, &mut merged.listen_tls, &mut kept);
    keep("threads", &old.threads, &mut merged.threads, &mut kept);
    keep("http2", &old.http2, &mut merged.http2, &mut kept);
    let key = "proxy_protocol";
    let value = &mut merged.proxy_protocol;
    keep(key, &old.proxy_protocol, value, &mut kept);
    let key = "client_connections";
    let value = &mut merged.client_connections;
    keep(key, &old.client_connections, value, &mut kept);
    // Lines that have begun have the fields of their log.
    let key = "access_log";
    keep(key, &old.access_log, &mut merged.access_log, &mut kept);
    let key = "active_apps";
    keep(key, &old.active_apps, &mut merged.active_apps, &mut kept);
    let key = "envelopes";
    keep(key, &old.envelopes, &mut merged.envelopes, &mut kept);
    // Connections know their domain by its place.
    let names = |settings: &HttpSettings| {
        let names = settings.domains.iter().map(|domain| domain.name.clone());
        names.collect::<Vec<_>>()
    };
    if names(old) != names(new) {
        keep("domain", &old.domains, &mut merged.domains, &mut kept);
    }
    (merged, kept)
}

fn keep<T: Clone + PartialEq>(
    key: &'static str,
    old: &T,
    new: &mut T,
    kept: &mut Vec<&'static str>,
) {
    if old != new {
        new.clone_from(old);
        kept.push(key);
    }
}
