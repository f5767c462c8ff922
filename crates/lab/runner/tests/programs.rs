//! Driver programs that misbehave end the run with an error that shows why.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::{refused, run, script};

fn driver(body: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("driver.sh");
    script(&path, &format!("#!/bin/sh\n{body}\n"));
    let text = format!(
        r#"
[[driver]]
name = "shop"
run = "{}"
makes = {{ order = ["placed"] }}
[[step]]
name = "orders"
make = {{ what = "order", count = 1 }}
wait = {{ until = "order.placed == 1", at_most = "1m" }}
"#,
        path.display()
    );
    (folder, text)
}

const HELLO: &str = r#"read line; echo '{"ok":true,"entities":{"order":["placed"]}}'"#;

fn refusal(body: &str) -> String {
    let (_folder, text) = driver(body);
    refused(&text)
}

fn reason(body: &str) -> String {
    let (_folder, text) = driver(&format!("{HELLO}; read line; {body}"));
    let (_out, finished) = run(&text);
    finished.verdict.reason.unwrap()
}

#[test]
fn one_that_ends_at_once_is_shown_with_its_errors() {
    let error = refusal("echo cannot connect >&2; exit 5");
    assert!(
        error.contains("driver shop: it ended with status 5"),
        "{error}"
    );
    assert!(error.contains("cannot connect"), "{error}");
}

#[test]
fn one_that_makes_other_entities_is_refused() {
    let error = refusal(r#"read line; echo '{"ok":true,"entities":{"order":["paid"]}}'; sleep 60"#);
    assert!(
        error.contains("paid") && error.contains("make them equal"),
        "{error}"
    );
}

#[test]
fn one_that_refuses_the_greeting_tells_why() {
    let error = refusal(r#"read line; echo '{"ok":false,"error":"protocol 2 only"}'; sleep 60"#);
    assert!(
        error.contains("refused the greeting: protocol 2 only"),
        "{error}"
    );
    // What a terminal obeys is not passed on to one.
    let error =
        refusal(r#"read line; echo '{"ok":false,"error":"a\u001b[31mb\u000ac"}'; sleep 60"#);
    assert!(
        error.contains("greeting: a\u{fffd}[31mb\u{fffd}c"),
        "{error:?}"
    );
}

#[test]
fn garbage_is_shown() {
    let error = reason("echo 'Traceback: oh no'; sleep 60");
    assert!(
        error.contains("no message") && error.contains("Traceback: oh no"),
        "{error}"
    );
    let error = reason(r#"echo '{"counts":{"order":{"lost":1}}}'; sleep 60"#);
    assert!(error.contains("no order.lost"), "{error}");
    let error = reason(r#"echo '{"id":9,"done":true}'; sleep 60"#);
    assert!(error.contains("id 9 that was not asked"), "{error}");
    let error = reason(r#"echo '{"surprise":1}'; sleep 60"#);
    assert!(error.contains("surprise"), "{error}");
}

#[test]
fn a_line_without_end_is_cut_off() {
    let error = reason("head -c 2000000 /dev/zero | tr '\\0' x; sleep 60");
    assert!(error.contains("longer than 1048576 bytes"), "{error}");
    assert!(error.len() < 1000, "{}", error.len());
}

#[test]
fn one_that_ends_during_a_make_is_told() {
    let error = reason("echo out of memory >&2; kill -9 $$");
    assert!(
        error.contains("was ended by SIGKILL") && error.contains("out of memory"),
        "{error}"
    );
}

#[test]
fn a_make_that_it_cannot_do_fails_the_step() {
    let error = reason(r#"echo '{"id":1,"error":"no such product"}'; read line"#);
    assert!(error.contains("driver shop: no such product"), "{error}");
}
