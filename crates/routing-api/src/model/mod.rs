//! What the routing API keeps, and the rules for it. No I/O; time is an argument.
//!
//! Names and texts of errors, keys and order of JSON follow routing-api 44661ed.

mod error;
mod group;
mod http;
mod ports;
mod tcp;
mod url;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Deserializer, Serialize};

pub use error::{ApiError, ErrorName};
pub use group::RouterGroup;
pub use http::{HttpKey, HttpRoute};
pub use ports::ReservablePorts;
pub use tcp::{TcpKey, TcpMapping};

/// Which state of a row this is: a new row has a new guid and index 0, each upsert adds 1.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModificationTag {
    /// Changes when the row is made anew.
    #[serde(default, deserialize_with = "or_default")]
    pub guid: String,
    /// Rises with every upsert.
    #[serde(default, deserialize_with = "or_default")]
    pub index: u32,
}

/// Null means what a missing field means, as in Go.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Bytes that a text of a row may have: the width of routing-api's columns.
const MOST_TEXT: usize = 255;

/// Whether a database can keep a text, and others can log it: it is not too long, and has
/// no control characters, which no host, guid or path has.
fn can_be_kept(text: &str) -> bool {
    text.len() <= MOST_TEXT && !text.chars().any(char::is_control)
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads the list in a request's body. As Go's decoder does, it takes `null` for an empty
/// list and ignores what follows the list.
///
/// # Errors
/// `ProcessRequestError` when the text is not such a list.
pub fn read_list<T: for<'de> Deserialize<'de>>(body: &[u8]) -> Result<Vec<T>, ApiError> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let list = Option::<Vec<T>>::deserialize(&mut deserializer);
    Ok(list.map_err(ApiError::process)?.unwrap_or_default())
}

/// Reads the object in a request's body, with the same leniency.
///
/// # Errors
/// `ProcessRequestError` when the text is not such an object.
pub fn read_object<T: Default + for<'de> Deserialize<'de>>(body: &[u8]) -> Result<T, ApiError> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let object = Option::<T>::deserialize(&mut deserializer);
    Ok(object.map_err(ApiError::process)?.unwrap_or_default())
}
