//! Whether a process has left its level, as early as can be said.

/// An alarm of [`cusum`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alarm {
    /// Index of the value with which the alarm was raised.
    pub at: usize,
    /// Index of the first value of the excursion.
    pub since: usize,
    /// Whether values rose; else they fell.
    pub up: bool,
}

/// Cumulative sums (Page, "Continuous inspection schemes", 1954), one for either side: each value
/// adds by how many deviations it is beyond `level`, less `slack`, and a sum above `limit` is
/// an alarm. The first one, or `None`. A sum never falls below zero.
///
/// With a slack of 0.5 and a limit of 5 a level that moved by one deviation is noticed after ten
/// values on average, and normal values without a change raise an alarm in every 465.
/// Values that are not finite, and a deviation of 0, say nothing.
#[must_use]
pub fn cusum(values: &[f64], level: f64, deviation: f64, slack: f64, limit: f64) -> Option<Alarm> {
    let (mut sums, mut since) = ([0.0; 2], [0; 2]);
    for (at, value) in values.iter().enumerate() {
        let away = (value - level) / deviation;
        if !away.is_finite() {
            continue;
        }
        for (side, away) in [(0, away), (1, -away)] {
            if sums[side] == 0.0 {
                since[side] = at;
            }
            sums[side] = (sums[side] + away - slack).max(0.0);
            if sums[side] > limit {
                let (since, up) = (since[side], side == 0);
                return Some(Alarm { at, since, up });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix;

    /// How many values pass until the alarm, on average.
    fn run_length(shift: f64) -> f64 {
        let mut random = SplitMix::new(13);
        let runs = (0..400).map(|_| {
            let values: Vec<f64> = (0..6000).map(|_| shift + random.normal()).collect();
            cusum(&values, 0.0, 1.0, 0.5, 5.0).map_or(6000, |alarm| alarm.at + 1) as f64
        });
        runs.sum::<f64>() / 400.0
    }

    #[test]
    fn alarms_come_as_seldom_and_as_soon_as_in_the_tables() {
        // Montgomery, "Introduction to Statistical Quality Control", table 9.3: 465, 38.0, 10.4, 4.01.
        for (shift, expected, within) in [
            (0.0, 465.0, 0.25),
            (0.5, 38.0, 0.2),
            (1.0, 10.4, 0.1),
            (2.0, 4.01, 0.1),
        ] {
            let found = run_length(shift);
            assert!((found / expected - 1.0).abs() < within, "{shift}: {found}");
        }
    }

    #[test]
    fn says_since_when_and_where_to() {
        let values = [0.1, -0.2, 0.0, 3.0, 3.0, 3.0];
        let alarm = Alarm {
            at: 5,
            since: 3,
            up: true,
        };
        assert_eq!(cusum(&values, 0.0, 1.0, 0.5, 5.0), Some(alarm));
        let fallen: Vec<f64> = values.iter().map(|value| -value).collect();
        assert_eq!(
            cusum(&fallen, 0.0, 1.0, 0.5, 5.0),
            Some(Alarm { up: false, ..alarm })
        );
        assert_eq!(cusum(&values, 0.0, 0.0, 0.5, 5.0), None);
        assert_eq!(cusum(&[f64::NAN; 9], 0.0, 1.0, 0.5, 5.0), None);
    }
}
