#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;

use crate::Target;
use crate::request::{Body, Composer, Mix, RequestError, Step};

fn composer(sql: &str) -> Result<Composer, RequestError> {
    let mut step = Step::new("statement", "", "");
    step.body = Body::Template(sql.to_owned());
    let (target, _) = Target::parse("postgres://me@127.0.0.1/shop").unwrap();
    Composer::new(&Mix::of(step), &target, 1)
}

fn bound(composer: &Composer, arrival: u64) -> (String, Vec<String>) {
    let visit = composer.begin(arrival);
    let bound = composer.statement(&visit).unwrap();
    let value = |index: usize| {
        let mut value = Vec::new();
        bound.write(index, &mut value).unwrap();
        String::from_utf8(value).unwrap()
    };
    let values = (0..bound.parameters()).map(value).collect();
    (bound.sql().to_owned(), values)
}

#[test]
fn variables_are_parameters() {
    let sql = "UPDATE a SET b = b + {uniform 7 7} WHERE id = {seq} AND n <> 'it''s {{seq}}'";
    let composer = composer(sql).unwrap();
    let (sql, values) = bound(&composer, 42);
    assert_eq!(
        sql,
        "UPDATE a SET b = b + $1 WHERE id = $2 AND n <> 'it''s {seq}'"
    );
    assert_eq!(values, ["7", "42"]);
    assert_eq!(bound(&composer, 43).1, ["7", "43"]);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let cases = [
        ("", "such as SELECT 1", 0..0),
        ("SELECT 'a{seq}'", "outside quotes", 10..13),
        ("SELECT \"a{seq}\"", "outside quotes", 10..13),
        ("SELECT $1", "variables in braces", 7..9),
        ("SELECT {sek}", "unknown variable", 8..11),
        ("SELECT {seq", "closing brace", 7..11),
    ];
    for (sql, message, at) in cases {
        let error = composer(sql).unwrap_err();
        assert!(error.message.contains(message), "{sql}: {error}");
        assert_eq!(error.at, at, "{sql}: {error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_statement_or_refused_in_place(sql in "[a-z{}'\"$0-9 é]{0,40}") {
        match composer(&sql) {
            Ok(composer) => { bound(&composer, 1); }
            Err(error) => prop_assert!(sql.get(error.at.clone()).is_some(), "{error}"),
        }
    }
}
