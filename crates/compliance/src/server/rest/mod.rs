//! The REST API, in Rudder's JSON. Each resource tells its calls as data (see [`route`]): by
//! these requests are dispatched and checked, and of these `/openapi.json` is made.

mod accounts;
mod answers;
mod categories;
mod compliance;
mod definitions;
mod directives;
mod groups;
mod history;
mod inventories;
mod managed;
mod nodes;
mod openapi;
mod parameters;
mod query;
mod route;
mod rules;
mod schema;
mod settings;
mod shapes;
mod system;
mod techniques;

use http::header::HeaderValue;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use net::{Body, Incoming, read_body};

use super::service::Service;
use super::state::Access;
use crate::uploads::body_status;
use answers::CallResult;
use query::Query;
use route::{Call, Input, Route, Verb, Work};

pub(super) use accounts::hash;
pub(super) use answers::ApiError;
pub(super) use openapi::document as openapi;
pub(crate) use query::unescaped;

/// Rudder's version of the API that is spoken; clients of older ones are answered too.
const VERSION: u32 = 24;

/// All calls there are.
fn routes() -> impl Iterator<Item = &'static Route> {
    [
        accounts::ROUTES,
        categories::ROUTES,
        compliance::ROUTES,
        definitions::ROUTES,
        directives::ROUTES,
        directives::MORE_ROUTES,
        groups::ROUTES,
        groups::MORE_ROUTES,
        history::ROUTES,
        inventories::ROUTES,
        nodes::ROUTES,
        parameters::ROUTES,
        rules::ROUTES,
        settings::ROUTES,
        system::ROUTES,
        techniques::ROUTES,
    ]
    .into_iter()
    .flatten()
}

/// The parts of a path below the version; none if it has no version that is spoken, or one of
/// a header instead.
fn below_version<'p>(rest: &'p str, head: &Parts) -> Option<Vec<&'p str>> {
    let mut parts = rest.split('/').filter(|part| !part.is_empty());
    if parts.next() != Some("api") {
        return None;
    }
    let spoken = |version: &str| {
        let number = || {
            version
                .parse()
                .is_ok_and(|number| (1..=VERSION).contains(&number))
        };
        version == "latest" || number()
    };
    let parts: Vec<&str> = parts.collect();
    let header = head.headers.get("x-api-version");
    if parts == ["status"] {
        return Some(parts);
    }
    match (&parts[..], header.and_then(|version| version.to_str().ok())) {
        ([version, path @ ..], _) if spoken(version) && !path.is_empty() => Some(path.to_vec()),
        ([first, ..], Some(version))
            if spoken(version) && !first.starts_with(|letter: char| letter.is_ascii_digit()) =>
        {
            Some(parts)
        }
        _ => None,
    }
}

/// The call that a request means, with the arguments in its path.
fn found<'p>(
    method: &Method,
    path: &[&'p str],
) -> Result<(&'static Route, Vec<&'p str>), ApiError> {
    let mut meant: Vec<_> = routes()
        .filter_map(|route| Some((route, route.arguments(path)?)))
        .collect();
    // A word of the path is meant before an argument.
    let fewest = meant.iter().map(|(_, arguments)| arguments.len()).min();
    let Some(fewest) = fewest else {
        return Err(ApiError::no_such_call(method, path));
    };
    meant.retain(|(_, arguments)| arguments.len() == fewest);
    let methods: Vec<_> = meant.iter().map(|(route, _)| route.method.name()).collect();
    let mut calls = meant.into_iter();
    let call = calls.find(|(route, _)| route.method.name() == method.as_str());
    call.ok_or_else(|| ApiError::other_method(method, path, &methods))
}

/// Does a request say that its body is a form?
fn is_form(head: &Parts) -> bool {
    let found = head.headers.get(http::header::CONTENT_TYPE);
    let found = found.and_then(|found| found.to_str().ok());
    let kind = found.and_then(|found| found.split(';').next());
    kind.is_some_and(|kind| {
        kind.trim()
            .eq_ignore_ascii_case("application/x-www-form-urlencoded")
    })
}

