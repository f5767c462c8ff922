//! What holds for all nodes; the folder's `settings.yml` sets it.

use serde_json::{Value, json};

use super::answers::ApiError;
use super::route::{Answer, Route, Work};
use super::schema::{Schema, TEXT, may};
use crate::definitions::Definitions;
use crate::model::node::ROOT;
use crate::server::service::Service;

static SETTINGS: Schema = Schema::Object(
    "Settings",
    &[
        may(
            "global_policy_mode",
            &Schema::Word(&["audit", "enforce"]),
            "",
        ),
        may("global_policy_mode_overridable", &Schema::Flag, ""),
        may(
            "compliance_mode",
            &Schema::Word(&["full-compliance", "changes-only", "reports-disabled"]),
            "",
        ),
        may(
            "run_frequency",
            &Schema::Number(1, 1_440),
            "minutes from one run of agents to the next",
        ),
        may("first_run_hour", &Schema::Number(0, 23), ""),
        may("first_run_minute", &Schema::Number(0, 59), ""),
        may(
            "splay_time",
            &Schema::Number(0, 1_440),
            "minutes over which the starts of agents are spread",
        ),
        may("instance_id", &TEXT, "of this installation, if it is set"),
        may("root_server_id", &TEXT, ""),
    ],
);

/// The calls of settings.
pub(super) const ROUTES: &[Route] = &[
    Route::get(
        "settings",
        "getSettings",
        "All settings that there are",
        ("settings", &SETTINGS),
        Work::Now(|service, _| Ok(json!({"settings": service.settings()}))),
    ),
    Route::get(
        "settings/{id}",
        "getSetting",
        "One of the settings",
        ("settings", &SETTINGS),
        Work::Now(|service, call| one(service, call.id())),
    ),
];

fn one(service: &Service, id: &str) -> Answer {
    let all = service.settings();
    let value = all
        .get(id)
        .ok_or_else(|| ApiError::not_found("setting", id))?;
    Ok(json!({"settings": {id: value}}))
}

impl Service {
    fn settings(&self) -> Value {
        let state = self.view.read();
        let Definitions { settings, .. } = &*state.definitions;
        let mut shown = json!({
            "global_policy_mode": settings.policy_mode.mode,
            "global_policy_mode_overridable": settings.policy_mode.overridable,
            "compliance_mode": settings.compliance_mode,
            "run_frequency": settings.agent_run.interval,
            "first_run_hour": settings.agent_run.start_hour,
            "first_run_minute": settings.agent_run.start_minute,
            "splay_time": settings.agent_run.splay,
            "root_server_id": ROOT,
        });
        if !settings.instance_id.is_empty() {
            shown["instance_id"] = settings.instance_id.as_str().into();
        }
        shown
    }
}
