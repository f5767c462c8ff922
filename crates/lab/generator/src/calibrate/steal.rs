//! Time that the hypervisor gave to others.

/// Processor time of the whole machine since boot, in clock ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Times {
    all: u64,
    stolen: u64,
}

impl Times {
    /// Reads `/proc/stat`. A kernel that does not say anything has nothing stolen.
    pub(crate) fn parse(stat: &str) -> Self {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "));
        let fields = line.unwrap_or_default().split_ascii_whitespace();
        // user nice system idle iowait irq softirq steal; what follows is in user.
        let ticks: Vec<u64> = fields
            .take(8)
            .map(|field| field.parse().unwrap_or(0))
            .collect();
        Self {
            all: ticks
                .iter()
                .fold(0, |sum, ticks| sum.saturating_add(*ticks)),
            stolen: ticks.get(7).copied().unwrap_or(0),
        }
    }

    /// Share of the time since `before` that was stolen, 0 to 1.
    pub(crate) fn share_stolen_since(&self, before: &Self) -> f64 {
        let all = self.all.saturating_sub(before.all);
        let stolen = self.stolen.saturating_sub(before.stolen);
        match all {
            0 => 0.0,
            all => stolen as f64 / all as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn steal_is_the_eighth_field() {
        let before = Times::parse("cpu  100 0 50 800 10 0 5 35 7 0\ncpu0 1 2 3\n");
        let after = Times::parse("cpu  160 0 60 810 10 0 5 55 9 0\ncpu0 1 2 3\n");
        assert_eq!(
            before,
            Times {
                all: 1000,
                stolen: 35
            }
        );
        assert_eq!(after.share_stolen_since(&before), 0.2);
        assert_eq!(before.share_stolen_since(&after), 0.0);
    }

    proptest! {
        #[test]
        fn any_text_gives_a_share(before in ".{0,80}", after in "cpu [ 0-9]{0,80}") {
            let share = Times::parse(&after).share_stolen_since(&Times::parse(&before));
            prop_assert!((0.0..=1.0).contains(&share));
        }
    }
}
