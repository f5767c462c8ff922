//! Which report answers which expectation.
//!
//! What is expected of a directive is a [`Shape`], which nodes share; the values that are a
//! node's own stand beside it ([`NodeExpected`]). A [`Matcher`] finds a status for each.

mod blocks;
#[cfg(test)]
mod crowds;
mod matcher;
mod node;
mod pattern;
mod shape;
#[cfg(test)]
mod tests;
mod tree;

pub use matcher::{Assigned, Matched, Matcher, Received};
pub use node::{CompileError, DirectiveEntry, Ids, LooseExpected, NodeExpected, Skipped, Types};
pub use shape::{Shape, ShapePool};
pub use tree::{ComponentTree, Message, ValueTree, directive_tree};
