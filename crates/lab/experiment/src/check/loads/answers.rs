//! What is made of answers: assertions, values for later requests, where one ends.
//!
//! Nothing is filled into these texts, for a pattern may hold braces.

use document::Problem;

use super::super::fields::{Field, Fields};
use super::super::values::{Reader, all};
use super::requests::taken_name_problem;
use crate::text::Text;
use lab_load::request::{AnswerEnd, Assertion, RequestError, Source, Take};

/// `assert`: what an answer must be. Its texts are added to `texts`.
pub(in super::super) fn assertions(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    texts: &mut Vec<Text>,
) -> Option<Vec<Assertion>> {
    let Some(field) = fields.get("assert") else {
        return Some(Vec::new());
    };
    let items = reader.list(field, "a list such as [\"status 200..299\"]")?;
    each_assertion(reader, items, texts)
}

/// What an answer must be, one text for each. They are added to `texts`.
pub(super) fn each_assertion(
    reader: &mut Reader<'_>,
    items: Vec<Field<'_>>,
    texts: &mut Vec<Text>,
) -> Option<Vec<Assertion>> {
    all(items.into_iter().map(|item| {
        let expected = "an assertion such as \"status 200..299\"";
        let text = reader.verbatim(item, expected)?;
        texts.push(text.clone());
        ok_or_report(reader, &text, 0, Assertion::parse(text.as_str()))
    }))
}

/// `take = { token = "json /token" }`: values for later requests of a journey.
pub(super) fn take(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    texts: &mut Vec<Text>,
) -> Option<Vec<Take>> {
    let Some(field) = fields.get("take") else {
        return Some(Vec::new());
    };
    let table = Fields::open_any(field.value, "\"take\"", reader)?;
    let mut taken = Vec::new();
    let mut good = true;
    for (span, field) in table.fields() {
        if let Some(message) = taken_name_problem(reader, field.key) {
            reader.problem(Problem::new(span, message));
            good = false;
            continue;
        }
        let expected =
            "a place such as \"json /token\", \"header location\" or \"regex id=([0-9]+)\"";
        let take = reader.verbatim(field, expected).and_then(|text| {
            texts.push(text.clone());
            let before = format!("{} = ", field.key);
            let take = Take::parse(&format!("{before}{}", text.as_str()));
            ok_or_report(reader, &text, before.len(), take)
        });
        match take {
            Some(take) => taken.push(take),
            None => good = false,
        }
    }
    good.then_some(taken)
}

/// A place in an answer, as in `take`.
pub(in super::super) fn source(reader: &mut Reader<'_>, text: &Text) -> Option<Source> {
    let before = "value = ";
    let take = Take::parse(&format!("{before}{}", text.as_str()));
    let take = ok_or_report(reader, text, before.len(), take)?;
    let checked = take.check().map(|()| take.from);
    ok_or_report(reader, text, before.len(), checked)
}

/// `answer`: how the end of an answer is told over TCP.
pub(super) fn end(reader: &mut Reader<'_>, field: Field<'_>) -> Option<AnswerEnd> {
    let text = reader.verbatim(
        field,
        "\"echo\", \"close\", \"bytes 64\" or 'delimiter \\n'",
    )?;
    ok_or_report(reader, &text, 0, AnswerEnd::parse(text.as_str()))
}

/// What was read of a text that had `before` more bytes in front; reports what is wrong.
pub(super) fn ok_or_report<T>(
    reader: &mut Reader<'_>,
    text: &Text,
    before: usize,
    read: Result<T, RequestError>,
) -> Option<T> {
    match read {
        Ok(read) => Some(read),
        Err(error) => {
            let place = |at: usize| at.saturating_sub(before).min(text.len());
            let at = place(error.at.start)..place(error.at.end);
            let problem = Problem::new(text.span(at), error.message);
            reader.refuse(problem.suggest_if(error.suggestion))
        }
    }
}
