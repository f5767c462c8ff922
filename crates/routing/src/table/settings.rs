//! How a table behaves, and what its calls answer.

use std::sync::Arc;
use std::time::Duration;

use super::Pool;

/// How a table behaves.
#[derive(Debug, Clone, PartialEq)]
pub struct TableSettings {
    /// An endpoint without TLS that nobody refreshed for so long is pruned, and the longest
    /// time that a registration may ask for. `droplet_stale_threshold`, 120 s.
    pub stale_after: Duration,
    /// A pool that lost its last endpoint answers 503 for so long before its route is gone.
    /// `empty_pool_timeout`, 0.
    pub empty_pool_stays: Duration,
    /// Which isolation segments are taken.
    pub segments: Segments,
    /// Routes, above which further ones are refused. At about 500 bytes each, the default
    /// of 4,000,000 is 2 GB.
    pub most_routes: usize,
    /// Endpoints of one route, above which further ones are refused: each change of a route
    /// copies the list of its endpoints.
    pub most_endpoints: usize,
    /// Endpoints of all routes together, above which further ones are refused. At 150 to
    /// 550 bytes each, the default of 8,000,000 is 1.2 to 4.4 GB.
    pub most_endpoints_in_all: usize,
}

impl Default for TableSettings {
    fn default() -> Self {
        Self {
            stale_after: Duration::from_secs(120),
            empty_pool_stays: Duration::ZERO,
            segments: Segments::All,
            most_routes: 4_000_000,
            most_endpoints: 4096,
            most_endpoints_in_all: 8_000_000,
        }
    }
}

/// Which isolation segments a router serves (`routing_table_sharding_mode`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segments {
    /// Every endpoint (`all`).
    All,
    /// Endpoints of these segments (`segments`).
    Only(Vec<String>),
    /// Those, and endpoints without a segment (`shared-and-segments`).
    SharedAnd(Vec<String>),
}

/// What became of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registered {
    /// The endpoint is new in its pool; `route` when the pool is new too.
    Added {
        /// Whether nobody had registered this route before.
        route: bool,
    },
    /// The endpoint was there and differs now.
    Updated,
    /// The endpoint was there, alike: only its age began anew.
    Refreshed,
    /// Its isolation segment is not served here, or it is older than what is known.
    Ignored,
    /// The table holds as much as it may.
    Refused(Bound),
}

/// What there is as much of as there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Bound {
    /// [`TableSettings::most_routes`].
    #[error("there are {0} routes: no more are taken (routes.most)")]
    Routes(usize),
    /// [`TableSettings::most_endpoints`].
    #[error("the route has {0} endpoints: no more are taken (routes.most_endpoints)")]
    EndpointsOfRoute(usize),
    /// [`TableSettings::most_endpoints_in_all`].
    #[error("there are {0} endpoints: no more are taken (routes.most_endpoints_in_all)")]
    Endpoints(usize),
}

/// What became of an unregistration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unregistered {
    /// The endpoint is gone; `route` when its pool is gone with it.
    Removed {
        /// Whether it was the route's last endpoint, and the route is gone.
        route: bool,
    },
    /// There is no such endpoint, or it is newer.
    Ignored,
}

/// What a lookup found.
#[derive(Debug, Clone)]
pub enum Lookup {
    /// A pool with endpoints.
    Found(Arc<Pool>),
    /// Pools match, and all of them are empty: the longest.
    Empty(Arc<Pool>),
    /// No route.
    Nothing,
}

/// What a walk for stale endpoints removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Routes that are gone.
    pub routes: usize,
    /// Endpoints that are gone, each counted for every route that had it.
    pub endpoints: usize,
}

impl Segments {
    /// Whether endpoints of `segment` are taken; an empty one is the shared segment.
    pub fn serve(&self, segment: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(served) => served.iter().any(|served| served == segment),
            Self::SharedAnd(served) => {
                segment.is_empty() || served.iter().any(|served| served == segment)
            }
        }
    }
}
