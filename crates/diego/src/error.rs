//! The protocol's errors: a type that clients compare, and a text for people.

use crate::models::Error;
pub use crate::models::error::Type;

/// An error with its usual text where the protocol has one.
pub fn error(kind: Type) -> Error {
    let text = match kind {
        Type::InvalidRequest => "the request received is invalid",
        Type::ResourceConflict => "the requested resource is in a conflicting state",
        Type::ResourceExists => "the requested resource already exists",
        Type::ResourceNotFound => "the requested resource could not be found",
        Type::ActualLrpCannotBeClaimed => "cannot claim actual LRP",
        Type::ActualLrpCannotBeStarted => "cannot start actual LRP",
        Type::ActualLrpCannotBeCrashed => "cannot crash actual LRP",
        Type::ActualLrpCannotBeFailed => "cannot fail actual LRP",
        Type::ActualLrpCannotBeRemoved => "cannot remove actual LRP",
        Type::ActualLrpCannotBeUnclaimed => "cannot unclaim actual LRP",
        Type::GuidGeneration => "cannot generate random guid",
        Type::Deserialize => "could not deserialize record",
        Type::FailedToOpenEnvelope => "could not open envelope",
        Type::Deadlock => "the request failed due to deadlock",
        Type::LockCollision => "lock already exists",
        _ => "the request failed for an unknown reason",
    };
    with_text(kind, text)
}

/// An error with a text of its own.
pub fn with_text(kind: Type, text: impl Into<String>) -> Error {
    Error {
        r#type: kind.into(),
        message: text.into(),
    }
}
