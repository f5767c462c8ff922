//! Run logs: by their file's name, and by the signature of their node.

use bytes::Bytes;
use http::StatusCode;

use super::NotTaken;
use crate::reports::run_info::{Packing, RunInfo};
use crate::reports::runlog::Limits;
use crate::reports::signature::{NodeCertificate, verify};
use crate::reports::upload::unpack;
use crate::server::pack;

/// A signed run that was checked.
pub(crate) struct CheckedReport {
    /// Its log; bytes that are no UTF-8 are replaced.
    pub(crate) text: String,
    /// The message as it is kept: packed by gzip.
    pub(crate) message: Bytes,
}

/// What a file's name tells of a run.
pub(crate) fn run_of(name: &str) -> Result<(RunInfo, Packing), NotTaken> {
    RunInfo::from_file_name(name).map_err(|error| NotTaken::new(StatusCode::BAD_REQUEST, error))
}

/// Unpacks a message and checks it with the key of its node; some milliseconds of a core.
pub(crate) async fn check_report(
    body: Bytes,
    packing: Packing,
    key: NodeCertificate,
) -> Result<CheckedReport, NotTaken> {
    let check = move || {
        let limit = Limits::default().text_bytes;
        let message = unpack(&body, packing, limit)
            .map_err(|error| NotTaken::new(StatusCode::BAD_REQUEST, error))?;
        let text =
            verify(&message, &key).map_err(|error| NotTaken::new(StatusCode::FORBIDDEN, error))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        // Most come as they are kept.
        let message = match packing {
            Packing::Gzip => body.clone(),
            Packing::Plain | Packing::Zip => pack(&message).into(),
        };
        Ok(CheckedReport { text, message })
    };
    let checked = tokio::task::spawn_blocking(check).await;
    checked.unwrap_or_else(|error| Err(NotTaken::new(StatusCode::INTERNAL_SERVER_ERROR, error)))
}
