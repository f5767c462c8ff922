//! From structured logs to one row of timestamps per entity.

mod table;

pub use table::{Row, Table};
