//! `headroom runs`: what there is, what it said, a page of it, and removing it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::lab::{Finished, Lab};

/// Nothing but a command whose number is judged.
const FILE: &str = r#"
lab = 1
name = "short"
[let]
said = "7"
[[step]]
name = "say"
run = "echo {said}"
keep = { number = "text" }
[[expect]]
that = "kept.number == 7"
"#;

impl Lab {
    fn runs(&self, words: &[&str]) -> Finished {
        let mut command = self.command();
        command.arg("runs").args(words);
        command.arg("--in").arg(self.path("runs"));
        command.env("BROWSER", "false");
        Finished::of(command.output().expect("headroom starts"))
    }

    fn runs_without_folder(&self, words: &[&str]) -> Finished {
        let mut command = self.command();
        command.arg("runs").args(words);
        Finished::of(command.output().expect("headroom starts"))
    }

    /// The names of the runs, in the order in which they are listed.
    fn listed(&self) -> Vec<String> {
        let all = self.runs(&["list", "--json"]).expect_code(0).json();
        let all = all.as_array().expect("a list");
        let names = all.iter().map(|run| run["run"].as_str().expect("a name"));
        names.map(str::to_owned).collect()
    }
}

#[test]
fn runs_are_listed_shown_drawn_and_removed() {
    let lab = Lab::new();
    let said = lab.runs(&[]).expect_code(0).stdout;
    assert!(said.starts_with("no runs in "), "{said}");
    let file = lab.write("short.toml", FILE);
    for (number, code) in [("7", 0), ("8", 1), ("7", 0)] {
        let set = format!("said={number}");
        lab.run(&file, &["--set", &set]).expect_code(code);
    }
    let other = FILE.replace("\"short\"", "\"other\"");
    lab.run(&lab.write("other.toml", &other), &[])
        .expect_code(0);

    let all = lab.runs(&["--json"]).expect_code(0).json();
    let all = all.as_array().expect("a list");
    let outcomes: Vec<&Value> = all.iter().map(|run| &run["outcome"]).collect();
    assert_eq!(outcomes, ["pass", "fail", "pass", "pass"], "{all:#?}");
    let values = all.iter().map(|run| run["metrics"][0]["value"].as_f64());
    assert_eq!(values.flatten().collect::<Vec<_>>(), [7.0, 8.0, 7.0, 7.0]);
    let lines = lab.runs(&[]).expect_code(0).stdout;
    assert!(lines.contains("✗ fail   0 of 1"), "{lines}");
    assert!(lines.contains("\n4 runs in "), "{lines}");
    let names = lab.listed();

    // What the second said, by its whole name; what the latest said.
    let shown = lab.runs(&["show", &names[1]]).expect_code(0).stdout;
    assert!(shown.contains("FAIL  0 of 1 expectation held"), "{shown}");
    assert!(shown.contains("kept.number == 7"), "{shown}");
    let shown = lab.runs(&["show"]).expect_code(0).stdout;
    assert!(
        shown.starts_with("other-") && shown.contains("PASS"),
        "{shown}"
    );
    let shown = lab.runs(&["show", "oth"]).expect_code(0).stdout;
    assert!(shown.starts_with("other-"), "{shown}");
    let refused = lab.runs(&["show", "sh"]).expect_code(4).stderr;
    assert!(refused.contains("sh may be 3 runs"), "{refused}");
    let refused = lab.runs(&["show", "web"]).expect_code(4).stderr;
    assert!(
        refused.contains("no run in") && refused.contains(&names[3]),
        "{refused}"
    );

    // There is no browser here; the file is named.
    let opened = lab.runs(&["open"]).expect_code(0);
    assert!(
        opened.stdout.trim_end().ends_with("report.html"),
        "{}",
        opened.stdout
    );
    assert!(opened.stderr.contains("no browser"), "{}", opened.stderr);

    let index = lab.runs(&["page"]).expect_code(0).stdout;
    let index = fs::read_to_string(index.trim_end()).expect("the page");
    assert_eq!(index.matches("<h2>").count(), 2);
    assert_eq!(index.matches("<circle").count(), 4);
    for name in &names {
        assert!(index.contains(&format!("{name}/report.html")), "{index}");
    }
    // The second run's plan was another, and so was the third's again.
    assert_eq!(index.matches("class=\"other\"").count(), 2);

    exported(&lab);
    removing(&lab, &names);
}

