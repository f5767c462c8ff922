//! Service graphs as a user starts them.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::lab::Lab;

mod commands;
mod placement;
mod processes;
mod profile;
mod protocols;
mod testapi;

/// Longest wait for something that is sure to come.
const PATIENCE: Duration = Duration::from_secs(120);

/// testapi's chain, whose calls have so much time that none runs out of it on a busy machine.
const CHAIN: &str = r#"
name = "chain"
[defaults]
response = "echo"
[services.broot]
entry = true
steps = [{ call = "bbranch", timeout = "20s" }]
[services.bbranch]
steps = [{ call = "bleaf", timeout = "20s" }]
[services.bleaf]
"#;

/// What testapi's chain answers at `/`.
const ECHO: &str = "hello:broot:/:hello:bbranch:/:hello:bleaf:/";

/// `headroom graph …`, until it ends or the test does.
struct Graph {
    child: Child,
    log: PathBuf,
}

impl Graph {
    fn start(lab: &Lab, name: &str, args: &[&str]) -> Self {
        Self::start_with(lab, name, args, |_| ())
    }

    fn start_with(lab: &Lab, name: &str, args: &[&str], more: impl FnOnce(&mut Command)) -> Self {
        let log = lab.path(&format!("{name}.log"));
        let file = fs::File::create(&log).expect("a log");
        let errors = file.try_clone().expect("a log");
        let mut command = lab.command();
        command.arg("graph").args(args);
        command.stdout(file).stderr(errors);
        more(&mut command);
        let child = command.spawn().expect("the binary starts");
        Self { child, log }
    }

    /// `graph up` with free ports.
    fn up(lab: &Lab, file: &Path, more: &[&str]) -> Self {
        let file = file.display().to_string();
        let mut args = vec![
            "up",
            &file,
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
        ];
        args.extend(more);
        Self::start(lab, "up", &args)
    }

    /// The fields of the first line whose message is this one.
    fn said(&self, message: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = fs::read_to_string(&self.log).expect("a log");
            let found = text
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok())
                .find(|line| line["message"] == message);
            if let Some(line) = found {
                return line["data"].clone();
            }
            assert!(Instant::now() < until, "no {message} in {text}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Where requests and the control server are, once it is ready.
    fn ready(&self) -> (String, String) {
        let data = self.said("graph.ready");
        let field = |name: &str| data[name].as_str().expect("an address").to_owned();
        (field("address"), field("admin"))
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"))
    }

    fn stop(mut self) -> Option<i32> {
        kill(self.pid(), Signal::SIGTERM).expect("a signal sent");
        let status = self.child.wait().expect("its end");
        status.code()
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer of HTTP.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

fn ask(address: &str, path: &str) -> Answer {
    request(address, &format!("GET {path} HTTP/1.1\r\n"), "")
}

fn put(address: &str, path: &str, body: &str) -> Answer {
    let begin = format!("PUT {path} HTTP/1.1\r\nContent-Length: {}\r\n", body.len());
    request(address, &begin, body)
}

fn request(address: &str, begin: &str, body: &str) -> Answer {
    let address: SocketAddr = address.parse().expect("an address");
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let request = format!("{begin}Host: {address}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a whole head");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Answer {
        status: status.expect("a status"),
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

fn json(address: &str, path: &str) -> Value {
    let answer = ask(address, path);
    serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{path}: {}", answer.body))
}

/// Waits until something holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "{what} never came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process is there and no zombie.
fn runs(pid: u64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state(&stat).is_some_and(|state| state != 'Z' && state != 'X')
}

/// The state that a `stat` file of `/proc` tells, as one letter.
fn state(stat: &str) -> Option<char> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.chars().next()
}

#[test]
fn a_chain_answers_in_one_process_and_ends() {
    let lab = Lab::new();
    let graph = Graph::up(&lab, &lab.write("graph.toml", CHAIN), &[]);
    let (address, admin) = graph.ready();
    let answer = ask(&address, "/");
    assert_eq!((answer.status, &*answer.body), (200, ECHO));
    assert_eq!(ask(&address, "/other").status, 404);
    assert_eq!(ask(&admin, "/ping").body.trim(), "pong");
    let topology = json(&admin, "/topology");
    assert_eq!(topology["deployment"]["mode"], "process");
    assert_eq!(
        topology["instances"].as_array().expect("instances").len(),
        3
    );
    assert!(ask(&admin, "/").body.contains("<!doctype html>"));
    assert!(json(&admin, "/analysis")["sentences"].is_array());
    assert_eq!(graph.stop(), Some(0));
}
