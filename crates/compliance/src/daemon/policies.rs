//! Which policies an agent does: those that its server signed for it, and none that is older than
//! the one it has.

use thiserror::Error;

use super::node::policy_of;
use crate::agent::AgentPolicy;
use crate::policy::signature::{IssueNumber, PolicyKey, VerificationError};

/// Why a policy is refused.
#[derive(Debug, Error)]
pub(super) enum Refused {
    /// It is not the server's.
    #[error(
        "{0}. The server's key is that in policy.pem of the agent's folder, or of --policy-key; if \
         the server has another now, remove that file, or give the new one"
    )]
    NotVerified(#[from] VerificationError),
    /// It was the node's once.
    #[error(
        "it is older ({found}) than the one that is kept ({held}): somebody plays it again, or the \
         server was put back and so was its clock. If that is so, let its file policy-start have a \
         number above {held} and start it again, or remove policy.json.gz from the agent's folder"
    )]
    Older {
        held: IssueNumber,
        found: IssueNumber,
    },
    /// It is the server's, and cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

/// Checks a packed policy of this node; `held` is the number of the one that it has.
pub(super) fn verify(
    key: &PolicyKey,
    node: &str,
    packed: &[u8],
    held: Option<IssueNumber>,
) -> Result<IssueNumber, Refused> {
    let found = key.verify(node, packed)?;
    match held {
        Some(held) if found < held => Err(Refused::Older { held, found }),
        _ => Ok(found),
    }
}

/// The same, and reads it. Nothing is unpacked that is not the server's.
pub(super) fn read(
    key: &PolicyKey,
    node: &str,
    packed: &[u8],
    held: Option<IssueNumber>,
) -> Result<(AgentPolicy, IssueNumber), Refused> {
    let number = verify(key, node, packed, held)?;
    let policy = policy_of(packed, node).map_err(Refused::Unreadable)?;
    Ok((policy, number))
}
