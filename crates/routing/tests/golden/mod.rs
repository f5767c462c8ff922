//! What gorouter a602bb6 did with requests, and what the pipeline does with them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod log;
mod requests;
mod router;
mod transcript;
