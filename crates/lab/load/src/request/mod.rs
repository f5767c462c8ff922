//! What is asked: kinds of requests, their templates, and what is made of answers.

mod answer;
mod command;
mod compile;
mod compiled;
mod composer;
mod cookies;
mod error;
mod field;
mod statement;
mod table;
mod template;
mod text;
mod variable;
mod zipf;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use answer::{Answer, is_redirect};
pub use command::redis_command;
pub use composer::{Composer, Needs, Next, Parts, StepEnd, Visit};
pub use error::RequestError;
pub use field::parse_header;
pub use statement::Bound;
pub use table::TableError;

/// All that is asked of a target. Each arrival starts one journey, chosen by weight.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// The journeys; at least one, at most 1,000 steps over all.
    pub journeys: Vec<Journey>,
    /// Lines of files that templates refer to, by name.
    pub tables: BTreeMap<String, Table>,
}

/// One request, or several in a row by the same user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Journey {
    /// Its name.
    pub name: String,
    /// How often it is chosen, relative to the others; above 0.
    pub weight: f64,
    /// Its requests, in order; at least one. Each is a kind of its own in results.
    pub steps: Vec<Step>,
}

/// One kind of request. Texts are templates; see `docs/requests.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Name of the kind, unique in the mix.
    pub name: String,
    /// Method (HTTP); empty: GET, or POST where there is a body.
    pub method: String,
    /// Path and query (HTTP), full method (gRPC), or nothing.
    pub path: String,
    /// Header fields, in order.
    pub headers: Vec<(String, String)>,
    /// Body, message, datagram or bytes; a command of Redis or a statement of SQL.
    pub body: Body,
    /// Pause after the answer, before the next step.
    pub think: Duration,
    /// Values taken from the answer for later steps.
    pub take: Vec<Take>,
    /// What the answer must be.
    pub assertions: Vec<Assertion>,
    /// How the end of an answer is told over TCP.
    pub answer: AnswerEnd,
}

impl Step {
    /// A request without header fields and body, of which nothing is asked.
    pub fn new(name: &str, method: &str, path: &str) -> Self {
        Self {
            name: name.to_owned(),
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: Body::Empty,
            think: Duration::ZERO,
            take: Vec::new(),
            assertions: Vec::new(),
            answer: AnswerEnd::Close,
        }
    }
}

impl Mix {
    /// Nothing but this kind of request.
    pub fn of(step: Step) -> Self {
        let journey = Journey {
            name: step.name.clone(),
            weight: 1.0,
            steps: vec![step],
        };
        Self {
            journeys: vec![journey],
            tables: BTreeMap::new(),
        }
    }
}

/// A body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    /// None.
    Empty,
    /// Text with variables.
    Template(String),
    /// Bytes as they are.
    Bytes(Vec<u8>),
}

/// A value taken from an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Take {
    /// Name under which later templates refer to it.
    pub name: String,
    /// Where it is found.
    pub from: Source,
}

/// A place in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A JSON pointer (RFC 6901) into the body.
    Json(String),
    /// A header field.
    Header(String),
    /// The first group of a regular expression over the body.
    Regex(String),
}

/// Something that an answer must be. Without any, HTTP answers of status 400 and above
/// are failures; with an assertion on the status, that one alone decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assertion {
    /// The status is within one of these ranges, ends included.
    Status(Vec<(u16, u16)>),
    /// A header field contains a text.
    Header(String, String),
    /// The body contains a text.
    BodyContains(String),
    /// The body matches a regular expression.
    BodyMatches(String),
    /// The body is this text.
    BodyIs(String),
    /// The body has a size within these bounds, ends included.
    Size(u64, u64),
    /// The answer of a database has a number of rows within these bounds, ends included.
    Rows(u64, u64),
}

/// How the end of an answer is told over TCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerEnd {
    /// So many bytes.
    Bytes(u64),
    /// These bytes end it.
    Delimiter(Vec<u8>),
    /// As many bytes as the request had (an echo).
    Echo,
    /// The target closes the connection.
    Close,
}

/// Lines of a file, with the names of its columns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Names of columns.
    pub columns: Vec<String>,
    /// Values, a row after the other.
    pub rows: Vec<Vec<String>>,
}

#[cfg(test)]
mod tests;
