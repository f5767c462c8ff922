//! From what is defined to what each node is asked to be.

pub mod compile;
pub mod conflicts;
pub mod content;
mod cursor;
pub mod digest;
pub mod expression;
pub mod generation;
pub mod inheritance;
pub mod node_policy;
pub mod signature;
pub mod system;
pub mod template;
