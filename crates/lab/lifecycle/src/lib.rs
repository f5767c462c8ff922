//! From structured logs to one row of timestamps per entity.
//!
//! A [`Definition`] names the points of a lifecycle and how log lines show them.
//! A [`Miner`] is fed with lines, of any files in any order, and keeps for every
//! entity when it passed each point. The result is a [`Table`]; [`summarise`]
//! turns it into numbers. [`Follower`] reads the lines of growing files.
//!
//! ```
//! use lab_lifecycle::{Definition, Format, Miner, summarise};
//!
//! let task = Definition {
//!     name: "task".into(),
//!     key: vec!["task-guid".into()],
//!     points: vec![
//!         ("desired".into(), "desire-task.starting".into()),
//!         ("resolved".into(), "resolved-task".into()),
//!     ],
//!     ..Definition::default()
//! };
//! let mut miner = Miner::new(1_464_900_000_000_000_000, &[task], &[])?;
//! for line in [
//!     r#"{"timestamp":"1464900000.5","message":"bbs.desire-task.starting","data":{"task-guid":"a"}}"#,
//!     r#"{"timestamp":"1464900002.0","message":"bbs.resolved-task","data":{"task-guid":"a"}}"#,
//! ] {
//!     miner.feed(Format::Auto, line.as_bytes());
//! }
//! let table = miner.lifecycles()[0].table();
//! assert_eq!(table.rows[0].at_ns, [Some(500_000_000), Some(2_000_000_000)]);
//! assert_eq!(summarise(&table).complete, 1);
//! # Ok::<(), lab_lifecycle::DefinitionError>(())
//! ```

mod classify;
mod collector;
mod csv;
mod definition;
mod fields;
mod follow;
mod interner;
mod json;
mod line;
mod lives;
mod logfmt;
mod loops;
mod matcher;
mod miner;
mod summary;
mod table;
mod timelines;
mod timestamp;

pub use collector::{Collector, Snapshot};
pub use csv::{CsvError, MAX_ROWS};
pub use definition::{Definition, DefinitionError, LoopDefinition, MAX_POINTS};
pub use fields::{FieldId, Fields, MAX_DEPTH};
pub use follow::{FollowError, Follower};
pub use line::{Format, Line, MAX_LINE_BYTES, Scanner, Unreadable};
pub use loops::{LoopCollector, Turn, Turns};
pub use matcher::{Matcher, MatcherError};
pub use miner::{LineCounts, Miner};
pub use summary::{Durations, Phase, Span, Summary, UnknownPoint, concurrency, span, summarise};
pub use table::{Row, Table};
