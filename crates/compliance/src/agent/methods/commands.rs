//! Methods that run a command or do something at once. No audit may change anything: it runs only
//! those that say that they do not.

use stats::fnv1a;

use super::services::LETTERS;
use super::{OnSystem, Problem, codes, name_of, wanted};
use crate::agent::system::{Act, Command, CommandResult, Request, ServiceAction, System};
use crate::agent::{Applied, Invocation, Outcome};
use crate::model::mode::PolicyMode;

/// Bytes by which a command that is run once is known.
const KEY: usize = 256;
/// Bytes of an output that becomes a variable.
const OUTPUT: usize = 64 << 10;

impl<S: System> OnSystem<S> {
    /// A call of such a method; none of another.
    pub(super) fn by_command(
        &mut self,
        call: &Invocation<'_>,
        mode: PolicyMode,
    ) -> Option<Result<Applied, Problem>> {
        let audits = match call.method {
            "audit_from_command" | "condition_from_command" | "variable_string_from_command" => {
                true
            }
            "http_request_check_status_headers" => matches!(
                call.param("method"),
                None | Some("GET" | "HEAD" | "OPTIONS")
            ),
            "command_execution"
            | "command_execution_result"
            | "command_execution_once"
            | "service_restart"
            | "service_reload" => false,
            "service_action" if matches!(call.param("action"), Some("restart" | "reload")) => false,
            _ => return None,
        };
        if mode == PolicyMode::Audit && !audits {
            let message = match call.method {
                "http_request_check_status_headers" => {
                    "requests that may change something are not made in audit"
                }
                "service_restart" | "service_reload" | "service_action" => {
                    "services are left alone in audit"
                }
                _ => "commands are not run in audit",
            };
            return Some(Ok(Applied::new(Outcome::NotApplicable, message)));
        }
        Some(match call.method {
            "service_restart" => self.service(call, ServiceAction::Restart),
            "service_reload" => self.service(call, ServiceAction::Reload),
            "service_action" => match call.param("action") {
                Some("reload") => self.service(call, ServiceAction::Reload),
                _ => self.service(call, ServiceAction::Restart),
            },
            "http_request_check_status_headers" => self.request(call),
            "command_execution_once" => self.once(call),
            "variable_string_from_command" => self.output(call),
            _ => self.code(call),
        })
    }

    fn run(&mut self, text: &str, output: usize) -> Result<CommandResult, Problem> {
        let limit = self.command_limit;
        let command = Command {
            text,
            limit,
            output,
        };
        Ok(self.system.command(command)?)
    }

    /// A command whose exit code tells what it came to.
    fn code(&mut self, call: &Invocation<'_>) -> Result<Applied, Problem> {
        let listed = |name: &str, default: &str| codes(call.param(name).unwrap_or(default));
        let (kept, repaired) = (listed("kept_codes", "")?, listed("repaired_codes", "0")?);
        let compliant = listed("compliant_codes", "0")?;
        let (holds, not) = (listed("true_codes", "0")?, listed("false_codes", "1")?);
        let code = self
            .run(call.param("command").unwrap_or(call.key()), 0)?
            .code;
        let mut applied = Applied::new(Outcome::Error, format!("the command ended with {code}"));
        applied.outcome = match call.method {
            "command_execution" if code == 0 => Outcome::Repaired,
            "command_execution_result" if kept.contains(&code) => Outcome::Success,
            "command_execution_result" if repaired.contains(&code) => Outcome::Repaired,
            "audit_from_command" if compliant.contains(&code) => Outcome::Success,
            "audit_from_command" => Outcome::NonCompliant,
            "condition_from_command" => {
                let name = call.param("condition").unwrap_or(call.key());
                let value = match (holds.contains(&code), not.contains(&code)) {
                    (true, _) => Some("true"),
                    (false, true) => Some("false"),
                    _ => None,
                };
                let condition = value.map(|value| format!("{name}_{value}"));
                applied.conditions.extend(condition);
                value.map_or(Outcome::Error, |_| Outcome::Success)
            }
            _ => Outcome::Error,
        };
        Ok(applied)
    }

