//! Locket: locks and presences with a time to live, as Diego's service of that name has them.
//!
//! Its messages come over gRPC, to a BBS that was given an address for them or to a
//! [server that does nothing else](run), or as bodies of plain HTTP to the BBS. Who holds what one
//! process knows, with its disk; or a database in PostgreSQL, which several servers share.

mod alone;
mod grpc;
mod own;
mod shared;

pub use alone::{Config, run, start};
pub(super) use grpc::serve;

use std::sync::Arc;

use bytes::Bytes;
use diego::locket::{FetchAllResponse, FetchRequest, FetchResponse, LockResponse, ReleaseResponse};
use diego::path;
use prost::Message;
use telemetry::Logger;

use super::convergence::Touches;
use super::ledger::Commands;
use super::presence::{Presences, Refusal};
use own::Own;
use shared::Shared;

const UNREADABLE: Refusal = Refusal {
    code: 3,
    text: "unreadable-message",
};
const UNKNOWN_METHOD: Refusal = Refusal {
    code: 12,
    text: "unknown method",
};

/// What answers Locket's calls.
#[derive(Clone)]
pub(super) struct Locket {
    keys: Keys,
    logger: Logger,
}

/// Who knows what is held.
#[derive(Clone)]
enum Keys {
    Own(Own),
    Shared(Shared),
}

impl Locket {
    pub(super) fn new(
        presences: Arc<Presences>,
        commands: Commands,
        touches: Arc<Touches>,
        logger: &Logger,
    ) -> Self {
        let logger = logger.session("locket");
        let keys = Keys::Own(Own {
            presences,
            commands,
            touches,
            logger: logger.clone(),
        });
        Self { keys, logger }
    }

    /// One of several that share a database.
    fn sharing(shared: Shared, logger: &Logger) -> Self {
        Self {
            keys: Keys::Shared(shared),
            logger: logger.session("locket"),
        }
    }

    /// Answers the call at `path`, both as encoded messages.
    pub(super) async fn call(&self, path: &str, message: Bytes) -> Result<Bytes, Refusal> {
        match path {
            path::LOCKET_LOCK => {
                let request = read(message)?;
                match &self.keys {
                    Keys::Own(own) => own.lock(request).await?,
                    Keys::Shared(shared) => shared.lock(request).await?,
                }
                Ok(encoded(&LockResponse {}))
            }
            path::LOCKET_RELEASE => {
                let request = read(message)?;
                match &self.keys {
                    Keys::Own(own) => own.release(request).await?,
                    Keys::Shared(shared) => shared.release(request).await?,
                }
                Ok(encoded(&ReleaseResponse {}))
            }
            path::LOCKET_FETCH => {
                let FetchRequest { key } = read(message)?;
                let resource = Some(match &self.keys {
                    Keys::Own(own) => own.fetch(&key)?,
                    Keys::Shared(shared) => shared.fetch(&key).await?,
                });
                Ok(encoded(&FetchResponse { resource }))
            }
            path::LOCKET_FETCH_ALL => {
                let request = read(message)?;
                let resources = match &self.keys {
                    Keys::Own(own) => own.fetch_all(&request)?,
                    Keys::Shared(shared) => shared.fetch_all(&request).await?,
                };
                Ok(encoded(&FetchAllResponse { resources }))
            }
            _ => Err(UNKNOWN_METHOD),
        }
    }
}

fn read<M: Message + Default>(message: Bytes) -> Result<M, Refusal> {
    M::decode(message).map_err(|_| UNREADABLE)
}

fn encoded(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}
