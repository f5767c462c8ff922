//! The server itself.

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::Service;
use super::answers::ApiError;
use super::shapes::when;
use crate::server::ledger::Ledger;

/// What the REST API can be asked.
pub(super) const OPENAPI: &str = include_str!("openapi.json");

impl Service {
    pub(super) async fn system(&self, what: &str) -> Result<Value, ApiError> {
        match what {
            "status" => Ok(json!({"global": "OK"})),
            "info" => Ok(json!({
                "rudder": {"full-version": concat!("headroom ", env!("CARGO_PKG_VERSION"))},
                "started": when(self.started),
            })),
            "store" => self.stored().await,
            other => Err(ApiError::not_found("question about the system", other)),
        }
    }

    /// How much the store keeps, counted anew.
    async fn stored(&self) -> Result<Value, ApiError> {
        let (told, hear) = oneshot::channel();
        let look = move |ledger: &mut Ledger| {
            let _ = told.send(ledger.store.stored());
        };
        self.commands.tend(look).await;
        let stored = hear
            .await
            .map_err(|_| ApiError::unavailable("the server stops"))?;
        let stored = stored.map_err(|error| {
            ApiError::unavailable(format!("count what is kept: {error}; ask again"))
        })?;
        Ok(json!(stored))
    }

    /// Bytes of the database and its log on the disk; none if there is no such file.
    pub(super) fn database_bytes(&self) -> Option<u64> {
        let mut log = self.database.clone().into_os_string();
        log.push("-wal");
        let bytes = |path: &std::path::Path| std::fs::metadata(path).ok().map(|data| data.len());
        Some(bytes(&self.database)? + bytes(log.as_ref()).unwrap_or(0))
    }
}
