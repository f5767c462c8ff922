//! Methods on what is at a path: nothing, a directory, a link.

use super::{Change, Found, Planned, Problem, flag, wanted};
use crate::agent::Invocation;
use crate::agent::system::{Kind, System};

pub(super) fn plan<S: System>(system: &S, call: &Invocation<'_>) -> Option<Planned> {
    match call.method {
        "file_absent"
        | "directory_present"
        | "directory_absent"
        | "file_symlink_present"
        | "file_symlink_present_force" => Some(planned(system, call)),
        _ => None,
    }
}

pub(super) fn is_other(path: &str, found: &str, expected: &str) -> Problem {
    Problem::new(format!("{path} is {found}; expected {expected}"))
}

fn leads_to_directory<S: System>(system: &S, path: &str) -> Result<bool, Problem> {
    // A link before a slash is followed.
    let found = system.stat(&format!("{}/", path.trim_end_matches('/')))?;
    Ok(found.is_some_and(|stat| stat.kind == Kind::Directory))
}

fn planned<S: System>(system: &S, call: &Invocation<'_>) -> Planned {
    let path = call.key();
    let own = || path.to_owned();
    let found = system.stat(path)?.map(|stat| stat.kind);
    let wrong = |why: &str, change| Ok(Found::Wrong(why.to_owned(), vec![change]));
    match (call.method, found) {
        ("file_absent", None) | ("directory_absent", None) => Ok(Found::Right),
        ("file_absent", Some(Kind::Directory)) => Err(is_other(path, "a directory", "a file")),
        ("file_absent", Some(_)) => wrong("it is there", Change::Remove(own(), false)),
        ("directory_present", Some(Kind::Directory)) => Ok(Found::Right),
        ("directory_present", Some(Kind::Symlink(_))) if leads_to_directory(system, path)? => {
            Ok(Found::Right)
        }
        ("directory_present", None) => {
            wrong("there is no such directory", Change::MakeDirectory(own()))
        }
        ("directory_absent", Some(Kind::Directory)) => {
            let all = flag(call, "recursive")?;
            wrong("it is there", Change::Remove(own(), all))
        }
        ("directory_present" | "directory_absent", Some(_)) => {
            Err(is_other(path, "no directory", "a directory or nothing"))
        }
        (method, found) => {
            // Older techniques name it so.
            let target = match call.param("target") {
                Some(target) => target,
                None => wanted(call, "source")?,
            };
            let link = Change::Link(own(), target.to_owned());
            match found {
                Some(Kind::Symlink(found)) if found == target => Ok(Found::Right),
                None => wrong("there is no such link", link),
                Some(Kind::Symlink(_)) => wrong("it leads elsewhere", link),
                Some(Kind::File) if method == "file_symlink_present_force" => {
                    wrong("it is a file", link)
                }
                Some(_) => Err(is_other(path, "no link", "a link or nothing")),
            }
        }
    }
}
