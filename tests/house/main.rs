//! The house: which crate may use which, what may come in from outside, and what
//! every file must keep to. What ARCHITECTURE.md says is checked here.

mod dependencies;
mod files;