/// The folder of the latest run that began.
fn latest(lab: &Lab) -> std::path::PathBuf {
    lab.path("runs").join(lab.listed().last().expect("a run"))
}

/// Makes a run again; the new one has the same plan, and says so in the same words.
fn made_again(lab: &Lab, run: &Path, code: i32) {
    let before = lab.listed();
    let again = lab.runs(&["again", &run.display().to_string()]);
    again.expect_code(code);
    let new = latest(lab);
    assert_eq!(lab.listed().len(), before.len() + 1);
    let read = |run: &Path, name: &str| fs::read(run.join(name)).expect("a file");
    for name in ["plan.json", "experiment.toml"] {
        assert!(read(run, name) == read(&new, name), "{name}");
    }
    let made_from = |run: &Path| -> Value {
        let text = read(run, "environment.json");
        serde_json::from_slice::<Value>(&text).expect("JSON")["made_from"].clone()
    };
    assert_eq!(made_from(run), made_from(&new));
}

#[test]
fn a_run_is_made_again_from_the_same_plan() {
    let lab = Lab::new();
    let file = lab.write("short.toml", FILE);
    lab.run(&file, &["--set", "said=9", "--set", "said=8"])
        .expect_code(1);
    let run = latest(&lab);
    // The file of today is another.
    let other = FILE.replace("kept.number == 7", "kept.number == 1");
    lab.write("short.toml", &other);
    made_again(&lab, &run, 1);
    made_again(&lab, &latest(&lab), 1);
    let named = run.display().to_string();
    let shown = lab.runs(&["show", &named]).expect_code(0).stdout;
    assert!(shown.contains("\nwith said=9 said=8\n"), "{shown}");
    assert!(
        shown.contains(&format!("\nagain: headroom runs again {named}\n")),
        "{shown}"
    );
    let report = fs::read_to_string(run.join("report.html")).expect("a report");
    assert!(report.contains("headroom runs again "));

    // It goes where it is told to.
    let elsewhere = lab.path("elsewhere").display().to_string();
    let told = lab.runs(&["again", &named, "--out", &elsewhere, "--json"]);
    assert_eq!(told.expect_code(1).json()["outcome"], "fail");
    assert_eq!(fs::read_dir(&elsewhere).expect("a folder").count(), 1);

    // A plan that this version does not make, and a run that does not say what it was made from.
    let count = lab.listed().len();
    let plan = fs::read_to_string(run.join("plan.json")).expect("a plan");
    let changed = plan.replacen("echo 8", "echo 6", 1);
    assert_ne!(plan, changed);
    fs::write(run.join("plan.json"), changed).expect("a plan");
    lab.runs(&["again", &named])
        .expect_code(4)
        .expect_stderr("made another plan of its file")
        .expect_stderr("\"echo 6\" became \"echo 8\"");
    let environment = run.join("environment.json");
    let text = fs::read_to_string(&environment).expect("an environment");
    let mut older: Value = serde_json::from_str(&text).expect("JSON");
    older.as_object_mut().expect("fields").remove("made_from");
    fs::write(&environment, older.to_string()).expect("an environment");
    lab.runs(&["again", &named])
        .expect_code(4)
        .expect_stderr("does not say what it was made from");
    lab.runs(&["show", &named]).expect_code(0);
    assert_eq!(lab.listed().len(), count);
}

/// A file that gates a command whose number differs between its variants.
const GATED: &str = r#"
lab = 1
name = "sides"
[let]
said = "7"
[variants]
slow = { said = "8" }
fast = { said = "9" }
[[step]]
name = "say"
run = "sh ./say.sh {said}"
keep = { number = "text" }
[[expect]]
that = "kept.number >= 7"
[[gate]]
metric = "kept.number"
fail = "worse than 5%"
compare = { base = "slow", new = "fast", pairs = 6 }
"#;

