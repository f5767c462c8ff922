//! The methods on a system: each first finds out what is to be changed, without changing
//! anything, and then, if it is enforced, changes it.

mod accounts;
mod commands;
mod copies;
mod files;
mod kernel;
mod packages;
mod permissions;
mod places;
mod schedule;
mod services;
mod variables;

use std::borrow::Cow;
use std::time::Duration;

use jiff::civil::DateTime;

use super::system::{Act, Command, System, SystemError};
use super::{Applied, Invocation, Methods, Outcome};
use crate::model::mode::PolicyMode;
use variables::Variables;

/// Bytes of a file that a method reads.
const FILE_BYTES: usize = 16 << 20;

/// Methods on a system.
#[derive(Debug)]
pub struct OnSystem<S> {
    /// The machine.
    pub system: S,
    /// How long a command may take.
    pub command_limit: Duration,
    /// Conditions that hold from the start.
    pub conditions: Vec<String>,
    /// The node, by which jobs of a fleet are spread over time.
    pub node: String,
    /// The time on the machine's clock.
    pub now: DateTime,
    variables: Variables,
}

impl<S> OnSystem<S> {
    /// Methods on a machine, commands of which end within `command_limit`.
    pub fn new(system: S, command_limit: Duration) -> Self {
        Self {
            system,
            command_limit,
            conditions: Vec::new(),
            node: String::new(),
            now: DateTime::default(),
            variables: Variables::default(),
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    Write(String, Vec<u8>),
    Remove(String, bool),
    MakeDirectory(String),
    Link(String, String),
    Mode(String, u32),
    Owner(String, Option<u32>, Option<u32>),
    /// By the machine's programs.
    Act(Act),
    /// A command that must end with one of these codes, or nothing else is changed.
    Check(String, Vec<i32>),
}

/// What a method found.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    /// All is as it should be.
    Right,
    /// It is not, for this reason; and what would change that, if the method can.
    Wrong(String, Vec<Change>),
}

impl Found {
    /// Right without changes; else wrong for this reason.
    fn unless_none(changes: Vec<Change>, why: impl FnOnce() -> String) -> Self {
        match changes.is_empty() {
            true => Self::Right,
            false => Self::Wrong(why(), changes),
        }
    }

    /// Wrong for this reason unless it is right, and what changes it.
    fn right(right: bool, why: impl FnOnce() -> String, change: Change) -> Self {
        match right {
            true => Self::Right,
            false => Self::Wrong(why(), vec![change]),
        }
    }
}

/// Why a method cannot tell what is to be changed.
struct Problem(String);

impl Problem {
    fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl From<SystemError> for Problem {
    fn from(error: SystemError) -> Self {
        Self(error.to_string())
    }
}

type Planned = Result<Found, Problem>;

impl<S: System> Methods for OnSystem<S> {
    fn apply(&mut self, call: &Invocation<'_>, mode: PolicyMode) -> Applied {
        let done = self.by_command(call, mode);
        let done = done.or_else(|| self.by_variable(call));
        if let Some(done) = done.or_else(|| self.by_time(call, mode)) {
            return done.unwrap_or_else(|problem| Applied::new(Outcome::Error, problem.0));
        }
        let (method, name) = (call.method, call.key());
        let error = |message: &str| {
            let message = match mode {
                PolicyMode::Audit => format!("{method} {name} could not be checked: {message}"),
                PolicyMode::Enforce => format!("{method} {name} could not be repaired: {message}"),
            };
            Applied::new(Outcome::Error, message)
        };
        let (why, changes) = match self.plan(call) {
            Err(problem) => return error(&problem.0),
            Ok(Found::Right) => {
                return Applied::new(Outcome::Success, format!("{method} {name} was correct"));
            }
            Ok(Found::Wrong(why, changes)) => (why, changes),
        };
        if mode == PolicyMode::Audit || changes.is_empty() {
            let message = format!("{method} {name} was not correct: {why}");
            return Applied::new(Outcome::NonCompliant, message);
        }
        for change in &changes {
            if let Err(problem) = self.change(change) {
                return error(&problem.0);
            }
        }
        // Programs may end well without doing what they were asked for.
        let programs = changes.iter().any(|one| matches!(one, Change::Act(_)));
        let after = match programs {
            true => self.plan(call),
            false => Ok(Found::Right),
        };
        match after {
            Err(problem) => error(&problem.0),
            Ok(Found::Wrong(why, _)) => error(&format!("it was changed, and still {why}")),
            Ok(Found::Right) => {
                let message = format!("{method} {name} was repaired: {why}");
                Applied::new(Outcome::Repaired, message)
            }
        }
    }

