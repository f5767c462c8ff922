//! Errors as they cross the wire.

use std::fmt::Display;

use serde::Serialize;

/// The kinds of errors; each has one HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ErrorName {
    /// The token is missing, wrong, or lacks the scope. 401.
    UnauthorizedError,
    /// An HTTP route breaks a rule. 400.
    RouteInvalidError,
    /// A TCP mapping breaks a rule; on the wire it is wrapped as a `ProcessRequestError`. 400.
    TcpRouteMappingInvalidError,
    /// The URL of a route service breaks a rule. 400.
    RouteServiceUrlInvalidError,
    /// The request cannot be read, or breaks another rule. 400.
    ProcessRequestError,
    /// There is no such thing. 404.
    ResourceNotFoundError,
    /// The database cannot be used. 503.
    DBCommunicationError,
}

impl ErrorName {
    /// The status of an answer with this error.
    pub fn status(self) -> u16 {
        match self {
            Self::UnauthorizedError => 401,
            Self::RouteInvalidError
            | Self::TcpRouteMappingInvalidError
            | Self::RouteServiceUrlInvalidError
            | Self::ProcessRequestError => 400,
            Self::ResourceNotFoundError => 404,
            Self::DBCommunicationError => 503,
        }
    }
}

/// An error as an answer carries it: `{"name":…,"message":…}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// What kind of error.
    pub name: ErrorName,
    /// What is wrong.
    pub message: String,
}

impl ApiError {
    /// An error of this kind.
    pub fn new(name: ErrorName, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { name, message }
    }

    /// A `ProcessRequestError`, with the words that it always begins with.
    pub fn process(cause: impl Display) -> Self {
        let message = format!("Cannot process request: {cause}");
        Self::new(ErrorName::ProcessRequestError, message)
    }

    /// The database cannot be used.
    pub fn database(cause: impl Display) -> Self {
        Self::new(ErrorName::DBCommunicationError, cause.to_string())
    }
}
