//! The experiment file: parse, check, explain, plan, and judge.

pub mod expr;
pub mod plan;
