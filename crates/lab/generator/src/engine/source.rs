//! What is due when: the schedule, and what of it was not sent yet; or users, each of whom
//! goes on as soon as the last answer and the pause after it are over.

use std::collections::VecDeque;
use std::time::Duration;

use lab_load::arrivals::Numbers;
use lab_load::{Length, Model, Pace, Segment, Workload};
use wire::deadlines::{Deadlines, NEVER};

use super::exchange::Delay;
use super::plan::{Arrival, Plan, Timing, Turn};
use super::{DRAIN, nanos};

/// Lateness that makes no difference to a wait for a connection, in nanoseconds.
const PROMPT: u64 = 1_000_000;

/// Who decides when the next request is made.
#[derive(Debug)]
enum Pacing {
    /// Nobody: there is no segment, or it is over.
    Nobody,
    /// The schedule.
    Schedule(Box<Scheduled>),
    /// Users.
    Users {
        think: u64,
        /// Number of the next request, and the distance to the one after it.
        next: u64,
        step: u64,
        /// Requests that are left.
        left: u64,
    },
}

/// A schedule, and what it was made of.
#[derive(Debug)]
struct Scheduled {
    plan: Plan,
    numbers: Numbers,
    seed: u64,
}

impl Scheduled {
    /// From `at` on the rate is another; `end`: of the segment, if that is known.
    fn turn(&mut self, at: u64, rate: f64, end: Option<u64>) {
        let Some((arrivals, first)) = self.numbers.turn(at, rate) else {
            return;
        };
        let length = Length {
            duration: end.map(|end| Duration::from_nanos(end.saturating_sub(at))),
            requests: None,
        };
        self.plan.turn(&Turn {
            at,
            schedule: arrivals.schedule(&length, self.seed ^ first),
            first,
        });
    }
}

/// Arrivals that the thread found late to be short of a connection: they wait from then on.
#[derive(Debug)]
struct FoundLate {
    /// Their numbers.
    from: u64,
    below: u64,
    at: u64,
}

/// When an arrival was found; `None`: in time.
fn found(late: &VecDeque<FoundLate>, number: u64) -> Option<u64> {
    let found = late.iter().find(|found| number < found.below);
    found
        .filter(|found| found.from <= number)
        .map(|found| found.at)
}

/// See the module. Times are nanoseconds of the loop's clock.
#[derive(Debug)]
pub(super) struct Source {
    /// Number of this thread over all generators, and how many there are.
    thread: u32,
    threads: u32,
    pacing: Pacing,
    /// Whether it is a segment of users.
    users: bool,
    /// Until when users pause.
    pauses: Deadlines,
    /// Number of the segment's first arrival.
    first: u64,
    /// Arrivals below these numbers had to wait for a connection to open, or for one
    /// to become free because no more may be opened.
    excused: u64,
    capped: u64,
    /// Of those that wait, the ones whose wait began after they were due.
    found_late: VecDeque<FoundLate>,
    /// When the first of those fell due that were counted and not looked at yet.
    counted: u64,
    /// Arrivals that came due and were told; requests of journeys beyond the first that
    /// were not.
    came_due: u64,
    later_steps: u64,
    /// When the segment ended; requests may still be under way.
    ended: Option<u64>,
    /// When arrivals that still wait for a connection are given up.
    given_up_at: u64,
    /// Whether journeys end with it, and are not gone on with.
    cut_off: bool,
}

impl Source {
    /// That of thread number `thread` of `threads`, without a segment.
    pub(super) fn new(thread: u32, threads: u32) -> Self {
        Self {
            thread,
            threads,
            pacing: Pacing::Nobody,
            users: false,
            pauses: Deadlines::default(),
            first: 0,
            excused: 0,
            capped: 0,
            found_late: VecDeque::new(),
            counted: NEVER,
            came_due: 0,
            later_steps: 0,
            ended: None,
            given_up_at: NEVER,
            cut_off: false,
        }
    }

    /// A segment begins.
    pub(super) fn begin(&mut self, segment: &Segment, began: u64, workload: &Workload) {
        (self.first, self.excused, self.capped) = (segment.first, 0, 0);
        (self.came_due, self.later_steps, self.ended) = (0, 0, None);
        (self.given_up_at, self.cut_off) = (NEVER, false);
        self.found_late.clear();
        self.counted = NEVER;
        let (thread, threads) = (u64::from(self.thread), u64::from(self.threads));
        self.pacing = match &segment.model {
            Model::Open(arrivals) => {
                // Segments at the same rate are not the same schedule.
                let seed = workload.seed ^ segment.first;
                let schedule = arrivals.schedule(&segment.length, seed);
                let tick = match workload.pace {
                    Pace::Tick(tick) => nanos(tick),
                    _ => 0,
                };
                let timing = Timing { began, tick };
                Pacing::Schedule(Box::new(Scheduled {
                    plan: Plan::new(schedule, self.thread, self.threads, timing),
                    numbers: Numbers::new(arrivals.clone(), began),
                    seed,
                }))
            }
            Model::Closed { think } => {
                let own = |all: u64| all / threads + u64::from(thread < all % threads);
                Pacing::Users {
                    think: nanos(*think),
                    next: segment.first + thread,
                    step: threads,
                    left: segment.length.requests.map_or(u64::MAX, own),
                }
            }
        };
        self.users = matches!(self.pacing, Pacing::Users { .. });
    }

