//! The house: which crate may use which, what may come in from outside, and what
//! every file must keep to. What ARCHITECTURE.md says is checked here.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod dependencies;
mod files;
mod page_types;
mod pages;
