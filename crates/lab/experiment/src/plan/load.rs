//! Load of a plan: requests that a run sends while it does other things.

use std::collections::BTreeMap;
use std::time::Duration;

use lab_load::arrivals::{Arrivals, Process};
use lab_load::request::{AnswerEnd, Assertion, Take};
use lab_load::{Connections, GuardLimits, Pace, Protocol};
use serde::Serialize;

use super::Template;

/// Requests to one target, and how they are sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Load {
    /// Name; steps and expectations refer to it.
    pub name: String,
    /// When it runs by itself, as probes do; `None`: in the steps that name it.
    pub probe: Option<Period>,
    /// What is spoken.
    pub protocol: Protocol,
    /// Scheme, host and port of the target: `http://{router.addr}`.
    pub target: Template,
    /// Host, with a port or without, that connections go to instead of the target's; `Host` and
    /// certificate stay those of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_to: Option<Template>,
    /// What is asked: one journey or several.
    pub journeys: Vec<Journey>,
    /// CSV files whose lines requests use, by name.
    pub tables: BTreeMap<String, String>,
    /// Who decides when a request is made.
    pub model: LoadModel,
    /// How connections are held.
    pub connections: Connections,
    /// Longest wait for a whole answer.
    pub timeout: Duration,
    /// How closely sends follow the schedule.
    pub pace: Pace,
    /// Threads of the generator.
    pub threads: u32,
    /// Processors that they are pinned to, in turn; empty: not pinned.
    pub cpus: Vec<u32>,
    /// How the target proves who it is, and we to it.
    pub tls: LoadTls,
    /// The file that holds the password of a database; `None`: the environment does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<String>,
    /// When its numbers are INVALID.
    pub guard: GuardLimits,
}

/// Steps that a probe runs in, ends included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Period {
    /// Name of the first step; `None`: the first of the plan.
    pub from: Option<String>,
    /// Name of the last step; `None`: the last of the plan.
    pub to: Option<String>,
}

impl Period {
    /// The names among those of all steps.
    pub fn steps<'s>(&self, all: &'s [String]) -> &'s [String] {
        let place = |name: &Option<String>| {
            let name = name.as_ref()?;
            all.iter().position(|step| step == name)
        };
        let first = place(&self.from).unwrap_or(0);
        let last = place(&self.to).map_or(all.len(), |last| last + 1);
        all.get(first..last).unwrap_or_default()
    }
}

/// Who decides when a request is made.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadModel {
    /// The schedule does.
    Open {
        /// How arrivals lie around a rate that a step or a search asks for.
        process: Process,
        /// When requests are due in steps that ask for nothing else.
        arrivals: Option<Schedule>,
    },
    /// The target does: each user waits for the answer before the next request.
    Closed {
        /// Number of users; each has a connection.
        users: u32,
        /// Pause of a user between an answer and the next request.
        think: Duration,
    },
}

/// When requests are due.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Told by the file.
    Arrivals(Arrivals),
    /// Recorded times, in a file of their own.
    Trace(String),
}

/// PEM files for TLS.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LoadTls {
    /// Authorities to trust; `None`: those of the public web.
    pub authority: Option<Template>,
    /// The own certificate.
    pub certificate: Option<Template>,
    /// Its private key.
    pub key: Option<Template>,
    /// Accept any certificate.
    pub insecure: bool,
}

/// One request, or several in a row by the same user.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Journey {
    /// Its name.
    pub name: String,
    /// How often it is chosen, relative to the others.
    pub weight: f64,
    /// Its requests, in order.
    pub requests: Vec<Request>,
}

/// One kind of request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Request {
    /// Its name, unique in the load.
    pub name: String,
    /// Method of HTTP; empty for other protocols.
    pub method: String,
    /// Path and query, or the full method of gRPC; empty for other protocols.
    pub path: Template,
    /// Header fields, in order.
    pub headers: Vec<(String, Template)>,
    /// Body or message; the command of Redis.
    pub body: RequestBody,
    /// Pause before the next request of the journey.
    pub think: Duration,
    /// Values for later requests of the journey.
    pub take: Vec<Take>,
    /// What the answer must be.
    pub assertions: Vec<Assertion>,
    /// How the end of an answer is told over TCP.
    pub answer: AnswerEnd,
}

/// A body or message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestBody {
    /// None.
    Empty,
    /// Text with variables.
    Text(Template),
    /// The bytes of a file, as they are.
    File(String),
}

/// A load in a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepLoad {
    /// Name of the load.
    pub load: String,
    /// When requests are due.
    pub traffic: Traffic,
}

/// When the requests of a load are due in a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Traffic {
    /// As the load itself says.
    Own,
    /// As the step says.
    Arrivals(Arrivals),
    /// A share of what a search before the step found.
    ShareOfKnee {
        /// Above 0, at most 10.
        share: f64,
        /// Name of the step that searches.
        search: String,
    },
}

/// A search for the highest rate that holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Search {
    /// The load whose rate is varied.
    pub load: String,
    /// First rate that is tried, a second.
    pub from: f64,
    /// Factor from one rate to the next, until one does not hold.
    pub grow: f64,
    /// Highest rate that is tried; `None`: no limit but the generator's.
    pub most: Option<f64>,
    /// Length of a hold at one rate.
    pub each: Duration,
    /// What is left out at the start of each hold; `None`: found automatically.
    pub settle: Option<Duration>,
    /// Relative width of the interval that ends the search.
    pub precision: f64,
    /// Longest time that the whole search may take; `None`: the search's own bound.
    pub at_most: Option<Duration>,
    /// What must hold at a rate: `p99 < 20ms, errors < 0.1%`.
    pub good: String,
    /// Fit the universal scalability law through the holds.
    pub usl: bool,
}
