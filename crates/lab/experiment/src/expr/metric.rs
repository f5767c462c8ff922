//! What an expression can be about.

use std::fmt;

use serde::Serialize;

use lab_judgement::{Direction, Unit};
use lab_load::slo::Statistic;

use super::faults::{Affected, FaultNumber};
use super::growth::Growing;
use super::probes::ProbeNumber;
use crate::plan::Watch;
use units::Shown;

/// One measured quantity.
///
/// Its [`Display`](fmt::Display) form is the one that the file uses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// `task.resolved`: how many entities are in a state now. Only for `until`.
    Entities {
        /// Kind of entity.
        what: String,
        /// Its state.
        state: String,
    },
    /// `task.desired..resolved p99`: time between two points of a lifecycle, over
    /// the entities that have both; in seconds, `count` in entities.
    Interval {
        /// Name of the lifecycle.
        lifecycle: String,
        /// The earlier point.
        from: String,
        /// The later point.
        to: String,
        /// What is taken of all the times.
        stat: Stat,
    },
    /// `task.complete`: share of the entities that have every point.
    Complete {
        /// Name of the lifecycle.
        lifecycle: String,
    },
    /// `task.negative`: how many intervals between neighbouring points end before
    /// they begin, which shows clocks that disagree.
    Negative {
        /// Name of the lifecycle.
        lifecycle: String,
    },
    /// `task.entities`: how many entities the logs showed.
    Rows {
        /// Name of the lifecycle.
        lifecycle: String,
    },
    /// `loop.convergence p99`: length of the turns, in seconds.
    Loop {
        /// Name of the loop.
        name: String,
        /// What is taken of all the turns.
        stat: Stat,
    },
    /// `system.bbs.rss max`: a watched quantity over the whole run; samples of
    /// every copy count alike.
    Process {
        /// Name of the system or fleet.
        system: String,
        /// The quantity: `cpu` in cores, `rss` in bytes, `fds` and `threads` as counts.
        quantity: Watch,
        /// What is taken of all the samples.
        stat: Stat,
    },
    /// `traffic p99`, `'step name': traffic p99`: what became of the requests of a load.
    /// In `until` those of the last seconds, in an expectation those of the whole step.
    Load {
        /// Name of the step; `None`: the only one that it runs in, or all of them.
        step: Option<String>,
        /// Name of the load or probe.
        load: String,
        /// What is told.
        quantity: LoadQuantity,
    },
    /// `probe.alive.ok`, `'step name': probe.alive.latency p99`: what a probe was answered.
    Probe {
        /// Name of the step; `None`: all of them.
        step: Option<String>,
        /// Name of the probe.
        probe: String,
        /// What is told.
        number: ProbeNumber,
    },
    /// `knee.rate`, `'step name': knee.rate`: what a search found, in requests a second.
    Knee {
        /// Name of the step that searched; `None`: the only one.
        step: Option<String>,
        /// Which rate.
        end: KneeEnd,
    },
    /// `recovery(traffic.good)`, `'step name': lost(traffic)`: what faults did.
    Fault {
        /// Name of the step whose faults are meant; `None`: all of the run.
        step: Option<String>,
        /// What is looked at.
        of: Affected,
        /// What is told: of several faults the largest, and the sum of what was lost.
        number: FaultNumber,
    },
    /// `'step name': growth(system.bbs.rss)`: by how much something rose from the start of a step
    /// to its end, along the straight line through it, as a share of what it was at the start;
    /// below 0 if it fell.
    Growth {
        /// Name of the step.
        step: String,
        /// What is looked at.
        of: Growing,
    },
    /// `kept.rows`: a number that a step kept.
    Kept {
        /// Its name.
        name: String,
    },
    /// `duration('step name')`: how long a step took, in seconds.
    StepDuration {
        /// Name of the step.
        step: String,
    },
}

impl Metric {
    /// The unit that its values are in.
    pub fn dimension(&self) -> Dimension {
        match self {
            Self::Interval {
                stat: Stat::Count, ..
            }
            | Self::Loop {
                stat: Stat::Count, ..
            } => Dimension::Count,
            Self::Interval { .. } | Self::Loop { .. } | Self::StepDuration { .. } => {
                Dimension::Seconds
            }
            Self::Complete { .. } | Self::Growth { .. } => Dimension::Share,
            Self::Entities { .. } | Self::Negative { .. } | Self::Rows { .. } => Dimension::Count,
            Self::Process { quantity, .. } => match quantity {
                Watch::Cpu => Dimension::Cores,
                Watch::Rss => Dimension::Bytes,
                Watch::Fds | Watch::Threads => Dimension::Count,
            },
            Self::Load { quantity, .. } => quantity.dimension(),
            Self::Probe { number, .. } => number.dimension(),
            Self::Knee { .. } => Dimension::Rate,
            Self::Fault { number, .. } => number.dimension(),
            Self::Kept { .. } => Dimension::Number,
        }
    }

