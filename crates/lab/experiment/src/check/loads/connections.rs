//! How many connections a load holds, and how long it waits on them.

use std::time::Duration;

use document::Problem;

use super::super::fields::Fields;
use super::super::values::Reader;
use crate::plan::LoadModel;
use lab_load::{Connections, Protocol};

/// Connections that a load holds when a file does not say.
const HELD: u64 = 16;
/// Connections that a probe holds when a file does not say.
const HELD_BY_PROBE: u64 = 1;
/// Connections up to which an open loop grows when a file does not say; more, when it
/// holds more.
const MOST: u64 = 1_000;
/// Most connections of any load.
const LIMIT: u64 = 1_000_000;
/// Most exchanges at a time on one connection.
const MOST_STREAMS: u64 = 1_000;
/// Wait for an answer when a file does not say.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Wait for a connection when a file does not say.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Shortest wait for an answer or a connection.
const SHORTEST: Duration = Duration::from_millis(1);
/// Longest wait for an answer or a connection.
const LONGEST: Duration = Duration::from_secs(3600);

pub(super) fn read(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    model: Option<&LoadModel>,
    protocol: Option<Protocol>,
) -> Option<Connections> {
    let connect_within = fields.value_or("connect_within", CONNECT_WITHIN, |field| {
        reader.duration(field, SHORTEST..=LONGEST)
    });
    let requests_each = fields.optional("requests_each", |field| {
        reader.count(field, 1..=u64::from(u32::MAX))
    });
    let streams = at_a_time(reader, fields, protocol);
    let (held, most) = match model {
        Some(LoadModel::Closed { users, .. }) => {
            let number = ["connections", "max_connections"];
            if let Some(field) = number.iter().find_map(|key| fields.get(key)) {
                let message = "in a closed loop each user has a connection of its own";
                return reader.refuse(Problem::new(field.span(), message).help("set \"users\""));
            }
            (u64::from(*users), u64::from(*users))
        }
        _ => open(reader, fields, fields.label == "[[probe]]")?,
    };
    Some(Connections {
        held: u32::try_from(held).ok()?,
        most: u32::try_from(most).ok()?,
        requests_each: requests_each?,
        streams: u32::try_from(streams?).ok()?,
        connect_within: connect_within?,
    })
}

/// Exchanges at a time on one connection: the streams of HTTP/2, the pipeline of Redis.
fn at_a_time(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    protocol: Option<Protocol>,
) -> Option<u64> {
    let keys = [
        (
            "streams",
            matches!(protocol, None | Some(Protocol::Http2 | Protocol::Grpc)),
            "only http2 and grpc carry several requests on one connection",
        ),
        (
            "pipeline",
            matches!(protocol, None | Some(Protocol::Redis)),
            "only redis has pipelines",
        ),
    ];
    let mut found = Some(1);
    for (key, has, message) in keys {
        let Some(field) = fields.get(key) else {
            continue;
        };
        found = match has {
            true => reader.count(field, 1..=MOST_STREAMS),
            false => {
                let problem = Problem::new(field.span(), message);
                reader.refuse(match protocol {
                    Some(Protocol::Redis) => problem.suggest("pipeline"),
                    Some(Protocol::Http2 | Protocol::Grpc) => problem.suggest("streams"),
                    _ => problem,
                })
            }
        };
    }
    found
}

/// Connections that an open loop holds, and up to which it grows.
fn open(reader: &mut Reader<'_>, fields: &Fields<'_>, is_probe: bool) -> Option<(u64, u64)> {
    let default = if is_probe { HELD_BY_PROBE } else { HELD };
    let held = fields
        .get("connections")
        .map(|field| reader.count(field, 1..=LIMIT));
    let most = fields
        .get("max_connections")
        .map(|field| Some((reader.count(field, 1..=LIMIT)?, field)));
    match (held, most) {
        (held, None) => {
            let held = held.unwrap_or(Some(default))?;
            Some((held, held.max(MOST)))
        }
        (None, Some(most)) => {
            let (most, _) = most?;
            Some((most.min(default), most))
        }
        (Some(held), Some(most)) => {
            let (held, (most, field)) = (held?, most?);
            if most < held {
                let message = format!(
                    "\"max_connections\" must be at least \"connections\", which is {held}"
                );
                return reader.refuse(Problem::new(field.span(), message));
            }
            Some((held, most))
        }
    }
}

/// Longest wait for an answer.
pub(super) fn timeout(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Duration> {
    fields.value_or("timeout", TIMEOUT, |field| {
        reader.duration(field, SHORTEST..=LONGEST)
    })
}
