//! Methods on services that have a state; what is done to them at once is in [`super::commands`].

use super::{Change, Found, Planned, Problem, name_of};
use crate::agent::Invocation;
use crate::agent::system::{Act, Service, ServiceAction, System};

/// Letters of names of services beside those of all names.
pub(super) const LETTERS: &str = ":_.@\\-";

pub(super) fn plan<S: System>(system: &S, call: &Invocation<'_>) -> Option<Planned> {
    use ServiceAction as A;
    let action = match (call.method, call.param("action")) {
        ("service_started", _) => A::Start,
        ("service_stopped", _) => A::Stop,
        ("service_enabled", _) | ("service_action", Some("enable")) => A::Enable,
        ("service_disabled", _) | ("service_action", Some("disable")) => A::Disable,
        ("service_action", Some("start")) => A::Start,
        ("service_action", Some("stop")) => A::Stop,
        ("service_action", Some(check @ ("is-active" | "status" | "is-enabled"))) => {
            return Some(checked(system, call, check == "is-enabled"));
        }
        _ => return None,
    };
    Some(planned(system, call, action))
}

/// Does it run, or is it about to?
fn runs(service: &Service) -> bool {
    matches!(&*service.active, "active" | "reloading")
}

/// Does it start with the machine, by itself or because others need it?
fn starts(service: &Service) -> bool {
    matches!(
        &*service.at_boot,
        "enabled" | "enabled-runtime" | "static" | "alias" | "indirect" | "linked" | "generated"
    )
}

/// Does it start with the machine because somebody enabled it?
fn is_enabled(service: &Service) -> bool {
    matches!(&*service.at_boot, "enabled" | "enabled-runtime" | "linked")
}

fn planned<S: System>(system: &S, call: &Invocation<'_>, action: ServiceAction) -> Planned {
    let name = name_of(call, "service", LETTERS)?;
    let service = system.service(name)?;
    let there = service.loaded != "not-found";
    let needed = matches!(action, ServiceAction::Start | ServiceAction::Enable);
    if needed && !there {
        let message = format!("this machine has no service {name}; install what brings it first");
        return Err(Problem::new(message));
    }
    let right = match action {
        ServiceAction::Start => runs(&service),
        ServiceAction::Stop => !runs(&service) && service.active != "activating",
        ServiceAction::Enable => starts(&service),
        _ => !is_enabled(&service),
    };
    let state = match action {
        ServiceAction::Start | ServiceAction::Stop => &service.active,
        _ if service.at_boot.is_empty() => &service.loaded,
        _ => &service.at_boot,
    };
    Ok(Found::right(
        right,
        || format!("it is {state}"),
        Change::Act(Act::Service(name.to_owned(), action)),
    ))
}

/// Only looked at: nothing would change it.
fn checked<S: System>(system: &S, call: &Invocation<'_>, at_boot: bool) -> Planned {
    let name = name_of(call, "service", LETTERS)?;
    let service = system.service(name)?;
    let (right, state) = match at_boot {
        true => (starts(&service), service.at_boot),
        false => (runs(&service), service.active),
    };
    Ok(match right {
        true => Found::Right,
        false => Found::Wrong(format!("it is {state}"), Vec::new()),
    })
}
