//! The server itself.

use commit::{PendingLookup, StoreError};
use serde_json::{Value, json};

use super::answers::ApiError;
use super::route::{Answer, Route, routes};
use super::schema::{Schema, TEXT, object};
use super::shapes::when;
use crate::server::generator::Task;
use crate::server::ledger::{LIMITS, Ledger};
use crate::server::service::Service;
use crate::server::state::Access;

static COUNT: Schema = Schema::Number(0, i64::MAX);

static INFO: Schema = object! { "Info"
    needed "rudder": Schema::Map(&TEXT), "its full-version";
    needed "started": TEXT;
};
static HEALTH: Schema = Schema::List(
    &object! { "HealthCheck"
        needed "name": TEXT;
        needed "msg": TEXT;
        needed "status": Schema::Word(&["Ok", "Warning", "Critical"]);
    },
    16,
);
static STARTED: Schema = Schema::Word(&["Started"]);
static STORED: Schema = object! { "Stored"
    needed "runs": COUNT;
    needed "reports": COUNT;
    needed "bytes": COUNT, "of messages, packed";
    needed "exceptions": COUNT, "reports of which something is to be told";
    needed "refused": COUNT, "uploads that are kept aside";
};

/// The calls about the server.
pub(super) const ROUTES: &[Route] = routes! {
    get "system/status" "getStatus" "Is the server there? Without a token"
        => "global": Schema::Word(&["OK"]), Now(|_, _| Ok(json!({"global": "OK"}))),
        by(Access::Open);
    get "status" "getStatus" "As /system/status; also without a version in its path"
        => "global": Schema::Word(&["OK"]), Now(|_, _| Ok(json!({"global": "OK"}))),
        by(Access::Open);
    get "system/healthcheck" "getHealthcheckResult" "What the server finds of itself"
        => "": HEALTH, Now(|service, _| Ok(service.health()));
    get "system/info" "getSystemInfo" "Version and start of the server"
        => "": INFO, Now(|service, _| Ok(service.info()));
    post "system/update/policies" "updatePolicies"
        "Policies are always current: nothing is to be done"
        => "policies": STARTED, Now(|_, _| Ok(json!({"policies": "Started"})));
    post "system/regenerate/policies" "regeneratePolicies" "Make all policies anew"
        => "policies": STARTED, Later(|service, _| Box::pin(service.make_anew()));
    get "system/store" "getStore" "How much is kept, counted anew"
        => "": STORED, Later(|service, _| Box::pin(service.stored()));
};

impl Service {
    fn info(&self) -> Value {
        json!({
            "rudder": {"full-version": concat!("headroom ", env!("CARGO_PKG_VERSION"))},
            "started": when(self.started),
        })
    }

    async fn make_anew(&self) -> Answer {
        let sent = self.tasks.send(Task::Anew).await;
        sent.map_err(|_| ApiError::unavailable("the server stops"))?;
        Ok(json!({"policies": "Started"}))
    }

    /// What the server finds of itself, in Rudder's words.
    fn health(&self) -> Value {
        let store = match (self.absence.is_too_long(), self.absence.lasts()) {
            (true, _) => ("Critical", "the database is away; nothing can be kept"),
            (_, true) => ("Warning", "the database is away since a moment ago"),
            _ => ("Ok", "the database is within reach"),
        };
        let waiting = self.commands.counts().queued;
        let most = LIMITS.queue;
        let busy = format!("{waiting} of {most} changes wait for the writer");
        let queue = if waiting * 2 > most { "Warning" } else { "Ok" };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let cores = format!("{cores} processors available");
        let checks = [
            ("Database", store.1, store.0),
            ("Waiting changes", &*busy, queue),
            ("CPU Cores", &*cores, "Ok"),
        ];
        let checks = checks.into_iter();
        checks
            .map(|(name, msg, status)| json!({"name": name, "msg": msg, "status": status}))
            .collect()
    }

    /// How much the store keeps, counted anew.
    async fn stored(&self) -> Answer {
        let stored = self.looked_up("count what is kept", |ledger| {
            Box::pin(async { ledger.store.stored().await })
        });
        Ok(json!(stored.await?))
    }

    /// What the writer looked up in the store, doing this. A database that is away is not waited
    /// for.
    pub(super) async fn looked_up<T: Send + 'static>(
        &self,
        doing: &str,
        look: impl for<'l> FnOnce(&'l mut Ledger) -> PendingLookup<'l, Result<T, StoreError>>
        + Send
        + 'static,
    ) -> Result<T, ApiError> {
        let looked = tokio::select! {
            looked = self.commands.look(look) => looked,
            () = self.absence.too_long() => {
                return Err(ApiError::unavailable("the database is away; ask again"));
            }
        };
        let looked = looked.ok_or_else(|| ApiError::unavailable("the server stops"))?;
        looked.map_err(|error| ApiError::unavailable(format!("{doing}: {error}; ask again")))
    }

    /// Bytes of the database and its log on the disk; none if there is no such file.
    pub(in super::super) fn database_bytes(&self) -> Option<u64> {
        let database = self.database.as_ref()?;
        let mut log = database.clone().into_os_string();
        log.push("-wal");
        let bytes = |path: &std::path::Path| std::fs::metadata(path).ok().map(|data| data.len());
        Some(bytes(database)? + bytes(log.as_ref()).unwrap_or(0))
    }
}
