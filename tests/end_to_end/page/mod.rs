//! `headroom run --page`: the report's page while the run goes on.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::first_steps::Target;
use crate::lab::{Lab, wait_until};

/// A load, a probe and a lifecycle, in a step that lasts until there is a file `go`.
const EXPERIMENT: &str = include_str!("watched.toml");
const WORKER: &str = include_str!("worker.sh");
const UNTIL_TOLD: &str = include_str!("until-told.sh");

/// A run that goes on, and the address of its page.
struct Watched {
    lab: Lab,
    child: Child,
    address: String,
    query: String,
}

fn start() -> Watched {
    start_with(EXPERIMENT)
}

fn start_with(experiment: &str) -> Watched {
    let lab = Lab::new();
    let file = lab.write("watched.toml", experiment);
    lab.write("worker.sh", WORKER);
    lab.write("until-told.sh", UNTIL_TOLD);
    let command = lab.run_command(&file, &["--page"]);
    watch(lab, command)
}

/// Starts what serves a page and says where.
fn watch(lab: Lab, mut command: Command) -> Watched {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("headroom starts");
    let mut lines = BufReader::new(child.stderr.take().expect("its errors")).lines();
    let url = loop {
        let line = lines.next().expect("the address").expect("a line");
        if let Some((_, url)) = line.split_once("page is http://") {
            break url.to_owned();
        }
    };
    // What it tells later must find room.
    std::thread::spawn(move || lines.for_each(drop));
    let (address, query) = url.split_once("/?").expect("a token");
    Watched {
        address: address.to_owned(),
        query: format!("?{query}"),
        lab,
        child,
    }
}

/// An answer: its status, its head and its body.
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }
}

impl Watched {
    fn get(&self, target: &str, host: &str, more: &str) -> Answer {
        self.ask(&format!(
            "GET {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{more}\r\n"
        ))
    }

