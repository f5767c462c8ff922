//! Router groups: routers that share their ports.

use serde::{Deserialize, Serialize};

use super::{MOST_TEXT, ReservablePorts, can_be_kept, or_default};

/// Routers that serve the same routes. Fields stand in the order of the JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterGroup {
    /// Given by the server.
    #[serde(default, deserialize_with = "or_default")]
    pub guid: String,
    /// Unique.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// `tcp`, `http`, or a word of the operators' own.
    #[serde(rename = "type", default, deserialize_with = "or_default")]
    pub kind: String,
    /// Ports that may be given away, such as `1024-2047,3000`; a group of type `tcp` has
    /// some, one of type `http` none.
    #[serde(default, deserialize_with = "or_default")]
    pub reservable_ports: String,
}

impl RouterGroup {
    /// Checks what does not depend on other groups.
    ///
    /// # Errors
    /// The text of the error that routing-api answers.
    pub fn check(&self) -> Result<(), String> {
        if self.name.is_empty() {
            return Err("missing name in router group".to_owned());
        }
        if self.kind.is_empty() {
            return Err("missing type in router group".to_owned());
        }
        if !can_be_kept(&self.name) || !can_be_kept(&self.kind) {
            return Err(format!(
                "name and type of a router group have at most {MOST_TEXT} bytes and no control characters"
            ));
        }
        match (self.kind.as_str(), self.reservable_ports.as_str()) {
            ("tcp", "") => Err(format!(
                "missing reservable_ports in router group: {}",
                self.name
            )),
            (_, "") => Ok(()),
            ("http", _) => {
                Err("reservable ports are not supported for router groups of type http".to_owned())
            }
            (_, ports) => ReservablePorts::parse(ports).map(drop),
        }
    }
}
