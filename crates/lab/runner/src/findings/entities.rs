//! What lifecycles and loops tell: pools, queues before them, and work that grows.

use std::collections::BTreeMap;

use lab_experiment::plan::LogFormat;
use lab_findings::Finding;
use lab_findings::detect::{LoopTurns, Phase, QueueLevels, growth, pool, queue};
use lab_lifecycle::Table;
use lab_store::{EntityCount, StoreError};

use super::grid::inside;
use super::{Marked, Recorded};
use crate::processes::copy_names;
use crate::store::apart_by;

const SECOND_NS: f64 = 1e9;

/// Time between two looks at how many entities wait.
const LOOK_NS: i64 = 100_000_000;

/// Share of the entities that came into a phase which must have left it for it to be a
/// queue: what stays for good only adds up.
const LEFT: f64 = 0.3;

type Intervals = Vec<(i64, i64)>;

pub(super) fn findings(of: &Recorded<'_>) -> Result<Vec<Marked>, StoreError> {
    let mut found = Vec::new();
    for table in of.tables {
        let system = writer(of).unwrap_or_else(|| table.name.clone());
        found.extend(of_lifecycle(of, table, &system));
    }
    let sizes = sizes(of)?;
    found.extend(loops(of, &sizes));
    Ok(found)
}

/// The only copy whose log is read. Lines of a lifecycle do not say who wrote them.
fn writer(of: &Recorded<'_>) -> Option<String> {
    let mut read = of.plan.systems.iter();
    let system = read.find(|system| system.log != LogFormat::Text)?;
    let mut names = copy_names(system).into_iter();
    let only = names.next().filter(|_| names.next().is_none());
    only.filter(|_| read.all(|system| system.log == LogFormat::Text))
}

fn of_lifecycle(of: &Recorded<'_>, table: &Table, system: &str) -> Vec<Marked> {
    let end_ns = (of.judged.to_s * SECOND_NS) as i64;
    let phases: Vec<Intervals> = (1..table.points.len())
        .map(|to| intervals(table, to - 1, to, end_ns))
        .collect();
    let name = |phase: usize| {
        let (from, to) = (&table.points[phase], &table.points[phase + 1]);
        format!("{} {from}→{to}", table.name)
    };
    let pools = (1..phases.len()).filter_map(|phase| {
        let found = pool(&Phase {
            system,
            name: &name(phase),
            inside: &phases[phase],
            waiting: &phases[phase - 1],
        })?;
        Some(Marked::in_phase(&table.name, phase, found))
    });
    // Entities come in at the rate of their first point.
    let from_ns = table
        .rows
        .iter()
        .filter_map(|row| row.at_ns.first().copied().flatten());
    let arrivals: Vec<i64> = from_ns.collect();
    let from_ns = arrivals.iter().copied().min().unwrap_or(0);
    let to_ns = arrivals.iter().copied().max().unwrap_or(0).min(end_ns);
    let came: Intervals = arrivals
        .iter()
        .map(|at| (*at, at.saturating_add(LOOK_NS)))
        .collect();
    let load = inside(&came, from_ns, to_ns, LOOK_NS);
    let queues = (0..phases.len().saturating_sub(1)).filter_map(|phase| {
        let left = phases[phase].iter().filter(|(_, to)| *to < end_ns).count();
        if (left as f64) < LEFT * phases[phase].len() as f64 {
            return None;
        }
        let name = format!("the number of entities in {}", name(phase));
        let mut found = queue(&QueueLevels {
            system,
            name: &name,
            start_s: from_ns as f64 / SECOND_NS,
            period_s: LOOK_NS as f64 / SECOND_NS,
            levels: &inside(&phases[phase], from_ns, to_ns, LOOK_NS),
            load: &load,
        })?;
        found.chart = lab_findings::Chart::Lifecycle;
        Some(Marked::in_phase(&table.name, phase, found))
    });
    pools.chain(queues).collect()
}

/// When each entity was between two points. One that did not come further was there until
/// the end.
fn intervals(table: &Table, from: usize, to: usize, end_ns: i64) -> Intervals {
    let rows = table.rows.iter();
    rows.filter_map(|row| {
        let begin = row.at_ns[from]?;
        let after = row.at_ns[to..].iter().flatten().min();
        Some((begin, after.copied().unwrap_or(end_ns)))
    })
    .collect()
}

/// Something that there may be more or less of.
struct Size {
    /// In the plural.
    of: String,
    /// How many there were from when on, in seconds.
    levels: Vec<(f64, f64)>,
}

impl Size {
    /// Of intervals, to the nanosecond: a turn may begin right after what it is about, and
    /// of few that makes many times as many.
    fn exact(of: String, intervals: &[(i64, i64)]) -> Self {
        let mut changes: Vec<(i64, f64)> = intervals
            .iter()
            .flat_map(|(begin, end)| [(*begin, 1.0), (*end, -1.0)])
            .collect();
        changes.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut count = 0.0;
        let levels = changes.into_iter().map(|(at, change)| {
            count += change;
            (at as f64 / SECOND_NS, count)
        });
        Self {
            of,
            levels: levels.collect(),
        }
    }

