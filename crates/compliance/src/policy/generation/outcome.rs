//! What a generation did.

use std::sync::Arc;
use std::time::Duration;

use crate::model::query::QueryError;
use crate::policy::compile::CompileError;
use crate::policy::content::ContentErrorCause;
use crate::policy::node_policy::{Issued, NodePolicy};

/// Tells the time since any fixed moment.
pub type Clock<'c> = dyn Fn() -> Duration + Sync + 'c;

/// A step of a generation, and how long it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its name.
    pub name: &'static str,
    /// Summed over threads for parts of `build`, else from its start to its end.
    pub duration: Duration,
    /// Is it a sum over threads?
    pub summed: bool,
}

/// A node whose policy, or what is expected of it, has changed.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeUpdate {
    /// Identity of the node.
    pub node: Arc<str>,
    /// Its policy; none if it gets none any more.
    pub policy: Option<Arc<Issued>>,
    /// The same with its texts, if there was room for them.
    pub(super) whole: Option<Arc<NodePolicy>>,
    /// Has it a new config id? Else only what is overridden has changed.
    pub new_config: bool,
}

/// Why a node's policy could not be made. The one before remains.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "rule \"{rule}\", directive \"{directive}\"{}: {cause}",
    of_variable(variable)
)]
pub struct NodeFailure {
    /// Identity of the rule.
    pub rule: Arc<str>,
    /// Identity of the directive.
    pub directive: Arc<str>,
    /// Name of the variable; empty if it is none's fault.
    pub variable: Arc<str>,
    /// Why.
    pub cause: Cause,
}

/// The variable whose fault it is, if it is one's.
fn of_variable(name: &str) -> String {
    match name {
        "" => String::new(),
        name => format!(", variable \"{name}\""),
    }
}

/// Why a policy could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The directive is wrong on every node.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A text has no value on this node.
    #[error(transparent)]
    Content(#[from] ContentErrorCause),
    /// Directives of a merged technique differ in their mode.
    #[error(
        "directives of the merged technique are audited and enforced on the node at once; give \
         all of them one mode"
    )]
    Modes,
    /// The schedule is wrong.
    #[error("{0}")]
    Schedule(String),
}

/// Something wrong in what is defined; all else goes on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Problem {
    /// A rule names a directive that is not there.
    #[error("the rule \"{rule}\" names the directive \"{directive}\", which does not exist")]
    NoDirective {
        /// Identity of the rule.
        rule: String,
        /// The identity that it names.
        directive: String,
    },
    /// A rule names a group that is not there.
    #[error("the rule \"{rule}\" names the group \"{group}\", which does not exist")]
    NoGroup {
        /// Identity of the rule.
        rule: String,
        /// The identity that it names.
        group: String,
    },
    /// A group's query names a group that is not there.
    #[error("the query of \"{group}\" names the group \"{named}\", which does not exist")]
    NoGroupOfQuery {
        /// Identity of the group.
        group: String,
        /// The identity that it names.
        named: String,
    },
    /// Queries name each other in a circle: their groups have no members.
    #[error("the queries of groups name each other in a circle: {}", .0.join(" → "))]
    Circle(Vec<String>),
    /// A query cannot be answered: its group has no members.
    #[error("the group \"{group}\": {message}")]
    Query {
        /// Identity of the group.
        group: String,
        /// What is wrong.
        message: String,
    },
    /// Equal priorities: names decide.
    #[error(
        "the directives \"{0}\" and \"{1}\" of one technique have the same priority on a node; \
         their names decide, so a new name would change policies"
    )]
    Unstable(String, String),
}

impl Problem {
    pub(super) fn query(group: &str, error: &QueryError) -> Self {
        Self::Query {
            group: group.to_owned(),
            message: error.to_string(),
        }
    }
}

/// What a generation did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// How many policies were made again, because a change might have affected them.
    pub generated: usize,
    /// Nodes whose policy or expected reports have changed, in the order in which nodes came.
    pub updates: Vec<NodeUpdate>,
    /// How many nodes failed now or before and have not been mended.
    pub failed: usize,
    /// How many nodes have a new policy that waits for their policy server to be mended.
    pub held: usize,
    /// The steps in their order.
    pub steps: Vec<Step>,
}
