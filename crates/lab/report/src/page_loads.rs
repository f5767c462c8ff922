//! The results of loads as the page takes them: numbers over time in columns, and
//! distributions as percentile curves.

use lab_load::Summary;
use lab_load::recording::{Latencies, Tenths};
use lab_load::summary::{Histograms, Slot};
use measure::Histogram;
use serde::Serialize;

use crate::blob::{Blob, Column};
use crate::series::{Scaled, scaled};

/// Points of a percentile curve for each further nine of the percentile.
const POINTS_PER_DECADE: u32 = 20;

/// One load.
#[derive(Debug, Serialize)]
pub(crate) struct PageLoad {
    /// The step that it was part of.
    step: Option<String>,
    /// Its begin on the page's axis of time.
    start_s: f64,
    /// Its numbers, without those over time and without histograms.
    summary: Summary,
    timeline: Timeline,
    percentiles: Percentiles,
}

/// The slots of a load, a column for each field; times from the start of the load.
#[derive(Debug, Serialize)]
struct Timeline {
    t_s: Scaled,
    length_s: Scaled,
    planned: Scaled,
    sent: Scaled,
    good: Scaled,
    failed: Scaled,
    unanswered: Scaled,
    p50: Scaled,
    p99: Scaled,
    max: Scaled,
    in_flight: Scaled,
    backlog: Scaled,
    /// How many pairs of the next two columns belong to each slot.
    heat_pairs: Column,
    heat_bin: Column,
    heat_count: Scaled,
}

/// Latency by percentile, both ways.
#[derive(Debug, Serialize)]
struct Percentiles {
    points_per_decade: u32,
    intended: Vec<f64>,
    actual: Vec<f64>,
}

impl PageLoad {
    /// Packs a load into `blob`; the second value says what could not be read.
    /// `origin_ns` is where the page's axis begins, in nanoseconds of Unix time.
    pub(crate) fn pack(
        summary: &Summary,
        step: Option<String>,
        origin_ns: i64,
        blob: &mut Blob,
    ) -> (Self, Vec<String>) {
        let mut unread = Vec::new();
        let unanswered = summary.latency.intended.unanswered;
        let mut curve = |name: &str, text: &str| {
            percentiles(text, unanswered).unwrap_or_else(|problem| {
                unread.push(format!("histograms.{name}: {problem}"));
                Vec::new()
            })
        };
        let percentiles = Percentiles {
            points_per_decade: POINTS_PER_DECADE,
            intended: curve("intended", &summary.histograms.intended),
            actual: curve("actual", &summary.histograms.actual),
        };
        let load = Self {
            step,
            start_s: summary.began_unix_ns.saturating_sub(origin_ns) as f64 / 1e9,
            timeline: Timeline::pack(&summary.timeline, blob),
            percentiles,
            summary: Summary {
                timeline: Vec::new(),
                tenths: Tenths::default(),
                histograms: Histograms {
                    intended: String::new(),
                    actual: String::new(),
                    lateness: String::new(),
                },
                ..summary.clone()
            },
        };
        (load, unread)
    }
}

impl Timeline {
    fn pack(slots: &[Slot], blob: &mut Blob) -> Self {
        let mut column =
            |finest: f64, of: fn(&Slot) -> f64| scaled(blob, slots.iter().map(of), finest);
        Self {
            t_s: column(1e-6, |slot| slot.t_s),
            length_s: column(1e-6, |slot| slot.length_s),
            planned: column(1.0, |slot| slot.planned as f64),
            sent: column(1.0, |slot| slot.sent as f64),
            good: column(1.0, |slot| slot.good as f64),
            failed: column(1.0, |slot| slot.failed as f64),
            unanswered: column(1.0, |slot| slot.unanswered as f64),
            p50: column(1e-6, |slot| slot.p50.unwrap_or(f64::NAN)),
            p99: column(1e-6, |slot| slot.p99.unwrap_or(f64::NAN)),
            max: column(1e-6, |slot| slot.max.unwrap_or(f64::NAN)),
            in_flight: column(1.0, |slot| slot.in_flight as f64),
            backlog: column(1.0, |slot| slot.backlog as f64),
            heat_pairs: column_of(blob, slots.iter().map(|slot| slot.heat.len() as u32)),
            heat_bin: column_of(blob, pairs(slots).map(|(bin, _)| u32::from(bin))),
            heat_count: scaled(blob, pairs(slots).map(|(_, count)| count as f64), 1.0),
        }
    }
}

fn pairs(slots: &[Slot]) -> impl Iterator<Item = (u8, u64)> + Clone {
    slots.iter().flat_map(|slot| slot.heat.iter().copied())
}

fn column_of(blob: &mut Blob, values: impl Iterator<Item = u32>) -> Column {
    blob.push_column(&values.map(Some).collect::<Vec<_>>())
}

/// The latency in seconds at the percentiles 1 − 10^(−k / [`POINTS_PER_DECADE`]) for
/// k = 0, 1, ... as far as there are answers; the last is the longest, unless requests had
/// no answer. Nothing for no answers.
fn percentiles(text: &str, unanswered: u64) -> Result<Vec<f64>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let histogram = Histogram::from_base64(text).map_err(|error| error.to_string())?;
    let latencies = Latencies::of(&histogram, unanswered);
    let decades = (latencies.count().max(1) as f64).log10();
    let last = (decades * f64::from(POINTS_PER_DECADE)).ceil() as u32;
    let points = (0..=last).filter_map(|k| {
        let beyond = 10_f64.powf(-f64::from(k) / f64::from(POINTS_PER_DECADE));
        latencies.percentile(1.0 - beyond.min(1.0))
    });
    Ok(points.filter(|time| time.is_finite()).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_percentile_curve_ends_with_the_longest() {
        let mut histogram = Histogram::new();
        for ms in 1..=1000 {
            histogram.record(Duration::from_millis(ms));
        }
        let text = histogram.to_base64().unwrap();
        let curve = percentiles(&text, 0).unwrap();
        assert_eq!(curve.len(), 61);
        let close = |k: usize, seconds: f64| (curve[k] / seconds - 1.0).abs() < 2e-3;
        assert!(close(0, 0.001) && close(20, 0.9), "{curve:?}");
        assert!(close(40, 0.99) && close(60, 1.0), "{curve:?}");
        assert!(curve.is_sorted());
        // With as many without an answer, it ends in the middle, at the longest.
        let half = percentiles(&text, 1000).unwrap();
        assert_eq!(half.len(), 7);
        assert!((half[6] / 0.998 - 1.0).abs() < 2e-3, "{half:?}");
    }

    #[test]
    fn nothing_and_nonsense_are_told_apart() {
        assert_eq!(percentiles("", 9).unwrap(), [0.0; 0]);
        let empty = Histogram::new().to_base64().unwrap();
        assert_eq!(percentiles(&empty, 9).unwrap(), [0.0; 0]);
        assert!(percentiles("nonsense", 0).is_err());
    }
}
