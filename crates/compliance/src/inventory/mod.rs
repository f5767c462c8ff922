//! Inventories: what a node tells of itself, as FusionInventory XML with a detached signature.
//!
//! An upload is unpacked ([`unpack`]), read ([`NodeFacts::read`]), and its signature checked
//! ([`InventorySignature`]) with the node's known key, or with the key that a new node tells.
//! Agents write the same ([`mod@write`]); hollow agents tell of nodes that might exist
//! ([`hollow`]).

mod fields;
pub mod hollow;
pub(crate) mod normal;
mod read;
mod records;
pub mod signature;
#[cfg(test)]
mod tests;
mod write;

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::model::ModelError;
use crate::model::inventory::Inventory;
use crate::model::node::Node;
use crate::reports::run_info::Packing;
use crate::reports::upload::{self, UnpackError};

pub use signature::{InventorySignature, InventorySignatureError};
pub use write::write;

/// How much of an inventory is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole XML.
    pub bytes: usize,
    /// Elements inside of elements.
    pub depth: usize,
    /// Elements of XML in all.
    pub elements: usize,
    /// Bytes of one element's text.
    pub text_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 16 << 20,
            depth: 16,
            elements: 500_000,
            text_bytes: 256 << 10,
        }
    }
}

/// Why an inventory is refused.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum InventoryError {
    /// It is larger than a limit.
    #[error("reading an inventory: more than {limit} {what}; it is refused as no inventory")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// It is no XML that is accepted.
    #[error(
        "reading an inventory at byte {at}: {problem}; expected XML in UTF-8 as agents write it"
    )]
    Xml {
        /// Where.
        at: u64,
        /// What was found.
        problem: String,
    },
    /// A field is missing or empty without which nothing can be done.
    #[error("reading an inventory: {field} is missing or empty; repair the agent of the node")]
    Missing {
        /// Which one.
        field: &'static str,
    },
    /// A field has a value that cannot be.
    #[error("reading an inventory: {field} is {found:?}; expected {expected}")]
    Field {
        /// Which one.
        field: &'static str,
        /// Its value, shortened.
        found: String,
        /// What is accepted.
        expected: &'static str,
    },
    /// Its facts cannot be kept.
    #[error("reading an inventory: {0}")]
    Model(#[from] ModelError),
}

/// Why an inventory's date is refused.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
#[error(
    "the inventory is dated {date}, now is {now}; expected at most 2 days before and 12 hours \
     after; set the node's clock or send a new inventory"
)]
pub struct DateError {
    /// The inventory's date.
    pub date: Timestamp,
    /// When it came.
    pub now: Timestamp,
}

/// An update of software that a node could install. What is not told of it is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SoftwareUpdate {
    /// Name of the software.
    pub name: String,
    /// The version that it could have.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Architecture.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub arch: String,
    /// Who offers it: `yum`, `apt`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// `security`, `defect`, `enhancement`, `none`, or another word of the system's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Where it comes from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// What it changes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How severe it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub severity: String,
    /// When it was published, RFC 3339.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub date: String,
    /// Names that others have for it, such as those of CVEs, with commas between.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ids: String,
}

/// What an inventory tells.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeFacts {
    /// The node. What only an administrator sets has its default.
    pub node: Node,
    /// Its certificate, PEM.
    pub certificate: String,
    /// When the inventory was made; none if it does not say so.
    pub date: Option<Timestamp>,
    /// What its agent is able to do.
    pub capabilities: Vec<String>,
    /// Its elements.
    pub inventory: Inventory,
    /// Updates that it could install.
    pub updates: Vec<SoftwareUpdate>,
}

impl NodeFacts {
    /// Reads the XML of an inventory. Entities but the five of XML, and document types, are
    /// refused. Of an element's value at most 4,096 bytes are kept.
    ///
    /// # Errors
    /// A limit, other XML, a mandatory field that is missing, an impossible value.
    pub fn read(xml: &[u8], limits: &Limits) -> Result<Self, InventoryError> {
        read::read(xml, limits)
    }

    /// Is the inventory's date close enough to now? One without a date is taken as of now.
    ///
    /// # Errors
    /// It is more than 2 days old or more than 12 hours ahead.
    pub fn check_date(&self, now: Timestamp) -> Result<(), DateError> {
        let Some(date) = self.date else {
            return Ok(());
        };
        let age = now.duration_since(date);
        if age > SignedDuration::from_hours(48) || age < SignedDuration::from_hours(-12) {
            return Err(DateError { date, now });
        }
        Ok(())
    }
}

/// Unpacks an upload by its name's ending: `.gz` or none.
///
/// # Errors
/// It is damaged, or more than the limit comes out.
pub fn unpack<'a>(
    name: &str,
    body: &'a [u8],
    limits: &Limits,
) -> Result<Cow<'a, [u8]>, UnpackError> {
    let packing = if name.ends_with(".gz") {
        Packing::Gzip
    } else {
        Packing::Plain
    };
    upload::unpack(body, packing, limits.bytes)
}
