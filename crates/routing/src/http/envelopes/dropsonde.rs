//! Envelopes of loggregator's first protocol, as gorouter sends them: one in a datagram
//! (`dropsonde-protocol`, `events/*.proto`). What is required there is always written.

use prost::Message;
use std::collections::BTreeMap;

/// `Envelope.EventType.HttpStartStop`
pub(super) const HTTP_START_STOP: i32 = 4;
/// `Envelope.EventType.LogMessage`
pub(super) const LOG_MESSAGE: i32 = 5;
/// `PeerType.Client`: the router as the client of a backend.
pub(super) const CLIENT: i32 = 1;
/// `PeerType.Server`: the router as the server of a client.
pub(super) const SERVER: i32 = 2;
/// `LogMessage.MessageType.OUT`
pub(super) const OUT: i32 = 1;

/// One event, and who tells it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Envelope {
    #[prost(string, required, tag = "1")]
    pub(crate) origin: String,
    #[prost(int32, required, tag = "2")]
    pub(crate) event_type: i32,
    /// Nanoseconds since 1970.
    #[prost(int64, optional, tag = "6")]
    pub(crate) timestamp: Option<i64>,
    #[prost(message, optional, tag = "7")]
    pub(crate) http_start_stop: Option<HttpStartStop>,
    #[prost(message, optional, tag = "8")]
    pub(crate) log_message: Option<LogMessage>,
    #[prost(btree_map = "string, string", tag = "17")]
    pub(crate) tags: BTreeMap<String, String>,
}

/// A request from its start to its end.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct HttpStartStop {
    #[prost(int64, required, tag = "1")]
    pub(crate) start_timestamp: i64,
    #[prost(int64, required, tag = "2")]
    pub(crate) stop_timestamp: i64,
    #[prost(message, required, tag = "3")]
    pub(crate) request_id: Uuid,
    #[prost(int32, required, tag = "4")]
    pub(crate) peer_type: i32,
    #[prost(int32, required, tag = "5")]
    pub(crate) method: i32,
    #[prost(string, required, tag = "6")]
    pub(crate) uri: String,
    #[prost(string, required, tag = "7")]
    pub(crate) remote_address: String,
    #[prost(string, required, tag = "8")]
    pub(crate) user_agent: String,
    #[prost(int32, required, tag = "9")]
    pub(crate) status_code: i32,
    #[prost(int64, required, tag = "10")]
    pub(crate) content_length: i64,
    #[prost(message, optional, tag = "12")]
    pub(crate) application_id: Option<Uuid>,
    #[prost(int32, optional, tag = "13")]
    pub(crate) instance_index: Option<i32>,
    #[prost(string, optional, tag = "14")]
    pub(crate) instance_id: Option<String>,
    #[prost(string, repeated, tag = "15")]
    pub(crate) forwarded: Vec<String>,
}

/// A line of an application's log.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct LogMessage {
    #[prost(bytes = "vec", required, tag = "1")]
    pub(crate) message: Vec<u8>,
    #[prost(int32, required, tag = "2")]
    pub(crate) message_type: i32,
    /// Nanoseconds since 1970.
    #[prost(int64, required, tag = "3")]
    pub(crate) timestamp: i64,
    #[prost(string, optional, tag = "4")]
    pub(crate) app_id: Option<String>,
    #[prost(string, optional, tag = "5")]
    pub(crate) source_type: Option<String>,
    #[prost(string, optional, tag = "6")]
    pub(crate) source_instance: Option<String>,
}

/// Halves of a UUID, each read as a little-endian number.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct Uuid {
    #[prost(uint64, required, tag = "1")]
    pub(crate) low: u64,
    #[prost(uint64, required, tag = "2")]
    pub(crate) high: u64,
}

impl Uuid {
    /// `None`: the text is no UUID.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let bytes = uuid::Uuid::try_parse_ascii(text).ok()?.into_bytes();
        let (low, high) = bytes.split_first_chunk::<8>()?;
        Some(Self {
            low: u64::from_le_bytes(*low),
            high: u64::from_le_bytes(high.try_into().ok()?),
        })
    }

    pub(crate) fn text(self) -> String {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.low.to_le_bytes());
        bytes[8..].copy_from_slice(&self.high.to_le_bytes());
        uuid::Uuid::from_bytes(bytes).to_string()
    }
}

/// The names of `Method`, whose first is number 1.
const METHODS: &str = "\
    GET POST PUT DELETE HEAD ACL BASELINE_CONTROL BIND CHECKIN CHECKOUT CONNECT COPY DEBUG \
    LABEL LINK LOCK MERGE MKACTIVITY MKCALENDAR MKCOL MKREDIRECTREF MKWORKSPACE MOVE \
    OPTIONS ORDERPATCH PATCH PRI PROPFIND PROPPATCH REBIND REPORT SEARCH SHOWMETHOD \
    SPACEJUMP TEXTSEARCH TRACE TRACK UNBIND UNCHECKOUT UNLINK UNLOCK UPDATE \
    UPDATEREDIRECTREF VERSION_CONTROL";

/// The number of a method; 0 if it has none, as gorouter sends it.
pub(super) fn method_number(name: &[u8]) -> i32 {
    let mut known = METHODS.split(' ');
    let at = known.position(|known| known.as_bytes() == name);
    at.and_then(|at| i32::try_from(at + 1).ok()).unwrap_or(0)
}

/// The name of a number; the number itself if it has none.
pub(super) fn method_name(number: i32) -> String {
    let at = usize::try_from(number)
        .ok()
        .and_then(|it| it.checked_sub(1));
    let name = at.and_then(|at| METHODS.split(' ').nth(at));
    name.map_or_else(|| number.to_string(), str::to_owned)
}
