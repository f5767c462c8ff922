//! The methods on a system: each first finds out what is to be changed, without changing
//! anything, and then, if it is enforced, changes it.

use std::time::Duration;

use super::edit::{lines, with_lines, with_value, without_lines};
use super::system::{Kind, Resource, System, SystemError};
use super::{Applied, Invocation, Methods, Outcome};
use crate::model::mode::PolicyMode;

/// Bytes of a file that a method edits.
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
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    Write(Vec<u8>),
    Remove { all: bool },
    MakeDirectory,
    Link(String),
    Mode(u32),
    Owner(Option<String>, Option<String>),
    State(Resource, Option<String>),
}

/// Why a method cannot tell what is to be changed.
enum Problem {
    System(SystemError),
    Parameter(String),
}

impl From<SystemError> for Problem {
    fn from(error: SystemError) -> Self {
        Self::System(error)
    }
}

type Planned = Result<Vec<Change>, Problem>;

impl<S: System> Methods for OnSystem<S> {
    fn apply(&mut self, call: &Invocation<'_>, mode: PolicyMode) -> Applied {
        if let Some(applied) = self.by_command(call, mode) {
            return applied;
        }
        let name = call.key();
        let changes = match plan(&self.system, call) {
            Ok(changes) => changes,
            Err(Problem::System(error)) => return Applied::new(Outcome::Error, error.to_string()),
            Err(Problem::Parameter(message)) => return Applied::new(Outcome::Error, message),
        };
        let method = call.method;
        if changes.is_empty() {
            return Applied::new(Outcome::Success, format!("{method} {name} was correct"));
        }
        if mode == PolicyMode::Audit {
            let message = format!("{method} {name} is not correct");
            return Applied::new(Outcome::NonCompliant, message);
        }
        for change in &changes {
            if let Err(error) = self.change(name, change) {
                return Applied::new(Outcome::Error, error.to_string());
            }
        }
        Applied::new(Outcome::Repaired, format!("{method} {name} was repaired"))
    }

    fn conditions(&self) -> Vec<String> {
        self.conditions.clone()
    }
}

impl<S: System> OnSystem<S> {
    fn change(&mut self, name: &str, change: &Change) -> Result<(), SystemError> {
        let system = &mut self.system;
        match change {
            Change::Write(content) => system.write(name, content),
            Change::Remove { all } => system.remove(name, *all),
            Change::MakeDirectory => system.make_directory(name),
            Change::Link(target) => system.link(name, target),
            Change::Mode(mode) => system.set_mode(name, *mode),
            Change::Owner(owner, group) => {
                system.set_owner(name, owner.as_deref(), group.as_deref())
            }
            Change::State(resource, state) => system.set_state(*resource, name, state.as_deref()),
        }
    }

    /// Methods that run a command, which no audit may, but for those that say so.
    fn by_command(&mut self, call: &Invocation<'_>, mode: PolicyMode) -> Option<Applied> {
        let audits = match call.method {
            "command_execution" | "command_execution_result" | "service_restart" => false,
            "audit_from_command" | "condition_from_command" => true,
            _ => return None,
        };
        if mode == PolicyMode::Audit && !audits {
            let message = "commands are not run in audit";
            return Some(Applied::new(Outcome::NotApplicable, message));
        }
        let command = match call.method {
            "service_restart" => format!("systemctl restart -- '{}'", call.key().replace('\'', "")),
            _ => call.param("command").unwrap_or(call.key()).to_owned(),
        };
        let code = match self.system.command(&command, self.command_limit) {
            Ok(code) => code,
            Err(error) => return Some(Applied::new(Outcome::Error, error.to_string())),
        };
        let is_in = |name: &str, default: &str| {
            let mut codes = call.param(name).unwrap_or(default).split(',');
            codes.any(|one| one.trim().parse() == Ok(code))
        };
        let mut conditions = Vec::new();
        let outcome = match call.method {
            "command_execution_result" if is_in("kept_codes", "") => Outcome::Success,
            "command_execution_result" if is_in("repaired_codes", "0") => Outcome::Repaired,
            "command_execution" | "service_restart" if code == 0 => Outcome::Repaired,
            "audit_from_command" if is_in("compliant_codes", "0") => Outcome::Success,
            "audit_from_command" => Outcome::NonCompliant,
            "condition_from_command" => {
                let name = call.param("condition").unwrap_or(call.key());
                let value = if is_in("true_codes", "0") {
                    Some("true")
                } else {
                    is_in("false_codes", "1").then_some("false")
                };
                conditions.extend(value.map(|value| format!("{name}_{value}")));
                match value {
                    Some(_) => Outcome::Success,
                    None => Outcome::Error,
                }
            }
            _ => Outcome::Error,
        };
        let message = format!("the command ended with {code}");
        Some(Applied {
            conditions,
            ..Applied::new(outcome, message)
        })
    }
}

