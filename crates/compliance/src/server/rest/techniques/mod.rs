//! Techniques, each in its versions.

mod schemas;

use serde_json::{Map, Value, json};

use super::answers::ApiError;
use super::directives;
use super::managed::{self, Managed, listed, named};
use super::route::{Answer, Call, Route, routes};
use super::schema::Wrong;
use crate::definitions::Definitions;
use crate::model::directive::Directive;
use crate::model::technique::{Body, Technique, technique_key};
use crate::server::service::Service;
use schemas::{TECHNIQUE, TECHNIQUES};

/// The calls of techniques.
pub(super) const ROUTES: &[Route] = routes! {
    get "techniques" "getTechniques" "All techniques"
        => "techniques": TECHNIQUES, Now(managed::list::<Technique>);
    get "techniques/{id}" "getTechniqueAllVersion" "All versions of a technique"
        => "techniques": TECHNIQUES, Now(|service, call| service.versions(call));
    get "techniques/{id}/{version}" "getTechnique" "A version of a technique"
        => "techniques": TECHNIQUES, Now(managed::one::<Technique>);
    put "techniques" "createTechnique" "Make a technique, or another version of one"
        => "techniques": TECHNIQUES, Later(managed::create::<Technique>), takes(&TECHNIQUE);
    post "techniques/{id}/{version}" "updateTechnique"
        "Change a version of a technique: fields that are left out stay"
        => "techniques": TECHNIQUES, Later(managed::update::<Technique>), takes(&TECHNIQUE);
    delete "techniques/{id}/{version}" "deleteTechnique"
        "Delete a version of a technique that no directive names"
        => "techniques": TECHNIQUES, Later(managed::remove::<Technique>);
    get "techniques/{id}/directives" "listTechniquesDirectives" "Directives of a technique"
        => "directives": directives::LIST, Now(Service::directives_of_all);
    get "techniques/{id}/{version}/directives" "listTechniqueDirectives"
        "Directives of a version of a technique"
        => "directives": directives::LIST, Now(Service::directives_of_one);
};

impl Service {
    fn versions(&self, call: &Call<'_>) -> Answer {
        let found = listed::<Technique>(self, |one| one.id == call.id());
        if found.is_empty() {
            return Err(ApiError::not_found("technique", call.id()));
        }
        Ok(json!({"techniques": found}))
    }

    fn directives_of_all(&self, call: &Call<'_>) -> Answer {
        self.versions(call)?;
        Ok(self.directives_of(call.id(), None))
    }

    fn directives_of_one(&self, call: &Call<'_>) -> Answer {
        managed::one::<Technique>(self, call)?;
        Ok(self.directives_of(call.id(), call.arguments.get(1).copied()))
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
