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
    macro_rules! keep {
        ($($key:ident)*) => {
            $(if old.$key != merged.$key {
                merged.$key.clone_from(&old.$key);
                kept.push(stringify!($key));
            })*
        };
    }
    // Sockets, threads and their bounds were made at the start; lines that have begun have the
    // fields of their log.
    keep! {
        listen listen_tls threads http2 proxy_protocol client_connections access_log active_apps
        envelopes
    }
    // Connections know their domain by its place.
    let names = |settings: &HttpSettings| {
        let names = settings.domains.iter().map(|domain| domain.name.clone());
        names.collect::<Vec<_>>()
    };
    if names(old) != names(new) {
        merged.domains.clone_from(&old.domains);
        kept.push("domain");
    }
    (merged, kept)
}