/// What a method would change; nothing if all is as it should be.
fn plan<S: System>(system: &S, call: &Invocation<'_>) -> Planned {
    let name = call.key();
    let wanted = |parameter: &str| {
        call.param(parameter).ok_or_else(|| {
            let method = call.method;
            Problem::Parameter(format!(
                "{method} has no parameter \"{parameter}\"; name one"
            ))
        })
    };
    let line_list = || {
        let text = call.param("lines").or(call.param("text"));
        text.map(lines)
            .map_or_else(|| wanted("lines").map(lines), Ok)
    };
    match call.method {
        "file_content" => {
            let exact = call.param("enforce").is_none_or(|text| text == "true");
            let content = text_of(system, name)?;
            let new = if exact {
                let mut all = line_list()?.join("\n");
                all.push('\n');
                all
            } else {
                with_lines(content.as_deref().unwrap_or_default(), &line_list()?)
            };
            Ok(rewritten(content, new))
        }
        "file_lines_present" => {
            let content = text_of(system, name)?;
            let new = with_lines(content.as_deref().unwrap_or_default(), &line_list()?);
            Ok(rewritten(content, new))
        }
        "file_lines_absent" => match text_of(system, name)? {
            None => Ok(Vec::new()),
            Some(content) => {
                let new = without_lines(&content, &line_list()?);
                Ok(rewritten(Some(content), new))
            }
        },
        "file_key_value_present" => {
            let content = text_of(system, name)?;
            let value = call.param("value").unwrap_or_default();
            let key = wanted("key")?;
            if key.contains('\n') || value.contains('\n') {
                let message = "a key and its value take one line; use file_lines_present for more";
                return Err(Problem::Parameter(message.into()));
            }
            let new = with_value(content.as_deref().unwrap_or_default(), key, value);
            Ok(rewritten(content, new))
        }
        "file_absent" => Ok(match system.stat(name)?.map(|stat| stat.kind) {
            None => Vec::new(),
            Some(Kind::Directory) => return Err(is_other(name, "a directory", "a file")),
            Some(_) => vec![Change::Remove { all: false }],
        }),
        "directory_present" => Ok(match system.stat(name)?.map(|stat| stat.kind) {
            None => vec![Change::MakeDirectory],
            Some(Kind::Directory) => Vec::new(),
            Some(_) => return Err(is_other(name, "no directory", "a directory or nothing")),
        }),
        "directory_absent" => Ok(match system.stat(name)?.map(|stat| stat.kind) {
            None => Vec::new(),
            Some(Kind::Directory) => {
                let all = call.param("recursive") == Some("true");
                vec![Change::Remove { all }]
            }
            Some(_) => return Err(is_other(name, "no directory", "a directory or nothing")),
        }),
        "file_symlink_present" => {
            let target = wanted("target")?;
            Ok(match system.stat(name)?.map(|stat| stat.kind) {
                Some(Kind::Symlink(found)) if found == target => Vec::new(),
                None | Some(Kind::Symlink(_)) => vec![Change::Link(target.to_owned())],
                Some(_) => return Err(is_other(name, "no link", "a link or nothing")),
            })
        }
        "permissions" => permissions(system, call),
        _ => states(system, call),
    }
}

