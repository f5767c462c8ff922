//! A thread's own part of the schedule, and how far it has come.
//!
//! Nothing is queued. What is due and not sent yet lies between two cursors of the same
//! schedule, so a target that stops answering costs no memory and loses no arrival.

use std::collections::VecDeque;

use lab_load::arrivals::Schedule;

/// One arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Its number in the schedule, over all threads.
    pub(super) number: u64,
    /// When it is due, on the clock of the loop.
    pub(super) due: u64,
}

/// A place in the schedule, before an arrival of the thread's own.
#[derive(Debug, Clone)]
struct Cursor {
    schedule: Schedule,
    head: Option<Arrival>,
    /// Own arrivals before the head.
    passed: u64,
    /// Arrivals of other threads before the first own one, and between two own ones.
    before: usize,
    others: usize,
    timing: Timing,
    /// Arrivals of this schedule that are due from then on are none.
    until: u64,
    /// Arrivals of any schedule that are due from then on are none.
    end: u64,
    /// What follows on the schedule.
    turns: VecDeque<Turn>,
}

/// Another schedule from some moment on.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    /// When it begins, on the clock of the loop.
    pub(super) at: u64,
    pub(super) schedule: Schedule,
    /// Number of its first arrival, over all threads; above those of earlier ones.
    pub(super) first: u64,
}

/// What a schedule's times become.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    /// Start of the segment, on the clock of the loop.
    pub(super) began: u64,
    /// Length of a tick; 0: no ticks. Arrivals are put off to the end of their tick.
    pub(super) tick: u64,
}

impl Timing {
    fn of(self, time: u64) -> u64 {
        let put_off = match self.tick {
            0 => time,
            tick => time.div_ceil(tick).saturating_mul(tick),
        };
        self.began.saturating_add(put_off)
    }
}

impl Cursor {
    fn new(schedule: Schedule, thread: u32, threads: u32, timing: Timing) -> Self {
        let mut cursor = Self {
            schedule,
            head: None,
            passed: 0,
            before: thread as usize,
            others: threads.max(1) as usize - 1,
            timing,
            until: u64::MAX,
            end: u64::MAX,
            turns: VecDeque::new(),
        };
        cursor.start(0);
        cursor
    }

    /// Goes to the first own arrival of a schedule whose numbers begin with `first`.
    fn start(&mut self, first: u64) {
        self.head = self.schedule.nth(self.before).map(|time| Arrival {
            number: first + self.before as u64,
            due: self.timing.of(time),
        });
    }

    fn advance(&mut self) -> Option<Arrival> {
        let head = self.head?;
        self.passed += 1;
        self.head = self.schedule.nth(self.others).map(|time| Arrival {
            number: head.number + self.others as u64 + 1,
            due: self.timing.of(time),
        });
        self.cut();
        Some(head)
    }

    /// Takes the next schedule where this one is over.
    fn cut(&mut self) {
        loop {
            let end = self.until.min(self.end);
            if self.head.is_some_and(|arrival| arrival.due < end) {
                return;
            }
            self.head = None;
            let Some(turn) = self.turns.pop_front() else {
                return;
            };
            self.schedule = turn.schedule;
            self.timing.began = turn.at;
            self.until = self.turns.front().map_or(u64::MAX, |next| next.at);
            self.start(turn.first);
        }
    }

    fn turn(&mut self, turn: Turn) {
        if self.turns.is_empty() {
            self.until = turn.at;
        }
        self.turns.push_back(turn);
        self.cut();
    }
}

/// How far a thread has come in its part of a schedule.
#[derive(Debug)]
pub(super) struct Plan {
    /// Before the first arrival that was not taken.
    next: Cursor,
    /// Before the first arrival that is not due; only while some wait between the two.
    due: Option<Cursor>,
}

impl Plan {
    /// The part of thread number `thread` of `threads`.
    pub(super) fn new(schedule: Schedule, thread: u32, threads: u32, timing: Timing) -> Self {
        Self {
            next: Cursor::new(schedule, thread, threads, timing),
            due: None,
        }
    }

