//! What holds for all nodes: the folder's `settings.yml` sets it, or the API what that leaves as usual.
//! What the server would not obey cannot be set.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::{Map, Value, json};
use telemetry::Fields;
use tokio::sync::oneshot;

use super::answers::{ApiError, FOLDER};
use super::managed::edited;
use super::route::{Answer, Call, Route, routes};
use super::schema::{Schema, TEXT, Wrong, object};
use crate::definitions::{Definitions, Edit, Setting};
use crate::model::node::ROOT;
use crate::model::schedule::ScheduleError;
use crate::policy::generation::Settings;
use crate::server::edit::MakeEdit;
use crate::server::service::Service;

macro_rules! settings {
    ($name:literal $($more:tt)*) => {
        object! { $name
            may "global_policy_mode": Schema::Word(&["audit", "enforce"]);
            may "global_policy_mode_overridable": Schema::Flag;
            may "compliance_mode":
                Schema::Word(&["full-compliance", "changes-only", "reports-disabled"]);
            may "run_frequency": Schema::Number(1, 1_440),
                "minutes from one run of agents to the next: below 60, or whole hours";
            may "first_run_hour": Schema::Number(0, 23);
            may "first_run_minute": Schema::Number(0, 59);
            may "splay_time": Schema::Number(0, 1_440),
                "minutes over which the starts of agents are spread";
            may "instance_id": Schema::Text(256),
                "of this installation; queries of groups may ask for it";
            $($more)*
        }
    };
}

static SETTINGS: Schema = settings! { "Settings" may "root_server_id": TEXT, "only shown"; };
static TO_SET: Schema = settings!("SettingsToSet");
static VALUE: Schema = object! { "SettingValue" needed "value": Schema::Any; };

/// The calls of settings.
pub(super) const ROUTES: &[Route] = routes! {
    get "settings" "getAllSettings" "All settings that there are"
        => "settings": SETTINGS, Now(|service, _| Ok(json!({"settings": service.settings()})));
    get "settings/{id}" "getSetting" "One of the settings"
        => "settings": SETTINGS, Now(|service, call| one(service, call.id()));
    post "settings" "modifySettings"
        "Change settings, all of these or none; those that are left out stay"
        => "settings": SETTINGS, Later(|service, call| Box::pin(service.set_some(call))),
        takes(&TO_SET);
    post "settings/{id}" "modifySetting" "Change one of the settings"
        => "settings": SETTINGS, Later(|service, call| Box::pin(service.set_one(call))),
        takes(&VALUE);
};

fn not_obeyed(id: &str) -> ApiError {
    let known = Setting::ALL.map(|(_, name)| name).join(", ");
    ApiError::new(
        StatusCode::NOT_FOUND,
        format!("the setting \"{id}\" cannot be set: nothing would obey it; there are {known}"),
    )
}

/// The change that sets these, if each is the API's to set.
fn change(all: &Definitions, values: &Map<String, Value>) -> Result<Edit, ApiError> {
    let (mut settings, mut made) = (all.settings.clone(), all.made.settings.clone());
    for (name, value) in values {
        let setting = Setting::named(name).ok_or_else(|| not_obeyed(name))?;
        if !made.contains(name) && !setting.is_usual(&all.settings) {
            let why = format!(
                "the setting \"{name}\" is managed by the folder that headroom compliance apply \
                 brought; change it in settings.yml there"
            );
            return Err(ApiError::managed(FOLDER, why));
        }
        let set = setting.set(&mut settings, value.clone());
        set.map_err(|error| ApiError::field(name.as_str(), error.to_string()))?;
        // Set back to what is usual it is anybody's again.
        match setting.is_usual(&settings) {
            true => made.remove(name),
            false => made.insert(name.clone()),
        };
    }
    let fits = settings.agent_run.check();
    fits.map_err(|error| {
        let field = match error {
            ScheduleError::Interval(_) => "run_frequency",
            ScheduleError::Start(..) => "first_run_hour",
            ScheduleError::Splay(_) => "splay_time",
        };
        ApiError::wrong(vec![Wrong::new(field, error.to_string())])
    })?;
    Ok(Edit::Settings(Box::new(settings), made))
}

fn one(service: &Service, id: &str) -> Answer {
    let all = service.settings();
    let value = all
        .get(id)
        .ok_or_else(|| ApiError::not_found("setting", id))?;
    Ok(json!({"settings": {id: value}}))
}

impl Service {
    async fn set_some(&self, call: &Call<'_>) -> Answer {
        let values = call.json.as_object().cloned().unwrap_or_default();
        self.set(call, values).await
    }

    async fn set_one(&self, call: &Call<'_>) -> Answer {
        let id = call.id();
        if Setting::named(id).is_none() {
            return Err(not_obeyed(id));
        }
        let values = Map::from_iter([(id.to_owned(), call.json["value"].clone())]);
        let wrong = TO_SET.check(&Value::Object(values.clone()));
        match wrong.is_empty() {
            true => self.set(call, values).await,
            false => Err(ApiError::wrong(wrong)),
        }
    }

    /// Sets settings; they are durable and in force when it returns.
    async fn set(&self, call: &Call<'_>, values: Map<String, Value>) -> Answer {
        let (tell, hear) = oneshot::channel();
        let wanted = values.clone();
        let make = MakeEdit::new(move |all| {
            let edit = change(all, &wanted)?;
            // Who asked may have gone away.
            let _ = tell.send(all.settings.clone());
            Ok(edit)
        });
        edited(self, make).await?;
        let before = hear.await.unwrap_or_default();
        for (name, value) in &values {
            let was = Setting::named(name).map(|setting| setting.of(&before));
            let fields = Fields::new()
                .and("setting", name)
                .and("from", was.unwrap_or_default().to_string())
                .and("to", value.to_string())
                .and("account", &call.account);
            self.logger.info("setting-changed", fields);
        }
        let all = shown(&self.view.read().definitions.settings);
        let set: BTreeMap<_, _> = all
            .into_iter()
            .filter(|(name, _)| values.contains_key(name))
            .collect();
        Ok(json!({"settings": set}))
    }

    fn settings(&self) -> Map<String, Value> {
        shown(&self.view.read().definitions.settings)
    }
}

fn shown(settings: &Settings) -> Map<String, Value> {
    let all = Setting::ALL.iter();
    let all = all.map(|(setting, name)| ((*name).to_owned(), setting.of(settings)));
    let root = ("root_server_id".to_owned(), ROOT.into());
    all.chain([root]).collect()
}
