//! What a graph is told to do, as a text that may change while it runs: the file it was
//! read from, and whether what came later could be put in force.

mod fixed;
mod state;
#[cfg(test)]
mod tests;
mod watch;

pub use fixed::{Fixed, fixed};
pub use state::{Profile, Refusal};
pub use watch::{EVERY, Watch};
