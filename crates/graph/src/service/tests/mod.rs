//! Services over real sockets.

mod answers;
mod callers;
mod churn;
mod failures;
mod profiles;
mod stage;
mod streams;
