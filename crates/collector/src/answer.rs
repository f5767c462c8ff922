//! Answers, and reading what is asked.

use std::str::FromStr;

use http::header::{CACHE_CONTROL, HeaderValue};
use http::{Response, StatusCode};
use net::Body;
use serde::Serialize;

/// A request that is not answered as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What the answer's status is.
    pub status: StatusCode,
    /// Why, and what was expected.
    pub error: String,
}

impl Refusal {
    /// With a status, and why.
    pub fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self {
            status,
            error: error.into(),
        }
    }

    /// The request itself is wrong.
    pub fn bad(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// As JSON: `{"error": …}`.
    pub fn answer(&self) -> Response<Body> {
        let mut answer = json(&serde_json::json!({ "error": self.error }));
        *answer.status_mut() = self.status;
        answer
    }
}

/// A value as JSON.
pub fn json(value: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(text) => whole("application/json", text),
        Err(error) => {
            let mut answer = whole("text/plain", format!("write an answer: {error}"));
            *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            answer
        }
    }
}

/// A whole answer, which nobody keeps.
pub fn whole(content_type: &'static str, body: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut answer = net::response(StatusCode::OK, content_type, body);
    let no_store = HeaderValue::from_static("no-store");
    answer.headers_mut().insert(CACHE_CONTROL, no_store);
    answer
}

/// The part of a request's target behind `?`.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a>(pub &'a str);

impl Query<'_> {
    /// The first value of a name, decoded; `None`: it is not asked for.
    pub fn text(self, name: &str) -> Option<String> {
        let mut pairs = url::form_urlencoded::parse(self.0.as_bytes());
        let found = pairs.find(|(key, _)| key == name);
        found.map(|(_, value)| value.into_owned())
    }

    /// A number between two; `None`: it is not asked for.
    ///
    /// # Errors
    /// When it is no number, or not between them.
    pub fn number<N>(self, name: &str, from: N, to: N) -> Result<Option<N>, Refusal>
    where
        N: FromStr + PartialOrd + std::fmt::Display,
    {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let number = text.parse().ok();
        let number = number.filter(|number| *number >= from && *number <= to);
        number.map(Some).ok_or_else(|| {
            Refusal::bad(format!(
                "{name}={text}: expected a number from {from} to {to}"
            ))
        })
    }
}
