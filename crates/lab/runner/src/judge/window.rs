//! What of a run is judged: what happened in its steps. What happens while systems start
//! or are being stopped is stored and drawn, and decides nothing.

use lab_lifecycle::{Row, Table, Turn, Turns};
use lab_store::ProcessSample;

const SECOND_NS: f64 = 1e9;

/// From the start of the first step until the first system was told to stop, in seconds
/// since the start of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Judged {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
}

impl Judged {
    fn holds(self, at_ns: i64) -> bool {
        let at_s = at_ns as f64 / SECOND_NS;
        self.from_s <= at_s && at_s <= self.to_s
    }

    /// Entities that passed a point in the steps, without the points that they passed
    /// later. One that began before the steps is judged as a whole.
    pub(crate) fn table(self, table: &Table) -> Table {
        let row = |row: &Row| {
            let mut row = row.clone();
            for at in &mut row.at_ns {
                *at = at.filter(|at| *at as f64 / SECOND_NS <= self.to_s);
            }
            let mut points = row.at_ns.iter().flatten();
            points.any(|at| self.holds(*at)).then_some(row)
        };
        Table {
            name: table.name.clone(),
            points: table.points.clone(),
            rows: table.rows.iter().filter_map(row).collect(),
        }
    }

    /// Turns that began and ended in the steps.
    pub(crate) fn turns(self, turns: &Turns) -> Turns {
        let within = |turn: &&Turn| self.holds(turn.start_ns) && self.holds(turn.end_ns);
        Turns {
            turns: turns.turns.iter().filter(within).copied().collect(),
            ..turns.clone()
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const JUDGED: Judged = Judged {
        from_s: 1.0,
        to_s: 5.0,
    };
    const S: i64 = 1_000_000_000;

    fn rows(all: &[&[Option<i64>]]) -> Vec<Vec<Option<i64>>> {
        let rows = all.iter().map(|at_ns| Row {
            id: "x".into(),
            group: None,
            at_ns: at_ns.iter().map(|at| at.map(|at| at * S)).collect(),
        });
        let table = Table {
            name: "t".into(),
            points: vec!["a".into(), "b".into()],
            rows: rows.collect(),
        };
        let kept = JUDGED.table(&table).rows.into_iter();
        let kept = kept.map(|row| row.at_ns.into_iter().map(|at| at.map(|at| at / S)));
        kept.map(Iterator::collect).collect()
    }

    #[test]
    fn what_happens_while_systems_start_and_stop_is_left_out() {
        let kept = rows(&[
            &[Some(2), Some(3)],
            &[Some(0), Some(3)],
            &[Some(4), Some(6)],
            &[Some(0), Some(0)],
            &[Some(6), Some(7)],
            &[Some(0), Some(7)],
        ]);
        let expected = [
            vec![Some(2), Some(3)],
            vec![Some(0), Some(3)],
            vec![Some(4), None],
        ];
        assert_eq!(kept, expected);
        let turn = |start: i64, end: i64| Turn {
            start_ns: start * S,
            end_ns: end * S,
            process: 0,
        };
        let turns = Turns {
            turns: vec![turn(0, 2), turn(1, 2), turn(4, 6), turn(6, 7)],
            ..Turns::default()
        };
        assert_eq!(JUDGED.turns(&turns).turns, [turn(1, 2)]);
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
