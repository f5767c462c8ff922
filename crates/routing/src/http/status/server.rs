//! The status endpoints as a server.

use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, EXPIRES,
    HeaderName, HeaderValue, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{Request, Response, StatusCode};
use net::{Body, Handler, Incoming};

use super::routes::RoutesJson;
use super::{Health, Varz};
use crate::table::Table;
use document::Secret;

/// Bytes up to which Go announces the length of an answer; a longer one goes out in chunks.
const ANNOUNCED: usize = 2048;

/// Pieces of a long answer that may wait for a slow reader.
const PIECES: usize = 2;

const PLAIN: &str = "text/plain; charset=utf-8";

/// What a listener of the status server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoints {
    /// `/health` and `/is-process-alive-do-not-use-for-loadbalancing`; nobody has to prove
    /// who they are.
    Health,
    /// `/routes`, with Basic authentication.
    Routes,
    /// gorouter's old set: `/health`, `/healthz`; `/varz` and `/routes` with Basic
    /// authentication.
    Deprecated,
}

/// Answers on one listener.
pub struct StatusServer {
    /// What it answers.
    pub endpoints: Endpoints,
    /// Whether the router is healthy.
    pub health: Arc<Health>,
    /// The routes.
    pub table: Arc<Table>,
    /// The `/varz` document; looked at by [`Endpoints::Deprecated`] only.
    pub varz: Option<Arc<Varz>>,
    /// User of Basic authentication.
    pub user: String,
    /// Its password. While both are empty, nobody gets in.
    pub password: Secret,
}

impl Handler for StatusServer {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path();
        let answer = match (self.endpoints, path) {
            (Endpoints::Health | Endpoints::Deprecated, "/health")
            | (Endpoints::Deprecated, "/healthz") => self.health(),
            (Endpoints::Health, "/is-process-alive-do-not-use-for-loadbalancing") => {
                Answer::new(StatusCode::OK).text("ok\n")
            }
            (Endpoints::Health, _) => not_found(),
            (Endpoints::Routes | Endpoints::Deprecated, _) if !self.is_allowed(&request) => {
                Answer::new(StatusCode::UNAUTHORIZED)
                    .field(WWW_AUTHENTICATE, "Basic")
                    .text("401 Unauthorized\n")
            }
            (Endpoints::Routes | Endpoints::Deprecated, "/routes") => return self.routes(),
            (Endpoints::Deprecated, "/varz") => match &self.varz {
                Some(varz) => json(varz.document()),
                None => not_found(),
            },
            _ => not_found(),
        };
        answer.into_response()
    }
}

impl StatusServer {
    fn health(&self) -> Answer {
        let healthy = self.health.is_healthy();
        let status = match healthy {
            true => StatusCode::OK,
            false => StatusCode::SERVICE_UNAVAILABLE,
        };
        let answer = Answer::new(status)
            .field(CACHE_CONTROL, "private, max-age=0")
            .field(EXPIRES, "0");
        if healthy { answer.text("ok\n") } else { answer }
    }

    fn is_allowed(&self, request: &Request<Incoming>) -> bool {
        if self.user.is_empty() && self.password.is_empty() {
            return false;
        }
        let expected = format!("{}:{}", self.user, *self.password);
        let given = request
            .headers()
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"))
            .and_then(|(_, text)| STANDARD.decode(text.trim()).ok());
        given.is_some_and(|given| verify_slices_are_equal(&given, expected.as_bytes()).is_ok())
    }

    fn routes(&self) -> Response<Body> {
        let mut pieces = RoutesJson::of(&self.table);
        let first = pieces.next().unwrap_or_default();
        if first.len() <= ANNOUNCED {
            return json(first).into_response();
        }
        let (sender, receiver) = tokio::sync::mpsc::channel(PIECES);
        tokio::spawn(net::boxed(async move {
            let mut piece = Some(first);
            while let Some(text) = piece {
                // Nobody reads any more: the rest is not made.
                if sender.send(Bytes::from(text)).await.is_err() {
                    return;
                }
                piece = pieces.next();
            }
        }));
        let mut response = Response::new(net::stream(receiver));
        let fields = response.headers_mut();
        fields.insert(CONNECTION, HeaderValue::from_static("close"));
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        fields.insert(DATE, date());
        response
    }
}

fn not_found() -> Answer {
    let mut answer = Answer::new(StatusCode::NOT_FOUND)
        .field(CONTENT_TYPE, PLAIN)
        .field(X_CONTENT_TYPE_OPTIONS, "nosniff");
    answer.body = Bytes::from_static(b"404 page not found\n");
    answer
}

fn json(text: String) -> Answer {
    let mut answer = Answer::new(StatusCode::OK)
        .field(CONNECTION, "close")
        .field(CONTENT_TYPE, "application/json");
    answer.body = text.into();
    answer
}

/// An answer whose header fields stand in the order in which Go writes them: those of the
/// handler by name, then Date, Content-Length and the content type that Go guessed.
struct Answer {
    status: StatusCode,
    fields: Vec<(HeaderName, &'static str)>,
    body: Bytes,
    guessed: bool,
}

impl Answer {
    fn new(status: StatusCode) -> Self {
        Self {
            status,
            fields: Vec::new(),
            body: Bytes::new(),
            guessed: false,
        }
    }

    fn field(mut self, name: HeaderName, value: &'static str) -> Self {
        self.fields.push((name, value));
        self
    }

    fn text(mut self, text: &'static str) -> Self {
        self.body = Bytes::from_static(text.as_bytes());
        self.guessed = true;
        self
    }

    fn into_response(self) -> Response<Body> {
        let length = self.body.len();
        let mut response = Response::new(net::full(self.body));
        *response.status_mut() = self.status;
        let fields = response.headers_mut();
        for (name, value) in self.fields {
            fields.insert(name, HeaderValue::from_static(value));
        }
        fields.insert(DATE, date());
        fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
        if self.guessed {
            fields.insert(CONTENT_TYPE, HeaderValue::from_static(PLAIN));
        }
        response
    }
}

/// The time as HTTP writes it.
fn date() -> HeaderValue {
    let text = jiff::Timestamp::now()
        .strftime("%a, %d %b %Y %H:%M:%S GMT")
        .to_string();
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
}
