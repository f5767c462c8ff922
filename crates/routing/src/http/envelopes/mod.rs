//! Requests as loggregator's envelopes: the access log's line of an application, which is what
//! its people read as its router's log, and `HttpStartStop`, of the router as a server and as
//! a client.
//!
//! They are made where the request ends, in the first protocol's form and one behind another,
//! each behind its length; who sends them gives them that of the second where it is asked for.

pub(crate) mod dropsonde;
pub(crate) mod loggregator;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use prost::Message as _;
use wire::http1::RequestHead;

use self::dropsonde::{Envelope, HttpStartStop, LogMessage, Uuid, method_number};
use super::pipeline::{Client, Exchange, Times, unescaped};
use super::settings::EnvelopeSettings;
use crate::table::Endpoint;

/// Who tells it all: gorouter's name, by which dashboards know it.
const ORIGIN: &str = "gorouter";
/// The source of an access log's lines within an application's log.
const SOURCE_TYPE: &str = "RTR";

/// A request that has ended.
pub(crate) struct Ended<'a> {
    pub(crate) head: &'a RequestHead,
    pub(crate) client: &'a Client,
    pub(crate) exchange: &'a Exchange,
    pub(crate) now: Times,
    /// Its line in the access log, without its end.
    pub(crate) line: &'a [u8],
}

impl Ended<'_> {
    /// Appends what is to be told of it; gives the number of envelopes.
    pub(crate) fn write(&self, settings: &EnvelopeSettings, out: &mut Vec<u8>) -> u64 {
        let log = settings.logs.then(|| self.log(settings)).flatten();
        let server = settings.server_events.then(|| self.server());
        let client = settings.client_events.then(|| self.backend()).flatten();
        let mut count = 0;
        for envelope in [client, log, server.flatten()].into_iter().flatten() {
            // A Vec grows as it must.
            if envelope.encode_length_delimited(out).is_ok() {
                count += 1;
            }
        }
        count
    }

    fn endpoint(&self) -> Option<&Endpoint> {
        self.exchange.progress.endpoint.as_deref()
    }

    /// Its line, if it was an application's request.
    fn log(&self, settings: &EnvelopeSettings) -> Option<Envelope> {
        let endpoint = self.endpoint()?;
        if endpoint.app.is_empty() {
            return None;
        }
        let log = LogMessage {
            message: self.line.to_vec(),
            message_type: dropsonde::OUT,
            timestamp: nanos(self.now.wall),
            app_id: Some(endpoint.app.to_string()),
            source_type: Some(SOURCE_TYPE.to_owned()),
            source_instance: Some(settings.instance.clone()),
        };
        Some(Envelope {
            log_message: Some(log),
            ..self.envelope(dropsonde::LOG_MESSAGE, tags(endpoint))
        })
    }

    /// The router as the server of the client.
    fn server(&self) -> Option<Envelope> {
        let exchange = self.exchange;
        let mut tags = self.endpoint().map(tags).unwrap_or_default();
        if let Some((trace, span)) = exchange.trace() {
            tags.insert("trace_id".to_owned(), trace);
            tags.insert("span_id".to_owned(), span);
        }
        let event = HttpStartStop {
            status_code: i32::from(exchange.status),
            content_length: i64::try_from(exchange.progress.answer_body).unwrap_or(i64::MAX),
            forwarded: forwarded(exchange.request.part(exchange.seen.client_for)),
            ..self.event(dropsonde::SERVER, exchange.start.mono, self.now.mono)?
        };
        Some(Envelope {
            http_start_stop: Some(event),
            ..self.envelope(dropsonde::HTTP_START_STOP, tags)
        })
    }

    /// The router as the client of the backend that was tried last.
    fn backend(&self) -> Option<Envelope> {
        let (exchange, progress) = (self.exchange, &self.exchange.progress);
        if progress.attempt_started == 0 {
            return None;
        }
        let endpoint = self.endpoint();
        let text = |text: Option<&str>| text.filter(|it| !it.is_empty()).map(str::to_owned);
        let event = HttpStartStop {
            status_code: i32::from(progress.backend_status),
            content_length: match progress.backend_status {
                0 => 0,
                _ => progress
                    .backend_length
                    .map_or(-1, |it| i64::try_from(it).unwrap_or(i64::MAX)),
            },
            application_id: endpoint.and_then(|it| Uuid::parse(it.app.as_bytes())),
            instance_index: endpoint.and_then(|it| it.instance_index.parse().ok()),
            instance_id: text(endpoint.map(|it| &*it.instance_id)),
            forwarded: forwarded(exchange.request.part(exchange.seen.sent_for)),
            ..self.event(
                dropsonde::CLIENT,
                progress.attempt_started,
                progress.attempt_finished,
            )?
        };
        Some(Envelope {
            http_start_stop: Some(event),
            ..self.envelope(dropsonde::HTTP_START_STOP, BTreeMap::new())
        })
    }

    fn envelope(&self, event_type: i32, tags: BTreeMap<String, String>) -> Envelope {
        Envelope {
            origin: ORIGIN.to_owned(),
            event_type,
            timestamp: Some(nanos(self.now.wall)),
            tags,
            ..Envelope::default()
        }
    }

    /// What both sides say, from one moment to another. `None`: the request has no id, for it
    /// was no request.
    fn event(&self, peer_type: i32, start: u64, stop: u64) -> Option<HttpStartStop> {
        let exchange = self.exchange;
        let agent = exchange.request.part(exchange.seen.user_agent);
        // The clock for people may be set back meanwhile, and the other one has no date.
        let wall = |mono: u64| exchange.start.wall + mono.saturating_sub(exchange.start.mono);
        Some(HttpStartStop {
            start_timestamp: nanos(wall(start)),
            stop_timestamp: nanos(wall(stop.max(start))),
            request_id: Uuid::parse(exchange.request_id())?,
            peer_type,
            method: method_number(self.head.method()),
            uri: self.uri(),
            remote_address: self.client.peer_text().to_owned(),
            user_agent: String::from_utf8_lossy(agent).into_owned(),
            ..HttpStartStop::default()
        })
    }

    /// `https://host/path`, as the client asked for it: no query, and no escapes.
    fn uri(&self) -> String {
        let scheme = if self.client.tls().is_some() {
            "https"
        } else {
            "http"
        };
        let path = &self.exchange.target.path;
        let path = self
            .head
            .target()
            .get(path.start as usize..path.end as usize);
        let host = String::from_utf8_lossy(&self.exchange.host);
        let path = unescaped(path.unwrap_or_default());
        format!("{scheme}://{host}{}", String::from_utf8_lossy(&path))
    }
}

fn nanos(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

/// What came with the registration.
fn tags(endpoint: &Endpoint) -> BTreeMap<String, String> {
    let tags = endpoint.tags.iter().flat_map(|tags| tags.iter());
    tags.map(|(name, value)| (name.to_string(), value.to_string()))
        .collect()
}

/// The addresses in a value of `X-Forwarded-For`.
fn forwarded(value: &[u8]) -> Vec<String> {
    if value.is_empty() {
        return Vec::new();
    }
    let addresses = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    addresses
        .map(|address| String::from_utf8_lossy(address).into_owned())
        .collect()
}