    fn at(&self, t_s: f64) -> f64 {
        let next = self.levels.partition_point(|level| level.0 <= t_s);
        next.checked_sub(1).map_or(0.0, |last| self.levels[last].1)
    }
}

/// What the work of a loop may depend on: entities that were counted, and those that log
/// lines tell of.
fn sizes(of: &Recorded<'_>) -> Result<Vec<Size>, StoreError> {
    let counts = of.folder.records::<EntityCount>()?;
    let mut series: BTreeMap<(&str, &str), Vec<(f64, f64)>> = BTreeMap::new();
    for count in &counts {
        let one = series.entry((&count.what, &count.state)).or_default();
        one.push((count.t_s, count.count as f64));
    }
    let counted = series.into_iter().map(|((what, state), levels)| Size {
        of: format!("{state} {what} entities"),
        levels,
    });
    let end_ns = (of.judged.to_s * SECOND_NS) as i64;
    let told = of.tables.iter().map(|table| {
        let whole = intervals(table, 0, table.points.len() - 1, end_ns);
        Size::exact(format!("{} entities", table.name), &whole)
    });
    Ok(counted.chain(told).collect())
}

fn loops(of: &Recorded<'_>, sizes: &[Size]) -> Vec<Marked> {
    let mut found = Vec::new();
    for (name, turns) in of.loops {
        let mut processes: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
        for turn in &turns.turns {
            let begin_s = turn.start_ns as f64 / SECOND_NS;
            let length_s = turn.end_ns.saturating_sub(turn.start_ns) as f64 / SECOND_NS;
            let own = processes.entry(turn.process).or_default();
            own.push((begin_s, length_s));
        }
        let apart = processes.len() > 1;
        for (process, turns) in &processes {
            let drawn = match apart {
                true => apart_by(name, of.copies, *process),
                false => name.clone(),
            };
            let system = of.copies.get(*process as usize).map_or("?", String::as_str);
            let each = sizes.iter();
            let grown = each.filter_map(|size| grows(system, &drawn, turns, size));
            // Of several sizes, the one that its time follows most closely.
            let width = |finding: &Finding| {
                let ends = finding
                    .number("power_high")
                    .zip(finding.number("power_low"));
                ends.map_or(f64::INFINITY, |(high, low)| high - low)
            };
            let best = grown.min_by(|a, b| width(a).total_cmp(&width(b)));
            found.extend(best.map(|finding| Marked::on(&drawn, finding)));
        }
    }
    found
}

fn grows(system: &str, name: &str, turns: &[(f64, f64)], size: &Size) -> Option<Finding> {
    let sized: Vec<(f64, f64)> = turns
        .iter()
        .map(|(begin_s, length_s)| (size.at(*begin_s), *length_s))
        .collect();
    let ends = turns.iter().map(|(begin_s, length_s)| begin_s + length_s);
    growth(&LoopTurns {
        system,
        name,
        size_of: &size.of,
        span_s: (turns.first()?.0, ends.fold(0.0, f64::max)),
        turns: &sized,
    })
}

#[cfg(test)]
mod tests {
    use lab_lifecycle::Row;

    use super::*;

    #[test]
    fn who_did_not_come_further_is_there_until_the_end() {
        let row = |at_ns: [Option<i64>; 3]| Row {
            id: "a".into(),
            group: None,
            at_ns: at_ns.to_vec(),
        };
        let table = Table {
            name: "task".into(),
            points: ["a", "b", "c"].map(String::from).to_vec(),
            rows: vec![
                row([Some(1), Some(4), Some(9)]),
                row([Some(2), None, None]),
                // The line of its second point was lost.
                row([Some(3), None, Some(8)]),
                row([None, Some(5), None]),
            ],
        };
        assert_eq!(intervals(&table, 0, 1, 100), [(1, 4), (2, 100), (3, 8)]);
        assert_eq!(intervals(&table, 1, 2, 100), [(4, 9), (5, 100)]);
    }

    #[test]
    fn a_size_holds_until_it_changes() {
        let exact = Size::exact(
            "x".to_owned(),
            &[
                (1_000_000_000, 3_000_000_000),
                (1_000_000_001, 9_000_000_000),
            ],
        );
        assert_eq!(
            [0.9, 1.0, 2.0, 3.0].map(|t_s| exact.at(t_s)),
            [0.0, 1.0, 2.0, 1.0]
        );
        let size = Size {
            of: "x".to_owned(),
            levels: vec![(1.0, 3.0), (2.0, 7.0)],
        };
        assert_eq!(
            [0.5, 1.0, 1.9, 2.0, 99.0].map(|t_s| size.at(t_s)),
            [0.0, 3.0, 3.0, 7.0, 7.0]
        );
    }
}
