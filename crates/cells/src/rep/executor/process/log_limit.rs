//! How much a container may write into its log.

use std::time::{Duration, Instant};

/// How long nothing is taken after too much came.
const MUTED: Duration = Duration::from_secs(1);

/// What becomes of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LineOutcome {
    /// It is logged.
    Logged,
    /// It is left out.
    Dropped,
    /// It is left out, as the first one that is too much, and this is said in its place.
    Exceeded(String),
}

/// Bytes, and lines, that a container may log within a second; what it does not use in one
/// second it has in the next. The texts are Diego's.
#[derive(Debug, Clone)]
pub(super) struct LogLimit {
    bytes: Option<Allowance>,
    lines: Option<Allowance>,
    muted_until: Option<Instant>,
}

/// So much a second, and no more than that at once.
#[derive(Debug, Clone)]
struct Allowance {
    each_second: f64,
    left: f64,
    since: Option<Instant>,
}

impl Allowance {
    fn new(each_second: f64) -> Self {
        Self {
            each_second,
            left: each_second,
            since: None,
        }
    }

    fn take(&mut self, now: Instant, wanted: f64) -> bool {
        if let Some(since) = self.since.replace(now) {
            let more = now.saturating_duration_since(since).as_secs_f64() * self.each_second;
            self.left = (self.left + more).min(self.each_second);
        }
        let taken = wanted <= self.left;
        if taken {
            self.left -= wanted;
        }
        taken
    }
}

impl LogLimit {
    /// So many bytes a second, where -1 is any number and 0 is none; and lines, where `None`
    /// is any number.
    pub(super) fn new(bytes: i64, lines: Option<u32>) -> Self {
        let allowed = u64::try_from(bytes).ok();
        Self {
            bytes: allowed.map(|bytes| Allowance::new(bytes as f64)),
            lines: lines.map(|lines| Allowance::new(lines.into())),
            muted_until: None,
        }
    }

    /// Takes a line of so many bytes.
    pub(super) fn take(&mut self, now: Instant, bytes: usize) -> LineOutcome {
        if self.bytes.as_ref().is_some_and(|it| it.each_second == 0.0)
            || self.muted_until.is_some_and(|until| now < until)
        {
            return LineOutcome::Dropped;
        }
        let exceeded = "app instance exceeded log rate limit";
        let too_much = |allowance: &mut Option<Allowance>, wanted: f64| {
            let allowance = allowance.as_mut()?;
            (!allowance.take(now, wanted)).then_some(allowance.each_second)
        };
        let said = if let Some(limit) = too_much(&mut self.bytes, bytes as f64) {
            format!("{exceeded} ({limit} bytes/sec)")
        } else if let Some(limit) = too_much(&mut self.lines, 1.0) {
            format!("{exceeded} ({limit} log-lines/sec) set by platform operator")
        } else {
            return LineOutcome::Logged;
        };
        self.muted_until = now.checked_add(MUTED);
        LineOutcome::Exceeded(said)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn too_much_is_told_once_and_mutes_for_a_second() {
        let began = Instant::now();
        let at = |ms| began + Duration::from_millis(ms);
        let mut limit = LogLimit::new(100, None);
        assert_eq!(limit.take(at(0), 100), LineOutcome::Logged);
        let said = "app instance exceeded log rate limit (100 bytes/sec)".to_owned();
        assert_eq!(limit.take(at(1), 100), LineOutcome::Exceeded(said));
        assert_eq!(limit.take(at(900), 1), LineOutcome::Dropped);
        assert_eq!(limit.take(at(1001), 100), LineOutcome::Logged);

        let mut limit = LogLimit::new(-1, Some(2));
        assert_eq!(limit.take(at(0), 1 << 30), LineOutcome::Logged);
        assert_eq!(limit.take(at(0), 1), LineOutcome::Logged);
        let said =
            "app instance exceeded log rate limit (2 log-lines/sec) set by platform operator";
        assert_eq!(limit.take(at(0), 1), LineOutcome::Exceeded(said.into()));

        let mut limit = LogLimit::new(0, None);
        assert_eq!(limit.take(at(0), 0), LineOutcome::Dropped);
    }

    proptest! {
        #[test]
        fn no_second_has_more_than_two_allowances(
            lines in prop::collection::vec((0..400_u64, 0..150_usize), 1..200),
        ) {
            let began = Instant::now();
            let mut limit = LogLimit::new(100, None);
            let (mut now, mut logged) = (0, Vec::new());
            for (pause, bytes) in lines {
                now += pause;
                if limit.take(began + Duration::from_millis(now), bytes) == LineOutcome::Logged {
                    logged.push((now, bytes));
                }
            }
            for (from, _) in &logged {
                let within = logged.iter().filter(|(at, _)| (*from..from + 1000).contains(at));
                prop_assert!(within.map(|(_, bytes)| bytes).sum::<usize>() <= 200);
            }
        }
    }
}
