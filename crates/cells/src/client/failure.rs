//! Why a command failed, in cfdot's words and with its exit codes.

use diego::CallError;
use diego::error::Type;
use diego::json::BadMessage;
use diego::models;
use net::ClientError;

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Failure {
    /// An argument, a flag or a variable is not what it must be; nothing was sent.
    #[error("{0}")]
    Invalid(String),
    /// A variable is not what it must be, of those that cfdot itself cannot tell apart from a
    /// command that does not exist; nothing was sent.
    #[error("{0}")]
    Variable(String),
    /// The BBS refused, or its client says so in its place.
    #[error("BBS error\nType {}: {}\nMessage: {}", .0.r#type, name(.0), .0.message)]
    Bbs(models::Error),
    /// A cell or a Locket failed.
    #[error("{0}")]
    Component(String),
    /// Anything else: no connection, no such cell, a stream that broke.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// What the process ends with: 3 for wrong arguments, 255 for a variable that cannot be read, 4
    /// for what a component said, 5 otherwise.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Invalid(_) => 3,
            Self::Variable(_) => 255,
            Self::Bbs(_) | Self::Component(_) => 4,
            Self::Other(_) => 5,
        }
    }

    /// An error of the BBS's kind.
    pub(super) fn bbs(kind: Type, text: impl Into<String>) -> Self {
        Self::Bbs(diego::error::with_text(kind, text))
    }

    /// What a person can do about it; `None` where the text says it already.
    pub fn advice(&self) -> Option<&'static str> {
        let Self::Bbs(error) = self else {
            return None;
        };
        Some(match Type::try_from(error.r#type).ok()? {
            Type::InvalidRequest => "Correct the fields that are named, and send it again.",
            Type::InvalidResponse => {
                "Is this the address of a BBS? Give its address, with https:// where it has certificates."
            }
            Type::InvalidStateTransition => {
                "`task GUID` shows its state: cancel one that is not completed, delete one that is."
            }
            Type::ResourceConflict => "Somebody else changed it at the same time; try again.",
            Type::ResourceExists => "Delete what is there first, or choose another guid.",
            Type::ResourceNotFound => {
                "`desired-lrps`, `actual-lrps` and `tasks` list what there is."
            }
            Type::Timeout => "Wait longer with --timeout SECONDS, or ask for less.",
            Type::Deadlock => "Try again.",
            _ => return None,
        })
    }
}

/// The name of an error's type; its number where it has none.
fn name(error: &models::Error) -> String {
    match Type::try_from(error.r#type) {
        Ok(kind) => kind.as_str_name().to_owned(),
        Err(_) => error.r#type.to_string(),
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused { error, .. } => Self::Bbs(error),
            CallError::NotABbs { found, .. } => Self::bbs(Type::InvalidResponse, found),
            CallError::Transport {
                cause: cause @ ClientError::TooSlow { .. },
                ..
            } => Self::bbs(Type::Timeout, format!("Timeout exceeded: {cause}")),
            CallError::Transport { path, cause } => Self::Other(no_connection(&path, &cause)),
            CallError::Stream { .. } => Self::Other(error.to_string()),
        }
    }
}

impl From<BadMessage> for Failure {
    fn from(error: BadMessage) -> Self {
        Self::bbs(Type::InvalidProtobufMessage, error.to_string())
    }
}

/// What failed on the way, and what to look at.
pub(super) fn no_connection(what: &str, cause: &ClientError) -> String {
    let look = match cause {
        ClientError::Connect { .. } => {
            "; does it run there, and do its certificate and yours come from authorities that both know?"
        }
        ClientError::Broken { cause, .. } if cause.contains("fatal alert") => {
            "; it does not take your certificate: is that valid, and of an authority that it knows?"
        }
        ClientError::Broken { .. } => {
            "; it may have ended, or expect a certificate where none was shown"
        }
        ClientError::Address { .. } | ClientError::TooSlow { .. } => "",
    };
    format!("{what}: {cause}{look}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_bbs_are_told_as_cfdot_tells_them() {
        let failure = Failure::Bbs(diego::error::error(Type::ResourceNotFound));
        let text = "BBS error\nType 13: ResourceNotFound\nMessage: the requested resource could not be found";
        assert_eq!(
            (failure.to_string().as_str(), failure.exit_code()),
            (text, 4)
        );
        let failure = Failure::Bbs(diego::error::error(Type::ActualLrpCannotBeRemoved));
        assert!(
            failure
                .to_string()
                .contains("Type 19: ActualLRPCannotBeRemoved\n")
        );
        // Who cancels a task that is completed hears it as well as who deletes one that is not.
        let failure = Failure::Bbs(diego::error::error(Type::InvalidStateTransition));
        let advice = failure.advice().unwrap();
        assert!(advice.contains("cancel") && advice.contains("delete"));
        let failure = Failure::Bbs(models::Error {
            r#type: 99,
            message: "later".into(),
        });
        assert!(failure.to_string().contains("Type 99: 99\nMessage: later"));
        assert_eq!(failure.advice(), None);
    }
}
