//! The agent: what a node does with its policy.
//!
//! A [`policy`] lists calls of methods, which hold under a [`condition`]. A [`run()`] makes them
//! one after another by whatever implements [`Methods`]: on a [`System`] each method checks, and
//! repairs if it is enforced ([`methods`]); a [`Hollow`] agent only draws outcomes. Each call
//! becomes one report of a run log, between markers of start and end.

pub mod condition;
mod disk;
mod edit;
mod hollow;
mod lock;
mod machine;
pub mod methods;
pub mod policy;
mod programs;
mod run;
mod system;
mod templates;
#[cfg(test)]
mod tests;

pub use disk::Disk;
pub use hollow::{Hollow, Rates, RatesError};
pub use lock::{LockError, RunLock};
pub use machine::Site;
pub use methods::OnSystem;
pub use policy::{AgentPolicy, PolicyError, RunTimes};
pub use run::{PROPERTY, RunOutcome, RunSettings, run};
pub use system::{
    Act, Command, CommandResult, Files, Group, Installed, Kind, Machine, Manager, Package,
    PasswordHash, Request, Service, ServiceAction, Stat, System, SystemError, User, UserChange,
};

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::model::methods::key_place;
use crate::model::mode::PolicyMode;
use crate::reports::runlog::ReportKind;

/// What a call asks: a method and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invocation<'a> {
    /// Identity of its reports, `0` if it has none.
    pub id: &'a str,
    /// The method; empty for a component of a technique that is no list of calls.
    pub method: &'a str,
    /// Names and values of parameters.
    pub params: &'a [(String, String)],
    /// Conditions that hold.
    pub known: &'a HashSet<String>,
    /// Properties of the node, for templates.
    pub properties: &'a Map<String, Value>,
}

impl<'a> Invocation<'a> {
    /// A parameter that is not empty.
    pub fn param(&self, name: &str) -> Option<&'a str> {
        let found = self.params.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// The value that its reports tell as key: that of the parameter which the method is about, by
    /// default the first.
    pub fn key(&self) -> &'a str {
        key_of(self.method, self.params)
    }
}

/// The value by which reports name a call of a method.
fn key_of<'p>(method: &str, params: &'p [(String, String)]) -> &'p str {
    let names = params.iter().map(|(name, _)| name.as_str());
    let place = key_place(method, names);
    params.get(place).map_or("None", |(_, value)| value)
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was as it should be.
    Success,
    /// It was not, and now is.
    Repaired,
    /// It is not, and was left so.
    NonCompliant,
    /// It could not be found out, or could not be repaired.
    Error,
    /// There was nothing to do.
    NotApplicable,
}

impl Outcome {
    /// The type of its report.
    pub fn report(self, mode: PolicyMode) -> ReportKind {
        use ReportKind as K;
        match (mode, self) {
            (PolicyMode::Enforce, Self::Success) => K::ResultSuccess,
            (PolicyMode::Enforce, Self::Repaired) => K::ResultRepaired,
            (PolicyMode::Enforce, Self::NonCompliant | Self::Error) => K::ResultError,
            (PolicyMode::Enforce, Self::NotApplicable) => K::ResultNotApplicable,
            (PolicyMode::Audit, Self::Success) => K::AuditCompliant,
            (PolicyMode::Audit, Self::Repaired | Self::NonCompliant) => K::AuditNonCompliant,
            (PolicyMode::Audit, Self::Error) => K::AuditError,
            (PolicyMode::Audit, Self::NotApplicable) => K::AuditNotApplicable,
        }
    }

    /// What is added to `<method>_<key>_` for the conditions that later calls may name.
    pub fn conditions(self) -> &'static [&'static str] {
        match self {
            Self::Success => &["kept", "ok", "reached", "not_repaired"],
            Self::Repaired => &["repaired", "ok", "reached", "not_kept"],
            Self::NonCompliant | Self::Error => &[
                "error",
                "failed",
                "reached",
                "not_ok",
                "not_kept",
                "not_repaired",
            ],
            Self::NotApplicable => &["noop"],
        }
    }
}

/// An outcome and what is to be said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// How it ended.
    pub outcome: Outcome,
    /// For people.
    pub message: String,
    /// Conditions that it sets beside those of its outcome.
    pub conditions: Vec<String>,
}

impl Applied {
    /// An outcome that sets no conditions of its own.
    pub fn new(outcome: Outcome, message: impl Into<String>) -> Self {
        Self {
            outcome,
            message: message.into(),
            conditions: Vec::new(),
        }
    }
}

/// What carries out calls.
pub trait Methods {
    /// Carries out a call: by [`PolicyMode::Audit`] nothing may change.
    fn apply(&mut self, call: &Invocation<'_>, mode: PolicyMode) -> Applied;

    /// Conditions that hold from the start, such as `linux` and `debian_12`.
    fn conditions(&self) -> Vec<String> {
        Vec::new()
    }

    /// The text with the values of variables that earlier calls have set.
    fn expanded<'t>(&self, text: &'t str) -> Cow<'t, str> {
        Cow::Borrowed(text)
    }
}
