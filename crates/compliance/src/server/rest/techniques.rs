//! Techniques, which the folder defines.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answers::{ApiError, FOLDER};
use super::directives;
use super::managed::{MANAGED_BY, SYSTEM, listed};
use super::route::{Answer, Call, Route, Work};
use super::schema::{Schema, TEXT, may, needed};
use crate::model::directive::Directive;
use crate::model::technique::technique_key;
use crate::server::service::Service;

static TECHNIQUE: Schema = Schema::Object(
    "Technique",
    &[
        needed("id", &Schema::Identity, ""),
        needed("version", &TEXT, ""),
        needed("name", &Schema::Name, ""),
        needed("category", &TEXT, ""),
        needed("description", &TEXT, ""),
        needed("multiInstance", &Schema::Flag, ""),
        needed(
            "generation",
            &Schema::Word(&["merged", "separated", "separated-with-parameters"]),
            "how several directives of it on one node become policies",
        ),
        needed(
            "body",
            &Schema::Object(
                "TechniqueBody",
                &[
                    may("sections", &Schema::Any, "sections with variables"),
                    may("methods", &Schema::Any, "parameters and calls of methods"),
                ],
            ),
            "one of both",
        ),
        SYSTEM,
        MANAGED_BY,
    ],
);
static TECHNIQUES: Schema = Schema::List(&TECHNIQUE, usize::MAX);

/// The calls of techniques.
pub(super) const ROUTES: &[Route] = &[
    Route::get(
        "techniques",
        "listTechniques",
        "All techniques",
        ("techniques", &TECHNIQUES),
        Work::Now(|service, _| Ok(json!({"techniques": service.techniques(None, None)}))),
    ),
    Route::get(
        "techniques/{id}",
        "getTechnique",
        "All versions of a technique",
        ("techniques", &TECHNIQUES),
        Work::Now(|service, call| service.of_technique(call)),
    ),
    Route::get(
        "techniques/{id}/{version}",
        "getTechniqueVersion",
        "A version of a technique",
        ("techniques", &TECHNIQUES),
        Work::Now(|service, call| service.of_technique(call)),
    ),
    Route::get(
        "techniques/{id}/directives",
        "listTechniqueDirectives",
        "Directives of a technique",
        ("directives", &directives::LIST),
        Work::Now(|service, call| service.directives_of(call)),
    ),
    Route::get(
        "techniques/{id}/{version}/directives",
        "listTechniqueVersionDirectives",
        "Directives of a version of a technique",
        ("directives", &directives::LIST),
        Work::Now(|service, call| service.directives_of(call)),
    ),
];

impl Service {
    fn techniques(&self, id: Option<&str>, version: Option<&str>) -> Vec<Value> {
        let all = Arc::clone(&self.view.read().definitions);
        let found = all.techniques.values().filter(|one| {
            id.is_none_or(|id| one.id == id) && version.is_none_or(|version| one.version == version)
        });
        let shown = found.map(|one| {
            let mut json = json!(one);
            json["managedBy"] = FOLDER.into();
            json
        });
        shown.collect()
    }

    fn of_technique(&self, call: &Call<'_>) -> Answer {
        let version = call.arguments.get(1).copied();
        let found = self.techniques(Some(call.id()), version);
        if found.is_empty() {
            let wanted = match version {
                Some(version) => technique_key(call.id(), version),
                None => call.id().to_owned(),
            };
            return Err(ApiError::not_found("technique", &wanted));
        }
        Ok(json!({"techniques": found}))
    }

    fn directives_of(&self, call: &Call<'_>) -> Answer {
        self.of_technique(call)?;
        let version = call.arguments.get(1).copied();
        let found = listed::<Directive>(self, |one| {
            one.technique_name == call.id()
                && version.is_none_or(|version| one.technique_version == version)
        });
        Ok(json!({"directives": found}))
    }
}