    /// Asks for something to be done.
    fn post(&self, act: &str, kind: &str, body: &str) -> Answer {
        let Self { address, query, .. } = self;
        self.ask(&format!(
            "POST /{act}{query} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             content-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    /// Waits for its end: where it was, and its exit code.
    fn end_by_itself(mut self) -> (Lab, Option<i32>) {
        let status = self.child.wait().expect("its end");
        (self.lab, status.code())
    }

    /// Has it come to its end.
    fn end(self) -> (Lab, Option<i32>) {
        fs::write(self.lab.path("go"), "").expect("a file");
        self.end_by_itself()
    }

    fn ask(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).expect("the page's server");
        stream.write_all(request.as_bytes()).expect("a request");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let (head, body) = answer.split_at(end.expect("a head"));
        let head = std::str::from_utf8(head).expect("text");
        Answer {
            status: head[9..12].parse().expect("a status"),
            head: head.to_lowercase(),
            body: body[4..].to_vec(),
        }
    }

    /// The data that come after those of `known`, and their tag.
    fn newer(&self, known: &str) -> Option<(Value, String)> {
        let target = format!("/data{}", self.query);
        let answer = self.get(
            &target,
            &self.address,
            &format!("if-none-match: {known}\r\n"),
        );
        if answer.status != 200 {
            assert!([304, 503].contains(&answer.status), "{}", answer.status);
            return None;
        }
        let tag = answer
            .head
            .lines()
            .find_map(|line| line.strip_prefix("etag: "));
        let tag = tag.expect("a tag").to_owned();
        assert_ne!(tag, known, "the same data came again");
        let (lengths, mut rest) = answer.body.split_at(12);
        let mut parts = lengths.as_chunks::<4>().0.iter().map(|length| {
            let (part, after) = rest.split_at(u32::from_le_bytes(*length) as usize);
            rest = after;
            part
        });
        let mut part = || parts.next().expect("a part");
        let (json, columns, grown) = (part(), part(), part());
        let run: Value = serde_json::from_slice(json).expect("JSON");
        let mut data = serde_json::json!({"run": run, "columns": columns});
        // Of lifecycles that go on what has changed, which a report does not have.
        if !grown.is_empty() {
            data["grown"] = serde_json::from_slice(grown).expect("JSON");
        }
        Some((data, tag))
    }
}

/// How much there is: entities, requests sent, samples of processes, tries of the probe.
fn sizes(data: &Value) -> [u64; 4] {
    let number = |at: &str| data.pointer(at).and_then(Value::as_u64).unwrap_or(0);
    [
        number("/grown/0/entities"),
        number("/run/loads/0/summary/requests/sent"),
        number("/run/processes/0/cpu_cores/t/n"),
        number("/run/probes/0/summaries/0/tries"),
    ]
}

/// The data that a report holds.
fn held(report: &str) -> Value {
    let between = |from: &str| {
        let (_, rest) = report.split_once(from).expect("a place");
        rest.split_once("</script>").expect("its end").0
    };
    let run: Value = serde_json::from_str(between("id=\"run\">")).expect("JSON");
    serde_json::json!({"run": run, "columns": seven_bits(between("id=\"columns\">"))})
}

/// The bytes of a text that holds seven bits a character, the lowest first.
fn seven_bits(text: &str) -> Vec<u8> {
    let (mut held, mut bits, mut bytes) = (0_u32, 0, Vec::new());
    for one in text.chars() {
        let seven = match one {
            '\u{a1}' => 0,
            '\u{a2}' => 13,
            '\u{a3}' => 60,
            one => one as u32,
        };
        held |= seven << bits;
        bits += 7;
        if bits >= 8 {
            bytes.push(held as u8);
            held >>= 8;
            bits -= 8;
        }
    }
    bytes
}

#[test]
fn a_run_is_seen_to_grow_and_ends_with_what_its_report_holds() {
    let mut watched = start();
    let (mut newest, mut seen) = (None, Vec::new());
    wait_until("all that a run has to show, twice", || {
        let known = newest
            .as_ref()
            .map_or("\"0\"", |(_, tag): &(Value, String)| tag);
        if let Some(newer) = watched.newer(known) {
            let now = sizes(&newer.0);
            let grown = seen
                .last()
                .is_none_or(|last: &[u64; 4]| now.iter().zip(last).all(|(now, last)| now > last));
            if grown && !now.contains(&0) {
                assert!(newer.0["run"]["underway"]["now_s"].as_f64() > Some(0.0));
                assert!(newer.0["run"]["verdict"].is_null());
                seen.push(now);
            }
            newest = Some(newer);
        }
        seen.len() == 3
    });
    let page = watched.get(&format!("/{}", watched.query), &watched.address, "");
    assert_eq!(page.status, 200);
    assert!(
        page.head.contains("cache-control: no-store"),
        "{}",
        page.head
    );
    assert_eq!(held(page.text())["run"]["name"], "watched");

    fs::write(watched.lab.path("go"), "").expect("a file");
    let (mut newest, mut tag) = newest.expect("data");
    while !newest["run"]["underway"].is_null() {
        if let Some(newer) = watched.newer(&tag) {
            (newest, tag) = newer;
        }
    }
    let status = watched.child.wait().expect("its end");
    assert_eq!(status.code(), Some(0));
    let report = watched.lab.run_folder().join("report.html");
    let report = fs::read_to_string(report).expect("a report");
    assert!(held(&report) == newest, "the page's end is not the report");
    assert_eq!(newest["run"]["verdict"]["outcome"], "pass");
    assert!(TcpStream::connect(&watched.address).is_err());
}

#[test]
fn a_load_is_seen_to_grow_and_ends_with_what_its_report_holds() {
    let lab = Lab::new();
    let target = Target::start(&lab, &["--latency", "1ms"]);
    let report = lab.path("load.html");
    let mut command = lab.command();
    command.args([
        "load",
        "--rate",
        "50",
        "--duration",
        "10m",
        "--page",
        "--report",
    ]);
    command.arg(&report).arg(target.url());
    let mut watched = watch(lab, command);
    let (mut tag, mut seen) = ("\"0\"".to_owned(), Vec::new());
    wait_until("a load that grows", || {
        if let Some((data, newer)) = watched.newer(&tag) {
            let sent = sizes(&data)[1];
            assert!(data["run"]["underway"]["now_s"].as_f64() > Some(0.0));
            let partial = &data["run"]["loads"][0]["summary"]["partial"];
            assert!(
                partial.as_str().is_some_and(|why| why.contains("goes on")),
                "{partial}"
            );
            if seen.last().is_none_or(|last| sent > *last) {
                seen.push(sent);
            }
            tag = newer;
        }
        seen.len() == 3
    });
    let id = nix::unistd::Pid::from_raw(watched.child.id().cast_signed());
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGINT).expect("a signal");
    let mut newest = Value::Null;
    while newest.is_null() || !newest["run"]["underway"].is_null() {
        if let Some((data, newer)) = watched.newer(&tag) {
            (newest, tag) = (data, newer);
        }
    }
    watched.child.wait().expect("its end");
    let report = fs::read_to_string(report).expect("a report");
    assert!(held(&report) == newest, "the page's end is not the report");
    assert!(sizes(&newest)[1] >= seen[2]);
    assert!(TcpStream::connect(&watched.address).is_err());
}

#[test]
fn who_watches_a_run_notes_and_ends_it_if_the_file_says_so() {
    const JSON: &str = "application/json";
    let watched = start();
    for act in ["mark", "stop"] {
        let why = format!("page = [\"{act}\"]");
        // Before the run has a folder it is another reason.
        wait_until("a refusal that names the line", || {
            let refused = watched.post(act, JSON, r#"{"note": "now"}"#);
            assert_eq!(refused.status, 409, "{act}");
            refused.text().contains(&why)
        });
    }
    drop(watched.end());

    let may = EXPERIMENT.replacen("seed = 1", "seed = 1\npage = [\"mark\", \"stop\"]", 1);
    let watched = start_with(&may);
    let mut tag = "\"0\"".to_owned();
    let mut newest = Value::Null;
    let mut look = |what: &str, seen: &dyn Fn(&Value) -> bool| {
        wait_until(what, || {
            if let Some((data, newer)) = watched.newer(&tag) {
                (newest, tag) = (data["run"].clone(), newer);
            }
            seen(&newest)
        });
        newest.clone()
    };
    let run = look("a step", &|run| {
        run["steps"].as_array().is_some_and(|all| !all.is_empty())
    });
    assert_eq!(run["underway"]["may"], serde_json::json!(["mark", "stop"]));
    // A form of another page, and what is no note.
    assert_eq!(
        watched
            .post("mark", "text/plain", r#"{"note": "x"}"#)
            .status,
        415
    );
    for (wrong, status) in [
        ("", 400),
        ("{}", 400),
        (r#"{"note": 7}"#, 400),
        (r#"{"note": ""}"#, 409),
        (r#"{"note": "a\nb"}"#, 409),
    ] {
        assert_eq!(watched.post("mark", JSON, wrong).status, status, "{wrong}");
    }
    assert_eq!(watched.post("mark", JSON, &"x".repeat(5_000)).status, 400);
    assert_eq!(
        watched
            .post("mark", JSON, r#"{"note": "colder <now>"}"#)
            .status,
        204
    );
    let run = look("the note", &|run| {
        run["notes"].as_array().is_some_and(|all| !all.is_empty())
    });
    assert_eq!(run["notes"].as_array().expect("notes").len(), 1, "{run:#}");
    assert_eq!(run["notes"][0]["text"], "colder <now>");
    assert_eq!(watched.post("stop", JSON, "{}").status, 204);
    let (lab, code) = watched.end_by_itself();
    assert_eq!(code, Some(4));
    let folder = lab.run_folder();
    let report = fs::read_to_string(folder.join("report.html")).expect("a report");
    let report = held(&report);
    assert_eq!(report["run"]["notes"], run["notes"]);
    let reason = report["run"]["verdict"]["reason"].as_str();
    assert!(
        reason.is_some_and(|why| why.contains("interrupted by its page")),
        "{reason:?}"
    );
    let left = crate::lab::processes_of_run(&folder);
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn who_watches_a_run_changes_the_rate_of_a_load_if_the_file_says_so() {
    const JSON: &str = "application/json";
    let may = EXPERIMENT.replacen("seed = 1", "seed = 1\npage = [\"rate\", \"stop\"]", 1);
    let watched = start_with(&may);
    let mut tag = "\"0\"".to_owned();
    let mut newest = Value::Null;
    let mut look = |what: &str, seen: &dyn Fn(&Value) -> bool| {
        wait_until(what, || {
            if let Some((data, newer)) = watched.newer(&tag) {
                (newest, tag) = (data["run"].clone(), newer);
            }
            seen(&newest)
        });
        newest.clone()
    };
    let rate = |run: &Value| run["underway"]["rates"][0].clone();
    let run = look("a rate", &|run| !rate(run).is_null());
    let before = serde_json::json!({"load": "traffic", "per_s": 50.0});
    assert_eq!(rate(&run), before);
    for (wrong, why) in [
        (r#"{"load": "traffic", "rate": "0/s"}"#, "above 0"),
        (r#"{"load": "traffic", "rate": "-7"}"#, "above 0"),
        (r#"{"load": "traffic", "rate": "NaN"}"#, "above 0"),
        (r#"{"load": "traffic", "rate": "fast"}"#, "expected a rate"),
        (r#"{"load": "traffic", "rate": 7}"#, "expected"),
        (r#"{"load": "trafic", "rate": "7/s"}"#, "no load \"trafic\""),
        (r#"{"load": "traffic"}"#, "missing field"),
        ("{}", "missing field"),
    ] {
        let refused = watched.post("rate", JSON, wrong);
        let status = if why.starts_with("no load") { 409 } else { 400 };
        assert_eq!(refused.status, status, "{wrong}");
        assert!(refused.text().contains(why), "{wrong}: {}", refused.text());
    }
    let told = watched.post("rate", JSON, r#"{"load": "traffic", "rate": "150/s"}"#);
    assert_eq!(told.status, 204, "{}", told.text());
    let sent = |run: &Value| run["loads"][0]["summary"]["requests"]["sent"].as_u64();
    let run = look("the new rate", &|run| rate(run)["per_s"] == 150.0);
    let at_least = sent(&run).unwrap_or(0) + 300;
    look("two seconds of it", &|run| sent(run) > Some(at_least));
    assert_eq!(watched.post("stop", JSON, "{}").status, 204);
    let (lab, code) = watched.end_by_itself();
    assert_eq!(code, Some(4));
    let report = fs::read_to_string(lab.run_folder().join("report.html")).expect("a report");
    let report = &held(&report)["run"];
    assert_eq!(
        report["notes"][0]["text"],
        "traffic at 150 /s from its page"
    );
    let summary = &report["loads"][0]["summary"];
    let arrivals = summary["arrivals"].as_str().expect("arrivals");
    assert!(
        arrivals.starts_with("poisson 50/s for ") && arrivals.contains(", 150/s for "),
        "{arrivals}"
    );
    // What fell due at both rates was sent, and is the plan that it is held to.
    let requests = &summary["requests"];
    assert_eq!(requests["sent"], requests["planned"], "{requests}");
}

#[test]
fn a_page_is_shown_to_nobody_without_its_token_or_by_another_name() {
    let mut watched = start();
    let status = |target: &str, host: &str| watched.get(target, host, "").status;
    let own = watched.address.clone();
    for target in [
        "/",
        "/data",
        "/?token=",
        "/data?token=00000000000000000000000000000000",
    ] {
        assert_eq!(status(target, &own), 403, "{target}");
    }
    let page = format!("/{}", watched.query);
    assert_eq!(status(&page, "evil.example"), 403);
    assert_eq!(status(&format!("/x{}", watched.query), &own), 404);
    let long = format!("x: {}\r\n", "y".repeat(64 << 10));
    assert_eq!(watched.get(&page, &own, &long).status, 431);
    assert_eq!(status(&page, &own), 200);
    fs::write(watched.lab.path("go"), "").expect("a file");
    let status = watched.child.wait().expect("its end");
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_page_is_refused_where_a_file_makes_many_runs() {
    let lab = Lab::new();
    let sweep = "\n[let]\nrate = 50\n[sweep]\nover = { rate = [50, 60] }\n";
    let text = EXPERIMENT.replace("50/s", "{rate}/s") + sweep;
    let file = lab.write("sweep.toml", &text);
    let run = lab.run(&file, &["--page"]).expect_code(4);
    assert!(
        run.stderr.contains("--page shows one run"),
        "{}",
        run.stderr
    );
    assert!(!lab.path("runs").exists(), "something was started");
}