#[test]
fn a_run_of_a_gate_says_which_side_it_was_and_is_made_again() {
    let lab = Lab::new();
    fs::create_dir(lab.path("files")).expect("a folder");
    // What its relative paths lead to is where the file was.
    lab.write("files/say.sh", "echo $1\n");
    let file = lab.write("files/sides.toml", GATED);
    lab.run(&file, &[]);
    let runs = lab.listed();
    assert_eq!(runs.len(), 12);
    let mut sides = [0, 0];
    for run in &runs[..2] {
        let run = lab.path("runs").join(run);
        let named = run.display().to_string();
        let shown = lab.runs(&["show", &named]).expect_code(0).stdout;
        let base = shown.contains("\nbase of a gate, the variant slow, with said=8\n");
        let new = shown.contains("\nnew of a gate, the variant fast, with said=9\n");
        assert!(base != new, "{shown}");
        sides[usize::from(new)] += 1;
        made_again(&lab, &run, 0);
    }
    assert_eq!(sides, [1, 1]);
    let run = lab.path("runs").join(&runs[0]);
    fs::remove_dir_all(lab.path("files")).expect("a folder");
    lab.runs(&["again", &run.display().to_string()])
        .expect_code(4)
        .expect_stderr("that folder is gone");
}

#[test]
fn a_run_of_a_sweep_is_made_again_by_itself() {
    let lab = Lab::new();
    let file = FILE.replace(
        "[[step]]",
        "[sweep]\nover = { said = [\"7\", \"8\"] }\n[[step]]",
    );
    lab.run(&lab.write("swept.toml", &file), &[]);
    for run in lab.listed() {
        let run = lab.path("runs").join(run);
        let plan = fs::read_to_string(run.join("plan.json")).expect("a plan");
        let held = plan.contains("echo 7");
        made_again(&lab, &run, if held { 0 } else { 1 });
    }
}

/// The latest run as a trace: the step and what it said.
fn exported(lab: &Lab) {
    let trace = lab.path("trace.json");
    let named = trace.display().to_string();
    lab.runs(&["export", "--perfetto", &named]).expect_code(0);
    let trace = fs::read_to_string(trace).expect("a trace");
    let trace: Value = serde_json::from_str(&trace).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let named = |phase: &str, name: &str| {
        let is = |event: &&Value| event["ph"] == phase && event["name"] == name;
        events.iter().filter(is).count()
    };
    assert_eq!(named("X", "say"), 1, "{trace:#}");
    assert_eq!(named("i", "said: say"), 1, "{trace:#}");
}

/// A load in the first of two steps.
const LOADED: &str = r#"
lab = 1
name = "loaded"
[[system]]
name = "shop"
builtin = "target"
args = "--listen {addr} --latency 5ms"
ready = "tcp"
[[load]]
name = "web"
http = "GET http://{shop.addr}/"
guard = { late_after = "60s", steal_share = "100%", little = "100%", sent_share = "0%" }
[[step]]
name = "busy"
load = { web = "50/s" }
hold = "1s"
[[step]]
name = "quiet"
hold = "1s"
"#;

#[test]
fn a_load_is_over_in_a_trace_when_its_step_is() {
    let lab = Lab::new();
    let file = lab.write("loaded.toml", LOADED);
    lab.run(&file, &[]).expect_code(0);
    let trace = lab.path("trace.json").display().to_string();
    lab.runs(&["export", "--perfetto", &trace]).expect_code(0);
    let trace = fs::read_to_string(trace).expect("a trace");
    let trace: Value = serde_json::from_str(&trace).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let rates: Vec<&Value> = events
        .iter()
        .filter(|event| event["ph"] == "C" && event["name"] == "busy.web rate (/s)")
        .collect();
    let good = |event: &Value| event["args"]["good"].as_f64().expect("a rate");
    let [before @ .., last] = &rates[..] else {
        panic!("no rates: {trace:#}");
    };
    assert!(before.iter().any(|event| good(event) > 0.0), "{rates:?}");
    assert_eq!(good(last), 0.0, "{rates:?}");
    let quiet = events
        .iter()
        .find(|event| event["ph"] == "X" && event["name"] == "quiet");
    let quiet = quiet.expect("a step");
    let number = |event: &Value, name: &str| event[name].as_f64().expect("a number");
    let end = number(quiet, "ts") + number(quiet, "dur");
    // Not where the run ends, a second later.
    assert!(number(last, "ts") < end - 0.9e6, "{last} {quiet}");
}

