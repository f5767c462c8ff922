//! What must be undone, kept so that nothing is left when the laboratory is killed.
//!
//! 1. Before an act is done, what undoes it is in the [`Ledger`], a file, and on the disk.
//! 2. A guardian, a small process in a session of its own ([`guard`]), sees its pipe to the
//!    laboratory end, and undoes what the ledger says.
//! 3. If that was killed as well, the next start undoes it ([`sweep`]).
//!
//! Undoing twice does no harm: a ledger is locked while it is undone and removed when it is, and
//! a process is touched only if its number and its start time are those of the ledger.

mod act;
mod guardian;
mod ledger;
mod process;

pub use act::{Resource, Undo};
pub use guardian::{Guardian, GuardianError, guard, sweep};
pub use ledger::{Entry, Ledger, LedgerError, MADE};
pub use process::ProcessId;
