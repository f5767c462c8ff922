//! Methods on the kernel: its parameters and its modules.

use std::cmp::Ordering;

use super::files::text_of;
use super::{Change, Found, Planned, Problem, name_of, wanted};
use crate::agent::Invocation;
use crate::agent::edit::{Separator, with_value};
use crate::agent::system::{Act, System};

/// The file of `sysctl.d` that takes values whose call names none.
const FILE: &str = "99-headroom";

pub(super) fn plan<S: System>(system: &S, call: &Invocation<'_>) -> Option<Planned> {
    match call.method {
        "sysctl_value" => Some(sysctl(system, call)),
        "kernel_module_loaded" => Some(module(system, call, true)),
        "kernel_module_not_loaded" => Some(module(system, call, false)),
        _ => None,
    }
}

fn module<S: System>(system: &S, call: &Invocation<'_>, wanted: bool) -> Planned {
    let name = name_of(call, "module", "_-")?;
    let act = match wanted {
        true => Act::LoadModule(name.to_owned()),
        false => Act::UnloadModule(name.to_owned()),
    };
    let why = if wanted {
        "it is not loaded"
    } else {
        "it is loaded"
    };
    let right = system.module_is_loaded(name)? == wanted;
    Ok(Found::right(right, || why.to_owned(), Change::Act(act)))
}

fn sysctl<S: System>(system: &S, call: &Invocation<'_>) -> Planned {
    let key = name_of(call, "parameter of the kernel", "._-/")?;
    let value = wanted(call, "value")?;
    if value.contains('\n') {
        return Err(Problem::new("value has several lines; expected one"));
    }
    let file = call.param("filename").unwrap_or(FILE);
    let plain = |one: char| one.is_ascii_alphanumeric() || "._-".contains(one);
    if !file.chars().all(plain) || file.starts_with('.') {
        let message = format!("filename is {file:?}; expected letters, digits and ._-");
        return Err(Problem::new(message));
    }
    let option = call
        .param("option")
        .unwrap_or("default")
        .to_ascii_lowercase();
    let found = system.kernel_value(key)?;
    let found = found.ok_or_else(|| Problem::new("this kernel has no parameter of this name"))?;
    let order = compared(&found, value);
    let right = match option.as_str() {
        "default" => order == Ordering::Equal,
        "min" => order != Ordering::Less,
        "max" => order != Ordering::Greater,
        other => {
            let message = format!("option is {other:?}; expected min, max or default");
            return Err(Problem::new(message));
        }
    };
    if right {
        return Ok(Found::Right);
    }
    let path = format!("/etc/sysctl.d/{file}.conf");
    let old = text_of(system, &path)?;
    let separator = Separator {
        text: "=",
        lax: true,
    };
    let new = with_value(old.as_deref().unwrap_or_default(), key, value, separator);
    let mut changes = Vec::new();
    if old.as_ref() != Some(&new) {
        changes.push(Change::Write(path, new.into_bytes()));
    }
    changes.push(Change::Act(Act::LoadKernelValues));
    Ok(Found::Wrong(format!("its value is {found:?}"), changes))
}

/// Two values by their numbers, or by their words if they are no numbers.
fn compared(one: &str, other: &str) -> Ordering {
    if let (Ok(one), Ok(other)) = (one.trim().parse::<i128>(), other.trim().parse::<i128>()) {
        return one.cmp(&other);
    }
    one.split_whitespace().cmp(other.split_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_if_they_can_be() {
        for (one, other, order) in [
            ("10", "2", Ordering::Greater),
            ("a10", "a2", Ordering::Less),
            (
                "4096\t87380\t6291456",
                "4096 87380 6291456",
                Ordering::Equal,
            ),
            ("-1", "0", Ordering::Less),
        ] {
            assert_eq!(compared(one, other), order, "{one} {other}");
        }
    }
}
