//! Techniques, each in its versions.

mod schemas;

use serde_json::{Map, Value, json};

use super::answers::ApiError;
use super::directives;
use super::managed::{self, Managed, listed, named};
use super::route::{Answer, Call, Route, Work};
use super::schema::Wrong;
use crate::definitions::Definitions;
use crate::model::directive::Directive;
use crate::model::technique::{Body, Technique, technique_key};
use crate::server::service::Service;
use schemas::{TECHNIQUE, TECHNIQUES};

const DATA: (&str, &super::schema::Schema) = ("techniques", &TECHNIQUES);

/// The calls of techniques.
pub(super) const ROUTES: &[Route] = &[
    Route::get(
        "techniques",
        "getTechniques",
        "All techniques",
        DATA,
        Work::Now(managed::list::<Technique>),
    ),
    Route::get(
        "techniques/{id}",
        "getTechniqueAllVersion",
        "All versions of a technique",
        DATA,
        Work::Now(|service, call| service.versions(call)),
    ),
    Route::get(
        "techniques/{id}/{version}",
        "getTechnique",
        "A version of a technique",
        DATA,
        Work::Now(managed::one::<Technique>),
    ),
    Route::put(
        "techniques",
        "createTechnique",
        "Make a technique, or another version of one",
        DATA,
        Work::Later(managed::create::<Technique>),
    )
    .takes(&TECHNIQUE),
    Route::post(
        "techniques/{id}/{version}",
        "updateTechnique",
        "Change a version of a technique: fields that are left out stay",
        DATA,
        Work::Later(managed::update::<Technique>),
    )
    .takes(&TECHNIQUE),
    Route::delete(
        "techniques/{id}/{version}",
        "deleteTechnique",
        "Delete a version of a technique that no directive names",
        DATA,
        Work::Later(managed::remove::<Technique>),
    ),
    Route::get(
        "techniques/{id}/directives",
        "listTechniquesDirectives",
        "Directives of a technique",
        ("directives", &directives::LIST),
        Work::Now(|service, call| {
            service.versions(call)?;
            Ok(service.directives_of(call.id(), None))
        }),
    ),
    Route::get(
        "techniques/{id}/{version}/directives",
        "listTechniqueDirectives",
        "Directives of a version of a technique",
        ("directives", &directives::LIST),
        Work::Now(|service, call| {
            managed::one::<Technique>(service, call)?;
            Ok(service.directives_of(call.id(), call.arguments.get(1).copied()))
        }),
    ),
];

impl Service {
    fn versions(&self, call: &Call<'_>) -> Answer {
        let found = listed::<Technique>(self, |one| one.id == call.id());
        if found.is_empty() {
            return Err(ApiError::not_found("technique", call.id()));
        }
        Ok(json!({"techniques": found}))
    }

    fn directives_of(&self, technique: &str, version: Option<&str>) -> Value {
        let found = listed::<Directive>(self, |one| {
            one.technique_name == technique
                && version.is_none_or(|version| one.technique_version == version)
        });
        json!({"directives": found})
    }
}

impl Managed for Technique {
    managed::kind!("technique", techniques, Technique);

    const NEEDED: &'static [&'static str] = &["id", "version", "name", "body"];
    const GONE_IS_DELETED: bool = false;
    const IDENTITY: &'static [&'static str] = &["id", "version"];

    fn wrong(&self, all: &Definitions) -> Vec<Wrong> {
        // Of what is left to check only this is not of the body.
        let whole = if self.version.contains('/') {
            "version"
        } else {
            "body"
        };
        named(all.check_technique(self), whole, |field| field)
    }

    fn users(key: &str, all: &Definitions) -> Vec<String> {
        let directives = all.directives.values();
        let named = directives
            .filter(|one| technique_key(&one.technique_name, &one.technique_version) == key);
        named
            .map(|one| format!("directive \"{}\"", one.id))
            .collect()
    }

    fn complete(body: &mut Map<String, Value>, _: &Definitions) {
        let methods = body
            .get("body")
            .is_some_and(|body| body.get("methods").is_some());
        body.entry("multiInstance").or_insert(methods.into());
    }

    fn fill(&mut self) {
        if let Body::Methods(methods) = &mut self.body {
            methods.identify(&self.id);
        }
    }
}
