//! Tells subscribers what changed.

use std::sync::Arc;

use net::events::{Subscription, Topic};
use serde::Serialize;

use super::state::Change;

/// What a subscriber listens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// TCP mappings.
    Tcp,
    /// HTTP routes.
    Http,
}

/// The subscribers of every stream.
pub(crate) struct Hub {
    topics: [Arc<Topic<String>>; 2],
}

impl Hub {
    /// A hub that closes a subscriber for whom this many events wait when more arrive.
    pub(crate) fn new(queue_events: usize) -> Self {
        Self {
            topics: std::array::from_fn(|_| Arc::new(Topic::new(queue_events))),
        }
    }

    /// Subscribers of a stream.
    pub(crate) fn subscribers(&self, stream: Stream) -> usize {
        self.topics[stream as usize].subscribers()
    }

    /// Subscribes to what happens from now on.
    pub(crate) fn subscribe(&self, stream: Stream) -> Subscription<String> {
        self.topics[stream as usize].subscribe(())
    }

    /// Tells everybody. Returns how many subscribers were too slow and closed.
    pub(crate) fn publish(&self, changes: &[Change]) -> usize {
        let tcp = |change: &Change| match change {
            Change::Tcp(written, row) => Some(encode(*written, &row.value)),
            Change::Http(..) => None,
        };
        let http = |change: &Change| match change {
            Change::Http(written, row) => Some(encode(*written, &row.value)),
            Change::Tcp(..) => None,
        };
        self.publish_to(Stream::Tcp, || changes.iter().filter_map(tcp).collect())
            + self.publish_to(Stream::Http, || changes.iter().filter_map(http).collect())
    }

    /// Ends every stream of those who listen now; they may come back.
    pub(crate) fn cut_off(&self) {
        self.topics.iter().for_each(|topic| topic.cut_off());
    }

    /// Ends every stream, also those that are still to come.
    pub(crate) fn close(&self) {
        self.topics.iter().for_each(|topic| topic.close());
    }

    fn publish_to(&self, stream: Stream, events: impl FnOnce() -> Vec<String>) -> usize {
        let topic = &self.topics[stream as usize];
        // Most of the cost is the encoding, which nobody may be there to read.
        if topic.subscribers() == 0 {
            return 0;
        }
        let events: Arc<[String]> = events().into();
        if events.is_empty() {
            return 0;
        }
        topic.publish(&events, |()| true).too_slow
    }
}

/// An event as it is sent, without its number.
fn encode(written: bool, value: &impl Serialize) -> String {
    let name = if written { "Upsert" } else { "Delete" };
    let mut text = format!("event: {name}\ndata: ");
    // Plain data always has a JSON form.
    text.push_str(&serde_json::to_string(value).unwrap_or_default());
    text.push_str("\n\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TcpMapping;
    use crate::state::Row;

    fn change(port: u16) -> Change {
        let value = TcpMapping {
            port,
            ..TcpMapping::default()
        };
        let (id, expires) = (1, 0);
        Change::Tcp(true, Arc::new(Row { id, expires, value }))
    }

    #[tokio::test]
    async fn a_change_is_told_on_the_stream_of_its_kind() {
        let hub = Hub::new(8);
        let mut tcp = hub.subscribe(Stream::Tcp);
        let mut http = hub.subscribe(Stream::Http);
        hub.publish(&[change(1), change(2)]);
        let text = tcp.next().await.unwrap();
        let text = std::str::from_utf8(&text).unwrap();
        assert!(text.starts_with("id: 0\nevent: Upsert\ndata: {\"router_group_guid\":\"\","));
        assert!(text.contains("\n\nid: 1\nevent: Upsert\n"));
        assert!(text.ends_with("}\n\n"));
        hub.close();
        assert_eq!(http.next().await, None);
    }

    #[test]
    fn slow_subscribers_are_counted() {
        let hub = Hub::new(2);
        let _slow = hub.subscribe(Stream::Tcp);
        for port in 1..=3 {
            assert_eq!(hub.publish(&[change(port)]), usize::from(port == 3));
        }
        assert_eq!(hub.subscribers(Stream::Tcp), 1);
    }
}
