//! What an expression can be about.

use std::fmt;

use serde::Serialize;

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
            Self::Complete { .. } => Dimension::Share,
            Self::Entities { .. } | Self::Negative { .. } | Self::Rows { .. } => Dimension::Count,
            Self::Process { quantity, .. } => match quantity {
                Watch::Cpu => Dimension::Cores,
                Watch::Rss => Dimension::Bytes,
                Watch::Fds | Watch::Threads => Dimension::Count,
            },
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
            Self::StepDuration { step } if step.contains('\'') => write!(f, "duration(\"{step}\")"),
            Self::StepDuration { step } => write!(f, "duration('{step}')"),
        }
    }
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
    /// The 90th percentile.
    P90,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P999,
    /// The largest.
    Max,
    /// The newest sample.
    Last,
    /// From the first entity's `from` to the last entity's `to`.
    Span,
    /// How many values there are.
    Count,
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
    pub(super) const OF_SAMPLES: [Self; 5] =
        [Self::Min, Self::Mean, Self::P99, Self::Max, Self::Last];

    /// The word in an expression.
    pub fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p999",
            Self::Max => "max",
            Self::Last => "last",
            Self::Span => "span",
            Self::Count => "count",
        }
    }

    /// The quantile from 0 to 1 that a percentile asks for; `None` for the others.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Self::P50 => Some(0.5),
            Self::P90 => Some(0.9),
            Self::P95 => Some(0.95),
            Self::P99 => Some(0.99),
            Self::P999 => Some(0.999),
            _ => None,
        }
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
}

impl Dimension {
    /// A value as people read it: `1.27 s`, `212 MiB`, `100 %`, `4000`, `0.5 cores`.
    pub fn show(self, value: f64) -> String {
        self.shown(value, 3).text
    }

    pub(super) fn shown(self, value: f64, digits: usize) -> Shown {
        match self {
            Self::Seconds => units::seconds(value, digits),
            Self::Bytes => units::bytes(value, digits),
            Self::Share => units::share(value, digits),
            Self::Count => units::count(value, digits),
            Self::Cores => units::cores(value, digits),
        }
    }

    /// What a quantity of this unit looks like.
    pub(super) fn example(self) -> &'static str {
        match self {
            Self::Seconds => "a length of time such as 30s",
            Self::Bytes => "a size such as 500MiB",
            Self::Share => "a share such as 99.9%",
            Self::Count => "a number such as 4000",
            Self::Cores => "a number of cores such as 0.5 cores",
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