    /// Nothing falls due from `end` on.
    pub(super) fn end_at(&mut self, end: u64) {
        for cursor in std::iter::once(&mut self.next).chain(&mut self.due) {
            cursor.end = end;
            cursor.cut();
        }
    }

    /// From a moment on, which is later than that of any turn before, another schedule decides.
    pub(super) fn turn(&mut self, turn: &Turn) {
        for cursor in std::iter::once(&mut self.next).chain(&mut self.due) {
            cursor.turn(turn.clone());
        }
    }

    /// The first arrival that was not taken.
    pub(super) fn first(&self) -> Option<Arrival> {
        self.next.head
    }

    /// When the first arrival that was not taken is due.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.first().map(|arrival| arrival.due)
    }

    /// When the next arrival falls due that is not due at the time of the last call
    /// of [`Plan::backlog`].
    pub(super) fn next_to_fall_due(&self) -> Option<u64> {
        let cursor = self.due.as_ref().unwrap_or(&self.next);
        cursor.head.map(|arrival| arrival.due)
    }

    /// Takes the first arrival, if it is due.
    pub(super) fn take(&mut self, now: u64) -> Option<Arrival> {
        if self.next_due()? > now {
            return None;
        }
        let arrival = self.next.advance();
        if self
            .due
            .as_ref()
            .is_some_and(|due| due.passed <= self.next.passed)
        {
            self.due = None;
        }
        arrival
    }

    /// Number of the first arrival that is not due, which must not be asked for
    /// earlier times later.
    pub(super) fn first_not_due(&mut self, now: u64) -> u64 {
        let cursor = self.at(now);
        cursor.head.map_or(u64::MAX, |arrival| arrival.number)
    }

    /// How many arrivals are due and were not taken.
    pub(super) fn backlog(&mut self, now: u64) -> u64 {
        self.came_due(now) - self.next.passed
    }

    /// How many arrivals have come due since the start.
    pub(super) fn came_due(&mut self, now: u64) -> u64 {
        self.at(now).passed
    }

    /// The cursor before the first arrival that is not due.
    fn at(&mut self, now: u64) -> &Cursor {
        if self.next_due().is_none_or(|due| due > now) && self.due.is_none() {
            return &self.next;
        }
        let cursor = self.due.get_or_insert_with(|| self.next.clone());
        while cursor.head.is_some_and(|arrival| arrival.due <= now) {
            cursor.advance();
        }
        cursor
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lab_load::Length;
    use lab_load::arrivals::Arrivals;
    use proptest::prelude::*;

    use super::*;

    const AS_IT_IS: Timing = Timing { began: 0, tick: 0 };

    fn schedule(times: &[u64]) -> Schedule {
        let times: Arc<[u64]> = times.into();
        Arrivals::Trace(times).schedule(&Length::default(), 1)
    }

    #[test]
    fn a_tick_puts_arrivals_off_to_its_end() {
        let mut plan = Plan::new(
            schedule(&[0, 1, 10, 11]),
            0,
            1,
            Timing { began: 0, tick: 10 },
        );
        let due = |plan: &mut Plan| plan.take(u64::MAX).map(|arrival| arrival.due);
        assert_eq!(due(&mut plan), Some(0));
        assert_eq!(due(&mut plan), Some(10));
        assert_eq!(due(&mut plan), Some(10));
        assert_eq!(due(&mut plan), Some(20));
        assert_eq!(due(&mut plan), None);
    }

    #[test]
    fn what_is_due_from_the_end_on_is_nobodys() {
        let mut plan = Plan::new(schedule(&[0, 5, 10, 15]), 0, 1, AS_IT_IS);
        assert_eq!(plan.came_due(6), 2);
        plan.end_at(10);
        assert_eq!(plan.came_due(u64::MAX), 2);
        let mut due = Vec::new();
        while let Some(arrival) = plan.take(u64::MAX) {
            due.push(arrival.due);
        }
        assert_eq!(due, [0, 5]);
    }

    fn all(plan: &mut Plan) -> Vec<(u64, u64)> {
        let mut taken = Vec::new();
        while let Some(arrival) = plan.take(u64::MAX) {
            taken.push((arrival.number, arrival.due));
        }
        taken
    }

    fn turn(at: u64, times: &[u64], first: u64) -> Turn {
        let schedule = schedule(times);
        Turn {
            at,
            schedule,
            first,
        }
    }

    #[test]
    fn another_schedule_follows_at_its_moment() {
        let mut plan = Plan::new(schedule(&[0, 5, 10, 15]), 0, 1, AS_IT_IS);
        assert_eq!(plan.came_due(6), 2);
        plan.turn(&turn(10, &[0, 1], 100));
        plan.turn(&turn(40, &[2, 3, 9], 200));
        plan.end_at(45);
        assert_eq!(plan.came_due(42), 5);
        let expected = [(0, 0), (1, 5), (100, 10), (101, 11), (200, 42), (201, 43)];
        assert_eq!(all(&mut plan), expected);
        assert_eq!(plan.came_due(u64::MAX), 6);
        // Where the first has run out, and where none of the first was due.
        let mut plan = Plan::new(schedule(&[3]), 0, 1, AS_IT_IS);
        assert!(plan.take(3).is_some() && plan.next_due().is_none());
        plan.turn(&turn(10, &[1], 7));
        assert_eq!(plan.next_due(), Some(11));
        let mut plan = Plan::new(schedule(&[90]), 0, 1, AS_IT_IS);
        plan.turn(&turn(10, &[1], 7));
        assert_eq!(all(&mut plan), [(7, 11)]);
    }

    proptest! {
        #[test]
        fn threads_share_what_follows_too(
            mut times in proptest::collection::vec(0..100_u64, 0..40),
            mut later in proptest::collection::vec(0..100_u64, 0..40),
            at in 1..120_u64,
            told in 0..120_u64,
            threads in 1..5_u32,
        ) {
            times.sort_unstable();
            later.sort_unstable();
            let mut seen = Vec::new();
            for thread in 0..threads {
                let mut plan = Plan::new(schedule(&times), thread, threads, AS_IT_IS);
                // A backlog has a cursor of its own.
                plan.backlog(told.min(at - 1));
                plan.turn(&turn(at, &later, 1000));
                seen.extend(all(&mut plan));
            }
            seen.sort_unstable();
            let before = (0..).zip(times).filter(|(_, due)| *due < at);
            let after = (1000..).zip(later.into_iter().map(|time| at + time));
            let expected: Vec<(u64, u64)> = before.chain(after).collect();
            prop_assert_eq!(seen, expected);
        }

        #[test]
        fn threads_share_all_arrivals(
            mut times in proptest::collection::vec(0..100_u64, 0..60),
            threads in 1..5_u32,
        ) {
            times.sort_unstable();
            let mut seen = Vec::new();
            for thread in 0..threads {
                let mut plan = Plan::new(schedule(&times), thread, threads, AS_IT_IS);
                while let Some(arrival) = plan.take(u64::MAX) {
                    seen.push((arrival.number, arrival.due));
                }
            }
            seen.sort_unstable();
            let expected: Vec<_> = (0..).zip(times).collect();
            prop_assert_eq!(seen, expected);
        }

        #[test]
        fn the_backlog_is_what_is_due_and_not_taken(
            mut times in proptest::collection::vec(0..100_u64, 0..60),
            steps in proptest::collection::vec((0..20_u64, 0..5_usize), 0..20),
        ) {
            times.sort_unstable();
            let mut plan = Plan::new(schedule(&times), 0, 1, AS_IT_IS);
            let (mut now, mut taken) = (0, 0);
            for (passed, takes) in steps {
                now += passed;
                let due = times.iter().filter(|time| **time <= now).count();
                for _ in 0..takes {
                    taken += usize::from(plan.take(now).is_some());
                }
                prop_assert_eq!(plan.backlog(now), (due - taken) as u64);
                prop_assert_eq!(plan.came_due(now), due as u64);
                let first = if due < times.len() { due as u64 } else { u64::MAX };
                prop_assert_eq!(plan.first_not_due(now), first);
                prop_assert_eq!(plan.next_to_fall_due(), times.get(due).copied());
                prop_assert_eq!(plan.next_due(), times.get(taken).copied());
            }
        }
    }
}
