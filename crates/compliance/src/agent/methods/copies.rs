//! Methods on files that come from elsewhere: another path, the agent's own folder, a template.

use serde_json::Value;

use super::permissions::{depth, walk};
use super::places::is_other;
use super::variables::Variables;
use super::{Change, FILE_BYTES, Found, Planned, Problem, codes, wanted};
use crate::agent::Invocation;
use crate::agent::system::{Files, Kind, System};
use crate::agent::templates::{jinja, mustache};

/// Bytes that one call copies.
const COPIED: usize = 256 << 20;

pub(super) fn plan<S: System>(
    system: &S,
    call: &Invocation<'_>,
    variables: &Variables,
) -> Option<Planned> {
    let path = call.key();
    let template = |call: &Invocation<'_>| {
        let source = wanted(call, "source_template")?;
        let text = super::files::text_of(system, source)?;
        text.ok_or_else(|| Problem::new(format!("there is no template {source}")))
    };
    let filled = |text: &str, render: fn(&str, &Value) -> Result<String, String>| {
        let data = variables.data(call.known, call.properties);
        let text = render(text, &data).map_err(Problem::new)?;
        one_file(system, path, text.into_bytes())
    };
    Some(match (call.method, call.param("template_type")) {
        ("file_from_local_source", _) => from_source(system, call, "0"),
        ("file_from_local_source_recursion", _) => {
            from_source(system, call, call.param("recursion").unwrap_or("0"))
        }
        ("file_from_local_source_with_check", _) => checked(system, call),
        ("file_from_shared_folder", _) => wanted(call, "source").and_then(|source| {
            let content = system.resource(source, FILE_BYTES)?;
            one_file(system, path, content)
        }),
        ("file_from_string_mustache", _) => {
            wanted(call, "template").and_then(|text| filled(text, mustache::render))
        }
        ("file_from_template_mustache", _) | ("file_from_template_type", Some("mustache")) => {
            template(call).and_then(|text| filled(&text, mustache::render))
        }
        ("file_from_template_jinja2", _) | ("file_from_template_type", Some("jinja2")) => {
            template(call).and_then(|text| filled(&text, jinja::render))
        }
        ("file_from_template" | "file_from_template_type", _) => Err(Problem::new(
            "this agent fills templates in mustache's language and in Jinja2's only",
        )),
        _ => return None,
    })
}

/// One file of this content.
fn one_file<S: Files>(system: &S, path: &str, content: Vec<u8>) -> Planned {
    let old = system.read(path, FILE_BYTES)?;
    let why = match &old {
        None => "there is no such file",
        Some(_) => "its content is another one",
    };
    let change = Change::Write(path.to_owned(), content);
    Ok(match (&old, &change) {
        (Some(old), Change::Write(_, new)) if old == new => Found::Right,
        _ => Found::Wrong(why.to_owned(), vec![change]),
    })
}

fn content<S: Files>(system: &S, path: &str) -> Result<Vec<u8>, Problem> {
    let content = system.read(path, FILE_BYTES)?;
    content.ok_or_else(|| Problem::new(format!("there is nothing at {path}")))
}

/// What is at a path is as what is at another, to this depth. What only the one has stays.
fn from_source<S: System>(system: &S, call: &Invocation<'_>, levels: &str) -> Planned {
    let (source, path) = (wanted(call, "source")?, call.key());
    let source = source.strip_suffix('/').unwrap_or(source);
    let path = path.strip_suffix('/').unwrap_or(path);
    let (mut changes, mut bytes) = (Vec::new(), 0);
    walk(system, source, depth(levels)?, &mut |from, stat| {
        let to = format!("{path}{}", from.strip_prefix(source).unwrap_or_default());
        let found = system.stat(&to)?.map(|stat| stat.kind);
        match (&stat.kind, found) {
            (Kind::Directory, Some(Kind::Directory)) => {}
            (Kind::Directory, None) => changes.push(Change::MakeDirectory(to)),
            (Kind::Directory, Some(_)) => {
                return Err(is_other(&to, "no directory", "a directory or nothing"));
            }
            (Kind::File, Some(Kind::Directory)) => {
                return Err(is_other(&to, "a directory", "a file or nothing"));
            }
            (Kind::File, _) => {
                let new = content(system, from)?;
                bytes += new.len();
                if bytes > COPIED {
                    let message = format!("{source} has more than {COPIED} bytes in its files");
                    return Err(Problem::new(message));
                }
                if system.read(&to, FILE_BYTES)?.as_ref() != Some(&new) {
                    changes.push(Change::Write(to, new));
                }
            }
            (Kind::Symlink(target), found) => match found {
                Some(Kind::Symlink(old)) if old == *target => {}
                None | Some(Kind::Symlink(_)) => changes.push(Change::Link(to, target.clone())),
                Some(_) => return Err(is_other(&to, "no link", "a link or nothing")),
            },
            (Kind::Other, _) => return Err(is_other(from, "a device, socket or pipe", "a file")),
        }
        Ok(())
    })?;
    let count = changes.len();
    Ok(Found::unless_none(changes, || match count {
        1 => format!("it is not as {source}"),
        _ => format!("{count} files, directories and links of {source} are missing or different"),
    }))
}

/// The same for one file, which a command must find good first.
fn checked<S: System>(system: &S, call: &Invocation<'_>) -> Planned {
    let command = wanted(call, "check_command")?;
    let codes = codes(call.param("rc_ok").unwrap_or("0"))?;
    let source = wanted(call, "source")?;
    Ok(match from_source(system, call, "0")? {
        Found::Right => Found::Right,
        Found::Wrong(why, mut changes) => {
            let quoted = source.replace('\'', "'\\''");
            changes.insert(0, Change::Check(format!("{command} '{quoted}'"), codes));
            Found::Wrong(why, changes)
        }
    })
}
