//! What nodes upload, on its way in: held within bounds, unpacked, and checked with the key of
//! its node. What becomes of it is for the server, or the relay, to say.

mod halves;
mod inventory;
mod report;

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use net::{BodyError, BodyReadError, Held, Incoming, Room};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::block_in_place;

pub(crate) use halves::{Half, Halves};
pub(crate) use inventory::{CheckedInventory, check_inventory, first_half, half_of, paired};
pub(crate) use report::{CheckedReport, check_report, digest_of, read_log, read_report, run_of};

/// Uploads that are worked on at once; a further one is to come again.
const UPLOADS: usize = 256;
/// Uploads that are unpacked and checked at once, each of up to 64 MB of which nobody knows yet who
/// made them; further ones wait for these, which take some milliseconds of a core.
const CHECKING: usize = 16;
/// Bytes of a refused upload that are kept aside.
const ASIDE_BYTES: usize = 64 << 10;

/// Why an upload is not taken, and what it is answered.
#[derive(Debug)]
pub(crate) struct UploadRejection {
    pub(crate) status: StatusCode,
    pub(crate) why: String,
}

impl UploadRejection {
    pub(crate) fn new(status: StatusCode, why: impl ToString) -> Self {
        let why = why.to_string();
        Self { status, why }
    }

    /// The peer is to send it again later.
    pub(crate) fn later(why: impl ToString) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, why)
    }

    /// There is too much to do.
    pub(crate) fn busy() -> Self {
        Self::later("too many uploads at once; send it again")
    }
}

/// What became of an upload.
pub(crate) type UploadResult = Result<(StatusCode, String), UploadRejection>;

/// How many uploads there may be at once.
pub(crate) fn places() -> Semaphore {
    Semaphore::new(UPLOADS)
}

/// How many of these may be unpacked and checked at once.
pub(crate) fn checking() -> Semaphore {
    Semaphore::new(CHECKING)
}

/// Does what takes more than some milliseconds while another thread goes on with the work of this
/// one, where there are others.
pub(crate) fn beside<T>(long: bool, work: impl FnOnce() -> T) -> T {
    let several = Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
    match long && several {
        true => block_in_place(work),
        false => work(),
    }
}

/// What is kept aside of a refused upload.
pub(crate) fn aside(body: &Bytes) -> Bytes {
    body.slice(..body.len().min(ASIDE_BYTES))
}

/// What a body that cannot be read is answered.
pub(crate) fn body_status(error: &BodyError) -> StatusCode {
    match error {
        BodyError::TooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::TooSlow { .. } => StatusCode::REQUEST_TIMEOUT,
        BodyError::Broken(_) => StatusCode::BAD_REQUEST,
    }
}

/// Why the body of an upload is not held.
#[derive(Debug)]
pub(crate) enum HoldError {
    /// It cannot be taken by its name, and is longer than what is kept aside.
    Named(UploadRejection),
    /// It cannot be read.
    Body(UploadRejection),
    /// Other bodies take all the room.
    NoRoom,
}

/// Reads the body of an upload. What cannot be taken by its name, whatever it is, is not read
/// further than it is kept aside.
pub(crate) async fn hold<'r>(
    room: &'r Room,
    body: Incoming,
    expected: Result<(), UploadRejection>,
    bytes_max: usize,
    within: Duration,
) -> Result<Held<'r>, HoldError> {
    let most = match &expected {
        Ok(()) => bytes_max,
        Err(_) => ASIDE_BYTES,
    };
    match (room.read(body, most, within).await, expected) {
        (Ok(held), _) => Ok(held),
        (Err(BodyReadError::Body(BodyError::TooLong { .. })), Err(refused)) => {
            Err(HoldError::Named(refused))
        }
        (Err(BodyReadError::Body(error)), _) => {
            let status = body_status(&error);
            Err(HoldError::Body(UploadRejection::new(status, error)))
        }
        (Err(BodyReadError::NoRoom), _) => Err(HoldError::NoRoom),
    }
}
