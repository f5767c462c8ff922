//! Methods on users and groups.

use super::{Change, Found, Planned, Problem, flag, name_of, wanted};
use crate::agent::Invocation;
use crate::agent::system::{Act, PasswordHash, System, UserChange};

/// Letters of names of users and groups beside those of all names.
const LETTERS: &str = "._-$";

pub(super) fn plan<S: System>(system: &S, call: &Invocation<'_>) -> Option<Planned> {
    Some(match call.method {
        "user_present" | "user_absent" => user(system, call),
        "group_present" | "group_absent" => group(system, call),
        "user_shell" | "user_home" | "user_uid" | "user_fullname" | "user_primary_group" => {
            entry(system, call)
        }
        "user_password_hash" | "user_locked" => password(system, call),
        "user_group" | "user_secondary_group" | "user_secondary_groups" => groups(system, call),
        _ => return None,
    })
}

fn presence(present: bool, wanted: bool, act: impl FnOnce() -> Act) -> Planned {
    let why = if present {
        "it is there"
    } else {
        "it is not there"
    };
    let change = Change::Act(act());
    Ok(Found::right(present == wanted, || why.to_owned(), change))
}

fn user<S: System>(system: &S, call: &Invocation<'_>) -> Planned {
    let login = name_of(call, "user", LETTERS)?;
    let wanted = call.method == "user_present";
    presence(system.user(login)?.is_some(), wanted, || match wanted {
        true => Act::AddUser(login.to_owned()),
        false => Act::DeleteUser(login.to_owned()),
    })
}

fn group<S: System>(system: &S, call: &Invocation<'_>) -> Planned {
    let name = name_of(call, "group", LETTERS)?;
    let wanted = call.method == "group_present";
    presence(system.group(name)?.is_some(), wanted, || match wanted {
        true => Act::AddGroup(name.to_owned()),
        false => Act::DeleteGroup(name.to_owned()),
    })
}

fn no_user(login: &str) -> Problem {
    Problem::new(format!(
        "there is no user {login}; add it first, with user_present"
    ))
}

/// A value of an entry: neither its own end nor another line can be in it.
fn value<'c>(call: &Invocation<'c>, parameter: &str) -> Result<&'c str, Problem> {
    let text = call.param(parameter).unwrap_or_default();
    match text.contains([':', '\n']) {
        false => Ok(text),
        true => Err(Problem::new(format!(
            "{parameter} has a colon or several lines; an entry of a user cannot have them"
        ))),
    }
}

/// A value that is there, and no option.
fn full_value<'c>(call: &Invocation<'c>, parameter: &str) -> Result<&'c str, Problem> {
    wanted(call, parameter)?;
    let text = value(call, parameter)?;
    match text.starts_with('-') {
        false => Ok(text),
        true => Err(Problem::new(format!("{parameter} begins with -"))),
    }
}

fn entry<S: System>(system: &S, call: &Invocation<'_>) -> Planned {
    let login = name_of(call, "user", LETTERS)?;
    let user = system.user(login)?.ok_or_else(|| no_user(login))?;
    let absolute = |parameter: &str| {
        let path = full_value(call, parameter)?;
        match path.starts_with('/') {
            true => Ok(path),
            false => Err(Problem::new(format!(
                "{parameter} is {path:?}; expected an absolute path"
            ))),
        }
    };
    let (right, why, change) = match call.method {
        "user_shell" => {
            let shell = absolute("shell")?;
            let why = format!("its shell is {}", user.shell);
            (user.shell == shell, why, UserChange::Shell(shell.into()))
        }
        "user_home" => {
            let home = absolute("home")?;
            let why = format!("its home is {}", user.home);
            (user.home == home, why, UserChange::Home(home.into()))
        }
        "user_fullname" => {
            // It may be empty, and then begins with nothing.
            let name = match call.param("fullname") {
                None => "",
                Some(_) => full_value(call, "fullname")?,
            };
            let why = format!("its full name is {:?}", user.full_name);
            let right = user.full_name == name;
            (right, why, UserChange::FullName(name.into()))
        }
        "user_uid" => {
            let text = wanted(call, "uid")?;
            let uid = text
                .parse()
                .map_err(|_| Problem::new(format!("the uid is {text:?}; expected a number")))?;
            let why = format!("its uid is {}", user.uid);
            (user.uid == uid, why, UserChange::Uid(uid))
        }
        _ => {
            let name = full_value(call, "primary_group")?;
            let group = system.group(name)?;
            let group = group.ok_or_else(|| no_group(name))?;
            let why = format!("its primary group is that of gid {}", user.gid);
            let change = UserChange::PrimaryGroup(name.into());
            (user.gid == group.gid, why, change)
        }
    };
    let act = Act::ChangeUser(login.to_owned(), change);
    Ok(Found::right(right, || why, Change::Act(act)))
}

