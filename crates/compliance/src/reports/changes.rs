//! How often rules change something: repairs per six hours of the last three days.

use std::collections::HashMap;

use super::decision::UnixMillis;
use super::matching::Ids;
use super::runlog::{ReportKind, RunLog};

/// Milliseconds of a slot; slots begin at 0, 6, 12 and 18 o'clock UTC.
pub const SLOT: i64 = 6 * 3_600_000;

/// Slots that three days touch.
pub const SLOTS: usize = 13;

/// Repairs of the last slots by rule, at most 64 bytes a rule.
#[derive(Debug, Default)]
pub struct Changes {
    rules: HashMap<u32, Counts>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    /// The number of the newest slot since 1970.
    newest: i64,
    /// From the newest slot to the oldest.
    counts: [u32; SLOTS],
}

impl Changes {
    /// Counts the repairs of a run at its start. The same run should be given once. A node whose
    /// clock is ahead counts as of now, so that it does not push out the others.
    pub fn count_run(&mut self, run: &RunLog<'_>, ids: &mut Ids, now: UnixMillis) {
        let mut last = ("", 0);
        for report in &run.reports {
            if report.kind() == ReportKind::ResultRepaired {
                if last.0 != report.rule_id {
                    last = (report.rule_id, ids.reported(report.rule_id));
                }
                let at = report.start_datetime.unix_millis().min(now);
                self.count(last.1, at, 1);
            }
        }
    }

    /// When the oldest of the slots up to now begins.
    pub fn oldest(now: UnixMillis) -> UnixMillis {
        (now.div_euclid(SLOT) - SLOTS as i64 + 1) * SLOT
    }

    /// Counts some repairs of a rule. What is older than its newest slot by three days is not
    /// counted.
    pub fn count(&mut self, rule: u32, at: UnixMillis, repairs: u32) {
        let slot = at.div_euclid(SLOT);
        let fresh = Counts {
            newest: slot,
            counts: [0; SLOTS],
        };
        let counts = self.rules.entry(rule).or_insert(fresh);
        counts.move_to(slot);
        if let Some(count) = counts.at(slot) {
            *count = count.saturating_add(repairs);
        }
    }

    /// Repairs of a rule in the slots up to now, from the oldest: when each begins, and how many.
    pub fn of_rule(&self, rule: u32, now: UnixMillis) -> [(UnixMillis, u32); SLOTS] {
        let newest = now.div_euclid(SLOT);
        let mut counts = self.rules.get(&rule).copied();
        let mut slots = [(0, 0); SLOTS];
        for (age, slot) in (0_i64..).zip(slots.iter_mut().rev()) {
            let number = newest - age;
            let count = counts
                .as_mut()
                .and_then(|counts| counts.at(number).copied());
            *slot = (number * SLOT, count.unwrap_or(0));
        }
        slots
    }

    /// Forgets rules that changed nothing in the slots up to now.
    pub fn expire(&mut self, now: UnixMillis) {
        let oldest = Self::oldest(now);
        self.rules
            .retain(|_, counts| counts.newest * SLOT >= oldest);
    }

    /// Rules that are counted.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Is none counted?
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

impl Counts {
    fn move_to(&mut self, slot: i64) {
        let slots = usize::try_from(slot - self.newest).unwrap_or(0).min(SLOTS);
        if slots > 0 {
            self.counts.rotate_right(slots);
            self.counts
                .iter_mut()
                .take(slots)
                .for_each(|count| *count = 0);
            self.newest = slot;
        }
    }

    fn at(&mut self, slot: i64) -> Option<&mut u32> {
        let age = usize::try_from(self.newest - slot).ok()?;
        self.counts.get_mut(age)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::{Changes, Ids, RunLog, SLOT, SLOTS};
    use crate::reports::run_info::RunInfo;
    use crate::reports::runlog::Limits;

    #[test]
    fn repairs_are_counted_by_their_slot() {
        let mut changes = Changes::default();
        let now = 100 * SLOT;
        changes.count(1, now, 2);
        changes.count(1, now - 1, 3);
        changes.count(1, now + SLOT - 1, 4);
        changes.count(1, now - 13 * SLOT, 5);
        let slots = changes.of_rule(1, now);
        assert_eq!(slots[SLOTS - 1], (now, 6));
        assert_eq!(slots[SLOTS - 2], (now - SLOT, 3));
        assert_eq!(slots.iter().map(|(_, count)| count).sum::<u32>(), 9);
        assert!(changes.of_rule(2, now).iter().all(|(_, count)| *count == 0));
        changes.expire(now + 12 * SLOT);
        assert_eq!(changes.len(), 1);
        changes.expire(now + 13 * SLOT);
        assert!(changes.is_empty());
    }

    #[test]
    fn a_clock_ahead_pushes_nothing_out() {
        let line = |year: &str| {
            format!(
                "2018-08-24T15:55:01Z R: @@T@@result_repaired@@r@@d@@0@@c@@k@@\
                 {year}-08-24 15:55:01+00:00##n@#m\n"
            )
        };
        let text = line("2018") + &line("2099") + &line("2018").replace("repaired", "success");
        let info = RunInfo::from_file_name("n_2018-08-24T15:55:01Z.log")
            .unwrap()
            .0;
        let run = RunLog::parse(info, &text, &Limits::default()).unwrap();
        let now = run.start().unix_millis();
        let (mut changes, mut ids) = (Changes::default(), Ids::default());
        changes.count_run(&run, &mut ids, now);
        assert_eq!(changes.of_rule(ids.number("r"), now)[SLOTS - 1].1, 2);
    }

    proptest! {
        #[test]
        fn counts_are_those_of_a_list(
            events in prop::collection::vec((0_u32..3, 0_i64..40, 1_u32..5), 0..40),
        ) {
            let mut changes = Changes::default();
            let mut newest: HashMap<u32, i64> = HashMap::new();
            let mut list = Vec::new();
            for (rule, slot, count) in events {
                changes.count(rule, slot * SLOT + 7, count);
                let newest = newest.entry(rule).or_insert(slot);
                *newest = slot.max(*newest);
                // What comes too late is not counted.
                if slot > *newest - SLOTS as i64 {
                    list.push((rule, slot, count));
                }
            }
            for rule in 0..3 {
                for (begin, count) in changes.of_rule(rule, 40 * SLOT) {
                    let same = list.iter().filter(|(r, slot, _)| (*r, slot * SLOT) == (rule, begin));
                    prop_assert_eq!(count, same.map(|(_, _, count)| count).sum::<u32>());
                }
            }
        }
    }
}
