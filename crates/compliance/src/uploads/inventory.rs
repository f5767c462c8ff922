//! Inventories: by their files' names, and by the signature of their node.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use http::StatusCode;

use super::{Half, Halves, UploadRejection};
use crate::inventory::{self, InventorySignature, NodeFacts};
use crate::reports::signature::NodeCertificate;

/// What a file's name tells of a half: the inventory's name, whether it is packed, and whether
/// it signs.
pub(crate) fn half_of(name: &str) -> Result<(&str, bool, bool), UploadRejection> {
    let (stem, signs) = match name.strip_suffix(".sign") {
        Some(stem) => (stem, true),
        None => (name, false),
    };
    let (stem, packed) = match stem.strip_suffix(".gz") {
        Some(stem) => (stem, true),
        None => (stem, false),
    };
    if stem.ends_with(".ocs") {
        return Ok((stem, packed, signs));
    }
    let why = format!("the file is {name:?}; expected NAME.ocs, NAME.ocs.gz or NAME.ocs.sign");
    Err(UploadRejection::new(StatusCode::BAD_REQUEST, why))
}

/// Takes half of an inventory by its file's name: both, the inventory first, if it is the second
/// that came; else it waits.
pub(crate) fn paired(
    halves: &Mutex<Halves>,
    name: &str,
    body: Bytes,
) -> Result<Option<(Half, Half)>, UploadRejection> {
    let (stem, packed, signs) = half_of(name)?;
    let half = Half {
        body,
        packed,
        signs,
        since: Instant::now(),
    };
    let mut halves = halves.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(halves.pair(stem, half))
}

/// What the first half of an inventory is answered.
pub(crate) fn first_half() -> (StatusCode, String) {
    let told = "it waits for its other half\n";
    (StatusCode::ACCEPTED, told.into())
}

/// An inventory that was checked.
pub(crate) struct CheckedInventory {
    /// What it tells.
    pub(crate) facts: NodeFacts,
    /// The certificate that signed it.
    pub(crate) key: NodeCertificate,
}

/// Unpacks, reads and checks an inventory; `known` gives the key by which a node is known, if
/// only that will do.
pub(crate) fn check_inventory(
    whole: &Half,
    signature: &[u8],
    known: impl FnOnce(&str) -> Option<NodeCertificate>,
) -> Result<CheckedInventory, UploadRejection> {
    let bad = |error: &dyn std::fmt::Display| UploadRejection::new(StatusCode::BAD_REQUEST, error);
    let limits = inventory::Limits::default();
    let name = if whole.packed { ".gz" } else { "" };
    let xml = inventory::unpack(name, &whole.body, &limits).map_err(|error| bad(&error))?;
    let facts = NodeFacts::read(&xml, &limits).map_err(|error| bad(&error))?;
    facts
        .check_date(jiff::Timestamp::now())
        .map_err(|error| bad(&error))?;
    let known = known(&facts.node.id);
    let key = InventorySignature::parse(signature)
        .and_then(|signature| signature.verify(&xml, &facts, known.as_ref()))
        .map_err(|error| UploadRejection::new(StatusCode::FORBIDDEN, error))?;
    Ok(CheckedInventory { facts, key })
}
