//! What a router says about itself: `router.start`, and the answer to `router.greet`.

use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;

/// What a router says about itself, so that components know how often to register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// `<index>-<uuid>`.
    pub id: String,
    /// The router's address.
    pub address: IpAddr,
    /// Components register no more often than this. Whole seconds are sent.
    pub minimum_interval: Duration,
    /// What is not registered for so long is pruned. Whole seconds are sent.
    pub threshold: Duration,
}

/// The keys in the order in which gorouter a602bb6 sends them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    id: &'a str,
    hosts: [String; 1],
    minimum_register_interval_in_seconds: u64,
    prune_threshold_in_seconds: u64,
}

impl Announcement {
    /// The JSON text that is sent.
    pub fn json(&self) -> Vec<u8> {
        let wire = Wire {
            id: &self.id,
            hosts: [self.address.to_string()],
            // A gorouter would say 0, at which Diego's route-emitter panics.
            minimum_register_interval_in_seconds: self.minimum_interval.as_secs().max(1),
            prune_threshold_in_seconds: self.threshold.as_secs(),
        };
        // Texts and numbers are always JSON.
        serde_json::to_vec(&wire).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_gorouter_sends() {
        let announcement = Announcement {
            id: "3-e3822c49".into(),
            address: "192.0.2.2".parse().unwrap(),
            minimum_interval: Duration::from_millis(1900),
            threshold: Duration::from_secs(6),
        };
        assert_eq!(
            String::from_utf8(announcement.json()).unwrap(),
            r#"{"id":"3-e3822c49","hosts":["192.0.2.2"],"minimumRegisterIntervalInSeconds":1,"pruneThresholdInSeconds":6}"#
        );
    }
}