/// Two of four go: of each experiment one is kept.
fn removing(lab: &Lab, names: &[String]) {
    let planned = lab.runs(&["prune", "--keep", "1"]).expect_code(0).stdout;
    assert!(planned.contains("2 of 4 runs would go"), "{planned}");
    assert_eq!(lab.listed(), names);
    let old = ["prune", "--older", "1d", "--yes"];
    let kept = lab.runs(&old).expect_code(0).stdout;
    assert!(kept.starts_with("nothing to remove"), "{kept}");
    // One that was killed, long ago or just now.
    let killed = lab.path("runs").join(&names[0]);
    fs::remove_file(killed.join("verdict.json")).expect("a verdict");
    let prune = ["prune", "--keep", "1", "--unfinished", "--yes"];
    let removed = lab.runs(&prune).expect_code(0).stdout;
    assert!(removed.contains("removed 1 of 4 runs"), "{removed}");
    assert_eq!(lab.listed(), [&*names[0], &names[2], &names[3]]);
    make_old(&killed);
    let removed = lab.runs(&prune).expect_code(0).stdout;
    assert!(removed.contains("removed 1 of 3 runs"), "{removed}");
    assert_eq!(lab.listed(), &names[2..]);
    let refused = lab.runs(&["prune", "--yes"]).expect_code(4).stderr;
    assert!(refused.contains("--keep"), "{refused}");
}

/// As if nothing had been changed below a folder for two days.
fn make_old(folder: &Path) {
    let then = std::time::SystemTime::now() - std::time::Duration::from_secs(48 * 3600);
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => make_old(&path),
            false => {
                let file = fs::File::options().write(true).open(&path).expect("a file");
                file.set_modified(then).expect("a time");
            }
        }
    }
}

/// A server that answers each request with the next of these, and hands out what it got.
fn receiver(answers: &'static [&'static str]) -> (String, std::thread::JoinHandle<Vec<Asked>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for answer in answers {
            let (stream, _) = listener.accept().expect("a connection");
            let mut stream = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                assert!(stream.read_line(&mut head).expect("a head") > 0, "{head}");
            }
            let head = head.to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1).expect("a length");
            let length = length.lines().next().expect("a line").parse();
            let mut body = vec![0; length.expect("a number")];
            stream.read_exact(&mut body).expect("a body");
            asked.push(Asked { head, body });
            let answer = format!("HTTP/1.1 {answer}");
            let answered = stream.get_mut().write_all(answer.as_bytes());
            answered.expect("an answer");
        }
        asked
    });
    (format!("http://{address}/api/v1/write"), serving)
}

/// A request, its head in small letters.
struct Asked {
    head: String,
    body: Vec<u8>,
}

