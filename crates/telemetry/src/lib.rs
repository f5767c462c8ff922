//! Structured logs in lager's JSON form, and metrics in Prometheus' text form.
//!
//! Lager is the log library of Cloud Foundry's components. Its lines are what
//! Cicerone and perfchug read, so our systems write the same form and the
//! laboratory reads ours and theirs with the same rules. Form: a JSON object with
//! `timestamp` (Unix seconds as text, nine decimals, or RFC 3339), `source`, `message`
//! (`<source>.<session>.<event>`), `log_level` (0 debug, 1 info, 2 error, 3 fatal)
//! and `data`.

mod lager;
pub mod prometheus;
mod sink;

pub use lager::{Fields, Level, LineTimes, Logger};
pub use sink::Sink;
