//! What of a run is judged: what happened in its steps. What happens while systems start
//! or are being stopped is stored and drawn, and decides nothing.

use std::collections::BTreeMap;

use lab_lifecycle::{Row, Turn};
use lab_store::ProcessSample;

use crate::mine::MinedSnapshot;

/// From the start of the first step until the first system was told to stop, in seconds
/// since the start of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Judged {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
}

impl Judged {
    /// Whether a moment is part of it.
    pub(crate) fn holds(self, t_s: f64) -> bool {
        (self.from_s..=self.to_s).contains(&t_s)
    }

    /// Samples of the steps. Where the steps were too short for any, the last one before
    /// their end.
    pub(crate) fn samples(self, mut samples: Vec<ProcessSample>) -> Vec<ProcessSample> {
        samples.retain(|sample| sample.t_s <= self.to_s);
        match samples.iter().rposition(|sample| sample.t_s < self.from_s) {
            Some(before) if before + 1 < samples.len() => samples.split_off(before + 1),
            Some(before) => {
                let last = samples[before].t_s;
                samples.retain(|sample| sample.t_s >= last);
                samples
            }
            None => samples,
        }
    }
}

/// What happened since `before`: entities that passed a point, and turns that ended. An
/// entity that began earlier is judged as a whole.
pub(crate) fn since(before: &MinedSnapshot, mut snapshot: MinedSnapshot) -> MinedSnapshot {
    for (now, then) in snapshot.tables.iter_mut().zip(&before.tables) {
        let known = then.rows.iter().map(|row| (&*row.id, &row.at_ns));
        let known: BTreeMap<&str, &Vec<Option<i64>>> = known.collect();
        let is_new = |row: &Row| known.get(&*row.id) != Some(&&row.at_ns);
        now.rows.retain(is_new);
    }
    for ((_, now), (_, then)) in snapshot.loops.iter_mut().zip(&before.loops) {
        let key = |turn: &Turn| (turn.start_ns, turn.end_ns, turn.process);
        let mut known: BTreeMap<_, usize> = BTreeMap::new();
        for turn in &then.turns {
            *known.entry(key(turn)).or_insert(0) += 1;
        }
        now.turns.retain(|turn| match known.get_mut(&key(turn)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                false
            }
            _ => true,
        });
    }
    snapshot
}

#[cfg(test)]
mod tests {
    use lab_lifecycle::{Table, Turns};

    use super::*;

    const JUDGED: Judged = Judged {
        from_s: 1.0,
        to_s: 5.0,
    };
    fn snapshot(rows: &[(&str, [Option<i64>; 2])], turns: &[(i64, i64)]) -> MinedSnapshot {
        let row = |(id, at_ns): &(&str, [Option<i64>; 2])| Row {
            id: (*id).into(),
            group: None,
            at_ns: at_ns.to_vec(),
        };
        let turn = |(start_ns, end_ns): &(i64, i64)| Turn {
            start_ns: *start_ns,
            end_ns: *end_ns,
            process: 0,
        };
        let turns = Turns {
            turns: turns.iter().map(turn).collect(),
            ..Turns::default()
        };
        MinedSnapshot {
            tables: vec![Table {
                name: "t".into(),
                points: vec!["a".into(), "b".into()],
                rows: rows.iter().map(row).collect(),
            }],
            loops: vec![("l".into(), turns)],
        }
    }

    #[test]
    fn what_happened_before_the_steps_is_left_out() {
        let before = snapshot(
            &[("over", [Some(1), Some(2)]), ("begun", [Some(1), None])],
            &[(1, 2), (3, 4)],
        );
        let now = snapshot(
            &[
                ("over", [Some(1), Some(2)]),
                ("begun", [Some(1), Some(9)]),
                ("new", [Some(5), None]),
            ],
            &[(1, 2), (1, 2), (3, 4), (5, 6)],
        );
        let since = since(&before, now);
        let ids: Vec<&str> = since.tables[0].rows.iter().map(|row| &*row.id).collect();
        assert_eq!(ids, ["begun", "new"]);
        let turns = &since.loops[0].1.turns;
        let turns: Vec<_> = turns
            .iter()
            .map(|turn| (turn.start_ns, turn.end_ns))
            .collect();
        assert_eq!(turns, [(1, 2), (5, 6)]);
    }

    #[test]
    fn short_steps_are_judged_by_the_last_sample_before_their_end() {
        let at = |t_s| ProcessSample {
            t_s,
            system: "x".into(),
            cpu_cores: 0.0,
            rss_bytes: 0,
            fds: 0,
            threads: 1,
        };
        let kept = |times: &[f64]| -> Vec<f64> {
            let samples = times.iter().map(|t_s| at(*t_s)).collect();
            JUDGED
                .samples(samples)
                .iter()
                .map(|sample| sample.t_s)
                .collect()
        };
        assert_eq!(kept(&[0.5, 1.5, 1.5, 4.9, 5.1]), [1.5, 1.5, 4.9]);
        assert_eq!(kept(&[0.4, 0.5, 0.5, 5.1]), [0.5, 0.5]);
        assert_eq!(kept(&[2.0]), [2.0]);
        assert_eq!(kept(&[6.0]), [0.0; 0]);
    }
}
