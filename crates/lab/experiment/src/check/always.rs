//! `while` of a step: what must hold all the time that it takes.

use document::Problem;
use toml::de::DeValue;

use super::fields::{Field, Fields};
use super::values::{Reader, all};
use crate::expr::Expr;

/// Most conditions of one step.
const MOST: usize = 100;

/// Reads `while = { always = "leaders.value sum <= 1" }`, or a list of conditions. A step that
/// searches has another `while`, which is read with its search.
pub(super) fn always(
    reader: &mut Reader<'_>,
    step: &Fields<'_>,
    mut condition: impl FnMut(&mut Reader<'_>, Field<'_>) -> Option<Expr>,
) -> Option<Vec<Expr>> {
    let Some(field) = step.get("while").filter(|_| step.get("search").is_none()) else {
        return Some(Vec::new());
    };
    let known = ["always", "good"];
    let fields = Fields::open(field.value, "\"while\"", &known, reader)?;
    if let Some(field) = fields.get("good") {
        let message = "\"good\" belongs to a search, and this step has none";
        let problem = Problem::new(field.span(), message);
        return reader.refuse(problem.help("\"always\" is what must hold while a step goes on"));
    }
    let example = "\"NAME.ok == 100%\", what must hold all the time";
    let field = fields.require("always", example, reader)?;
    let items = match field.value.get_ref() {
        DeValue::Array(items) if items.is_empty() || items.len() > MOST => {
            let message = format!(
                "\"always\" has 1 to {MOST} conditions, this has {}",
                items.len()
            );
            return reader.refuse(Problem::new(field.span(), message));
        }
        DeValue::Array(_) => reader.list(field, "a condition, or a list of them")?,
        _ => vec![field],
    };
    all(items.into_iter().map(|item| condition(reader, item)))
}
