//! Routes from a file: TOML, or one JSON object on each line, with the fields of
//! `router.register`.
//!
//! ```toml
//! [[route]]
//! uris = ["app.example.com/path"]
//! host = "127.0.0.1"
//! port = 8080
//! ```

mod follow;
mod read;

pub use follow::Follower;
pub use read::{FileError, Refused, Routes};
