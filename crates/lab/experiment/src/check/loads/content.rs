//! Header fields and bodies of requests.

use document::Problem;
use toml::de::DeValue;

use super::super::fields::{Field, Fields};
use super::super::values::Reader;
use crate::names::Request as Language;
use crate::plan::{RequestBody, Template};
use crate::text::Text;

/// `header = { name = "value" }`, in order of the file; a list gives several fields of
/// one name.
pub(super) fn headers(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    texts: &mut Vec<Text>,
) -> Option<Vec<(String, Template)>> {
    let Some(field) = fields.get("header") else {
        return Some(Vec::new());
    };
    let table = Fields::open_any(field.value, "\"header\"", reader)?;
    let mut headers = Vec::new();
    let mut good = true;
    for (span, field) in table.fields() {
        if !is_header_name(field.key) {
            let message = format!("\"{}\" is no name of a header field", field.key);
            reader.problem(Problem::new(span, message));
            good = false;
            continue;
        }
        let values = match field.value.get_ref() {
            DeValue::Array(_) => reader.list(field, "a list of values").unwrap_or_default(),
            _ => vec![field],
        };
        for value in values {
            match language(reader, value, "a value") {
                Some(Language { template, text }) => {
                    headers.push((field.key.to_owned(), template));
                    texts.push(text);
                }
                None => good = false,
            }
        }
    }
    good.then_some(headers)
}

/// Whether a text is a token, as the names of header fields are.
pub(in super::super) fn is_header_name(text: &str) -> bool {
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(is_name)
}

/// A string in the language of requests.
fn language(reader: &mut Reader<'_>, field: Field<'_>, expected: &str) -> Option<Language> {
    let text = reader.verbatim(field, expected)?;
    reader.scope.request(&text, &mut reader.problems)
}

pub(super) fn body(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    texts: &mut Vec<Text>,
) -> Option<RequestBody> {
    match (fields.get("body"), fields.get("body_file")) {
        (Some(_), Some(field)) => {
            let message = "\"body\" and \"body_file\" exclude each other";
            reader.refuse(Problem::new(field.span(), message))
        }
        (Some(field), None) => {
            let Language { template, text } = language(reader, field, "a string")?;
            texts.push(text);
            Some(RequestBody::Text(template))
        }
        (None, Some(field)) => reader
            .line(field, "the path of a file")
            .map(RequestBody::File),
        (None, None) => Some(RequestBody::Empty),
    }
}