    /// Whether users decide when requests are made, not the schedule.
    pub(super) fn is_users(&self) -> bool {
        self.users
    }

    /// When the segment ended.
    pub(super) fn ended(&self) -> Option<u64> {
        self.ended
    }

    /// When arrivals that still wait for a connection are given up; never before the end.
    pub(super) fn given_up_at(&self) -> u64 {
        self.given_up_at
    }

    /// Whether no step of a journey begins any more after a pause.
    pub(super) fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// Nothing falls due from `at` on.
    pub(super) fn cut(&mut self, at: u64) {
        if let Pacing::Schedule(own) = &mut self.pacing {
            own.plan.end_at(at);
        }
    }

    /// From `at` on requests fall due at another rate; `end`: of the segment, if that is known.
    pub(super) fn turn(&mut self, at: u64, rate: f64, end: Option<u64>) {
        if let Pacing::Schedule(own) = &mut self.pacing {
            own.turn(at, rate, end);
        }
    }

    /// All that the segment has was begun; those that pause go on.
    pub(super) fn run_out(&mut self, at: u64) {
        (self.ended, self.given_up_at) = (Some(at), at.saturating_add(DRAIN));
    }

    /// Ends the segment: what was due by then may still be sent, unless all is to stop. A thread
    /// that did not run sees the end at `now` only, and what fell due meanwhile has its time too.
    /// Gives the places whose users paused; none goes on.
    pub(super) fn end(&mut self, at: u64, now: u64, stop: bool) -> Vec<u32> {
        (self.ended, self.cut_off) = (Some(at), true);
        self.given_up_at = now.saturating_add(DRAIN);
        if stop || self.users {
            self.pacing = Pacing::Nobody;
        }
        let pausing = self.pauses.iter().map(|(place, _)| place).collect();
        self.pauses = Deadlines::default();
        pausing
    }

    /// Gives up what is left.
    pub(super) fn give_up(&mut self) {
        self.pacing = Pacing::Nobody;
    }

    /// Whether no request will be begun any more.
    pub(super) fn is_exhausted(&self) -> bool {
        match &self.pacing {
            Pacing::Nobody => true,
            Pacing::Schedule(own) => own.plan.next_due().is_none(),
            Pacing::Users { left, .. } => *left == 0,
        }
    }

    /// Whether no user pauses.
    pub(super) fn is_idle(&self) -> bool {
        self.pauses.is_empty()
    }

    /// Whether an arrival is due.
    #[inline]
    pub(super) fn is_due(&self, now: u64) -> bool {
        match &self.pacing {
            Pacing::Schedule(own) => own.plan.next_due().is_some_and(|due| due <= now),
            Pacing::Nobody | Pacing::Users { .. } => false,
        }
    }

    /// Takes the arrival that has been due longest, with its number among all requests, and says what
    /// kept it from being sent, and how late it was found to be short of a connection.
    #[inline]
    pub(super) fn take(&mut self, now: u64) -> Option<(Arrival, Delay, u64)> {
        let Pacing::Schedule(own) = &mut self.pacing else {
            return None;
        };
        let mut arrival = own.plan.take(now)?;
        let delay = match arrival.number {
            number if number < self.capped => Delay::Capped,
            number if number < self.excused => Delay::Opening,
            _ => Delay::Own,
        };
        let found = match delay {
            Delay::Own => None,
            Delay::Opening | Delay::Capped => found(&self.found_late, arrival.number),
        };
        let found_late = found.map_or(0, |at| at.saturating_sub(arrival.due));
        arrival.number += self.first;
        Some((arrival, delay, found_late))
    }

