//! Whether one version is worse than another, today and over time.
//!
//! Pure: values of runs come in, verdicts go out as data and as sentences. Who makes the runs,
//! stores them and asks git is no matter of this crate.
//!
//! # What always holds
//!
//! - A verdict has three values. "Not worse" is said only when the whole interval lies below
//!   the limit and the runs could have seen a change as large as the limit; what is
//!   neither shown to be worse nor shown not to be is "cannot tell", with what would settle it.
//! - No p-value stands without an effect and its interval.
//! - The chance of a false alarm is that of the whole gate: of all looks at growing data
//!   ([`stats::sequential_tails`]) and of all its metrics (Holm).
//! - What new runs did not measure although base runs did is never a pass.
//! - The seed fixes which of a pair runs first, for every pair before the first one.

mod gate;
mod groups;
mod history;
mod metric;
mod pairs;
mod record;
mod sentence;
pub mod simulated;
mod verdict;

pub use gate::{Gate, GateError, GateJudgement, GateSettings, Gated, MetricJudgement, Next};
pub use groups::{Comparison, ComparisonBasis, compare_groups, compare_runs};
pub use history::{Change, Drift, FastAlarm, HistoryJudgement, HistorySettings, judge_history};
pub use metric::{Direction, Metric, Unit};
pub use pairs::{Missing, Order, PairValues};
pub use record::{
    Difference, Fingerprint, MetricValue, Record, RecordError, Weight, differences, done_by_hand,
    metrics_of, read_records, write_record,
};
pub use verdict::{Effect, Needs, Verdict};
