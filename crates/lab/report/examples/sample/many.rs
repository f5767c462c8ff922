//! A run of as many entities as are asked for, of fifteen phases each: for what the page can hold.

use std::fmt::Write;
use std::path::Path;

use lab_store::{Event, EventKind, Outcome, RunFile};

use crate::model::Dice;
use crate::{Failure, begin, finish};

/// Where phases begin and end.
const POINTS: [&str; 16] = [
    "asked",
    "admitted",
    "written",
    "queued",
    "bid",
    "placed",
    "sent",
    "accepted",
    "fetched",
    "unpacked",
    "created",
    "networked",
    "started",
    "probed",
    "routed",
    "told",
];
/// Median and spread of each phase, in seconds and as the factor of one standard deviation.
const PHASES: [(f64, f64); 15] = [
    (0.002, 1.5),
    (0.012, 1.9),
    (0.05, 1.3),
    (0.02, 1.6),
    (0.015, 1.7),
    (0.003, 1.6),
    (0.018, 1.6),
    (0.4, 1.5),
    (0.11, 1.4),
    (0.75, 1.45),
    (0.035, 1.5),
    (0.2, 1.3),
    (1.2, 1.3),
    (0.03, 1.6),
    (0.008, 1.5),
];
/// Entities that are asked for in a second.
const A_SECOND: f64 = 2500.0;
const GROUPS: usize = 100;
/// The phase in which the one slow entity is slow, and for how long.
const SLOW_PHASE: usize = 9;
const SLOW_S: f64 = 60.0;

/// The row of the slow one, which no round part of all is.
fn slow_row(count: usize) -> usize {
    count * 5 / 8 + count / 97
}

/// Writes a run with `count` entities.
pub(crate) fn run(folder: &Path, count: usize) -> Result<(), Failure> {
    let mut dice = Dice::new(16);
    let run = begin(folder, &format!("entities-{count}"), &[("task", &POINTS)])?;
    let mut text = String::with_capacity(count * 240);
    let _ = writeln!(text, "id,group,{}", POINTS.join(","));
    let mut end: f64 = 0.0;
    for row in 0..count {
        let mut at = 0.5 + row as f64 / A_SECOND + dice.exponential(0.05 / A_SECOND);
        let slow = row == slow_row(count);
        let id = if slow {
            "5107e5107e-slow-one".to_owned()
        } else {
            dice.guid()
        };
        let _ = write!(
            text,
            "{id},cell-{},{}",
            dice.below(GROUPS),
            (at * 1e9) as i64
        );
        for (phase, (median, spread)) in PHASES.into_iter().enumerate() {
            at += dice.around(median, spread);
            if slow && phase == SLOW_PHASE {
                at += SLOW_S;
            }
            match dice.chance(2e-5) {
                true => text.push(','),
                false => drop(write!(text, ",{}", (at * 1e9) as i64)),
            }
        }
        text.push('\n');
        end = end.max(at);
    }
    run.write(RunFile::Lifecycle("task"), text.as_bytes())?;
    drop(text);
    let mut events = run.appender::<Event>()?;
    for (t_s, kind) in [(0.4, EventKind::StepStarted), (end, EventKind::StepEnded)] {
        events.append(&Event {
            t_s,
            kind,
            name: "ask".into(),
            text: String::new(),
        })?;
    }
    events.flush()?;
    finish(&run, Outcome::Pass, None, end + 0.5, Vec::new())
}
