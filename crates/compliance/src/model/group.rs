//! Groups of nodes.

use serde::{Deserialize, Serialize};

use super::property::{Property, check_properties};
use super::query::Query;
use super::{ModelError, check_id, check_name, yes};

/// Most nodes of a static group.
pub const NODES: usize = 1_000_000;

/// A group: nodes that are listed, or that a query finds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Its identity.
    pub id: String,
    /// Its name.
    pub display_name: String,
    /// For people.
    #[serde(default)]
    pub description: String,
    /// The folder that people find it in.
    #[serde(default)]
    pub category: String,
    /// Does the query say who belongs to it? Else `node_ids` does.
    #[serde(default)]
    pub dynamic: bool,
    /// Who belongs to it, if it is dynamic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<Query>,
    /// Who belongs to it, if it is static.
    #[serde(default)]
    pub node_ids: Vec<String>,
    /// Has it any node at all?
    #[serde(default = "yes")]
    pub enabled: bool,
    /// What its members inherit.
    #[serde(default)]
    pub properties: Vec<Property>,
}

impl Group {
    /// A dynamic group.
    pub fn of_query(id: impl Into<String>, name: impl Into<String>, query: Query) -> Self {
        Self {
            dynamic: true,
            query: Some(query),
            ..Self::of_nodes(id, name, Vec::new())
        }
    }

    /// A static group.
    pub fn of_nodes(id: impl Into<String>, name: impl Into<String>, node_ids: Vec<String>) -> Self {
        Self {
            id: id.into(),
            display_name: name.into(),
            description: String::new(),
            category: String::new(),
            dynamic: false,
            query: None,
            node_ids,
            enabled: true,
            properties: Vec::new(),
        }
    }

    /// Checks identity, name, sizes and properties; not the query, which is checked where it
    /// is compiled.
    pub fn check(&self) -> Result<(), ModelError> {
        check_id("group", &self.id)?;
        check_name("group", &self.id, &self.display_name)?;
        check_properties("group", &self.id, &self.properties)?;
        if self.node_ids.len() > NODES {
            let found = self.node_ids.len();
            let message = format!("{found} nodes; at most {NODES} are kept");
            return Err(ModelError::new("group", &self.id, message));
        }
        if self.dynamic && self.query.is_none() {
            let message = "a dynamic group needs a query; write one, or list its nodes";
            return Err(ModelError::new("group", &self.id, message));
        }
        Ok(())
    }

    /// The conditions that are set on its members: one by identity, one by name.
    pub fn conditions(&self) -> [String; 2] {
        [
            format!("group_{}", canonify(&self.id)),
            format!("group_{}", canonify(&self.display_name)),
        ]
    }
}

/// A text as the name of a condition: lower case, and `_` for what is no ASCII letter, digit or
/// underscore.
pub fn canonify(text: &str) -> String {
    text.chars()
        .map(|letter| match letter.to_ascii_lowercase() {
            letter if letter.is_ascii_alphanumeric() => letter,
            _ => '_',
        })
        .collect()
}
