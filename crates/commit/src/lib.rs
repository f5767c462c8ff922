//! Durable batches: many requests, one transaction, one sync (group commit), and a state in
//! memory that holds exactly what is on the disk.
//!
//! ```text
//! callers ─▶ Requests ─▶ Writer, one thread: apply to a Layer over the Model (pure)
//!                          ─▶ commit ─▶ merge into the Model ─▶ tell ─▶ answer
//!                                           │
//! readers ◀─────────── View ◀───────────────┘
//! ```
//!
//! What holds for everything that is kept by a [`Ledger`]:
//! - An answer with success is given, and others are told, only after the commit returned.
//! - A later request of a batch sees what earlier ones did; a reader sees none of it.
//! - A commit that fails leaves the state as it was, and every request of its batch is refused:
//!   also those that did nothing, as what they saw may have been of this batch.
//! - At most [`Limits::queue`] requests wait; further callers wait to be let in.
//!
//! Below a ledger is a database: [`Sqlite`] in a file, or [`Postgres`], which may go away and come
//! back. Without a ledger, several programs may use one as [`Shared`](postgres::Shared).

mod error;
mod layer;
mod model;
pub mod postgres;
mod sqlite;
mod writer;

pub use error::StoreError;
pub use layer::{Layer, Table};
pub use model::{Model, View};
pub use postgres::Postgres;
pub use sqlite::Sqlite;
pub use writer::requests::{Counts, PendingLookup, Requests};
pub use writer::{Answer, Applied, CommitFailure, Ledger, Limits, StartError, Started, start};
