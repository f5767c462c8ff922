//! Methods that say when something is to be done: a job at its times, a condition once.

use jiff::civil::DateTime;
use stats::fnv1a;

use super::{OnSystem, Problem};
use crate::agent::system::System;
use crate::agent::{Applied, Invocation, Outcome};
use crate::model::mode::PolicyMode;

/// Minutes of a week, in which the times of a job begin anew.
const WEEK: i64 = 7 * 24 * 60;

/// When a job runs, in minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Job {
    /// From one run of the agent to the next.
    agent: i64,
    /// Over which time the nodes are spread.
    spread: i64,
    /// Of the first period, from the beginning of a week.
    start: i64,
    /// From one period to the next.
    period: i64,
}

/// What is remembered of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nothing: it runs in each run of the agent that is the right one.
    Stateless,
    /// It runs once in a period.
    NoDuplicates,
    /// It runs once in a period, later if the right run of the agent was missed.
    CatchUp,
}

/// When a job is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Due {
    /// Is it now?
    now: bool,
    /// When this period began, in minutes since 1970 on the machine's clock.
    period: i64,
}

impl Job {
    fn of(call: &Invocation<'_>) -> Result<Self, Problem> {
        let number = |name: &str| -> Result<i64, Problem> {
            let text = call.param(name).unwrap_or("0");
            let number = text.parse::<u32>().ok().map(i64::from);
            let number = number.filter(|number| *number <= WEEK);
            number.ok_or_else(|| Problem::new(format!("{name} is {text:?}; expected 0 to {WEEK}")))
        };
        let minutes = |name: &str| -> Result<i64, Problem> {
            let (minutes, hours) = (number(&format!("{name}_minutes"))?, format!("{name}_hours"));
            Ok(minutes + 60 * number(&hours)?)
        };
        let days = |days: i64| days * 24 * 60;
        // Monday is 1; 0 is Sunday as 7 is.
        let day = (number("start_on_day_of_week")? + 6) % 7;
        let job = Self {
            agent: number("agent_periodicity")?,
            spread: minutes("max_execution_delay")?,
            start: (minutes("start_on")? + days(day)) % WEEK,
            period: minutes("periodicity")? + days(number("periodicity_days")?),
        };
        let wrong = match job {
            Self { agent: 0, .. } => "agent_periodicity is 0; expected the minutes between runs",
            Self { period: 0, .. } => "the periodicity is 0; expected minutes, hours or days",
            Self { period, .. } if period > WEEK => "the periodicity is more than a week",
            Self { spread, period, .. } if spread >= period => {
                "the longest delay is not shorter than the periodicity"
            }
            _ => return Ok(job),
        };
        Err(Problem::new(wrong))
    }

    /// Is it due in the run of the agent at this time, on this node?
    fn due(self, now: DateTime, node: &str, mode: Mode) -> Due {
        let midnight = now.date().duration_since(jiff::civil::date(1970, 1, 1));
        let minutes = midnight.as_mins() + i64::from(now.hour()) * 60 + i64::from(now.minute());
        // 1970 began on a Thursday.
        let of_week = (minutes + 3 * 24 * 60).rem_euclid(WEEK);
        let elapsed = (of_week - self.start).rem_euclid(WEEK) % self.period;
        let runs = self.spread / self.agent;
        let hash = i64::from((fnv1a(0, node.bytes()) >> 33) as u32);
        let its = hash * runs / i64::from(u32::MAX >> 1);
        let this = elapsed / self.agent;
        Due {
            now: match mode {
                Mode::CatchUp => this >= its,
                Mode::Stateless | Mode::NoDuplicates => this == its,
            },
            period: minutes - elapsed,
        }
    }
}

impl<S: System> OnSystem<S> {
    /// A call of such a method; none of another.
    pub(super) fn by_time(
        &mut self,
        call: &Invocation<'_>,
        mode: PolicyMode,
    ) -> Option<Result<Applied, Problem>> {
        if !matches!(call.method, "schedule_simple" | "condition_once") {
            return None;
        }
        if mode == PolicyMode::Audit {
            let message = "nothing is begun in audit";
            return Some(Ok(Applied::new(Outcome::NotApplicable, message)));
        }
        Some(match call.method {
            "schedule_simple" => self.job(call),
            _ => self.condition_once(call),
        })
    }