    /// Which way it usually gets better.
    pub fn direction(&self) -> Direction {
        let higher = match self {
            Self::Entities { .. } | Self::Complete { .. } | Self::Rows { .. } => true,
            Self::Interval { stat, .. } | Self::Loop { stat, .. } => *stat == Stat::Count,
            Self::Load { quantity, .. } => matches!(
                quantity,
                LoadQuantity::Ok
                    | LoadQuantity::Sent
                    | LoadQuantity::Rate
                    | LoadQuantity::Answered
                    | LoadQuantity::Good
                    | LoadQuantity::Requests
            ),
            Self::Knee { .. } => true,
            Self::Probe { number, .. } => matches!(number, ProbeNumber::Ok | ProbeNumber::Is(_)),
            Self::Kept { .. }
            | Self::Negative { .. }
            | Self::Process { .. }
            | Self::Fault { .. }
            | Self::Growth { .. }
            | Self::StepDuration { .. } => false,
        };
        match higher {
            true => Direction::HigherIsBetter,
            false => Direction::LowerIsBetter,
        }
    }

    /// The load that it is about.
    pub fn load(&self) -> Option<&str> {
        match self {
            Self::Load { load, .. } => Some(load),
            _ => None,
        }
    }
}

/// What became of the requests of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadQuantity {
    /// `p99`: latency from the intended send, in seconds.
    Latency(Stat),
    /// `actual p99`: latency from the actual send, in seconds.
    Actual(Stat),
    /// `errors`: share of the requests sent that were refused or had no whole answer.
    Errors,
    /// `ok`: share of the requests sent that had a good answer.
    Ok,
    /// `sent`: share of the planned requests that were sent.
    Sent,
    /// `rate`: good answers a second.
    Rate,
    /// `answered`: whole answers in the step so far.
    Answered,
    /// `good`: good answers in the step so far.
    Good,
    /// `requests`: requests sent in the step so far.
    Requests,
    /// `outage`: the longest time in which requests failed and none was answered well, in
    /// seconds; 0 when none failed.
    Outage,
}

impl LoadQuantity {
    /// Whether it is how many of something there were, which stays true however late or
    /// hindered who counted was.
    pub fn is_count(self) -> bool {
        matches!(self, Self::Answered | Self::Good | Self::Requests)
    }

    /// Those that are a single word.
    pub(super) const WORDS: [(&str, Self); 8] = [
        ("errors", Self::Errors),
        ("ok", Self::Ok),
        ("sent", Self::Sent),
        ("rate", Self::Rate),
        ("answered", Self::Answered),
        ("good", Self::Good),
        ("requests", Self::Requests),
        ("outage", Self::Outage),
    ];

    /// The unit that its values are in.
    pub fn dimension(self) -> Dimension {
        match self {
            Self::Latency(_) | Self::Actual(_) | Self::Outage => Dimension::Seconds,
            Self::Errors | Self::Ok | Self::Sent => Dimension::Share,
            Self::Rate => Dimension::Rate,
            Self::Answered | Self::Good | Self::Requests => Dimension::Count,
        }
    }
}

impl fmt::Display for LoadQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latency(stat) => write!(f, "{stat}"),
            Self::Actual(stat) => write!(f, "actual {stat}"),
            word => {
                let known = Self::WORDS.iter().find(|(_, known)| known == word);
                f.write_str(known.map_or("", |(word, _)| word))
            }
        }
    }
}

/// A rate that a search found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KneeEnd {
    /// The best estimate.
    Rate,
    /// The lower end of its interval.
    Low,
    /// The upper end of its interval.
    High,
}

impl KneeEnd {
    pub(super) const WORDS: [(&str, Self); 3] = [
        ("rate", Self::Rate),
        ("low", Self::Low),
        ("high", Self::High),
    ];
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Load {
            step: Some(step), ..
        }
        | Self::Probe {
            step: Some(step), ..
        }
        | Self::Knee {
            step: Some(step), ..
        }
        | Self::Fault {
            step: Some(step), ..
        } = self
        {
            write!(f, "{}: ", quoted(step))?;
        }
        match self {
            Self::Entities { what, state } => write!(f, "{what}.{state}"),
            Self::Interval {
                lifecycle,
                from,
                to,
                stat,
            } => {
                write!(f, "{lifecycle}.{from}..{to} {stat}")
            }
            Self::Complete { lifecycle } => write!(f, "{lifecycle}.complete"),
            Self::Negative { lifecycle } => write!(f, "{lifecycle}.negative"),
            Self::Rows { lifecycle } => write!(f, "{lifecycle}.entities"),
            Self::Loop { name, stat } => write!(f, "loop.{name} {stat}"),
            Self::Process {
                system,
                quantity,
                stat,
            } => {
                write!(f, "system.{system}.{} {stat}", watch_name(*quantity))
            }
            Self::Load { load, quantity, .. } => write!(f, "{load} {quantity}"),
            Self::Probe { probe, number, .. } => write!(f, "probe.{probe}.{number}"),
            Self::Knee { end, .. } => {
                let word = KneeEnd::WORDS.iter().find(|(_, known)| known == end);
                write!(f, "knee.{}", word.map_or("", |(word, _)| word))
            }
            Self::Fault { of, number, .. } => write!(f, "{number}({of})"),
            Self::Growth { step, of } => write!(f, "{}: growth({of})", quoted(step)),
            Self::Kept { name } => write!(f, "kept.{name}"),
            Self::StepDuration { step } => write!(f, "duration({})", quoted(step)),
        }
    }
}