fn no_group(name: &str) -> Problem {
    Problem::new(format!(
        "there is no group {name}; add it first, with group_present"
    ))
}

/// No message has a hash.
fn password<S: System>(system: &S, call: &Invocation<'_>) -> Planned {
    let login = name_of(call, "user", LETTERS)?;
    if system.user(login)?.is_none() {
        return Err(no_user(login));
    }
    let found = system.password(login)?;
    let (right, why, change) = match call.method {
        "user_locked" => (
            found.0.starts_with('!'),
            "its password is taken",
            UserChange::Locked,
        ),
        _ => {
            let hash = value(call, "password").and_then(|hash| match hash.split('$').count() {
                4.. if hash.starts_with('$') && !hash.contains(char::is_whitespace) => Ok(hash),
                _ => Err(Problem::new(
                    "password is no hash; expected as in shadow: $id$salt$hash",
                )),
            })?;
            let hash = PasswordHash(hash.to_owned());
            (
                found == hash,
                "its password is another one",
                UserChange::Password(hash),
            )
        }
    };
    let act = Act::ChangeUser(login.to_owned(), change);
    Ok(Found::right(right, || why.to_owned(), Change::Act(act)))
}

fn groups<S: System>(system: &S, call: &Invocation<'_>) -> Planned {
    let login = name_of(call, "user", LETTERS)?;
    let (names, only) = match call.method {
        "user_group" => (full_value(call, "group_name")?, false),
        _ => (full_value(call, "groups")?, flag(call, "force")?),
    };
    let names = names.split(',').map(str::trim);
    let wanted: Vec<String> = names
        .filter(|name| !name.is_empty())
        .map(Into::into)
        .collect();
    let user = system.user(login)?.ok_or_else(|| no_user(login))?;
    let mut primary = None;
    for name in &wanted {
        let group = system.group(name)?.ok_or_else(|| no_group(name))?;
        if group.gid == user.gid {
            primary = Some(name.clone());
        }
    }
    let found = system.groups_of(login)?;
    let secondary = found.iter().skip(1);
    let missing: Vec<_> = wanted.iter().filter(|name| !found.contains(name)).collect();
    let other = secondary.filter(|name| !wanted.contains(name));
    let other: Vec<_> = other.filter(|_| only).collect();
    let why = match (missing.is_empty(), other.is_empty()) {
        (true, true) => return Ok(Found::Right),
        (false, _) => format!("it is not in {}", joined(&missing)),
        (true, false) => format!("it is also in {}", joined(&other)),
    };
    let change = match only {
        true => {
            let all = wanted.iter().filter(|name| Some(*name) != primary.as_ref());
            UserChange::Groups(all.cloned().collect())
        }
        false => UserChange::MoreGroups(missing.into_iter().cloned().collect()),
    };
    let act = Act::ChangeUser(login.to_owned(), change);
    Ok(Found::Wrong(why, vec![Change::Act(act)]))
}

fn joined(names: &[&String]) -> String {
    let names: Vec<_> = names.iter().map(|name| name.as_str()).collect();
    names.join(", ")
}