    fn conditions(&self) -> Vec<String> {
        self.conditions.clone()
    }

    fn expanded<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.variables.expanded(text)
    }
}

impl<S: System> OnSystem<S> {
    fn change(&mut self, change: &Change) -> Result<(), Problem> {
        let limit = self.command_limit;
        let system = &mut self.system;
        match change {
            Change::Write(path, content) => system.write(path, content)?,
            Change::Remove(path, all) => system.remove(path, *all)?,
            Change::MakeDirectory(path) => system.make_directory(path)?,
            Change::Link(path, target) => system.link(path, target)?,
            Change::Mode(path, mode) => system.set_mode(path, *mode)?,
            Change::Owner(path, owner, group) => system.set_owner(path, *owner, *group)?,
            Change::Act(act) => system.act(act)?,
            Change::Check(text, codes) => {
                let command = Command {
                    text,
                    limit,
                    output: 0,
                };
                let code = system.command(command)?.code;
                if !codes.contains(&code) {
                    let message = format!("the check ended with {code}; expected one of {codes:?}");
                    return Err(Problem::new(message));
                }
            }
        }
        Ok(())
    }

    /// What a method would change; nothing if all is as it should be.
    fn plan(&self, call: &Invocation<'_>) -> Planned {
        let system = &self.system;
        let planned = files::plan(system, call)
            .or_else(|| places::plan(system, call))
            .or_else(|| permissions::plan(system, call))
            .or_else(|| copies::plan(system, call, &self.variables))
            .or_else(|| packages::plan(system, call))
            .or_else(|| services::plan(system, call))
            .or_else(|| accounts::plan(system, call))
            .or_else(|| kernel::plan(system, call));
        planned.unwrap_or_else(|| {
            let other = call.method;
            let message = format!("this agent has no method {other:?}; update it or the technique");
            Err(Problem::new(message))
        })
    }
}

/// A parameter that must be there.
fn wanted<'c>(call: &Invocation<'c>, parameter: &str) -> Result<&'c str, Problem> {
    call.param(parameter).ok_or_else(|| {
        let method = call.method;
        Problem::new(format!(
            "{method} has no parameter \"{parameter}\"; name one"
        ))
    })
}

/// A parameter that is true or false, `false` without it.
fn flag(call: &Invocation<'_>, parameter: &str) -> Result<bool, Problem> {
    match call.param(parameter) {
        Some("true") => Ok(true),
        None | Some("false") => Ok(false),
        Some(other) => Err(Problem::new(format!(
            "{parameter} is {other:?}; expected true or false"
        ))),
    }
}

/// A list of exit codes.
fn codes(text: &str) -> Result<Vec<i32>, Problem> {
    let parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let codes = parts.map(|part| {
        part.parse()
            .map_err(|_| Problem::new(format!("{part:?} is no exit code; expected as in 0,3")))
    });
    codes.collect()
}

/// A name that is passed to programs: it cannot be taken for an option or for several names.
fn name_of<'c>(call: &Invocation<'c>, what: &str, more: &str) -> Result<&'c str, Problem> {
    let name = call.key();
    let mut letters = name.chars();
    let first = letters.next();
    let begins = first.is_some_and(|one| one.is_ascii_alphanumeric() || one == '_');
    let goes_on = letters.all(|one| one.is_ascii_alphanumeric() || more.contains(one));
    if begins && goes_on && name.len() <= 256 {
        return Ok(name);
    }
    Err(Problem::new(format!(
        "{name:?} is no name of a {what}; expected letters, digits and {more}, a letter, a digit \
         or _ first"
    )))
}
