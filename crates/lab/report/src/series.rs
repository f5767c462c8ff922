//! Lines of a chart: thinned to what a screen can show, and packed.

use serde::Serialize;

use crate::blob::{Blob, Column, VALUE_MAX};

/// Most points of one line.
pub(crate) const POINTS_MAX: usize = 2000;

/// A line: times and values, each a column with its scale.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    /// Times in seconds.
    pub(crate) t: Scaled,
    /// Values, in the unit that the chart names.
    pub(crate) v: Scaled,
}

/// A column whose number `n` means `origin + n × unit`.
#[derive(Debug, Serialize)]
pub(crate) struct Scaled {
    #[serde(flatten)]
    pub(crate) column: Column,
    pub(crate) origin: f64,
    pub(crate) unit: f64,
}

/// Packs a line; times keep a microsecond, values keep `unit` where they can.
pub(crate) fn pack(blob: &mut Blob, points: &[(f64, f64)], unit: f64) -> Line {
    let points = downsample(points, POINTS_MAX);
    Line {
        t: scaled(blob, points.iter().map(|point| point.0), 1e-6),
        v: scaled(blob, points.iter().map(|point| point.1), unit),
    }
}

/// Packs numbers, which keep `finest` where they can. Those that are not finite are
/// left out.
pub(crate) fn scaled(
    blob: &mut Blob,
    values: impl Iterator<Item = f64> + Clone,
    finest: f64,
) -> Scaled {
    let known = || values.clone().filter(|value| value.is_finite());
    let low = known().fold(f64::INFINITY, f64::min);
    let high = known().fold(f64::NEG_INFINITY, f64::max);
    let origin = if low.is_finite() { low } else { 0.0 };
    let mut unit = finest;
    while (high - origin) / unit > f64::from(VALUE_MAX) {
        unit *= 10.0;
    }
    let number = |value: f64| ((value - origin) / unit).round() as u32;
    let numbers: Vec<Option<u32>> = values
        .map(|value| value.is_finite().then(|| number(value)))
        .collect();
    Scaled {
        column: blob.push_column(&numbers),
        origin,
        unit,
    }
}

/// At most `most` points (at least 4) with every peak and every trough kept, and the first and the
/// last, whose value may hold for longer: each stretch of equally many points gives its lowest and
/// its highest, in order of time.
fn downsample(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most {
        return points.to_vec();
    }
    let stretches = (most / 2).saturating_sub(1).max(1);
    let mut kept = Vec::with_capacity(most);
    kept.push(0);
    for stretch in 0..stretches {
        let from = stretch * points.len() / stretches;
        let to = (stretch + 1) * points.len() / stretches;
        let lowest = (from..to).min_by(|&a, &b| points[a].1.total_cmp(&points[b].1));
        let highest = (from..to).max_by(|&a, &b| points[a].1.total_cmp(&points[b].1));
        if let (Some(a), Some(b)) = (lowest, highest) {
            kept.extend([a.min(b), a.max(b)]);
        }
    }
    kept.push(points.len() - 1);
    kept.dedup();
    kept.into_iter().map(|place| points[place]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_every_peak_and_trough_and_the_order() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|i| (f64::from(i), 10.0)).collect();
        points[77_777].1 = 99.0;
        points[5].1 = -3.0;
        let kept = downsample(&points, POINTS_MAX);
        assert!(kept.len() <= POINTS_MAX);
        assert!(kept.contains(&(77_777.0, 99.0)) && kept.contains(&(5.0, -3.0)));
        assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn thinning_keeps_the_first_and_the_last_though_others_are_lower_and_higher() {
        let level = |i: i32| f64::from(i % 3);
        let mut points: Vec<(f64, f64)> = (0..9_000).map(|i| (f64::from(i), level(i))).collect();
        points[0].1 = 1.0;
        points[8_999].1 = 1.0;
        let kept = downsample(&points, POINTS_MAX);
        assert!(kept.len() <= POINTS_MAX);
        assert_eq!(kept.first(), points.first());
        assert_eq!(kept.last(), points.last());
    }

    #[test]
    fn short_lines_stay_as_they_are() {
        let points = [(0.0, 1.0), (1.0, 2.0)];
        assert_eq!(downsample(&points, POINTS_MAX), points);
    }

    #[test]
    fn large_values_get_a_coarser_unit_and_no_value_is_an_empty_column() {
        let mut blob = Blob::default();
        let line = pack(&mut blob, &[(0.0, 0.0), (1.0, 8e12)], 1.0);
        assert_eq!(line.v.unit, 10_000.0);
        assert_eq!(pack(&mut blob, &[], 1.0).v.column.n, 0);
    }

    #[test]
    fn numbers_that_are_not_finite_neither_count_nor_hang() {
        let mut blob = Blob::default();
        let odd = [f64::NAN, 3.0, f64::INFINITY, 5.0];
        let packed = scaled(&mut blob, odd.into_iter(), 1.0);
        assert_eq!((packed.column.n, packed.origin, packed.unit), (4, 3.0, 1.0));
    }
}
