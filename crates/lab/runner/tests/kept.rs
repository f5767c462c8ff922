//! Requests of steps, and values that steps keep for what comes after.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::{events, log, run, script};
use lab_runner::Finished;
use lab_store::{Event, EventKind, Outcome, RunFile};

/// Orders that are made, each with a number and a secret, and read by whoever has both.
const SHOP: &str = r#"
import http.server, json, sys
orders = {}
class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self, status, body, **fields):
        body = body.encode()
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = 7 + len(orders)
        orders[f"/orders/{number}"] = order
        self.answer(201, json.dumps({"order": {"id": number, "token": "pass phrase"}}),
                    Location=f"/orders/{number}")
    def do_GET(self):
        path, _, asked = self.path.partition("?")
        print("asked", self.path, self.headers.get("Authorization"), flush=True)
        if asked and self.headers.get("Authorization") != "Bearer pass phrase":
            return self.answer(403, "who are you, with pass phrase?")
        if path not in orders:
            return self.answer(404, "no such order")
        self.answer(200, json.dumps(orders[path]))
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Shop).serve_forever()
"#;

fn shop(steps: &str) -> (tempfile::TempDir, Finished) {
    let scripts = tempfile::tempdir().unwrap();
    let path = scripts.path().join("shop.py");
    script(&path, SHOP);
    run(&format!(
        r#"
[[system]]
name = "shop"
run = "python3 {} {{port}}"
ready = "tcp"
{steps}"#,
        path.display()
    ))
}

/// Makes an order and keeps what its answer says.
const CREATE: &str = r#"
[[step]]
name = "create"
[step.http]
request = "POST http://{shop.addr}/orders"
header = { content-type = "application/json" }
body = '{"colour": "dark red", "pieces": 1000}'
expect = ["status 201", "body contains order"]
keep = { id = "json /order/id", token = "json /order/token", where = "header location" }
"#;

fn reason(finished: &Finished) -> String {
    assert_eq!(finished.verdict.outcome, Outcome::Error);
    finished.verdict.reason.clone().unwrap()
}

#[test]
fn what_a_step_creates_is_found_by_the_steps_after_it() {
    let steps = r#"
[[step]]
name = "read"
http = [
  { request = "GET http://{shop.addr}/orders/{id}", expect = "body contains dark red", keep = { pieces = "json /pieces" } },
  { request = "http://{shop.addr}{where}?key={token}", header = { authorization = "Bearer {token}" } },
]
run = "test {id} = 7 && test $(printf %s '{token}' | wc -c) = 11 && echo order {id}, {pieces} pieces of {token}"
keep = { words = "text", doubled = "regex order ([0-9]+)" }
[[step]]
name = "again"
run = "echo {words}; echo '{{\"rows\": {pieces}.5}}' >&2; echo '{{\"rows\": {pieces}.5}}' > {work}/rows"
[[step]]
name = "count"
run = "cat {work}/rows"
keep = { rows = "json /rows" }
[[expect]]
that = "kept.pieces == 1000 and kept.id == 7 and kept.doubled < 8"
[[expect]]
that = "kept.rows == 1000.5"
[[expect]]
that = "kept.pieces == 999"
[[expect]]
that = "kept.token > 0"
"#;
    let (_folder, finished) = shop(&format!("{CREATE}{steps}"));
    let verdict = &finished.verdict;
    let outcomes: Vec<Outcome> = verdict.expectations.iter().map(|one| one.outcome).collect();
    let expected = [
        Outcome::Pass,
        Outcome::Pass,
        Outcome::Fail,
        Outcome::Inconclusive,
    ];
    assert_eq!(outcomes, expected, "{verdict:?}");
    assert_eq!(verdict.expectations[0].values["kept.pieces"], 1000.0);
    assert_eq!(verdict.expectations[2].measured, "1000");
    let note = &verdict.expectations[3].note;
    assert!(note.contains("no step has kept a number for it"), "{note}");
    // What cannot stand in a URL is encoded.
    let asked = log(&finished, "shop");
    let expected = "asked /orders/7 None\nasked /orders/7?key=pass%20phrase Bearer pass phrase\n";
    assert_eq!(asked, expected);
    assert_eq!(
        events(&finished, EventKind::Answered),
        ["create", "read", "read"]
    );
    // What was kept is told by name, but for numbers that a command printed.
    let all: Vec<Event> = finished.folder.records().unwrap();
    let said = all.iter().find(|event| event.kind == EventKind::Said);
    assert_eq!(said.unwrap().text, "{words}");
    for file in [RunFile::Events, RunFile::Plan, RunFile::Verdict] {
        let text = std::fs::read_to_string(finished.folder.file(file)).unwrap();
        assert!(!text.contains("pass phrase"), "{text}");
        assert!(!text.contains("pass%20phrase"), "{text}");
    }
}

