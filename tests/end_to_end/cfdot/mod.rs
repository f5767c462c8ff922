//! The commands of cfdot, run and compared with what cfdot printed, over mutual TLS.

mod words;

use std::collections::HashMap;
use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use http::header::HeaderMap;
use http::{Request, Response};
use net::{Body, Client, ClientOptions, Handler, Incoming};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::free_port::free_port;
use crate::lab::{Finished, Lab, Process, project, wait_until};

/// Where the recorded cell answers.
const RECORDED_REP: &str = "https://127.0.0.1:28895";

/// Keys whose values differ from run to run.
const VOLATILE: [&str; 6] = [
    "epoch",
    "since",
    "created_at",
    "updated_at",
    "first_completed_at",
    "trace_id",
];

/// Answers for the cell.
struct Cell(Bytes);

impl Handler for Cell {
    async fn handle(&self, _: Request<Incoming>) -> Response<Body> {
        Response::new(net::full(self.0.clone()))
    }
}

/// A BBS with a Locket, and a stand-in for the one cell that it knows.
struct World {
    lab: Lab,
    runtime: Runtime,
    client: Client,
    bbs: String,
    locket: String,
    rep: String,
    _bbs: Process,
    _stop: watch::Sender<bool>,
}

fn file(name: &str) -> String {
    let path = project().join("crates/cells/tests/data/cfdot").join(name);
    fs::read_to_string(path).expect("a recording")
}

fn recorded(name: &str) -> Value {
    serde_json::from_str(&file(name)).expect("JSON")
}

