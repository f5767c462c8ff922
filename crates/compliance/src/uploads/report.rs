//! Run logs: by their file's name, and by the signature of their node.

use std::borrow::Cow;

use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use http::StatusCode;

use super::{UploadRejection, beside};
use crate::reports::run_info::{Packing, RunInfo};
use crate::reports::runlog::{Limits, RunLog, RunLogError};
use crate::reports::signature::{NodeCertificate, text_of_checked, verify};
use crate::reports::upload::unpack;
use crate::server::pack;

/// A log of more bytes takes longer to be read than others should wait.
const LONG_BYTES: usize = 1 << 20;

/// A signed run that was checked.
pub(crate) struct CheckedReport {
    /// Its log; bytes that are no UTF-8 are replaced.
    pub(crate) text: String,
    /// What tells this log from others of the same run.
    pub(crate) digest: i64,
    /// The message as it is kept: packed by gzip.
    pub(crate) message: Bytes,
}

/// Tells a log from others of the same run, however it is signed and packed; never 0, which stands
/// for a run without one.
pub(crate) fn digest_of(log: &[u8]) -> i64 {
    let sum = digest(&SHA256, log);
    let start = sum.as_ref().first_chunk().copied();
    match i64::from_be_bytes(start.unwrap_or_default()) {
        0 => 1,
        digest => digest,
    }
}

/// What a file's name tells of a run.
pub(crate) fn run_of(name: &str) -> Result<(RunInfo, Packing), UploadRejection> {
    RunInfo::from_file_name(name)
        .map_err(|error| UploadRejection::new(StatusCode::BAD_REQUEST, error))
}

/// Reads a run's log. A long one has a thread for itself.
///
/// # Errors
/// As [`RunLog::parse`] has them.
pub(crate) fn read_log(info: RunInfo, log: &str) -> Result<RunLog<'_>, RunLogError> {
    let read = || RunLog::parse(info, log, &Limits::default());
    beside(log.len() > LONG_BYTES, read)
}

/// Unpacks a message and checks it with the key of its node; some milliseconds of a core.
pub(crate) async fn check_report(
    body: Bytes,
    packing: Packing,
    key: NodeCertificate,
) -> Result<CheckedReport, UploadRejection> {
    opened(body, packing, move |message| {
        verify(message, &key).map_err(|error| UploadRejection::new(StatusCode::FORBIDDEN, error))
    })
    .await
}

/// Unpacks a message whose signature somebody else has checked, and who gets it checks again.
pub(crate) async fn read_report(
    body: Bytes,
    packing: Packing,
) -> Result<CheckedReport, UploadRejection> {
    opened(body, packing, |message| {
        text_of_checked(message)
            .map_err(|error| UploadRejection::new(StatusCode::BAD_REQUEST, error))
    })
    .await
}

async fn opened(
    body: Bytes,
    packing: Packing,
    text: impl for<'m> FnOnce(&'m [u8]) -> Result<Cow<'m, [u8]>, UploadRejection> + Send + 'static,
) -> Result<CheckedReport, UploadRejection> {
    let check = move || {
        let limit = Limits::default().text_bytes;
        let message = unpack(&body, packing, limit)
            .map_err(|error| UploadRejection::new(StatusCode::BAD_REQUEST, error))?;
        let text = text(&message)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        // Most come as they are kept.
        let message = match packing {
            Packing::Gzip => body.clone(),
            Packing::Plain | Packing::Zip => pack(&message).into(),
        };
        let digest = digest_of(text.as_bytes());
        Ok(CheckedReport {
            text,
            digest,
            message,
        })
    };
    let checked = tokio::task::spawn_blocking(check).await;
    checked.unwrap_or_else(|error| {
        Err(UploadRejection::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            error,
        ))
    })
}
