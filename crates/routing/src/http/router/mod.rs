//! A whole HTTP router: data path, feeds, status and metrics.

mod settings;

pub use settings::{
    DrainSettings, NatsSettings, PeerTls, RouterSettings, RoutingApiSettings, StatusSettings,
    TokenSettings,
};
