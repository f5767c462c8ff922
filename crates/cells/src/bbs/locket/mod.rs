//! Locket: locks and presences with a time to live, as Diego's service of that name has them.
//!
//! Its messages come over gRPC, to a BBS that was given an address for them or to a
//! [server that does nothing else](run), or as bodies of plain HTTP to the BBS.

mod alone;
mod grpc;

pub use alone::{Config, run, start};
pub(super) use grpc::serve;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use diego::locket::{
    FetchAllRequest, FetchAllResponse, FetchRequest, FetchResponse, LockRequest, LockResponse,
    ReleaseRequest, ReleaseResponse, TypeCode,
};
use diego::path;
use prost::Message;
use telemetry::{Fields, Logger};

use super::apply::Command;
use super::convergence::Touches;
use super::ledger::Commands;
use super::presence::{Change, Kept, Presences, Refusal};

const UNREADABLE: Refusal = Refusal {
    code: 3,
    text: "unreadable-message",
};
const UNKNOWN_METHOD: Refusal = Refusal {
    code: 12,
    text: "unknown method",
};

/// Longest wait of a holder for the disk.
const STORED_WITHIN: Duration = Duration::from_secs(1);

/// What answers Locket's calls.
#[derive(Clone)]
pub(super) struct Locket {
    presences: Arc<Presences>,
    commands: Commands,
    touches: Arc<Touches>,
    logger: Logger,
}

impl Locket {
    pub(super) fn new(
        presences: Arc<Presences>,
        commands: Commands,
        touches: Arc<Touches>,
        logger: &Logger,
    ) -> Self {
        Self {
            presences,
            commands,
            touches,
            logger: logger.session("locket"),
        }
    }

    /// Answers the call at `path`, both as encoded messages.
    pub(super) async fn call(&self, path: &str, message: Bytes) -> Result<Bytes, Refusal> {
        match path {
            path::LOCKET_LOCK => self.lock(read(message)?).await,
            path::LOCKET_RELEASE => self.release(read(message)?).await,
            path::LOCKET_FETCH => self.fetch(&read(message)?),
            path::LOCKET_FETCH_ALL => self.fetch_all(&read(message)?),
            _ => Err(UNKNOWN_METHOD),
        }
    }

    async fn lock(&self, request: LockRequest) -> Result<Bytes, Refusal> {
        if let Some(kept) = self.presences.lock(request, Instant::now())? {
            let (key, id) = (kept.resource.key.clone(), kept.id);
            let held = Command::Presences(vec![Change::Held(kept)]);
            // It is held all the same, and others renew over the same connections.
            match tokio::time::timeout(STORED_WITHIN, self.commands.run(held)).await {
                Ok(Ok(_)) => self.presences.stored(&key, id),
                Err(_) => {
                    let fields = Fields::new().and("key", key);
                    self.logger.info("presence-not-stored-yet", fields);
                }
                // Its next renewal tries again.
                Ok(Err(error)) => {
                    let fields = Fields::new().and("key", key);
                    let message = &error.message;
                    self.logger
                        .error("failed-to-store-presence", message, fields);
                }
            }
        }
        Ok(encoded(&LockResponse {}))
    }

    async fn release(&self, request: ReleaseRequest) -> Result<Bytes, Refusal> {
        let gone = self.presences.release(request.resource, Instant::now())?;
        if let Some(Kept { id, resource, .. }) = gone {
            let change = Change::Gone(resource.key.clone(), id);
            if let Err(error) = self.commands.run(Command::Presences(vec![change])).await {
                // After a restart it would be taken for there for its time to live.
                let message = &error.message;
                self.logger
                    .error("failed-to-store-release", message, Fields::new());
            }
            // A cell that says goodbye is as lost as one that fell silent.
            if resource.type_code == i32::from(TypeCode::Presence) {
                self.touches.ring([resource.key]);
            }
        }
        Ok(encoded(&ReleaseResponse {}))
    }

    fn fetch(&self, request: &FetchRequest) -> Result<Bytes, Refusal> {
        let resource = Some(self.presences.fetch(&request.key, Instant::now())?);
        Ok(encoded(&FetchResponse { resource }))
    }

    fn fetch_all(&self, request: &FetchAllRequest) -> Result<Bytes, Refusal> {
        let resources = self.presences.fetch_all(request, Instant::now())?;
        Ok(encoded(&FetchAllResponse { resources }))
    }
}

fn read<M: Message + Default>(message: Bytes) -> Result<M, Refusal> {
    M::decode(message).map_err(|_| UNREADABLE)
}

fn encoded(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}
