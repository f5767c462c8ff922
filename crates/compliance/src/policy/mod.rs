//! From what is defined to what each node is asked to be.

pub mod compile;
pub mod conflicts;
pub mod digest;
pub mod expression;
pub mod inheritance;
pub mod system;
pub mod template;
