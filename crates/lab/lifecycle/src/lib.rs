//! From structured logs to one row of timestamps per entity.
//!
//! A [`Definition`] names the points of a lifecycle and how log lines show them.
//! A [`Miner`] is fed with lines, of any files in any order, and keeps for every
//! entity when it passed each point. The result is a [`Table`]; [`summarise`]
//! turns it into numbers, and [`Evidence`] finds the lines of an entity again. [`Follower`] reads the lines of growing files.
//! `tests/logs.rs` shows it whole.

mod changes;
mod classify;
mod collector;

mod definition;
mod evidence;
mod fields;
mod follow;
mod gather;
mod identity;
mod interner;
mod json;
mod line;
mod lives;
mod logfmt;
mod loops;
mod matcher;
mod miner;
mod seen;
mod suggest;
mod summary;
mod table;
mod table_file;
mod timelines;
mod timestamp;
mod wrapped;

pub use changes::{ChangedRow, Changes, NOT_SEEN};
pub use collector::{Collector, Snapshot};
pub use definition::{Definition, DefinitionError, LoopDefinition, MAX_POINTS};
pub use evidence::{Evidence, Found};
pub use fields::{FieldId, Fields, MAX_DEPTH};
pub use follow::{FollowError, Follower, lengths};
pub use gather::{GatherError, Gatherer};
pub use line::{Format, Line, MAX_LINE_BYTES, Scanner, Unreadable};
pub use loops::{LoopCollector, Turn, Turns};
pub use matcher::{Matcher, MatcherError};
pub use miner::{LineCounts, Miner};
pub use suggest::{
    KeyRejection, PointRejection, RejectedMessage, SeenField, SeenPoint, Suggested, Suggestions,
    field_names, suggest,
};
pub use summary::{Durations, Phase, Span, Summary, UnknownPoint, concurrency, span, summarise};
pub use table::{Row, Table};
pub use table_file::{CsvError, MAX_ROWS};
pub use wrapped::{SyslogStream, journal_line, syslog_line};
