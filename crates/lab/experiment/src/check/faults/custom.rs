//! `custom` faults: what the file itself says how to do, and how to undo.

use document::Problem;
use toml::de::DeValue;

use super::super::fields::{Field, Fields};
use super::super::loads::call_of_fault;
use super::super::values::Reader;
use crate::names::Place;
use crate::plan::{Act, FaultKind};

/// What does or undoes a fault.
const ACT: &str = "a command such as \"tc ...\", or { request = \"POST http://{NAME.addr}/\" }";
/// An example of it.
const EXAMPLE: &str = "\"COMMAND\", or { request = \"POST http://{NAME.addr}/\" }";

/// Reads `{ custom = "full", do = "touch /tmp/full", undo = "rm -f /tmp/full" }`.
pub(super) fn kind(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    field: Field<'_>,
    step: &str,
) -> Option<FaultKind> {
    let name = reader.line(field, "what the fault is called");
    let does = act(reader, fields, "do", step);
    let undo = act(reader, fields, "undo", step);
    let (name, does, undo) = (name?, does?, undo?);
    if let (Act::Request(_), Some(field)) = (&undo, fields.get("undo"))
        && !undo.is_about_the_run()
    {
        let message = "nobody could ask this after a kill -9 of the laboratory";
        let problem = Problem::new(field.span(), message);
        let help = "ask a system of this file, or write a command: undo = \"curl ...\"";
        return reader.refuse(problem.help(help));
    }
    Some(FaultKind::Custom { name, does, undo })
}

fn act(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str, step: &str) -> Option<Act> {
    let field = fields.require(key, EXAMPLE, reader)?;
    match field.value.get_ref() {
        DeValue::Table(_) => {
            let call = call_of_fault(reader, field, step)?;
            Some(Act::Request(Box::new(call)))
        }
        DeValue::String(text) if is_request(text) => {
            let message = format!("\"{key}\" is run by a shell, and this is a request");
            let problem = Problem::new(field.span(), message);
            reader.refuse(problem.help(format!("write {key} = {{ request = \"...\" }}")))
        }
        DeValue::String(text) if !text.trim().is_empty() => {
            reader.template(field, Place::Command).map(Act::Command)
        }
        _ => reader.mismatch(field, ACT),
    }
}

/// Whether a text begins as `PUT http://` does.
fn is_request(text: &str) -> bool {
    let Some((method, target)) = text.trim().split_once(' ') else {
        return text.starts_with("http://") || text.starts_with("https://");
    };
    let is_method = method.bytes().all(|byte| byte.is_ascii_uppercase());
    is_method && (target.starts_with("http://") || target.starts_with("https://"))
}
