//! Probes of a plan: questions asked all the time, whatever the steps do.

use std::collections::BTreeMap;
use std::time::Duration;

use lab_load::request::{Assertion, Source};
use serde::Serialize;

use super::{LoadTls, Template};

/// A question that is asked again and again from the first step's start to the last one's
/// end. Each try has an outcome, a latency and perhaps a value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probe {
    /// Name; expectations, conditions and faults refer to it.
    pub name: String,
    /// What is asked.
    pub kind: ProbeKind,
    /// The system of which every copy is asked; `None`: it is asked once.
    pub of: Option<String>,
    /// How many are asked: the copies of that system, or 1.
    pub copies: u32,
    /// Time from one try to the next.
    pub every: Duration,
    /// Longest time that a try may take; then it has failed.
    pub within: Duration,
}

impl Probe {
    /// Whether a try that goes well has a value.
    pub fn has_value(&self) -> bool {
        match &self.kind {
            ProbeKind::Http { value, .. } => value.is_some(),
            ProbeKind::Tcp { .. } => false,
            _ => true,
        }
    }
}

/// What a probe asks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// A request over HTTP/1.1.
    Http {
        /// Its method.
        method: String,
        /// Its whole address.
        url: Template,
        /// Set if the address begins with `https`.
        tls: Option<LoadTls>,
        /// Its header fields.
        headers: Vec<(String, Template)>,
        /// Its body.
        body: Template,
        /// What the answer must be; without one about the status, that is below 400.
        asserts: Vec<Assertion>,
        /// Where in the answer the value stands; `None`: it has none.
        value: Option<Source>,
    },
    /// A connection is opened, and closed again.
    Tcp {
        /// Host and port.
        address: Template,
    },
    /// `grpc.health.v1.Health/Check`. The value is the status, 1 of a server that serves.
    Grpc {
        /// Host and port.
        address: Template,
        /// The service that is asked about; empty: the server as a whole.
        service: Template,
    },
    /// A program is run. It has gone well if it ends with status 0.
    Command {
        /// The program.
        program: Template,
        /// Its arguments.
        args: Vec<Template>,
        /// What of it is the value.
        value: CommandValue,
    },
    /// A metric of a page in Prometheus' text format.
    Prom {
        /// Address of the page.
        url: Template,
        /// Set if the address begins with `https`.
        tls: Option<LoadTls>,
        /// Name of the metric.
        metric: String,
        /// Labels that a series must have.
        labels: BTreeMap<String, String>,
        /// What of several series that match.
        series: Aggregation,
        /// The change a second since the try before, instead of the value itself.
        is_rate: bool,
    },
    /// A statement over a connection that is kept: the value is the first column of the first
    /// row.
    Postgres {
        /// Address of the database, without a password.
        url: Template,
        /// The statement.
        sql: Template,
        /// The file that holds the password; `None`: the variable `PGPASSWORD` does.
        password_file: Option<String>,
    },
    /// How many lines of a system's log match, since the first step began.
    Log {
        /// Name of the system; all its copies together unless each is asked.
        system: String,
        /// Text that a line contains, or `/a regular expression/`.
        pattern: String,
    },
}

impl ProbeKind {
    /// Whom it trusts, and who it is, if it asks over TLS.
    pub fn tls(&self) -> Option<&LoadTls> {
        match self {
            Self::Http { tls, .. } | Self::Prom { tls, .. } => tls.as_ref(),
            _ => None,
        }
    }

    /// The key that the file has for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Http { .. } => "http",
            Self::Tcp { .. } => "tcp",
            Self::Grpc { .. } => "grpc",
            Self::Command { .. } => "command",
            Self::Prom { .. } => "prom",
            Self::Postgres { .. } => "postgres",
            Self::Log { .. } => "log",
        }
    }
}

/// How several series become one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregation {
    /// Their sum.
    Sum,
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

/// What of a program that was run is the value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandValue {
    /// What it printed.
    Output,
    /// Its exit status; then any status is well.
    Exit,
    /// A part of what it printed.
    Part(Source),
}
