//! What agents report, and how that stands to what was expected of them.
//!
//! An upload is unpacked ([`upload`]), its signature checked against the key of the node that
//! sent it ([`signature`]), and its lines read ([`runlog`]); older agents send
//! the same reports over syslog ([`syslog`]).
//!
//! What is expected of a node ([`expected`]) is matched with what it reports ([`matching`]); each
//! report becomes one of fourteen statuses ([`status`]), which are counted and shown as percents
//! ([`level`]). What a node's compliance rests on is decided by its last run and the time
//! ([`decision`]), and all of it is kept current for a whole fleet ([`fleet`]). Repairs are
//! counted per six hours ([`changes`]), and compliance is held hour by hour ([`history`]).

pub mod changes;
pub mod decision;
pub mod expected;
pub mod fleet;
pub mod history;
pub mod level;
pub mod matching;
pub mod moment;
pub mod run_info;
pub mod runlog;
pub mod signature;
pub mod status;
pub mod syslog;
pub mod upload;
