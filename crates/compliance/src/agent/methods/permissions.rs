//! Methods on permissions and owners.

use super::{Change, Found, Planned, Problem};
use crate::agent::Invocation;
use crate::agent::system::{Files, Kind, Machine, Stat, System};

/// Most files and directories that one call looks at.
pub(super) const ENTRIES: usize = 100_000;
/// Deepest nesting of directories that one call looks at.
pub(super) const DEPTH: usize = 128;

/// What is wanted of each.
struct DesiredPermissions {
    mode: Option<u32>,
    owner: Option<u32>,
    group: Option<u32>,
    files: bool,
    directories: bool,
}

pub(super) fn plan<S: System>(system: &S, call: &Invocation<'_>) -> Option<Planned> {
    let (of, depth) = match call.method {
        "permissions" => ("all", Ok(0)),
        "permissions_dirs" => ("directories", Ok(0)),
        "permissions_recursive" => ("all", Ok(DEPTH)),
        "permissions_dirs_recursive" => ("directories", Ok(DEPTH)),
        "permissions_type_recursion" => (
            call.param("type").unwrap_or("all"),
            depth(call.param("recursion").unwrap_or("0")),
        ),
        _ => return None,
    };
    Some(depth.and_then(|depth| planned(system, call, of, depth)))
}

/// How deep directories are gone through: a number, or `inf`.
pub(super) fn depth(text: &str) -> Result<usize, Problem> {
    if text == "inf" {
        return Ok(DEPTH);
    }
    text.parse().map_err(|_| {
        Problem::new(format!(
            "the recursion is {text:?}; expected a number of levels or inf"
        ))
    })
}

fn planned<S: System>(system: &S, call: &Invocation<'_>, of: &str, depth: usize) -> Planned {
    let path = call.key();
    let mode = call.param("mode").map(mode).transpose()?;
    let desired = DesiredPermissions {
        mode,
        owner: call
            .param("owner")
            .map(|name| uid(system, name))
            .transpose()?,
        group: call
            .param("group")
            .map(|name| gid(system, name))
            .transpose()?,
        files: matches!(of, "all" | "files"),
        directories: matches!(of, "all" | "directories"),
    };
    if !(desired.files || desired.directories) {
        let message = format!("the type is {of:?}; expected all, files or directories");
        return Err(Problem::new(message));
    }
    let (mut changes, mut others, mut first) = (Vec::new(), 0, None);
    walk(system, path, depth, &mut |path, stat| {
        let wanted = match stat.kind {
            Kind::Directory => desired.directories,
            Kind::File | Kind::Other => desired.files,
            Kind::Symlink(_) => false,
        };
        let found = match wanted {
            true => differences(path, stat, &desired),
            false => Vec::new(),
        };
        if !found.is_empty() {
            others += 1;
            first.get_or_insert_with(|| describe(stat));
            changes.push(found);
        }
        Ok(())
    })?;
    // What is in a directory comes first: afterwards it may be shut.
    let changes = changes.into_iter().rev().flatten().collect();
    Ok(Found::unless_none(changes, || match (depth, first) {
        (0, Some(first)) => first,
        _ => format!("{others} of what is there have other permissions"),
    }))
}

fn mode(text: &str) -> Result<u32, Problem> {
    let mode = u32::from_str_radix(text, 8).ok();
    mode.filter(|mode| *mode <= 0o7777).ok_or_else(|| {
        Problem::new(format!(
            "the mode {text:?} is not octal; expected as in 0644"
        ))
    })
}

/// The number of a user, by number or name.
fn uid<S: Machine>(system: &S, name: &str) -> Result<u32, Problem> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let found = system.user(name)?.map(|user| user.uid);
    found.ok_or_else(|| Problem::new(format!("there is no user {name:?} on this machine")))
}

/// The number of a group, by number or name.
fn gid<S: Machine>(system: &S, name: &str) -> Result<u32, Problem> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let found = system.group(name)?.map(|group| group.gid);
    found.ok_or_else(|| Problem::new(format!("there is no group {name:?} on this machine")))
}

fn describe(stat: &Stat) -> String {
    let Stat {
        mode, owner, group, ..
    } = stat;
    format!("it has mode {mode:04o}, user {owner} and group {group}")
}

fn differences(path: &str, stat: &Stat, desired: &DesiredPermissions) -> Vec<Change> {
    let mut changes = Vec::new();
    let owner = desired.owner.filter(|owner| *owner != stat.owner);
    let group = desired.group.filter(|group| *group != stat.group);
    let owned = owner.is_some() || group.is_some();
    if owned {
        changes.push(Change::Owner(path.to_owned(), owner, group));
    }
    // An owner may lose bits of the mode as it changes: the mode comes last.
    match desired.mode {
        Some(mode) if mode != stat.mode || (owned && mode & 0o6000 != 0) => {
            changes.push(Change::Mode(path.to_owned(), mode));
        }
        _ => {}
    }
    changes
}

/// Shows what is at a path and, to this depth, below it. Links are shown and not followed.
pub(super) fn walk<S: Files>(
    system: &S,
    path: &str,
    depth: usize,
    show: &mut impl FnMut(&str, &Stat) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let first = system.stat(path)?;
    let first = first.ok_or_else(|| Problem::new(format!("there is nothing at {path}")))?;
    if let Kind::Symlink(_) = first.kind {
        return Err(super::places::is_other(
            path,
            "a link",
            "a file or directory",
        ));
    }
    let mut left = vec![(path.to_owned(), first, 0)];
    let mut seen = 1;
    while let Some((path, stat, level)) = left.pop() {
        show(&path, &stat)?;
        if stat.kind != Kind::Directory || level >= depth {
            continue;
        }
        if level >= DEPTH {
            let message = format!("{path} is more than {DEPTH} directories deep");
            return Err(Problem::new(message));
        }
        let names = system.list(&path, ENTRIES)?;
        seen += names.len();
        if seen > ENTRIES {
            let message = format!("there are more than {ENTRIES} files and directories");
            return Err(Problem::new(message));
        }
        for name in names.into_iter().rev() {
            let path = format!("{}/{name}", path.trim_end_matches('/'));
            // It may be gone since it was listed.
            if let Some(stat) = system.stat(&path)? {
                left.push((path, stat, level + 1));
            }
        }
    }
    Ok(())
}
