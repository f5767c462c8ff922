//! How compliance and repairs went over time.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::compliance::DETAILS;
use super::route::{Answer, Call, Route, routes};
use super::schema::{Field, Schema, TEXT, may, objects};
use super::shapes::{details, when};
use crate::reports::level::Precision;
use crate::server::fleet::FLEET;
use crate::server::now;
use crate::server::service::Service;

static HOURS: Schema = objects! { "Hour"
    needed "begin": TEXT;
    needed "compliance": Schema::Share, "the mean";
    needed "lowest": Schema::Share;
    needed "highest": Schema::Share;
    needed "complianceDetails": DETAILS, "at its end, or now";
};
static CHANGES: Schema = objects! { "Changes"
    needed "begin": TEXT, "of six hours";
    needed "changes": Schema::Number(0, i64::MAX), "repairs";
};

const OF_RULE: &[Field] =
    &[may("rule", &TEXT).note("identity of a rule; without it all of the fleet")];

/// The calls about what was.
pub(super) const ROUTES: &[Route] = routes! {
    get "compliance/history" "getComplianceHistory" "Compliance hour by hour"
        => "hours": HOURS, Later(|service, call| Box::pin(service.history(call))),
        with_query(OF_RULE);
    get "rules/{id}/changes" "getRuleChanges"
        "Repairs of a rule by six hours of the last three days"
        => "changes": CHANGES, Now(|service, call| service.changes(call.id()));
};

impl Service {
    /// Hours that are durable, and what is known since.
    async fn history(&self, call: &Call<'_>) -> Answer {
        let thing: Arc<str> = call.query.get("rule").unwrap_or(FLEET).into();
        let wanted = Arc::clone(&thing);
        let stored = self.looked_up("read the history", move |ledger| {
            Box::pin(async move { ledger.store.hours(&wanted).await })
        });
        let stored = stored.await?;
        let mut hours: BTreeMap<_, _> = stored.iter().map(|hour| (hour.begin, *hour)).collect();
        {
            let mut all = self.compliance.lock();
            all.histories.advance(now());
            let since = all.histories.of(&thing).into_iter();
            hours.extend(since.flat_map(|history| history.hours().map(|hour| (hour.begin, *hour))));
        }
        let hours = hours.values().map(|hour| {
            json!({
                "begin": when(hour.begin),
                "compliance": hour.mean(),
                "lowest": hour.lowest,
                "highest": hour.highest,
                "complianceDetails": details(&hour.level, Precision::default()),
            })
        });
        Ok(json!({"hours": hours.collect::<Vec<_>>()}))
    }

    fn changes(&self, rule: &str) -> Answer {
        let slots = self.compliance.lock().repairs(rule, now());
        let slots = slots
            .into_iter()
            .map(|(begin, count)| json!({"begin": when(begin), "changes": count}));
        Ok(json!({"changes": slots.collect::<Vec<_>>()}))
    }
}