impl Service {
    /// `/rudder/api/VERSION/…`
    pub(super) async fn api(&self, head: &Parts, rest: &str, body: Incoming) -> Response<Body> {
        self.metrics.calls.add(1);
        let Some(path) = below_version(rest, head) else {
            let told = "expected /rudder/api/latest/…; /openapi.json lists all calls\n";
            return net::plain_text(StatusCode::NOT_FOUND, told);
        };
        let path = path.into_iter().map(|part| unescaped(part, false));
        let path: Vec<String> = path.collect();
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let query = Query::of(head.uri.query());
        let pretty = query.get("prettify") == Some("true");
        let meant = found(&head.method, &path);
        // Who may not call anything is not told what there is.
        let needed = meant
            .as_ref()
            .map_or(Access::Read, |(route, _)| route.access);
        let action = meant.as_ref().map_or("call", |(route, _)| route.action);
        let done = async {
            let account = self.admit(head, needed)?;
            let (route, arguments) = meant?;
            let asked = (query, is_form(head));
            self.called(route, arguments, asked, account, body).await
        };
        match done.await {
            Ok(told) if told.turn.is_some() => {
                let turn = told.turn.clone();
                let made = move || answers::enveloped(action, Ok(told), pretty);
                let made = route::run_blocking(turn, made).await;
                made.unwrap_or_else(|error| answers::enveloped(action, Err(error), pretty))
            }
            done => answers::enveloped(action, done, pretty),
        }
    }

    /// Lets in whoever shows a token that may do this; its identity.
    fn admit(&self, head: &Parts, needed: Access) -> Result<String, ApiError> {
        if needed == Access::Open {
            return Ok(String::new());
        }
        let shown = head.headers.get("x-api-token");
        let access = shown.and_then(|shown| self.access_of(HeaderValue::as_bytes(shown)));
        let Some((access, account)) = access else {
            self.metrics.unauthorised.add(1);
            let why = "the header X-API-Token is missing or no token of this server; headroom \
                       compliance token new makes one";
            return Err(ApiError::new(StatusCode::UNAUTHORIZED, why));
        };
        if access < needed {
            self.metrics.unauthorised.add(1);
            let why = match needed {
                Access::Admin => {
                    "this takes the administrator's token, which stands in the server's folder"
                }
                _ => "this token may only read; make one with --write",
            };
            return Err(ApiError::new(StatusCode::FORBIDDEN, why));
        }
        Ok(account)
    }

    async fn called(
        &self,
        route: &'static Route,
        arguments: Vec<&str>,
        (query, form): (Query, bool),
        account: String,
        body: Incoming,
    ) -> Result<CallResult, ApiError> {
        let body = read_body(body, self.limits.call_bytes, self.limits.body_within).await;
        let body = body.map_err(|error| ApiError::new(body_status(&error), error))?;
        for parameter in route.query {
            if let Some(text) = query.get(parameter.name) {
                let wrong = parameter.schema.check_text(parameter.name, text);
                if !wrong.is_empty() {
                    return Err(ApiError::wrong(wrong));
                }
            }
        }
        let mut json = serde_json::Value::Null;
        if let Input::Checked(schema) = route.input {
            json = match serde_json::from_slice(&body) {
                Ok(json) => json,
                // Clients say of JSON that it is a form, too.
                Err(_) if form && schema.is_object() => schema.of_form(&Query::of_form(&body)),
                Err(error) => return Err(ApiError::bad(format!("the body: {error}"))),
            };
            let wrong = schema.check(&json);
            if !wrong.is_empty() {
                return Err(ApiError::wrong(wrong));
            }
        }
        let turn = match route.long {
            true => self.turn().await,
            false => None,
        };
        let call = Call {
            arguments,
            query,
            body,
            json,
            account,
            turn,
        };
        let data = match route.work {
            Work::Now(work) => work(self, &call)?,
            Work::Later(work) => work(self, &call).await?,
        };
        let made = || {
            let list = data.get(route.output.0)?.as_array()?;
            let [one] = &list[..] else { return None };
            Some(one.get("id")?.as_str()?.to_owned())
        };
        let id = match route.method {
            // Of one that was made the identity may be new.
            Verb::Put => made(),
            _ => call.arguments.first().map(|id| (*id).to_owned()),
        };
        let turn = call.turn;
        Ok(CallResult { id, data, turn })
    }
}
