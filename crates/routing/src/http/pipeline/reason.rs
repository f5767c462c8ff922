//! The reasons of status lines, as Go's server writes them.

use http::StatusCode;

/// The standard reason of a status; `None`: Go has none and writes `status code <number>`.
pub(crate) fn reason(status: u16) -> Option<&'static str> {
    match status {
        // Go's words for these differ from those of the crate `http`.
        203 => Some("Non-Authoritative Information"),
        413 => Some("Request Entity Too Large"),
        414 => Some("Request URI Too Long"),
        416 => Some("Requested Range Not Satisfiable"),
        _ => StatusCode::from_u16(status).ok()?.canonical_reason(),
    }
}