#[test]
fn numbers_of_a_run_go_to_databases_of_others() {
    let lab = Lab::new();
    let file = lab.write("short.toml", FILE);
    lab.run(&file, &[]).expect_code(0);

    // What is not taken for a reason that passes is sent once more, the same.
    const BUSY: &str = "503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    const TAKEN: &str = "204 No Content\r\nConnection: close\r\n\r\n";
    let (url, serving) = receiver(&[BUSY, TAKEN]);
    let sent = lab.runs(&["export", "--remote-write", &url]).expect_code(0);
    let asked = serving.join().expect("a server");
    assert!(
        sent.stdout.contains(" samples of 1 series to "),
        "{}",
        sent.stdout
    );
    assert_eq!(asked[0].body, asked[1].body);
    for field in [
        "content-type: application/x-protobuf\r\n",
        "content-encoding: snappy\r\n",
        "x-prometheus-remote-write-version: 0.1.0\r\n",
    ] {
        assert!(asked[0].head.contains(field), "{}", asked[0].head);
    }
    assert!(
        asked[0]
            .body
            .windows(13)
            .any(|part| part == b"headroom_step")
    );

    // A collector that leaves some out says so: 2 points, as they are too old.
    const PARTLY: &str =
        "200 OK\r\nContent-Length: 13\r\nConnection: close\r\n\r\n\x0a\x0b\x08\x02\x12\x07too old";
    let (url, serving) = receiver(&[PARTLY]);
    let refused = lab.runs(&["export", "--otlp", &url]).expect_code(4).stderr;
    assert!(
        refused.contains("left some out: 2 points: too old"),
        "{refused}"
    );
    let asked = serving.join().expect("a server");
    let named = asked[0]
        .body
        .windows(13)
        .filter(|part| part == b"headroom_step");
    assert_eq!(named.count(), 1);

    // What will not be taken later is not sent again, and whoever may write says so in a header.
    const REFUSED: &str =
        "400 Bad Request\r\nContent-Length: 12\r\nConnection: close\r\n\r\nout of order";
    let (url, serving) = receiver(&[REFUSED]);
    let mut command = lab.command();
    command.args(["runs", "export", "--remote-write", &url, "--in"]);
    command.arg(lab.path("runs"));
    command.env("HEADROOM_EXPORT_AUTHORIZATION", "Bearer secret\n");
    let refused = Finished::of(command.output().expect("headroom starts"));
    let refused = refused.expect_code(4).stderr;
    assert!(
        refused.contains("400 Bad Request out of order"),
        "{refused}"
    );
    let asked = serving.join().expect("a server");
    assert!(
        asked[0].head.contains("authorization: bearer secret\r\n"),
        "{}",
        asked[0].head
    );

    // A secret goes to no other machine as it is, and nothing goes nowhere.
    let secret = lab.write("secret", "Bearer secret");
    let secret = secret.display().to_string();
    let far = [
        "export",
        "--otlp",
        "http://192.0.2.1/",
        "--authorization",
        &secret,
    ];
    let refused = lab.runs(&far).expect_code(4).stderr;
    assert!(
        refused.contains("over plain HTTP to another machine"),
        "{refused}"
    );
    let refused = lab.runs(&["export"]).expect_code(4).stderr;
    assert!(refused.contains("--remote-write"), "{refused}");

    let dashboard = lab
        .runs_without_folder(&["dashboard"])
        .expect_code(0)
        .json();
    assert_eq!(dashboard["uid"], "headroom-runs");
}

/// A server that takes whatever it gets, over TLS; ends with the test.
struct Secure(Child, String);

impl Secure {
    fn start(lab: &Lab) -> Self {
        let out = lab.path("tls").display().to_string();
        let certs = lab
            .command()
            .args(["cells", "certs", "--out", &out])
            .output();
        Finished::of(certs.expect("headroom starts")).expect_code(0);
        let mut command = lab.command();
        command.args(["router", "static", "--listen", "127.0.0.1:0"]);
        command.arg("--tls-cert").arg(lab.path("tls/cert.pem"));
        command.arg("--tls-key").arg(lab.path("tls/key.pem"));
        let mut server = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("headroom starts");
        let mut line = String::new();
        let output = server.stdout.as_mut().expect("its output");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let started: Value = serde_json::from_str(&line).expect("JSON");
        let address = started["data"]["address"].as_str().expect("an address");
        let url = format!("https://{address}/");
        Self(server, url)
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn numbers_go_over_tls_only_to_whom_an_authority_vouches_for() {
    let lab = Lab::new();
    let file = lab.write("short.toml", FILE);
    lab.run(&file, &[]).expect_code(0);
    let server = Secure::start(&lab);
    let authority = lab.path("tls/ca.pem").display().to_string();
    let to = [
        "export",
        "--remote-write",
        &server.1,
        "--cacert",
        &authority,
    ];
    let sent = lab.runs(&to).expect_code(0).stdout;
    assert!(sent.contains(" samples of 1 series to https://"), "{sent}");
    // The web's authorities do not know it.
    let refused = lab.runs(&to[..3]).expect_code(4).stderr;
    assert!(refused.contains("did not take it: "), "{refused}");
    assert!(refused.contains("invalid peer certificate"), "{refused}");
    let nothing = lab.path("tls/none.pem").display().to_string();
    let to = ["export", "--otlp", &server.1, "--cacert", &nothing];
    let refused = lab.runs(&to).expect_code(4).stderr;
    assert!(refused.contains("none.pem"), "{refused}");
}
