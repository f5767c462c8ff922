//! The experiment file: parse, check, explain, plan, and judge.
//!
//! Text goes in; a [`Plan`](plan::Plan) or a list of [`Diagnostic`]s comes out. The
//! crate does no I/O and reads no clock. What a file may start, simulate and drive
//! is told by a [`Catalogue`](catalogue::Catalogue), so it depends on no system.

pub mod catalogue;
mod check;
pub mod draft;
mod explain;
pub mod expr;
pub mod highest;
mod load;
mod names;
pub mod plan;
mod template;
mod text;
mod words;

pub use check::check;
pub use document::{Diagnostic, Source};
pub use load::{LoadError, LoadFiles};
