//! A server, its agents, and who asks it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use compliance::client::ApiClient;
use compliance::trust::{self, ServerPin};
use http::{Method, Request};
use http_body_util::Full;
use net::{Client, ClientOptions};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::free_port::free_port;
use crate::lab::{Finished, Lab, Process, wait_until};

/// Hollow agents, and how often each runs: never more than wait in memory, so that none is dropped.
pub(super) const FLEET: usize = 20;
pub(super) const RUNS: usize = 8;

/// The relay's name as a node.
const RELAY: &str = "relay.example.org";

const TECHNIQUE: &str = "
name: A file with these lines
params:
  - name: path
  - name: text
items:
  - name: Text
    method: file_content
    params:
      path: ${file.path}
      lines: ${file.text}
";

/// A server's folder, what it is told, and who asks it.
pub(super) struct Site {
    pub(super) lab: Lab,
    url: String,
    relay_url: String,
    runtime: Runtime,
    server: Option<Process>,
    relay: Option<Process>,
    /// Do agents have the relay for their server?
    pub(super) behind: bool,
    /// The address of PostgreSQL, where that is the store.
    pub(super) store: Option<String>,
    /// Runs of the one real agent that the server took.
    pub(super) sent: usize,
}

impl Site {
    pub(super) fn new() -> Self {
        let lab = Lab::new();
        for folder in ["policy/techniques", "policy/directives", "policy/rules"] {
            fs::create_dir_all(lab.path(folder)).expect("a folder");
        }
        lab.write("policy/techniques/file.yml", TECHNIQUE);
        Self {
            lab,
            // It starts twice at one address, while others connect: none that systems hand out.
            url: format!("https://127.0.0.1:{}", free_port()),
            relay_url: format!("https://127.0.0.1:{}", free_port()),
            runtime: Runtime::new().expect("a runtime"),
            server: None,
            relay: None,
            behind: false,
            store: None,
            sent: 0,
        }
    }

    pub(super) fn directive(&self, name: &str, mode: &str, text: &str) {
        let text = format!(
            "technique: file\npolicyMode: {mode}\nparams:\n  path: /{name}\n  text: {text}\n"
        );
        self.lab
            .write(&format!("policy/directives/{name}.yml"), &text);
    }

    pub(super) fn rule(&self, directives: &str) {
        let text = format!("directives: [{directives}]\ntargets: [special:all]\n");
        self.lab.write("policy/rules/all.yml", &text);
    }

    fn data(&self) -> PathBuf {
        self.lab.path("server")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.lab.command();
        command.arg("compliance").args(words);
        command
    }

