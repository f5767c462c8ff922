//! Locks of router groups while the database is backed up or restored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{Method, Request, Response, StatusCode};
use net::{Body, Handler, Incoming};
use telemetry::{Fields, Logger};

use super::{Call, answers};
use crate::model::ApiError;

/// What may not be done with router groups for now.
#[derive(Debug, Default)]
pub(crate) struct GroupLocks {
    reads: AtomicBool,
    writes: AtomicBool,
}

impl GroupLocks {
    /// Whether a call may go on. Mappings name groups, so writing them reads groups.
    pub(super) fn check(&self, call: &Call<'_>) -> Result<(), ApiError> {
        let (reads, writes) = match call {
            Call::ListGroups | Call::UpsertTcp => (true, false),
            Call::CreateGroup | Call::UpdateGroup(_) | Call::DeleteGroup(_) => (true, true),
            _ => (false, false),
        };
        let locked = (reads && self.reads.load(Ordering::Relaxed))
            || (writes && self.writes.load(Ordering::Relaxed));
        match locked {
            true => Err(ApiError::database(
                "database unavailable due to backup or restore",
            )),
            false => Ok(()),
        }
    }
}

/// Answers on the admin port.
pub(crate) struct Admin {
    pub(crate) locks: Arc<GroupLocks>,
    pub(crate) logger: Logger,
}

impl Handler for Admin {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path();
        let (lock, locked) = match path {
            "/lock_router_group_reads" => (&self.locks.reads, true),
            "/unlock_router_group_reads" => (&self.locks.reads, false),
            "/lock_router_group_writes" => (&self.locks.writes, true),
            "/unlock_router_group_writes" => (&self.locks.writes, false),
            _ => return answers::bare(StatusCode::NOT_FOUND),
        };
        if request.method() != Method::PUT {
            return answers::bare(StatusCode::METHOD_NOT_ALLOWED);
        }
        lock.store(locked, Ordering::Relaxed);
        let fields = Fields::new().and("request", path);
        self.logger.info("group-locks-changed", fields);
        answers::bare(StatusCode::OK)
    }
}
