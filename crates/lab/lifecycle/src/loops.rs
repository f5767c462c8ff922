//! Recurring work: one turn for each start line and its end line.

use crate::definition::LoopDefinition;
use crate::fields::{FieldId, Fields};
use crate::interner::Interner;
use crate::line::Line;

/// Most start and end lines that a collector keeps; further ones only count as
/// overflow.
const MAX_EVENTS: usize = 4_000_000;

/// Bits of a line, as the matchers of a [`LoopDefinition`] are ordered.
const START: u64 = 1;
const END: u64 = 2;

/// Collects the turns of one loop.
///
/// A start and an end belong together when the same process wrote them, and they have
/// the same `source` and the same field `session` (or both have none). Within these, in order of time, an end
/// closes the turn that is open; a start while a turn is open leaves that turn
/// without an end. Of lines with equal times, the one fed first comes first. A line
/// that matches both ends a turn and starts the next.
#[derive(Debug)]
pub struct LoopCollector {
    name: String,
    origin_unix_ns: i64,
    session: FieldId,
    places: Interner,
    events: Vec<Event>,
    overflow: u64,
    place_text: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Event {
    process: u32,
    place: u32,
    at: i64,
    starts: bool,
}

/// One turn, in nanoseconds since the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// When its start line was written.
    pub start_ns: i64,
    /// When its end line was written; never before the start.
    pub end_ns: i64,
    /// Number of the process that wrote both lines; see
    /// [`Miner::feed_from`](crate::Miner::feed_from).
    pub process: u32,
}

/// All turns of a loop, and what did not make a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Turns {
    /// In order of their starts, then of their ends.
    pub turns: Vec<Turn>,
    /// Starts without an end: a turn still going on, one that was given up, or a
    /// lost line.
    pub unmatched_starts: u64,
    /// Ends without a start.
    pub unmatched_ends: u64,
    /// Lines for which there was no room.
    pub overflow: u64,
}

impl LoopCollector {
    /// A collector of this loop; times count from the origin. Adds the fields it
    /// needs.
    pub(crate) fn new(
        definition: &LoopDefinition,
        origin_unix_ns: i64,
        fields: &mut Fields,
    ) -> Self {
        Self {
            name: definition.name.clone(),
            origin_unix_ns,
            session: fields.register("session"),
            places: Interner::new(MAX_EVENTS),
            events: Vec::new(),
            overflow: 0,
            place_text: Vec::new(),
        }
    }

    /// Takes in a line of a process; `shows` tells which of the two matchers match.
    pub(crate) fn feed(&mut self, process: u32, line: &Line<'_>, shows: u64) {
        if shows == 0 {
            return;
        }
        self.place_text.clear();
        self.place_text.extend_from_slice(&process.to_le_bytes());
        self.place_text
            .extend_from_slice(&line.source().unwrap_or_default());
        if let Some(session) = line.field(self.session) {
            self.place_text.push(0);
            self.place_text.extend_from_slice(&session);
        }
        let place = self.places.number(&self.place_text);
        for (bit, starts) in [(END, false), (START, true)] {
            match place {
                Some(place) if shows & bit != 0 && self.events.len() < MAX_EVENTS => {
                    self.events.push(Event {
                        process,
                        place,
                        at: line.at_unix_ns(),
                        starts,
                    });
                }
                _ => self.overflow += u64::from(shows & bit != 0),
            }
        }
    }

    /// Name of the loop.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Pairs everything found so far.
    pub fn turns(&self) -> Turns {
        let mut events = self.events.clone();
        events.sort_by_key(|event| (event.place, event.at));
        let since_origin = |at: i64| at.saturating_sub(self.origin_unix_ns);

        let mut found = Turns {
            overflow: self.overflow,
            ..Turns::default()
        };
        for of_place in events.chunk_by(|a, b| a.place == b.place) {
            let mut open: Option<i64> = None;
            for event in of_place {
                match (event.starts, open) {
                    (true, before) => {
                        found.unmatched_starts += u64::from(before.is_some());
                        open = Some(event.at);
                    }
                    (false, Some(start)) => {
                        let (start_ns, end_ns) = (since_origin(start), since_origin(event.at));
                        found.turns.push(Turn {
                            start_ns,
                            end_ns,
                            process: event.process,
                        });
                        open = None;
                    }
                    (false, None) => found.unmatched_ends += 1,
                }
            }
            found.unmatched_starts += u64::from(open.is_some());
        }
        found
            .turns
            .sort_unstable_by_key(|turn| (turn.start_ns, turn.end_ns, turn.process));
        found
    }
}