/// What the recorded cell said, its keys in their order.
fn state_of_the_cell() -> String {
    let parts: HashMap<String, Box<RawValue>> =
        serde_json::from_str(&file("commands.json")).expect("JSON");
    parts["rep_state"].get().to_owned()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

impl World {
    fn start() -> Self {
        let lab = Lab::new();
        let made = lab
            .command()
            .args(["cells", "certs", "--out"])
            .arg(lab.path("certs"))
            .output();
        assert!(made.expect("headroom starts").status.success());
        let files = net::tls::Files {
            certificate: lab.path("certs/cert.pem"),
            key: lab.path("certs/key.pem"),
            authority: lab.path("certs/ca.pem"),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let (stop, asked) = net::shutdown();
        let tls = net::tls::server(&files).expect("TLS");
        let cell = Arc::new(Cell(Bytes::from(state_of_the_cell())));
        let rep = runtime.block_on(async {
            let listener = net::bind("127.0.0.1:0".parse().expect("an address")).await;
            let listener = listener.expect("a free port");
            let address = listener.local_addr().expect("an address");
            let serve = net::serve(listener, Some(tls), net::Limits::default(), cell, asked);
            tokio::spawn(serve);
            format!("https://{address}")
        });
        let free = || format!("127.0.0.1:{}", free_port());
        let (bbs, locket) = (free(), free());
        let log = File::create(lab.path("bbs.log")).expect("a log");
        let child = lab
            .command()
            .args([
                "cells",
                "bbs",
                "--listen",
                &bbs,
                "--locket-listen",
                &locket,
                "--data",
            ])
            .arg(lab.path("data"))
            .arg("--tls-cert")
            .arg(&files.certificate)
            .arg("--tls-key")
            .arg(&files.key)
            .arg("--tls-ca")
            .arg(&files.authority)
            .stdout(log)
            .spawn();
        let child = Process(child.expect("headroom starts"));
        let client = Client::new(ClientOptions {
            tls: Some(net::tls::client(&files).expect("TLS")),
            ..ClientOptions::default()
        });
        let world = Self {
            lab,
            runtime,
            client,
            bbs: format!("https://{bbs}"),
            locket,
            rep,
            _bbs: child,
            _stop: stop,
        };
        wait_until("the BBS to answer", || {
            world.headroom(&["domains"]).code == 0
        });
        world
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.lab.command();
        command
            .arg("cells")
            .args(words)
            .env("BBS_URL", &self.bbs)
            .env("LOCKET_API_LOCATION", &self.locket)
            .env("CA_CERT_FILE", self.lab.path("certs/ca.pem"))
            .env("CLIENT_CERT_FILE", self.lab.path("certs/cert.pem"))
            .env("CLIENT_KEY_FILE", self.lab.path("certs/key.pem"));
        command
    }

    fn headroom(&self, words: &[&str]) -> Finished {
        Finished::of(self.command(words).output().expect("headroom starts"))
    }

    /// Does what a step of the seed did.
    fn seed(&self, step: &Value) {
        let request = &step["request"];
        if step["kind"] == "locket" {
            let resource = &request["json"]["resource"];
            let command = match text(resource, "type") {
                "presence" => "claim-presence",
                _ => "claim-lock",
            };
            let value = text(resource, "value").replace(RECORDED_REP, &self.rep);
            let (key, owner) = (text(resource, "key"), text(resource, "owner"));
            let words = [command, "-k", key, "-o", owner, "-v", &value, "-t", "36000"];
            self.headroom(&words).expect_code(0);
            return;
        }
        let digits = text(request, "hex").as_bytes().chunks(2);
        let body: Vec<u8> = digits
            .map(|pair| std::str::from_utf8(pair).expect("hex"))
            .map(|pair| u8::from_str_radix(pair, 16).expect("hex"))
            .collect();
        let uri = format!("{}{}", self.bbs, text(step, "path"));
        let uri = uri.parse().expect("an address");
        let kind = "application/x-protobuf";
        let sent = self.client.post(&uri, kind, HeaderMap::new(), body.into());
        let answer = self.runtime.block_on(sent).expect("an answer");
        assert_eq!(answer.status, 200, "{step}");
    }

    fn subscribers(&self) -> usize {
        let uri = format!("{}/metrics", self.bbs);
        let uri = uri.parse().expect("an address");
        let answer = self.runtime.block_on(self.client.get(&uri));
        let body = answer.expect("an answer").body;
        let metrics = String::from_utf8_lossy(&body).into_owned();
        let found = metrics
            .lines()
            .filter_map(|line| line.strip_prefix("bbs_subscribers"))
            .filter_map(|line| line.split_whitespace().next_back()?.parse::<usize>().ok());
        found.sum()
    }

    /// What was printed, in the words of the recording.
    fn lines(&self, printed: &str, unordered: bool) -> Vec<String> {
        let printed = printed.replace(&self.rep, RECORDED_REP);
        let mut lines: Vec<String> = printed.lines().map(masked).collect();
        if unordered {
            lines.sort();
        }
        lines
    }
}

/// The line with what is volatile, and not zero or empty, replaced.
fn masked(line: &str) -> String {
    let mut out = line.to_owned();
    for key in VOLATILE {
        let key = format!("\"{key}\":");
        let mut done = String::new();
        let mut rest = out.as_str();
        while let Some(at) = rest.find(&key) {
            let (before, value) = rest.split_at(at + key.len());
            let end = value.find([',', '}']).expect("JSON");
            let (value, behind) = value.split_at(end);
            done.push_str(before);
            done.push_str(if matches!(value, "0" | "\"\"") {
                value
            } else {
                "<volatile>"
            });
            rest = behind;
        }
        done.push_str(rest);
        out = done;
    }
    out
}

/// Errors with the wrong fields that a BBS names in order: theirs has no meaning.
fn in_order(told: &str) -> String {
    let lines = told
        .lines()
        .map(|line| match line.strip_prefix("Message: ") {
            Some(fields) => {
                let mut fields: Vec<&str> = fields.split(", ").collect();
                fields.sort_unstable();
                format!("Message: {}", fields.join(", "))
            }
            None => line.to_owned(),
        });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn recorded_commands_print_and_end_as_cfdot_did() {
    let recording = recorded("commands.json");
    let world = World::start();
    for step in recorded("seed.json")["steps"].as_array().expect("steps") {
        world.seed(step);
    }
    // The recorded BBS held a lock of its own; ours holds that of its database.
    let own = ["claim-lock", "-k", "bbs", "-o", "bbs-vec", "-t", "36000"];
    world.headroom(&own).expect_code(0);

    let mut running = Vec::new();
    let mut compared = 0;
    for command in recording["commands"].as_array().expect("commands") {
        let words: Vec<&str> = match command["argv"].as_array() {
            Some(words) => words.iter().skip(1).filter_map(Value::as_str).collect(),
            None => Vec::new(),
        };
        let unordered = command["unordered_lines"] == true;
        let expected = text(command, "stdout");
        let what = words.join(" ");
        match text(command, "kind") {
            "start" => {
                let path = world.lab.path(text(command, "id"));
                let file = File::create(&path).expect("a file");
                let child = world
                    .command(&words)
                    .stdout(file)
                    .stderr(Stdio::null())
                    .spawn();
                running.push((path, Process(child.expect("headroom starts"))));
                // What happens before it is subscribed it does not see.
                wait_until("the subscription", || world.subscribers() == running.len());
            }
            "stop" => {
                let path = world.lab.path(text(command, "id"));
                let read = || fs::read_to_string(&path).expect("its output");
                let number = expected.lines().count();
                wait_until("the events", || read().lines().count() >= number);
                assert_eq!(
                    world.lines(&read(), unordered),
                    world.lines(expected, unordered)
                );
                compared += 1;
            }
            _ => {
                let done = world.headroom(&words);
                assert_eq!(
                    world.lines(&done.stdout, unordered),
                    world.lines(expected, unordered),
                    "{what}"
                );
                assert_eq!(
                    Some(i64::from(done.code)),
                    command["exit_code"].as_i64(),
                    "{what}: {}",
                    done.stderr
                );
                // Usage, and what our parser of JSON finds, are told in other words.
                let told = text(command, "stderr");
                let told = told.split("\nUsage:").next().unwrap_or_default();
                let told = match told.split_once("Invalid JSON: ") {
                    Some((before, _)) => format!("{before}Invalid JSON: "),
                    None => in_order(told.trim_end()),
                };
                assert!(
                    in_order(&done.stderr).starts_with(&told),
                    "{what}: {} instead of {told}",
                    done.stderr
                );
                assert!(
                    !told.is_empty() || done.stderr.is_empty(),
                    "{what}: {}",
                    done.stderr
                );
                compared += 1;
            }
        }
    }
    assert!(compared >= 40, "{compared} commands");
}