fn is_other(path: &str, found: &str, expected: &str) -> Problem {
    Problem::Parameter(format!("{path} is {found}; expected {expected}"))
}

fn text_of<S: System>(system: &S, path: &str) -> Result<Option<String>, Problem> {
    let content = system.read(path, FILE_BYTES)?;
    let text = content.map(String::from_utf8).transpose();
    text.map_err(|_| Problem::Parameter(format!("{path} is not UTF-8; it is left as it is")))
}

fn rewritten(old: Option<String>, new: String) -> Vec<Change> {
    if old.as_ref() == Some(&new) {
        return Vec::new();
    }
    vec![Change::Write(new.into_bytes())]
}

fn permissions<S: System>(system: &S, call: &Invocation<'_>) -> Planned {
    let path = call.key();
    let Some(stat) = system.stat(path)? else {
        return Err(Problem::Parameter(format!("there is nothing at {path}")));
    };
    if let Kind::Symlink(_) = stat.kind {
        return Err(is_other(path, "a link", "a file or directory"));
    }
    let mut changes = Vec::new();
    // An owner may lose bits of the mode as it changes: the mode comes last.
    let other = |name: &str, found: &str| {
        let wanted = call.param(name).filter(|wanted| *wanted != found);
        wanted.map(str::to_owned)
    };
    let (owner, group) = (other("owner", &stat.owner), other("group", &stat.group));
    let owned = owner.is_some() || group.is_some();
    if owned {
        changes.push(Change::Owner(owner, group));
    }
    if let Some(text) = call.param("mode") {
        let mode = u32::from_str_radix(text, 8)
            .ok()
            .filter(|mode| *mode <= 0o7777);
        let Some(mode) = mode else {
            let message = format!("the mode {text:?} is not octal; expected as in 0644");
            return Err(Problem::Parameter(message));
        };
        if mode != stat.mode || (owned && mode & 0o6000 != 0) {
            changes.push(Change::Mode(mode));
        }
    }
    Ok(changes)
}

/// Methods whose subject is there or not, or has a value.
fn states<S: System>(system: &S, call: &Invocation<'_>) -> Planned {
    use Resource as R;
    let name = call.key();
    let version = call
        .param("version")
        .filter(|text| !matches!(*text, "any" | "latest"));
    let (resource, wanted) = match call.method {
        "package_present" => (R::Package, Some(version.unwrap_or_default())),
        "package_absent" => (R::Package, None),
        "service_started" => (R::ServiceRunning, Some("running")),
        "service_stopped" => (R::ServiceRunning, None),
        "service_enabled" => (R::ServiceEnabled, Some("enabled")),
        "service_disabled" => (R::ServiceEnabled, None),
        "user_present" => (R::User, Some("present")),
        "user_absent" => (R::User, None),
        "group_present" => (R::Group, Some("present")),
        "group_absent" => (R::Group, None),
        "sysctl_value" => match call.param("value") {
            Some(value) => (R::Sysctl, Some(value)),
            None => {
                let message = "sysctl_value has no parameter \"value\"; name one";
                return Err(Problem::Parameter(message.into()));
            }
        },
        other => {
            let message = format!("this agent has no method {other:?}; update it or the technique");
            return Err(Problem::Parameter(message));
        }
    };
    let found = system.state(resource, name)?;
    let fits = match (found.as_deref(), wanted) {
        (Some(_), Some("")) => true,
        (found, wanted) => found == wanted,
    };
    Ok(if fits {
        Vec::new()
    } else {
        vec![Change::State(resource, wanted.map(str::to_owned))]
    })
}
