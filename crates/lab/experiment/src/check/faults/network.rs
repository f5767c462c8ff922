//! Faults of connections: which are disturbed, and how.

use std::time::Duration;

use document::Problem;
use lab_load::Protocol;
use units::UnitError;

use super::super::fields::{Field, Fields};
use super::super::process::SHORTEST;
use super::super::values::Reader;
use super::Named;
use crate::plan::{Connection, Direction, FaultKind, NetworkFault, Part};

/// Directions of what passes.
const DIRECTIONS: [(&str, Direction); 2] = [
    ("to server", Direction::ToServer),
    ("to client", Direction::ToClient),
];
/// Longest delay.
const LONGEST_DELAY: Duration = Duration::from_secs(3600);

/// What a fault of this kind does to connections, to which part, and between whom.
pub(super) fn kind(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    field: Field<'_>,
    named: Named<'_>,
) -> Option<FaultKind> {
    let does = does(reader, fields, field.key);
    let part = part(reader, fields);
    let connections = connections(reader, field, named);
    Some(FaultKind::Network {
        does: does?,
        connections: connections?,
        part: part?,
    })
}

fn part(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Part> {
    let direction = fields.optional("direction", |field| reader.choice(field, &DIRECTIONS));
    let clients = fields.value_or("clients", None, |field| {
        let share = reader.quantity(field, "a share such as \"10%\"", units::parse_share)?;
        if share <= 0.0 || share >= 1.0 {
            let message = "a share of clients is above 0% and below 100%";
            let problem = Problem::new(field.span(), message);
            return reader.refuse(problem.help("leave it out to disturb all of them"));
        }
        Some(Some(share))
    });
    Some(Part {
        direction: direction?,
        clients: clients?,
    })
}

fn does(reader: &mut Reader<'_>, fields: &Fields<'_>, word: &str) -> Option<NetworkFault> {
    Some(match word {
        "partition" => NetworkFault::Partition,
        "delay" => {
            let by = fields.require("by", "\"50ms\"", reader)?;
            let by = reader.duration(by, SHORTEST..=LONGEST_DELAY);
            let jitter = fields.value_or("jitter", Duration::ZERO, |field| {
                reader.duration(field, Duration::ZERO..=LONGEST_DELAY)
            });
            NetworkFault::Delay {
                by: by?,
                jitter: jitter?,
            }
        }
        "lose" => {
            let field = fields.require("share", "\"1%\"", reader)?;
            let share = reader.quantity(field, "a share such as \"1%\"", units::parse_share)?;
            if share <= 0.0 || share >= 1.0 {
                let message = "a share that is lost is above 0% and below 100%";
                let problem = Problem::new(field.span(), message);
                return reader.refuse(problem.help("nothing passes in a partition"));
            }
            NetworkFault::Lose(share)
        }
        "throttle" => {
            let field = fields.require("to", "\"1MiB/s\"", reader)?;
            let rate = reader.quantity(field, "bytes a second such as \"1MiB/s\"", bytes_per_s)?;
            NetworkFault::Throttle(rate)
        }
        _ => NetworkFault::Reset,
    })
}

/// `1MiB/s`, at least one byte.
fn bytes_per_s(text: &str) -> Result<u64, UnitError> {
    let wrong = || {
        let message = format!("expected bytes a second such as 1MiB/s, found \"{text}\"");
        UnitError::new(0..text.len(), message)
    };
    let size = text.strip_suffix("/s").ok_or_else(wrong)?;
    match units::parse_bytes(size)? {
        0 => Err(UnitError::new(
            0..text.len(),
            "of 0 bytes a second nothing passes, which is a partition",
        )),
        bytes => Ok(bytes),
    }
}

/// `"api -> db"`, or `"db"` for all that connect to it. The laboratory stands between the
/// two, so the address has to be given by it: what connects refers to `{db.addr}`.
fn connections(
    reader: &mut Reader<'_>,
    field: Field<'_>,
    named: Named<'_>,
) -> Option<Vec<Connection>> {
    let expected = "what connects and to what, as in \"api -> db\"";
    let text = reader.text(field, expected)?;
    let (from, to) = match text.as_str().split_once("->") {
        Some((from, to)) => (Some(from.trim()), to.trim()),
        None => (None, text.as_str().trim()),
    };
    let names = named.systems.iter().map(|found| found.system.name.as_str());
    if !names.clone().any(|name| name == to) {
        if reader.declares(to) {
            return None;
        }
        let message = format!("unknown system \"{to}\"");
        let problem = Problem::new(text.whole(), message);
        return reader.refuse(problem.suggest_from(to, "systems and fleets", names));
    }
    let loads = named.loads.iter();
    let senders = names.chain(loads.map(|load| load.name.as_str()));
    if let Some(from) = from
        && !senders.clone().any(|name| name == from)
    {
        if reader.declares(from) {
            return None;
        }
        let message = format!("unknown system or load \"{from}\"");
        let problem = Problem::new(text.whole(), message);
        return reader.refuse(problem.suggest_from(from, "systems, fleets and loads", senders));
    }
    let able: Vec<Connection> = senders
        .filter(|name| from.is_none_or(|from| from == *name) && *name != to)
        .filter(|name| named.refers(name, to))
        .map(|name| Connection {
            from: name.to_owned(),
            to: to.to_owned(),
        })
        .collect();
    // One that is wrong itself may be who connects.
    let whole = named.systems.len() == reader.scope.systems.len();
    if able.is_empty() && (whole || from.is_some()) {
        let message = match from {
            Some(from) => format!("{from} does not connect to {{{to}.addr}}"),
            None => format!("nothing in this file connects to {{{to}.addr}}"),
        };
        let help = format!(
            "the laboratory stands between two by the address that it gives to one of them: \
             write {{{to}.addr}} where that says whom to connect to"
        );
        return reader.refuse(Problem::new(text.whole(), message).help(help));
    }
    if able.is_empty() {
        return None;
    }
    let sends_datagrams = |connection: &&Connection| named.sends_datagrams(&connection.from);
    if let ("reset", Some(udp)) = (field.key, able.iter().find(sends_datagrams)) {
        let message = format!(
            "{} sends datagrams, which have no connection to reset",
            udp.from
        );
        let problem = Problem::new(text.whole(), message);
        let help = "use partition, lose or delay, or name who connects: \"NAME -> ";
        return reader.refuse(problem.help(format!("{help}{to}\"")));
    }
    Some(able)
}

impl Named<'_> {
    /// Whether a system or a load refers to the address of a system.
    fn refers(self, name: &str, to: &str) -> bool {
        let found = self.systems.iter().map(|found| &found.system);
        let mut systems = found.filter(|system| system.name == name);
        if let Some(system) = systems.next() {
            return system.texts().any(|text| text.refers_to(to));
        }
        let mut loads = self.loads.iter().filter(|found| found.name == name);
        let load = loads.next().and_then(|found| found.load.as_ref());
        load.is_some_and(|load| load.place().refers_to(to))
    }

    fn sends_datagrams(self, name: &str) -> bool {
        let loads = self.loads.iter().filter(|found| found.name == name);
        let mut loads = loads.filter_map(|found| found.load.as_ref());
        loads.any(|load| load.protocol == Protocol::Udp)
    }
}
