//! How compliance and repairs went over time.

use serde_json::json;

use super::compliance::DETAILS;
use super::route::{Answer, Call, Parameter, Route, Work};
use super::schema::{Schema, TEXT, needed};
use super::shapes::{details, when};
use crate::reports::level::Precision;
use crate::server::fleet::FLEET;
use crate::server::now;
use crate::server::service::Service;

static HOURS: Schema = Schema::List(
    &Schema::Object(
        "Hour",
        &[
            needed("begin", &TEXT, ""),
            needed("compliance", &Schema::Share, "the mean"),
            needed("lowest", &Schema::Share, ""),
            needed("highest", &Schema::Share, ""),
            needed("complianceDetails", &DETAILS, "at its end, or now"),
        ],
    ),
    usize::MAX,
);
static CHANGES: Schema = Schema::List(
    &Schema::Object(
        "Changes",
        &[
            needed("begin", &TEXT, "of six hours"),
            needed("changes", &Schema::Number(0, i64::MAX), "repairs"),
        ],
    ),
    usize::MAX,
);

const OF_RULE: &[Parameter] = &[Parameter {
    name: "rule",
    schema: &TEXT,
    note: "identity of a rule; without it all of the fleet",
}];

/// The calls about what was.
pub(super) const ROUTES: &[Route] = &[
    Route::get(
        "compliance/history",
        "getComplianceHistory",
        "Compliance hour by hour since the server started",
        ("hours", &HOURS),
        Work::Now(Service::history),
    )
    .asks(OF_RULE),
    Route::get(
        "rules/{id}/changes",
        "getRuleChanges",
        "Repairs of a rule by six hours of the last three days",
        ("changes", &CHANGES),
        Work::Now(|service, call| service.changes(call.id())),
    ),
];

impl Service {
    fn history(&self, call: &Call<'_>) -> Answer {
        let rule = call.query.get("rule").unwrap_or(FLEET);
        let all = self.compliance.lock();
        let Some(history) = all.histories.of(&rule.into()) else {
            return Ok(json!({"hours": []}));
        };
        let hours = history.hours().map(|hour| {
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