/// The name of a step as an expression holds it.
fn quoted(step: &str) -> String {
    let quote = if step.contains('\'') { '"' } else { '\'' };
    format!("{quote}{step}{quote}")
}

/// What is taken of many values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stat {
    /// The smallest.
    Min,
    /// The arithmetic mean.
    Mean,
    /// The median.
    P50,
    /// The 75th percentile.
    P75,
    /// The 90th percentile.
    P90,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P999,
    /// The 99.99th percentile.
    P9999,
    /// The largest.
    Max,
    /// The newest sample.
    Last,
    /// From the first entity's `from` to the last entity's `to`.
    Span,
    /// How many values there are.
    Count,
    /// All of them added up.
    Sum,
}

impl Stat {
    pub(super) const OF_INTERVALS: [Self; 10] = [
        Self::Min,
        Self::Mean,
        Self::P50,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::P999,
        Self::Max,
        Self::Span,
        Self::Count,
    ];
    pub(super) const OF_LOOPS: [Self; 9] = [
        Self::Min,
        Self::Mean,
        Self::P50,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::P999,
        Self::Max,
        Self::Count,
    ];
    pub(super) const OF_LATENCY: [Self; 9] = [
        Self::Mean,
        Self::P50,
        Self::P75,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::P999,
        Self::P9999,
        Self::Max,
    ];
    pub(super) const OF_SAMPLES: [Self; 5] =
        [Self::Min, Self::Mean, Self::P99, Self::Max, Self::Last];

    /// The word in an expression.
    pub fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P75 => "p75",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p999",
            Self::P9999 => "p9999",
            Self::Max => "max",
            Self::Last => "last",
            Self::Span => "span",
            Self::Count => "count",
            Self::Sum => "sum",
        }
    }

    /// The quantile from 0 to 1 that a percentile asks for; `None` for the others.
    pub fn quantile(self) -> Option<f64> {
        Statistic::named(self.name())?.percentile()
    }
}

impl fmt::Display for Stat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The unit of a metric's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dimension {
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// A share, from 0 to 1.
    Share,
    /// A number of things.
    Count,
    /// Processor cores.
    Cores,
    /// A number of things a second.
    Rate,
    /// A number of which nothing else is known.
    Number,
}

impl Dimension {
    /// The same for whoever compares runs.
    pub fn unit(self) -> Unit {
        match self {
            Self::Seconds => Unit::Seconds,
            Self::Bytes => Unit::Bytes,
            Self::Share => Unit::Share,
            Self::Count | Self::Number => Unit::Count,
            Self::Cores => Unit::Cores,
            Self::Rate => Unit::PerSecond,
        }
    }

    /// A value as people read it: `1.27 s`, `212 MiB`, `100 %`, `4000`, `0.5 cores`.
    pub fn show(self, value: f64) -> String {
        self.shown(value, 3).text
    }

    pub(super) fn shown(self, value: f64, digits: usize) -> Shown {
        match self {
            Self::Seconds => units::seconds(value, digits),
            Self::Bytes => units::bytes(value, digits),
            Self::Share => units::share(value, digits),
            Self::Count | Self::Number => units::count(value, digits),
            Self::Cores => units::cores(value, digits),
            Self::Rate => units::rate(value, digits),
        }
    }

    /// What a quantity of this unit looks like.
    pub(super) fn example(self) -> &'static str {
        match self {
            Self::Seconds => "a length of time such as 30s",
            Self::Bytes => "a size such as 500MiB",
            Self::Share => "a share such as 99.9%",
            Self::Count | Self::Number => "a number such as 4000",
            Self::Cores => "a number of cores such as 0.5 cores",
            Self::Rate => "a rate such as 500/s",
        }
    }
}

/// The word for a watched quantity.
pub(crate) fn watch_name(watch: Watch) -> &'static str {
    match watch {
        Watch::Cpu => "cpu",
        Watch::Rss => "rss",
        Watch::Fds => "fds",
        Watch::Threads => "threads",
    }
}

/// Every watched quantity.
pub(crate) const WATCHES: [Watch; 4] = [Watch::Cpu, Watch::Rss, Watch::Fds, Watch::Threads];
