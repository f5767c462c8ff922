//! Envelopes of loggregator's second protocol, which its agents take over gRPC
//! (`loggregator-api`, `v2/envelope.proto`), and what becomes of the first one's in them.

use std::collections::BTreeMap;

use prost::Message;

use super::dropsonde::{self, HttpStartStop, method_name};

/// What goes through the stream of `loggregator.v2.Ingress/BatchSender`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct EnvelopeBatch {
    #[prost(message, repeated, tag = "1")]
    pub(crate) batch: Vec<Envelope>,
}

/// One event, and whose it is.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Envelope {
    /// Nanoseconds since 1970.
    #[prost(int64, tag = "1")]
    pub(super) timestamp: i64,
    #[prost(string, tag = "2")]
    pub(super) source_id: String,
    #[prost(string, tag = "8")]
    pub(super) instance_id: String,
    #[prost(btree_map = "string, string", tag = "9")]
    pub(super) tags: BTreeMap<String, String>,
    #[prost(oneof = "Event", tags = "4, 7")]
    pub(super) message: Option<Event>,
}

#[cfg(test)]
impl Envelope {
    /// The text of a log.
    pub(crate) fn text(&self) -> String {
        match &self.message {
            Some(Event::Log(log)) => String::from_utf8_lossy(&log.payload).into_owned(),
            _ => String::new(),
        }
    }
}

/// What happened.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Event {
    #[prost(message, tag = "4")]
    Log(Log),
    #[prost(message, tag = "7")]
    Timer(Timer),
}

/// A line of an application's log.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Log {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) payload: Vec<u8>,
    /// 0: OUT.
    #[prost(int32, tag = "2")]
    pub(super) kind: i32,
}

/// Something that took its time, in nanoseconds since 1970.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Timer {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(int64, tag = "2")]
    pub(super) start: i64,
    #[prost(int64, tag = "3")]
    pub(super) stop: i64,
}

/// The same event, as the platform's forwarder of datagrams would pass it on. Deployment, job,
/// index and address of this machine are left to the agent, which knows them.
pub(crate) fn converted(old: dropsonde::Envelope) -> Option<Envelope> {
    let mut tags = old.tags;
    let mut new = Envelope {
        timestamp: old.timestamp.unwrap_or_default(),
        source_id: tags
            .remove("source_id")
            .unwrap_or_else(|| old.origin.clone()),
        ..Envelope::default()
    };
    tags.insert("origin".to_owned(), old.origin);
    if let Some(log) = old.log_message {
        tags.insert("__v1_type".to_owned(), "LogMessage".to_owned());
        let source = log.source_type.unwrap_or_default();
        tags.insert("source_type".to_owned(), source);
        new.instance_id = log.source_instance.unwrap_or_default();
        if let Some(app) = log.app_id.filter(|app| !app.is_empty()) {
            new.source_id = app;
        }
        new.message = Some(Event::Log(Log {
            payload: log.message,
            kind: log.message_type - dropsonde::OUT,
        }));
    } else {
        let event = old.http_start_stop?;
        tags.insert("__v1_type".to_owned(), "HttpStartStop".to_owned());
        if let Some(app) = event.application_id {
            new.source_id = app.text();
        }
        new.instance_id = event.instance_index.unwrap_or_default().to_string();
        new.message = Some(Event::Timer(Timer {
            name: "http".to_owned(),
            start: event.start_timestamp,
            stop: event.stop_timestamp,
        }));
        tags.extend(tags_of(event));
    }
    new.tags = tags;
    Some(new)
}

/// What a timer has no fields for.
fn tags_of(event: HttpStartStop) -> impl Iterator<Item = (String, String)> {
    let peer = match event.peer_type {
        dropsonde::CLIENT => "Client",
        _ => "Server",
    };
    [
        ("request_id", event.request_id.text()),
        ("peer_type", peer.to_owned()),
        ("method", method_name(event.method)),
        ("uri", event.uri),
        ("remote_address", event.remote_address),
        ("user_agent", event.user_agent),
        ("status_code", event.status_code.to_string()),
        ("content_length", event.content_length.to_string()),
        ("routing_instance_id", event.instance_id.unwrap_or_default()),
        ("forwarded", event.forwarded.join("\n")),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
}