    fn job(&mut self, call: &Invocation<'_>) -> Result<Applied, Problem> {
        let job = Job::of(call)?;
        let mode = match call.param("mode") {
            Some("stateless") => Mode::Stateless,
            None | Some("nodups") => Mode::NoDuplicates,
            Some("catchup") => Mode::CatchUp,
            Some(other) => {
                let message = format!("mode is {other:?}; expected stateless, nodups or catchup");
                return Err(Problem::new(message));
            }
        };
        let due = job.due(self.now, &self.node, mode);
        let name = call.key();
        let not = |why: &str| Applied::new(Outcome::Success, format!("job {name} {why}"));
        if !due.now {
            return Ok(not("is not to run now"));
        }
        if mode != Mode::Stateless {
            let (key, period) = (format!("job {name}"), due.period.to_string());
            if self.system.remembered(&key)?.as_ref() == Some(&period) {
                return Ok(not("has run in this period"));
            }
            self.system.remember(&key, &period)?;
        }
        Ok(Applied::new(
            Outcome::Repaired,
            format!("job {name} is to run now"),
        ))
    }

    fn condition_once(&mut self, call: &Invocation<'_>) -> Result<Applied, Problem> {
        let name = call.key();
        let key = format!("condition {name}");
        if self.system.remembered(&key)?.is_some() {
            let message = format!("{name} was set before");
            return Ok(Applied::new(Outcome::Success, message));
        }
        self.system.remember(&key, "set")?;
        Ok(Applied {
            conditions: vec![name.to_owned()],
            ..Applied::new(Outcome::Repaired, format!("{name} was set, this once"))
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use proptest::prelude::*;

    use super::*;

    const JOB: Job = Job {
        agent: 5,
        spread: 0,
        start: 0,
        period: 30,
    };

    #[test]
    fn a_job_is_due_at_its_times() {
        // A Monday.
        let day = date(2026, 3, 2);
        for (job, hour, minute, due) in [
            (JOB, 0, 0, true),
            (JOB, 0, 4, true),
            (JOB, 0, 5, false),
            (JOB, 10, 31, true),
            (Job { start: 10, ..JOB }, 0, 10, true),
            (Job { start: 10, ..JOB }, 0, 30, false),
            (
                Job {
                    period: WEEK,
                    start: 90,
                    ..JOB
                },
                1,
                31,
                true,
            ),
            (
                Job {
                    period: WEEK,
                    start: 90,
                    ..JOB
                },
                2,
                31,
                false,
            ),
        ] {
            let found = job.due(day.at(hour, minute, 0, 0), "n1", Mode::Stateless);
            assert_eq!(found.now, due, "{job:?} {hour}:{minute}");
        }
        let weekly = Job {
            period: WEEK,
            ..JOB
        };
        let tuesday = date(2026, 3, 3).at(0, 1, 0, 0);
        assert!(!weekly.due(tuesday, "n1", Mode::NoDuplicates).now);
        assert!(
            weekly.due(tuesday, "n1", Mode::CatchUp).now,
            "it was missed"
        );
    }

    proptest! {
        /// Over a period each node runs once, at the same time of each period, within the spread.
        #[test]
        fn every_node_runs_once_in_each_period(
            node in "[a-z]{1,8}",
            // Of a period that does not divide a week the last one of the week is cut off.
            (agent, runs) in (1_i64..30, 1_i64..20)
                .prop_filter("divides a week", |(agent, runs)| WEEK % (agent * runs) == 0),
            at in 0_i64..19,
            start in 0..WEEK,
        ) {
            let (period, spread) = (agent * runs, agent * at.min(runs - 1));
            let job = Job { agent, spread, start, period };
            let first = date(2026, 3, 2).at(0, 0, 0, 0);
            let mut dues = Vec::new();
            for run in 0..3 * runs {
                let now = first + jiff::SignedDuration::from_mins(run * agent);
                let due = job.due(now, &node, Mode::NoDuplicates);
                if due.now {
                    dues.push((run, due.period));
                }
            }
            prop_assert_eq!(dues.len(), 3, "{:?}", dues);
            prop_assert!(dues.windows(2).all(|two| two[1].0 - two[0].0 == runs));
            prop_assert!(dues.windows(2).all(|two| two[1].1 - two[0].1 == period));
        }
    }
}