#[test]
fn an_answer_that_is_not_as_expected_is_an_error_that_says_so() {
    let (_folder, finished) = shop(
        r#"
[[step]]
name = "read"
http = "GET http://{shop.addr}/orders/8"
"#,
    );
    let why = reason(&finished);
    assert!(
        why.contains("step \"read\": GET http://127.0.0.1:"),
        "{why}"
    );
    let end = "/orders/8: answered 404 with `no such order`; status 400 or above";
    assert!(why.ends_with(end), "{why}");

    let wrong = r#"
[[step]]
name = "read"
http = { request = "GET http://{shop.addr}{where}?key={token}" }
"#;
    let (_folder, finished) = shop(&format!("{CREATE}{wrong}"));
    let why = reason(&finished);
    let end = "{where}?key={token}: answered 403 with `who are you, with {token}?`; \
        status 400 or above";
    assert!(why.ends_with(end), "{why}");

    let (_folder, finished) = shop(&CREATE.replace("status 201", "status 200..200"));
    let why = reason(&finished);
    assert!(why.contains("answered 201 with `{\"order\": "), "{why}");
    assert!(why.ends_with("expected status 200"), "{why}");

    let (_folder, finished) = shop(&CREATE.replace("json /order/id", "json /order/number"));
    let why = reason(&finished);
    assert!(
        why.ends_with("no value for id = json /order/number"),
        "{why}"
    );
}

#[test]
fn a_command_that_fails_does_not_tell_what_was_kept() {
    let fails = r#"
[[step]]
name = "fail"
run = "echo '{token}' >&2; exit 3"
"#;
    let (_folder, finished) = shop(&format!("{CREATE}{fails}"));
    let why = reason(&finished);
    assert!(
        why.contains("`echo '{token}' >&2; exit 3` ended with status 3"),
        "{why}"
    );
    assert!(
        why.ends_with("{token}") && !why.contains("pass phrase"),
        "{why}"
    );
}

#[test]
fn a_target_that_does_not_answer_is_an_error() {
    let (_folder, finished) = run(r#"
[[system]]
name = "nobody"
run = "sleep 600"
[[step]]
name = "ask"
http = "http://{nobody.addr}/"
"#);
    let why = reason(&finished);
    assert!(why.contains("connect to 127.0.0.1:"), "{why}");

    let (_folder, finished) = run(r#"
[[system]]
name = "silent"
run = """python3 -c 'import socket, time
s = socket.create_server(("127.0.0.1", {port})); time.sleep(600)'"""
ready = "tcp"
[[step]]
name = "ask"
http = { request = "http://{silent.addr}/", within = "300ms" }
"#);
    let why = reason(&finished);
    assert!(why.contains("no answer from 127.0.0.1:"), "{why}");
}

#[test]
fn an_output_without_the_value_is_an_error_and_a_long_one_is_refused() {
    let kept = |run: &str, keep: &str| {
        let (_folder, finished) = crate::support::run(&format!(
            "[[step]]\nname = \"s\"\nrun = '{run}'\nkeep = {{ rows = '{keep}' }}\n"
        ));
        reason(&finished)
    };
    let why = kept("echo rows: none", "regex rows: ([0-9]+)");
    assert_eq!(
        why,
        "step \"s\": `echo rows: none`: no value for rows = regex rows: ([0-9]+)"
    );
    let why = kept("head -c 2000000 /dev/zero", "text");
    assert!(why.contains("it printed more than 1 MiB"), "{why}");
}