    /// A command that is run once on this machine.
    fn once(&mut self, call: &Invocation<'_>) -> Result<Applied, Problem> {
        let command = wanted(call, "command")?;
        let good = codes(call.param("ok_codes").unwrap_or("0"))?;
        let until_good = match call.param("until") {
            None | Some("any") => false,
            Some("ok") => true,
            Some(other) => {
                let message = format!("until is {other:?}; expected any or ok");
                return Err(Problem::new(message));
            }
        };
        let id = call.param("unique_id").unwrap_or(command);
        let key = match id.len() {
            0..=KEY => format!("command {id}"),
            // A long command is known by its beginning and its hash.
            _ => {
                let begin = &id[..id.floor_char_boundary(KEY)];
                format!("command {begin} {:016x}", fnv1a(0, id.bytes()))
            }
        };
        if self.system.remembered(&key)?.is_some() {
            let message = "the command was run before";
            return Ok(Applied::new(Outcome::Success, message));
        }
        // It is remembered first: if the machine fails in between, it is not run twice.
        if !until_good {
            self.system.remember(&key, "run")?;
        }
        let code = self.run(command, 0)?.code;
        let outcome = match good.contains(&code) {
            true => Outcome::Repaired,
            false => Outcome::Error,
        };
        if until_good && outcome == Outcome::Repaired {
            self.system.remember(&key, "run")?;
        }
        let message = format!("the command ended with {code}");
        Ok(Applied::new(outcome, message))
    }

    /// A variable of what a command writes.
    fn output(&mut self, call: &Invocation<'_>) -> Result<Applied, Problem> {
        let ran = self.run(wanted(call, "command")?, OUTPUT)?;
        let code = ran.code;
        if code != 0 {
            let message = format!("the command ended with {code}; the variable is not set");
            return Ok(Applied::new(Outcome::Error, message));
        }
        let text = String::from_utf8(ran.output);
        let text = text.map_err(|_| Problem::new("the command wrote what is not UTF-8"))?;
        self.set(call, text.trim_end_matches('\n').to_owned())
    }

    /// Something that is done to a service whatever its state.
    fn service(
        &mut self,
        call: &Invocation<'_>,
        action: ServiceAction,
    ) -> Result<Applied, Problem> {
        let name = name_of(call, "service", LETTERS)?;
        // It tells who has no such services.
        if self.system.service(name)?.loaded == "not-found" {
            let message = format!("this machine has no service {name}");
            return Err(Problem::new(message));
        }
        self.system.act(&Act::Service(name.to_owned(), action))?;
        let message = format!("{} {name} was repaired: {}ed", call.method, action.word());
        Ok(Applied::new(Outcome::Repaired, message))
    }

    /// A request whose answer has a status.
    fn request(&mut self, call: &Invocation<'_>) -> Result<Applied, Problem> {
        let text = wanted(call, "expected_status")?;
        let expected: u16 = text.parse().map_err(|_| {
            Problem::new(format!(
                "expected_status is {text:?}; expected a number such as 200"
            ))
        })?;
        let method = call.param("method").unwrap_or("GET");
        if !method.chars().all(|letter| letter.is_ascii_uppercase()) {
            let message = format!("method is {method:?}; expected GET, POST, PUT or DELETE");
            return Err(Problem::new(message));
        }
        let headers = call.param("headers").unwrap_or_default().lines();
        let request = Request {
            method: method.to_owned(),
            url: wanted(call, "url")?.to_owned(),
            headers: headers.map(str::to_owned).collect(),
        };
        let found = self.system.status(&request)?;
        let outcome = match found == expected {
            true => Outcome::Success,
            false => Outcome::NonCompliant,
        };
        let message = format!("the answer has status {found}; expected {expected}");
        Ok(Applied::new(outcome, message))
    }
}
