//! An external port, as all threads see it.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::tcp::counters::PortCounters;
use crate::tcp::table::PortRoutes;

/// An external port.
#[derive(Debug)]
pub struct Port {
    number: u16,
    routes: ArcSwap<PortRoutes>,
    /// What happened on it.
    pub counters: PortCounters,
}

impl Port {
    /// A port with its first routes.
    pub fn new(number: u16, routes: PortRoutes) -> Arc<Self> {
        Arc::new(Self {
            number,
            routes: ArcSwap::from_pointee(routes),
            counters: PortCounters::default(),
        })
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// The routes for connections that begin now.
    pub fn routes(&self) -> Arc<PortRoutes> {
        self.routes.load_full()
    }

    /// Sets the routes for connections that begin from now on.
    pub fn set_routes(&self, routes: PortRoutes) {
        self.routes.store(Arc::new(routes));
    }
}
