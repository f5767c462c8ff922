//! Methods on the text of a file.

use regex::{Regex, RegexBuilder};

use super::{Change, FILE_BYTES, Found, Planned, Problem, flag, wanted};
use crate::agent::Invocation;
use crate::agent::edit::{
    Separator, lines, with_block, with_block_between, with_lines, with_replaced, with_section,
    with_value, without_lines,
};
use crate::agent::system::System;

/// Bytes of memory that an expression may take.
const REGEX_BYTES: usize = 1 << 20;
/// The file of variables of the environment.
const ENVIRONMENT: &str = "/etc/environment";

const EQUALS: Separator<'_> = Separator {
    text: "=",
    lax: false,
};

/// An expression that matches a whole text.
pub(super) fn whole(text: &str) -> Result<Regex, Problem> {
    let built = RegexBuilder::new(&format!("^(?:{text})$"))
        .size_limit(REGEX_BYTES)
        .build();
    built.map_err(|error| {
        let error = error.to_string();
        let last = error.lines().last().unwrap_or_default();
        Problem::new(format!("{text:?} is no regular expression: {last}"))
    })
}

/// What a file's text should be, and what is said of it if it is another.
struct DesiredText {
    text: String,
    why: String,
}

fn desired(text: String, why: impl Into<String>) -> DesiredText {
    DesiredText {
        text,
        why: why.into(),
    }
}

pub(super) fn plan<S: System>(system: &S, call: &Invocation<'_>) -> Option<Planned> {
    let path = match call.method {
        "environment_variable" | "environment_variable_present" => ENVIRONMENT,
        "file_content"
        | "file_present"
        | "file_lines_present"
        | "file_lines_absent"
        | "file_line_present_in_ini_section"
        | "file_key_value_present"
        | "file_key_value_present_option"
        | "file_key_value_present_in_ini_section"
        | "file_block_present"
        | "file_block_present_in_section"
        | "file_replace_lines" => call.key(),
        _ => return None,
    };
    Some(planned(system, call, path))
}

fn planned<S: System>(system: &S, call: &Invocation<'_>, path: &str) -> Planned {
    let old = text_of(system, path)?;
    let Some(desired) = desired_text(call, old.as_deref())? else {
        return Ok(Found::Right);
    };
    if old.as_ref() == Some(&desired.text) {
        return Ok(Found::Right);
    }
    let why = match old {
        None => "there is no such file".to_owned(),
        Some(_) => desired.why,
    };
    let change = Change::Write(path.to_owned(), desired.text.into_bytes());
    Ok(Found::Wrong(why, vec![change]))
}

pub(super) fn text_of<S: System>(system: &S, path: &str) -> Result<Option<String>, Problem> {
    let content = system.read(path, FILE_BYTES)?;
    let text = content.map(String::from_utf8).transpose();
    text.map_err(|_| Problem::new(format!("{path} is not UTF-8; it is left as it is")))
}

/// A parameter that takes one line.
fn one_line<'c>(call: &Invocation<'c>, parameter: &str) -> Result<&'c str, Problem> {
    let text = call.param(parameter).unwrap_or_default();
    match text.contains('\n') {
        false => Ok(text),
        true => Err(Problem::new(format!(
            "{parameter} takes one line; use file_lines_present for more"
        ))),
    }
}

/// The same, which must not be empty.
fn one_full_line<'c>(call: &Invocation<'c>, parameter: &str) -> Result<&'c str, Problem> {
    wanted(call, parameter)?;
    one_line(call, parameter)
}

/// What the text should be; none if there is nothing to do.
fn desired_text(call: &Invocation<'_>, old: Option<&str>) -> Result<Option<DesiredText>, Problem> {
    let text = old.unwrap_or_default();
    let all_lines = || {
        let given = call.param("lines").or(call.param("text"));
        given.map_or_else(
            || wanted(call, "lines").map(lines),
            |given| Ok(lines(given)),
        )
    };
    let lacks = |new: &str| {
        // The last line may lack its end.
        match new.lines().count() - text.lines().count() {
            1 => "it lacks 1 line".to_owned(),
            count => format!("it lacks {count} lines"),
        }
    };
    Ok(Some(match call.method {
        "file_content" => {
            let exact = call.param("enforce").is_none() || flag(call, "enforce")?;
            let wanted = all_lines()?;
            match exact {
                true => desired(wanted.join("\n") + "\n", "its content is another one"),
                false => {
                    let new = with_lines(text, &wanted);
                    let why = lacks(&new);
                    desired(new, why)
                }
            }
        }
        "file_present" => desired(text.to_owned(), ""),
        "file_lines_present" => {
            let new = with_lines(text, &all_lines()?);
            let why = lacks(&new);
            desired(new, why)
        }
        "file_lines_absent" => match old {
            None => return Ok(None),
            Some(old) => desired(
                without_lines(old, &all_lines()?),
                "it has lines that it should not have",
            ),
        },
        "file_line_present_in_ini_section" => {
            let (section, line) = (
                one_full_line(call, "section")?,
                one_full_line(call, "line")?,
            );
            let new = with_section(text, section, |inside| with_lines(inside, &[line]));
            desired(new, format!("its section {section} lacks the line"))
        }
        "file_key_value_present" | "file_key_value_present_option" => {
            let (key, value) = (one_full_line(call, "key")?, one_line(call, "value")?);
            let lax = match call.param("option") {
                None | Some("strict") => false,
                Some("lax") => true,
                Some(other) => {
                    let message = format!("option is {other:?}; expected strict or lax");
                    return Err(Problem::new(message));
                }
            };
            let separator = match one_line(call, "separator")? {
                "" => Separator { lax, ..EQUALS },
                text => Separator { text, lax },
            };
            let new = with_value(text, key, value, separator);
            desired(new, format!("its {key} has another value"))
        }
        "file_key_value_present_in_ini_section" => {
            let section = one_full_line(call, "section")?;
            let (key, value) = (one_full_line(call, "name")?, one_line(call, "value")?);
            let lax = Separator {
                lax: true,
                ..EQUALS
            };
            let new = with_section(text, section, |inside| with_value(inside, key, value, lax));
            desired(
                new,
                format!("{key} of its section {section} has another value"),
            )
        }
        "file_block_present" => {
            let block = lines(wanted(call, "block")?);
            desired(with_block(text, &block), "it lacks the block")
        }
        "file_block_present_in_section" => {
            let start = one_full_line(call, "section_start")?;
            let end = one_full_line(call, "section_end")?;
            // A block may be empty: then nothing is between the two lines.
            let block = call.param("block").map(lines).unwrap_or_default();
            let new = with_block_between(text, (start, end), &block);
            let new = new.ok_or_else(|| {
                Problem::new("the section's first line is there without its last one; put it back")
            })?;
            desired(new, "its section has another content")
        }
        "file_replace_lines" => {
            let Some(old) = old else {
                return Err(Problem::new("there is no such file"));
            };
            let line = whole(one_full_line(call, "line")?)?;
            let replacement = one_line(call, "replacement")?;
            desired(
                with_replaced(old, &line, replacement),
                "it has lines that are to be replaced",
            )
        }
        _ => {
            let (name, value) = (call.key(), one_line(call, "value")?);
            let plain = |one: char| one.is_ascii_alphanumeric() || one == '_';
            if name.is_empty() || !name.chars().all(plain) {
                return Err(Problem::new(format!(
                    "{name:?} is no name of a variable; expected letters, digits and _"
                )));
            }
            desired(
                with_value(text, name, value, EQUALS),
                format!("it is not set so in {ENVIRONMENT}"),
            )
        }
    }))
}
