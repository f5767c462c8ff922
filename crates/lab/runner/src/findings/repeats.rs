//! Calls that come again for the same entity: retries of a system's own clients.

use lab_findings::detect::{AttemptCounts, repeats};
use lab_findings::{Chart, Finding};
use lab_lifecycle::Table;

use super::{Marked, Recorded};
use crate::mine::Repeated;

/// Findings of all lifecycles and loads.
///
/// Only a load that runs alone tells how many calls its requests take: of several, each may take its own
/// number, and their shares may change.
pub(super) fn findings(of: &Recorded<'_>) -> Vec<Marked> {
    let Ok(origin_ns) = of.folder.environment().map(|one| one.started_at_unix_ns) else {
        return Vec::new();
    };
    let spans: Vec<(&str, (f64, f64))> = of
        .loads
        .iter()
        .map(|load| {
            let began_ns = load.summary.began_unix_ns.saturating_sub(origin_ns);
            let from_s = began_ns as f64 * 1e-9;
            (&*load.load, (from_s, from_s + load.summary.duration_s))
        })
        .collect();
    let mut names: Vec<&str> = spans.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    let mut found = Vec::new();
    for name in names {
        let seconds = alone(name, &spans);
        for (table, repeated) in of.tables.iter().zip(of.repeated) {
            let points = 0..table.points.len();
            let each = points.filter_map(|point| {
                Some((point, of_point(name, table, repeated, point, &seconds)?))
            });
            // What one call does shows at several points: they are one matter.
            let most = each.max_by(|a, b| a.1.effect.value.total_cmp(&b.1.effect.value));
            // A phase ends with its second point.
            found.extend(most.map(|(point, finding)| {
                Marked::in_phase(&table.name, point.saturating_sub(1), finding)
            }));
        }
    }
    found
}

/// The whole seconds in which a load ran and no other did.
fn alone(name: &str, spans: &[(&str, (f64, f64))]) -> Vec<i64> {
    let (own, others): (Vec<_>, Vec<_>) = spans.iter().partition(|(load, _)| *load == name);
    let mut seconds: Vec<i64> = own
        .iter()
        .flat_map(|(_, (from_s, to_s))| from_s.ceil() as i64..to_s.floor() as i64)
        .filter(|second| {
            let (begin, end) = (*second as f64, (second + 1) as f64);
            let mut others = others.iter();
            !others.any(|(_, (from_s, to_s))| *from_s < end && *to_s > begin)
        })
        .collect();
    seconds.sort_unstable();
    seconds.dedup();
    seconds
}

fn of_point(
    load: &str,
    table: &Table,
    repeated: &Repeated,
    point: usize,
    seconds: &[i64],
) -> Option<Finding> {
    let start_s = *seconds.first()? as f64;
    let mut requests = vec![0.0; seconds.len()];
    for at_ns in table.rows.iter().filter_map(|row| row.at_ns[point]) {
        if let Ok(place) = seconds.binary_search(&at_ns.div_euclid(1_000_000_000)) {
            requests[place] += 1.0;
        }
    }
    let attempts: Vec<f64> = seconds
        .iter()
        .zip(&requests)
        .map(|(second, first)| {
            let again = repeated.get(&(point, *second)).copied().unwrap_or(0);
            first + again as f64
        })
        .collect();
    let mut finding = repeats(&AttemptCounts {
        system: &format!("{} {}", table.name, table.points[point]),
        client: load,
        start_s,
        period_s: 1.0,
        requests: &requests,
        attempts: &attempts,
    })?;
    finding.chart = Chart::Lifecycle;
    (finding.from_s, finding.to_s) = span_of(seconds, (finding.from_s, finding.to_s));
    Some(finding)
}

/// The time of seconds that were counted as if one followed the other: a load may be alone now and
/// then.
fn span_of(seconds: &[i64], (from_s, to_s): (f64, f64)) -> (f64, f64) {
    let start_s = seconds.first().map_or(0.0, |first| *first as f64);
    let at = |place_s: f64| seconds.get(place_s as usize).map(|second| *second as f64);
    let from = at(from_s - start_s);
    let last = at(to_s - start_s - 1.0);
    (from.unwrap_or(from_s), last.map_or(to_s, |last| last + 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_count_in_which_a_load_is_alone_from_their_begin_to_their_end() {
        let spans = [
            ("a", (0.5, 4.0)),
            ("b", (3.2, 3.4)),
            ("a", (6.0, 8.9)),
            ("a", (6.0, 7.0)),
        ];
        assert_eq!(alone("a", &spans), [1, 2, 6, 7]);
        assert_eq!(alone("b", &spans), [0; 0]);
        assert_eq!(alone("c", &spans), [0; 0]);
    }

    /// Another load ran from the fourth second to the sixtieth.
    #[test]
    fn what_was_counted_without_a_gap_is_told_at_its_time() {
        let seconds: Vec<i64> = (2..4).chain(60..80).collect();
        assert_eq!(span_of(&seconds, (7.0, 20.0)), (63.0, 76.0));
        assert_eq!(span_of(&seconds, (2.0, 24.0)), (2.0, 80.0));
    }
}