    /// Why an arrival waits for a connection that has done so for `within`, as long as its
    /// user does; `busy`: why none is free, where no more may be opened.
    pub(super) fn overdue(
        &self,
        now: u64,
        within: u64,
        opening: bool,
        busy: &'static str,
    ) -> Option<&'static str> {
        let (first, given_up) = self.first_waiting(within)?;
        (given_up <= now).then(|| self.lacks(first, opening, busy))
    }

    /// When the arrival that waits longest for a connection is given up.
    pub(super) fn first_given_up(&self, within: u64) -> u64 {
        if self.is_exhausted() {
            return NEVER;
        }
        let by_user = self.first_waiting(within).map_or(NEVER, |(_, at)| at);
        by_user.min(self.given_up_at)
    }

    /// Every arrival that was due found a connection.
    pub(super) fn none_waits(&mut self) {
        self.counted = NEVER;
    }

    /// Why the arrival that waits longest has no connection; `busy`: why none is free.
    pub(super) fn first_lacks(&self, opening: bool, busy: &'static str) -> &'static str {
        let first = match &self.pacing {
            Pacing::Schedule(own) => own.plan.first(),
            Pacing::Nobody | Pacing::Users { .. } => None,
        };
        self.lacks(first.map_or(0, |first| first.number), opening, busy)
    }

    fn lacks(&self, number: u64, opening: bool, busy: &'static str) -> &'static str {
        match number < self.capped && !opening {
            true => busy,
            false => "timeout",
        }
    }

    /// The arrival that waits longest for a connection, and when its user gives up: what fell due
    /// while the thread did not run has not waited for the target meanwhile.
    fn first_waiting(&self, within: u64) -> Option<(u64, u64)> {
        let Pacing::Schedule(own) = &self.pacing else {
            return None;
        };
        let first = own.plan.first()?;
        let since = found(&self.found_late, first.number).unwrap_or(first.due);
        (first.number < self.excused).then(|| (first.number, since.saturating_add(within)))
    }

    /// How many arrivals are due though no connection is free, and by how many nanoseconds
    /// they were looked at too late.
    pub(super) fn shortage(&mut self, now: u64) -> Option<(u64, u64)> {
        let Pacing::Schedule(own) = &mut self.pacing else {
            return None;
        };
        let plan = &mut own.plan;
        let from = self.excused;
        let due = match plan.first() {
            Some(first) if first.number >= from => first.due,
            // Others wait already: these fell due since somebody looked, or since they were counted.
            _ => plan.next_to_fall_due().unwrap_or(NEVER).min(self.counted),
        };
        self.counted = NEVER;
        let backlog = plan.backlog(now);
        self.excused = from.max(plan.first_not_due(now));
        let late = now.saturating_sub(due);
        if late > PROMPT && from < self.excused {
            let first = plan.first().map_or(u64::MAX, |first| first.number);
            while self
                .found_late
                .front()
                .is_some_and(|found| found.below <= first)
            {
                self.found_late.pop_front();
            }
            self.found_late.push_back(FoundLate {
                from,
                below: self.excused,
                at: now,
            });
        }
        Some((backlog, late))
    }

    /// No connection may be opened for those that are short of one.
    pub(super) fn cap(&mut self) {
        self.capped = self.excused;
    }

    /// A user makes another request, if there is one left: gives its number.
    pub(super) fn next_of_user(&mut self) -> Option<u64> {
        let Pacing::Users {
            next, step, left, ..
        } = &mut self.pacing
        else {
            return None;
        };
        *left = left.checked_sub(1)?;
        let number = *next;
        *next += *step;
        Some(number)
    }

    /// How long a user pauses who is to go on.
    pub(super) fn think(&self) -> Option<u64> {
        match &self.pacing {
            Pacing::Users { think, left, .. } => (*left > 0).then_some(*think),
            Pacing::Nobody | Pacing::Schedule(_) => None,
        }
    }

    /// The user of a place pauses.
    pub(super) fn pause(&mut self, place: u32, until: u64) {
        self.pauses.set(place, until);
    }

    /// A place whose pause is over, and when it was to end.
    pub(super) fn paused(&mut self, now: u64) -> Option<(u32, u64)> {
        self.pauses.expired(now)
    }

    /// A journey has a request beyond its first.
    pub(super) fn step(&mut self) {
        self.later_steps += 1;
    }

    /// How many requests fell due since the last call.
    pub(super) fn planned(&mut self, now: u64) -> u64 {
        let mut planned = std::mem::take(&mut self.later_steps);
        if let Pacing::Schedule(own) = &mut self.pacing {
            let next = own.plan.next_to_fall_due().filter(|due| *due <= now);
            self.counted = self.counted.min(next.unwrap_or(NEVER));
            let all = own.plan.came_due(now);
            planned += all - self.came_due;
            self.came_due = all;
        }
        planned
    }

    /// When something is to be done; `room`: more connections may be opened; `within`: how
    /// long users wait.
    pub(super) fn next_wake(&self, now: u64, room: bool, within: u64) -> u64 {
        let Pacing::Schedule(own) = &self.pacing else {
            return self.pauses.next();
        };
        let plan = &own.plan;
        let arrival = match plan.next_due() {
            Some(due) if due > now => Some(due),
            // Arrivals wait for connections. One more can only get a connection of its own.
            Some(_) if room => plan.next_to_fall_due(),
            _ => None,
        };
        let given_up = self.first_given_up(within);
        self.pauses
            .next()
            .min(arrival.unwrap_or(NEVER))
            .min(given_up)
            .min(self.given_up_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_is_seen_late_leaves_arrivals_their_time() {
        let mut source = Source::new(0, 1);
        assert_eq!(source.given_up_at(), NEVER);
        assert!(source.end(1_000, 9 * DRAIN, false).is_empty());
        assert_eq!(source.ended(), Some(1_000));
        assert_eq!(source.given_up_at(), 10 * DRAIN);
    }
}
