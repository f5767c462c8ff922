//! All definitions at once: to look at, to plan, to put in the place of what is there.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::answers::ApiError;
use super::managed::asked;
use super::route::{Answer, Call, Route, routes};
use super::schema::{Field, Schema, TEXT, Wrong, may, object, objects};
use crate::definitions::Definitions;
use crate::server::generator::Task;
use crate::server::plan::DefineError;
use crate::server::service::Service;
use crate::server::state::Access;

/// Objects under other keys than their identities, of which a refusal tells.
const MISNAMED: usize = 20;

static VERSION: Schema = Schema::Number(0, i64::MAX);
static COUNT: Schema = Schema::Number(0, i64::MAX);
static TEXTS: Schema = Schema::List(&TEXT, usize::MAX);
static OBJECTS: Schema = Schema::Map(&Schema::Map(&Schema::Any));

static DEFINITIONS: Schema = object! { "Definitions"
    may "settings": Schema::Map(&Schema::Any);
    may "parameters": OBJECTS, "by identity, which each has as well";
    may "groups": OBJECTS, "by identity";
    may "techniques": OBJECTS, "by identity/version";
    may "directives": OBJECTS, "by identity";
    may "rules": OBJECTS, "by identity";
    may "made": Schema::Map(&TEXTS), "only shown: which of these the API made";
};
static DEFINED: Schema = object! { "Defined"
    needed "version": VERSION;
    needed "definitions": DEFINITIONS;
};
static PLAN: Schema = object! { "Plan"
    needed "version": VERSION;
    needed "objects": objects! { "Difference"
        needed "kind": TEXT;
        needed "id": TEXT;
        needed "became": Schema::Word(&["added", "changed", "removed", "kept", "taken"]),
            "kept: the API made it, and the folder does not have it; taken: the API made it, and \
             now the folder has it";
    };
    needed "nodes": COUNT, "that get another policy";
    needed "named": Schema::List(&object! { "PlannedNode"
        needed "id": TEXT;
        needed "hostname": TEXT;
        needed "added": TEXTS, "directives";
        needed "changed": TEXTS, "directives";
        needed "removed": TEXTS, "directives";
    }, 1_000), "the first of them";
    needed "failures": objects! { "PlannedFailure"
        needed "id": TEXT;
        needed "why": TEXT;
    }, "nodes whose policies cannot be made";
    needed "problems": TEXTS,
        "what is wrong; it stops nothing but groups in a circle, which are refused";
    needed "milliseconds": Schema::Share;
};

const BASE: &[Field] = &[may("base", &VERSION).note("the version that the plan was made for")];

/// The calls about all definitions.
pub(super) const ROUTES: &[Route] = routes! {
    get "definitions" "getDefinitions" "All that is defined"
        => "": DEFINED, Now(|service, _| Ok(service.defined()));
    post "definitions/plan" "planDefinitions"
        "What would change if these were the folder's definitions"
        => "plan": PLAN, Later(|service, call| Box::pin(service.define(call, None))),
        by(Access::Read), reads(&DEFINITIONS);
    put "definitions" "putDefinitions" "Put these in the place of the folder's definitions"
        => "plan": PLAN, Later(|service, call| Box::pin(service.replace(call))),
        with_query(BASE), reads(&DEFINITIONS);
};

impl From<DefineError> for ApiError {
    fn from(error: DefineError) -> Self {
        match error {
            DefineError::Refusal(refusal) => refusal.into(),
            other => Self::new(StatusCode::UNPROCESSABLE_ENTITY, other),
        }
    }
}

impl Service {
    fn defined(&self) -> Value {
        let state = self.view.read();
        let (all, version) = (Arc::clone(&state.definitions), state.version);
        drop(state);
        json!({"version": version, "definitions": *all})
    }

    async fn replace(&self, call: &Call<'_>) -> Answer {
        let base = call.query.get("base").map(str::parse);
        let Some(Ok(base)) = base else {
            let why = "it is missing; expected the version that the plan was made for";
            return Err(ApiError::field("base", why));
        };
        self.define(call, Some(base)).await
    }

    async fn define(&self, call: &Call<'_>, base: Option<i64>) -> Answer {
        let definitions: Definitions = serde_json::from_slice(&call.body)
            .map_err(|error| ApiError::bad(format!("the definitions: {error}")))?;
        let misnamed = definitions.misnamed().into_iter().take(MISNAMED);
        let misnamed = misnamed.map(|(field, message)| Wrong::new(field, message));
        let misnamed: Vec<_> = misnamed.collect();
        if !misnamed.is_empty() {
            return Err(ApiError::wrong(misnamed));
        }
        let plan = asked(self, |answer| Task::Define {
            definitions: Arc::new(definitions),
            base,
            answer,
        });
        let plan = plan.await??;
        Ok(json!({"plan": plan}))
    }
}
