//! Commands of Redis, which stand behind the target or in requests, and statements of SQL.

use document::Problem;

use super::super::fields::Fields;
use super::super::values::Reader;
use crate::plan::RequestBody;
use crate::text::Text;

/// What a load or a request with these fields asks: the command, if one is given. Its text is
/// added to `texts`.
pub(super) fn command(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    given: Option<&Text>,
    texts: &mut Vec<Text>,
) -> Option<RequestBody> {
    let good = has_none_of(reader, fields, "a redis request is a command", &["sql"]);
    let Some(given) = given.filter(|text| !text.as_str().is_empty()) else {
        let problem = Problem::new(fields.span.clone(), "this load asks for nothing");
        return reader.refuse(problem.help(
            "write a command behind the target, redis = \"redis://{NAME.addr} GET key:{seq}\"",
        ));
    };
    let language = reader.scope.request(given, &mut reader.problems)?;
    texts.push(language.text);
    good.then_some(RequestBody::Text(language.template))
}

/// What a load or a request with these fields asks in `sql`. Its text is added to `texts`; nothing
/// stands behind the target.
pub(super) fn statement(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    behind: &Text,
    texts: &mut Vec<Text>,
) -> Option<RequestBody> {
    let good = has_none_of(reader, fields, "a postgres request is a statement", &[]);
    if !behind.as_str().is_empty() {
        let problem = Problem::new(
            behind.whole(),
            "a statement does not stand behind the target",
        );
        return reader.refuse(problem.help("write it as sql = \"SELECT 1\""));
    }
    let expected = "a statement such as \"SELECT name FROM users WHERE id = {uniform 1 1000}\"";
    let field = fields.require("sql", "\"SELECT 1\"", reader)?;
    let text = reader.verbatim(field, expected)?;
    let language = reader.scope.request(&text, &mut reader.problems)?;
    texts.push(language.text);
    good.then_some(RequestBody::Text(language.template))
}

/// Refuses a statement where the target takes none.
pub(super) fn no_statement(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<()> {
    let Some(field) = fields.get("sql") else {
        return Some(());
    };
    let message = "only a postgres target takes statements";
    reader.refuse(Problem::new(field.span(), message))
}

/// Refuses what the requests of databases do not have; says whether there was none of it.
fn has_none_of(reader: &mut Reader<'_>, fields: &Fields<'_>, what: &str, more: &[&str]) -> bool {
    let keys = ["body", "body_file", "header"];
    let given = keys.iter().chain(more).filter_map(|key| fields.get(key));
    let mut good = true;
    for field in given {
        let message = format!("{what} and has no \"{}\"", field.key);
        reader.problem(Problem::new(field.span(), message));
        good = false;
    }
    good
}

/// Splits a target from the command behind it.
pub(super) fn split(text: &Text) -> (Text, Text) {
    let whole = text.as_str();
    let end = whole.find(char::is_whitespace).unwrap_or(whole.len());
    let start = whole.len() - whole[end..].trim_start().len();
    (
        text.slice(0..end),
        text.slice(start..whole.trim_end().len().max(start)),
    )
}