    /// A process that goes on; its log goes on in one file from start to start.
    fn spawn(&self, mut command: Command, log: &str) -> Process {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.lab.path(log));
        let child = command
            .args(["--log-level", "debug"])
            .stdout(log.expect("a log"))
            .stderr(Stdio::null())
            .spawn();
        Process(child.expect("headroom starts"))
    }

    pub(super) fn start(&mut self, policy: bool) {
        let address = self.url.trim_start_matches("https://");
        let mut command = self.command(&["server", "--accept", "all", "--listen", address]);
        command.arg("--data").arg(self.data());
        if let Some(store) = &self.store {
            command.args(["--store", store]);
        }
        if policy {
            command.arg("--policy").arg(self.lab.path("policy"));
        }
        self.server = Some(self.spawn(command, "server.log"));
        wait_until("the definitions to be there", || {
            self.ask("definitions")
                .is_ok_and(|found| found["version"].as_i64() >= Some(1))
        });
    }

    pub(super) fn kill(&mut self) {
        drop(self.server.take().expect("a server"));
    }

    /// A relay between the server and its agents.
    pub(super) fn start_relay(&mut self) {
        let address = self.relay_url.trim_start_matches("https://");
        let mut command = self.command(&["relay", "--hostname", RELAY, "--listen", address]);
        command.args(["--upstream", &self.url]);
        command.arg("--data").arg(self.lab.path("relay"));
        self.relay = Some(self.spawn(command, "relay.log"));
    }

    /// Has the server know the relay as one; from now on agents talk to it.
    pub(super) fn make_relay(&mut self) {
        wait_until("the relay to be a node", || {
            let mut command = self.command(&["relays", "add", RELAY]);
            command.arg("--data").arg(self.data());
            let done = command.output().expect("headroom starts");
            done.status.success()
        });
        self.behind = true;
    }

    pub(super) fn kill_relay(&mut self) {
        drop(self.relay.take().expect("a relay"));
    }

    /// Where agents send what they have.
    fn agents_server(&self) -> &str {
        if self.behind {
            &self.relay_url
        } else {
            &self.url
        }
    }

    /// Compliance of each node, rule and component, as the API tells it.
    pub(super) fn compliance(&self) -> Value {
        let all = ["compliance", "rules/compliance", "nodes/compliance?level=2"];
        let all = all.map(|path| self.ask(path).expect("compliance"));
        all.into_iter().collect()
    }

    fn ask(&self, path: &str) -> Result<Value, String> {
        let client = ApiClient::of_data(&self.data(), Some(&self.url));
        let client = client.map_err(|error| error.to_string())?;
        let data = self.runtime.block_on(client.call(Method::GET, path, None));
        data.map_err(|error| error.to_string())
    }

    pub(super) fn apply(&self) {
        let mut command = self.command(&["apply", "--yes"]);
        command.arg(self.lab.path("policy"));
        command.arg("--data").arg(self.data());
        Finished::of(command.output().expect("headroom starts")).expect_code(0);
    }

    /// One run of the agent in this folder.
    pub(super) fn once(&self, agent: &str) -> Finished {
        let mut command = self.command(&["agent", "--once", "--hostname", "real.example.org"]);
        command.args(["--server", self.agents_server()]);
        command.arg("--data").arg(self.lab.path(agent));
        command.arg("--root").arg(self.machine());
        Finished::of(command.output().expect("headroom starts"))
    }

    /// One run of the real agent; what it said.
    pub(super) fn run(&mut self) -> Finished {
        let done = self.once("agent");
        let (_, told) = done.stdout.split_once(" repaired; ").unwrap_or_default();
        let sent = told.split_once(" runs sent").map(|(sent, _)| sent.parse());
        self.sent += sent.map_or(0, |sent| sent.expect("a number"));
        done
    }

    pub(super) fn machine(&self) -> PathBuf {
        self.lab.path("machine")
    }

    pub(super) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.machine().join(name)).unwrap_or_default()
    }

    pub(super) fn node(&self) -> String {
        fs::read_to_string(self.lab.path("agent/uuid")).expect("its identity")
    }

    /// Compliance of the real node by a directive: in percent, and the last report.
    pub(super) fn shown(&self, directive: &str) -> (f64, String, String) {
        let found = self.ask(&format!("nodes/{}/compliance", self.node()));
        let found = found.expect("compliance of the node");
        let all = found["nodes"][0]["rules"][0]["directives"].as_array();
        let one = all
            .into_iter()
            .flatten()
            .find(|one| one["id"] == *directive);
        let one = one.unwrap_or_else(|| panic!("no {directive} in {found}"));
        let report = &one["components"][0]["values"][0]["reports"][0];
        let text = |name: &str| report[name].as_str().unwrap_or_default().to_owned();
        let percent = one["compliance"].as_f64().expect("a share");
        (percent, text("status"), text("message"))
    }

    /// How many runs and refused uploads the store has.
    pub(super) fn stored(&self) -> (usize, usize) {
        let found = self.ask("system/store").expect("what is kept");
        let count = |name: &str| usize::try_from(found[name].as_u64().expect("a count"));
        (count("runs").expect("few"), count("refused").expect("few"))
    }

    /// All that the fleet ever signed was acknowledged: so many runs there are, and each once.
    #[track_caller]
    pub(super) fn has_all_once(&self) {
        let [signed, taken] = ["run-signed", "run-acknowledged"].map(|event| self.of_fleet(event));
        assert_eq!(signed, taken);
        assert_eq!(self.stored(), (FLEET * RUNS + self.sent, 0));
    }

    /// The same, also after another death of the server; and what follows of it.
    #[track_caller]
    pub(super) fn keeps_all_once(&mut self) {
        self.has_all_once();
        let seen = |site: &Self| (site.shown("login"), site.shown("motd"), site.compliance());
        let before = seen(self);
        assert_eq!(before.0.1, "auditNonCompliant");
        self.kill();
        self.start(false);
        self.has_all_once();
        assert_eq!(seen(self), before, "what is kept, and what follows of it");
    }

    /// The value of a metric of the server.
    pub(super) fn metric(&self, line: &str) -> String {
        self.metric_of(&self.url, &self.data().join("server.pem"), line)
    }

    /// The value of a metric of the relay; empty as long as it does not answer.
    pub(super) fn relay_metric(&self, line: &str) -> String {
        let certificate = self.lab.path("relay/agent.pem");
        self.metric_of(&self.relay_url, &certificate, line)
    }

    fn metric_of(&self, url: &str, certificate: &Path, line: &str) -> String {
        let read = fs::read(certificate).expect("a certificate");
        let pin = ServerPin::of_pem(&read).expect("a certificate");
        let tls = trust::client(Arc::new(pin), None).expect("a client");
        let asked = async {
            let client = Client::new(ClientOptions {
                tls: Some(tls),
                ..ClientOptions::default()
            });
            let request = Request::get(format!("{url}/metrics"));
            let request = request.body(Full::new(Bytes::new())).expect("a request");
            client.request(request).await.map(|answer| answer.body)
        };
        let page = self.runtime.block_on(asked).unwrap_or_default();
        let page = String::from_utf8_lossy(&page).into_owned();
        let found = page.lines().find_map(|one| one.strip_prefix(line));
        found.unwrap_or_default().trim().to_owned()
    }

    pub(super) fn fleet(&self) -> Process {
        let (count, runs) = (FLEET.to_string(), RUNS.to_string());
        let mut command = self.command(&["agent", "--count", &count, "--runs", &runs]);
        command.args(["--interval", "1s", "--non-compliant", "10%", "--seed", "7"]);
        command.args(["--server", self.agents_server()]);
        command.arg("--data").arg(self.lab.path("fleet"));
        self.spawn(command, "fleet.log")
    }

    /// Runs that the fleet told of so.
    pub(super) fn of_fleet(&self, event: &str) -> BTreeSet<String> {
        runs(&self.lab.path("fleet.log"), event)
    }
}

/// Runs of which a log says this.
fn runs(log: &Path, event: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines = text.lines().filter(|line| line.contains(event));
    // The last line may be half written.
    let lines = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let runs = lines.filter_map(|line| line["data"]["run"].as_str().map(str::to_owned));
    runs.collect()
}
