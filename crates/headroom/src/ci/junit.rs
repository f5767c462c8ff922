//! JUnit's XML, as build servers read it.

use std::io;

use lab_report::terminal::printable;
use lab_store::Outcome;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::{Case, CaseResult, CiResult};

/// A suite with a case for each expectation or metric. What did not hold is a failure, what cannot be
/// told is skipped, and what could not be measured is an error.
pub(super) fn xml(result: &CiResult) -> io::Result<String> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let count = |tag| {
        result
            .cases
            .iter()
            .filter(|case| element(case.became) == Some(tag))
            .count()
    };
    let numbers = [
        ("tests", result.cases.len()),
        ("failures", count("failure")),
        ("errors", count("error")),
        ("skipped", count("skipped")),
    ]
    .map(|(name, count)| (name, count.to_string()));
    let name = printable(&result.name);
    let seconds = format!("{:.3}", result.seconds);
    writer
        .create_element("testsuites")
        .write_inner_content(|writer| {
            let suite = writer
                .create_element("testsuite")
                .with_attribute(("name", name.as_str()))
                .with_attribute(("time", seconds.as_str()))
                .with_attributes(numbers.iter().map(|(name, count)| (*name, count.as_str())));
            suite.write_inner_content(|writer| {
                result
                    .cases
                    .iter()
                    .try_for_each(|case| self::case(writer, case, &name))
            })?;
            Ok(())
        })?;
    let mut text = String::from_utf8(writer.into_inner()).map_err(io::Error::other)?;
    text.push('\n');
    Ok(text)
}

fn case(writer: &mut Writer<Vec<u8>>, case: &Case, suite: &str) -> io::Result<()> {
    let name = printable(&case.name);
    let own = writer
        .create_element("testcase")
        .with_attribute(("classname", suite))
        .with_attribute(("name", name.as_str()));
    // XML has no form for most control characters.
    let text = case
        .text
        .lines()
        .map(printable)
        .collect::<Vec<_>>()
        .join("\n");
    match element(case.became) {
        None => own.write_empty()?,
        Some(tag) => own.write_inner_content(|writer| {
            let first = text.lines().next().unwrap_or_default();
            writer
                .create_element(tag)
                .with_attribute(("message", first))
                .write_text_content(BytesText::new(&text))?;
            Ok(())
        })?,
    };
    Ok(())
}

fn element(became: CaseResult) -> Option<&'static str> {
    match became {
        CaseResult::Judged(Outcome::Pass) => None,
        CaseResult::Judged(Outcome::Fail) => Some("failure"),
        CaseResult::Judged(Outcome::Inconclusive) | CaseResult::LeftOut => Some("skipped"),
        CaseResult::Judged(Outcome::Invalid | Outcome::Error) => Some("error"),
    }
}
