//! Routers as a user starts them.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::free_port::free_port;
use crate::lab::Lab;

mod backends;
mod life;
mod registration;
mod replay;
mod replay_parts;
mod replay_traced;
mod rig;
mod site;
mod transcript;

/// Longest wait for something that is sure to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A part of a router; ends with the test.
struct Part {
    child: Child,
    log: std::path::PathBuf,
}

impl Part {
    fn start(lab: &Lab, name: &str, args: &[&str]) -> Self {
        let log = lab.path(&format!("{name}.log"));
        let file = fs::File::create(&log).expect("a log");
        let child = lab
            .command()
            .arg("router")
            .args(args)
            .stdout(file)
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the binary starts");
        Self { child, log }
    }

    /// The fields of the first line whose message ends so.
    fn said(&self, message: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = fs::read_to_string(&self.log).expect("a log");
            let found = text
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok())
                .find(|line| {
                    line["message"]
                        .as_str()
                        .is_some_and(|found| found.ends_with(message))
                });
            if let Some(line) = found {
                return line["data"].clone();
            }
            assert!(Instant::now() < until, "no {message} in {text}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a process id");
        kill(Pid::from_raw(pid), signal).expect("a signal sent");
    }

    fn exit_code(mut self) -> Option<i32> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().expect("a status") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(fields: &Value, key: &str) -> String {
    fields[key].as_str().unwrap_or_default().to_owned()
}

fn ask(address: &str, host: &str, path: &str) -> String {
    let address: SocketAddr = address.parse().expect("an address");
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn a_thousand_routes_are_registered_served_and_gone() {
    let lab = Lab::new();
    let router = Part::start(
        &lab,
        "router",
        &[
            "http",
            "--listen",
            "127.0.0.1:0",
            "--embedded-nats",
            "127.0.0.1:0",
            "--start-delay",
            "0s",
            "--drain-wait",
            "0s",
            "--status-listen",
            "127.0.0.1:0",
            "--routes-listen",
            "127.0.0.1:0",
            "--metrics-listen",
            "127.0.0.1:0",
            "--threads",
            "1",
        ],
    );
    let backend = Part::start(
        &lab,
        "static",
        &["static", "--listen", "127.0.0.1:0", "--id", "b"],
    );
    let (at, to) = (router.said("started"), backend.said("started"));
    let (nats, to) = (text(&at, "nats"), text(&to, "address"));
    let registrar = Part::start(
        &lab,
        "populate",
        &[
            "populate",
            "--nats",
            &nats,
            "--routes",
            "1000",
            "--domain",
            "ex.test",
            "--backend",
            &to,
        ],
    );
    assert_eq!(registrar.said("registered")["routes"], 1000);
    let metrics = |line: &str| {
        let until = Instant::now() + PATIENCE;
        while !ask(&text(&at, "metrics"), "x", "/metrics")
            .lines()
            .any(|found| found == line)
        {
            assert!(Instant::now() < until, "no {line}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    metrics("total_routes 1000");
    for route in [0, 999] {
        let answer = ask(&text(&at, "http"), &format!("app-{route}.ex.test"), "/");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("\r\nX-Backend: b\r\n"), "{answer}");
    }
    registrar.signal(Signal::SIGTERM);
    assert_eq!(registrar.exit_code(), Some(0));
    metrics("total_routes 0");
    router.signal(Signal::SIGUSR1);
    assert_eq!(router.exit_code(), Some(0));
    backend.signal(Signal::SIGINT);
    assert_eq!(backend.exit_code(), Some(0));
}

#[test]
fn tcp_routes_come_from_the_routing_api() {
    let lab = Lab::new();
    let api = Part::start(
        &lab,
        "api",
        &[
            "api",
            "--listen",
            "127.0.0.1:0",
            "--data",
            &lab.path("data").display().to_string(),
        ],
    );
    let at = text(&api.said("started"), "address");
    let backend = Part::start(&lab, "static", &["static", "--listen", "127.0.0.1:0"]);
    let to = text(&backend.said("started"), "address");
    let url = format!("http://{at}");
    let _router = Part::start(&lab, "tcp", &["tcp", "--api", &url, "--threads", "1"]);
    let port = free_port();
    let first = port.to_string();
    let _registrar = Part::start(
        &lab,
        "populate",
        &[
            "populate",
            "--api",
            &url,
            "--first-port",
            &first,
            "--backend",
            &to,
        ],
    );
    let external = format!("127.0.0.1:{port}");
    let until = Instant::now() + PATIENCE;
    while TcpStream::connect(&external).is_err() {
        assert!(Instant::now() < until, "port {port} was not opened");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(ask(&external, "any", "/").starts_with("HTTP/1.1 200 OK\r\n"));
}

#[test]
fn settings_that_are_wrong_are_named_with_their_line() {
    let lab = Lab::new();
    let file = lab.write(
        "router.toml",
        "listen = \"127.0.0.1:0\"\n\n[backend]\nattempts = 3\n",
    );
    let output = lab
        .command()
        .args(["router", "http", "-c"])
        .arg(&file)
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    let place = format!("{}:3:2: unknown key \"backend\"", file.display());
    assert!(
        said.contains(&place) && said.contains("did you mean \"backends\"?"),
        "{said}"
    );
}

#[test]
fn gorouters_file_is_translated_into_ours() {
    let lab = Lab::new();
    let file = lab.write(
        "gorouter.yml",
        "port: 8181\nendpoint_timeout: 15m\ndebug_addr: x\n",
    );
    let print = |file: &std::path::Path| {
        let mut command: Command = lab.command();
        command
            .args(["router", "http", "--print-settings", "-c"])
            .arg(file);
        command.output().expect("the binary runs")
    };
    let output = print(&file);
    let (settings, said) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(
        said.contains("gorouter.yml:3:1: \"debug_addr\" has no effect here"),
        "{said}"
    );
    assert!(
        settings.contains("\nlisten = \"0.0.0.0:8181\"\n"),
        "{settings}"
    );
    assert!(settings.contains("\ntimeout = \"15m\"\n"), "{settings}");
    let again = print(&lab.write("ours.toml", &settings));
    assert_eq!(String::from_utf8_lossy(&again.stdout), settings);
}
