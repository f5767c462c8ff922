//! How compliance and repairs went over time.

use serde_json::{Value, json};

use super::answers::ApiError;
use super::shapes::{details, when};
use super::{Call, Service};
use crate::reports::level::Precision;
use crate::server::fleet::FLEET;
use crate::server::now;

impl Service {
    /// Hour by hour since the server started, of the fleet or of `?rule=ID`.
    pub(super) fn history(&self, call: &Call<'_>) -> Result<Value, ApiError> {
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

    /// Repairs of a rule by six hours of the last three days.
    pub(super) fn changes(&self, rule: &str) -> Value {
        let slots = self.compliance.lock().repairs(rule, now());
        let slots = slots
            .into_iter()
            .map(|(begin, count)| json!({"begin": when(begin), "changes": count}));
        json!({"changes": slots.collect::<Vec<_>>()})
    }
}
