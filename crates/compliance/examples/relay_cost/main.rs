//! What a relay between nodes and the server costs: the same nodes upload runs to the server and over a relay, in
//! turn, over real sockets and on a real disk. A run that goes over the relay counts when the server has it.
//!
//! `cargo run --release -p compliance --example relay_cost -- [NODES [PAIRS]]`, 200 nodes and 9 pairs without
//! arguments. Server and relay are processes of their own; all runs of 1,110 reports are signed and packed beforehand,
//! and 64 uploads are under way at once. In the end the server must have every report that was answered, once.

#[path = "../fleet_cost/node.rs"]
mod node;
#[path = "../realistic/mod.rs"]
mod realistic;
#[path = "../fleet_cost/server.rs"]
mod server;

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use compliance::client::ApiClient;
use compliance::model::attributes::{Comparator, ObjectType};
use compliance::model::query::Criterion;
use compliance::relay;
use compliance::server::{Acceptance, Config};
use http::{Method, Request};
use http_body_util::Full;
use net::Client;
use serde_json::json;
use telemetry::{Level, Logger, Sink};
use tokio::task::JoinSet;

use node::{Enrolled, Upload, client, enrolled, hostname};
use realistic::definitions;
use server::{Server, Used};

/// Uploads under way at once.
const IN_FLIGHT: usize = 64;
/// How the child is told to be a server.
const SERVE: &str = "--serve";
/// How it is told to be a relay.
const RELAY: &str = "--relay";
/// Longest wait for anything that is to come.
const PATIENCE: Duration = Duration::from_secs(120);
/// From one look to the next.
const LOOK: Duration = Duration::from_millis(5);

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let logger = || Logger::new("relay_cost", Sink::nothing(), Level::Error);
    let (_ask, shutdown) = net::shutdown();
    match &arguments[..] {
        [serve, folder] if serve == SERVE => {
            let config = Config {
                acceptance: Acceptance::All,
                ..Config::new(([127, 0, 0, 1], 0).into(), folder)
            };
            Ok(runtime.block_on(compliance::server::run(config, logger(), shutdown))?)
        }
        [relays, folder, upstream] if relays == RELAY => {
            let config = relay::Config {
                refresh: Duration::from_millis(500),
                ..relay::Config::new(([127, 0, 0, 1], 0).into(), folder, upstream)
            };
            Ok(runtime.block_on(relay::run(config, logger(), shutdown))?)
        }
        _ => {
            let number =
                |at: usize, usual: usize| arguments.get(at).map_or(Ok(usual), |text| text.parse());
            let (nodes, pairs) = (number(0, 200)?.max(1), number(1, 9)?.max(1));
            let folder = std::env::temp_dir().join(format!("relay-cost-{}", std::process::id()));
            std::fs::create_dir_all(&folder)?;
            let done = runtime.block_on(measured(&folder, nodes, pairs));
            std::fs::remove_dir_all(&folder)?;
            done
        }
    }
}

/// The two ways of a run to the server.
struct Ways {
    server: Server,
    relay: Server,
    /// Each trusts the key that it saw first: some talk to the server, others to the relay.
    direct: Vec<Client>,
    over: Vec<Client>,
}

/// What a run of each node took on one way.
struct Leg {
    reports: f64,
    /// Seconds from the first upload until all were answered.
    answered: f64,
    /// The server's, until it had them.
    whole: Used,
    /// Seconds of processor time of the relay.
    relay: f64,
}

async fn measured(folder: &Path, nodes: usize, pairs: usize) -> Result<(), Failure> {
    let server = Server::start(folder, None, None).await?;
    let api = ApiClient::of_data(folder, None)?;
    let at_relay = folder.join("relay-node");
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(RELAY).arg(&at_relay).arg(&server.url);
    let address = at_relay.join(relay::files::ADDRESS);
    let relay = Server::told_in(&address, &mut command, None).await?;
    let clients = || (0..IN_FLIGHT).map(|_| client(None)).collect();
    let (direct, over): (Result<_, Failure>, Result<_, Failure>) = (clients(), clients());
    let ways = Ways {
        server,
        relay,
        direct: direct?,
        over: over?,
    };
    let id = std::fs::read_to_string(at_relay.join("uuid"))?;
    let fleet = ways.behind(&api, id.trim(), nodes).await?;

    let (mut direct, mut over) = (Vec::new(), Vec::new());
    for round in 0..2 * pairs {
        // Whoever is first in a pair is second in the next.
        let relayed = [false, true, true, false][round % 4];
        let uploads = ways.made(&fleet, round).await?;
        let leg = ways.sent(uploads, relayed).await?;
        if relayed { &mut over } else { &mut direct }.push(leg);
    }
    told(&direct, &over);
    let all = direct.iter().chain(&over);
    let sum: f64 = all.map(|leg| leg.reports).sum();
    let kept = api.call(Method::GET, "system/store", None).await?;
    let kept = kept["reports"].as_f64();
    println!("{sum} reports were answered, and the server has {kept:?}");
    match kept == Some(sum) {
        true => Ok(()),
        false => Err("it should have all of them, once".into()),
    }
}

/// Each row: the middle of all pairs, and the middle half.
fn told(direct: &[Leg], over: &[Leg]) {
    let row = |name: &str, of: &dyn Fn(&Leg, &Leg) -> f64| {
        let pairs = direct.iter().zip(over);
        let mut all: Vec<f64> = pairs.map(|(direct, over)| of(direct, over)).collect();
        all.sort_by(f64::total_cmp);
        let at = |share: f64| all[((all.len() - 1) as f64 * share).round() as usize];
        let (least, middle, most) = (at(0.25), at(0.5), at(0.75));
        println!("{name:<44}{middle:>12.3}{least:>12.3}{most:>12.3}");
    };
    row("direct: reports/s", &|direct, _| {
        direct.reports / direct.whole.wall
    });
    row("relay: reports/s answered", &|_, over| {
        over.reports / over.answered
    });
    row("relay: reports/s at the server", &|_, over| {
        over.reports / over.whole.wall
    });
    row("direct: us a report, server", &|direct, _| {
        direct.whole.cpu / direct.reports * 1e6
    });
    row("relay: us a report, server", &|_, over| {
        over.whole.cpu / over.reports * 1e6
    });
    row("relay: us a report, relay", &|_, over| {
        over.relay / over.reports * 1e6
    });
    row("ratio of reports/s", &|direct, over| {
        (over.reports / over.whole.wall) / (direct.reports / direct.whole.wall)
    });
    row("ratio of processor time, both", &|direct, over| {
        ((over.whole.cpu + over.relay) / over.reports) / (direct.whole.cpu / direct.reports)
    });
    row("ratio of processor time, server", &|direct, over| {
        (over.whole.cpu / over.reports) / (direct.whole.cpu / direct.reports)
    });
}

impl Ways {
    /// Nodes behind the relay, which have policies and are known to it.
    async fn behind(
        &self,
        api: &ApiClient,
        relay: &str,
        nodes: usize,
    ) -> Result<Vec<Enrolled>, Failure> {
        let kind = json!({"kind": "relay"});
        let path = format!("nodes/{relay}");
        let until = Instant::now() + PATIENCE;
        while let Err(error) = api.call(Method::POST, &path, Some(&kind)).await {
            // Its inventory is on its way.
            if Instant::now() > until {
                return Err(format!("make the node a relay: {error}").into());
            }
            tokio::time::sleep(LOOK).await;
        }
        let place = json!({"policyServerId": relay});
        let mut fleet = Vec::with_capacity(nodes);
        for number in 0..nodes {
            let one = enrolled(number, &self.direct[0], &self.server.url).await?;
            let path = format!("nodes/{}", one.id);
            api.call(Method::POST, &path, Some(&place)).await?;
            fleet.push(one);
        }
        let one = Criterion::new(
            ObjectType::Node,
            "nodeHostname",
            Comparator::Eq,
            hostname(nodes / 2),
        );
        let now = api.call(Method::GET, "definitions", None).await?;
        let path = format!("definitions?base={}", now["version"]);
        let all = json!(definitions(one));
        api.call(Method::PUT, &path, Some(&all)).await?;
        self.until("rudder_relayd_managed_nodes_total", |count| count >= nodes)
            .await?;
        Ok(fleet)
    }

    /// Waits until a metric of the relay is so.
    async fn until(&self, name: &str, is: impl Fn(usize) -> bool) -> Result<(), Failure> {
        let peer = client(None)?;
        let until = Instant::now() + PATIENCE;
        loop {
            let request = Request::get(format!("{}/metrics", self.relay.url));
            let answer = peer.request(request.body(Full::default())?).await?;
            let page = String::from_utf8_lossy(&answer.body).into_owned();
            let mut lines = page.lines().filter_map(|line| line.strip_prefix(name));
            let value: Option<usize> = lines.find_map(|rest| rest.trim().parse().ok());
            match value {
                Some(value) if is(value) => return Ok(()),
                _ if Instant::now() > until => {
                    return Err(format!("the relay tells {name} {value:?}").into());
                }
                _ => tokio::time::sleep(LOOK).await,
            }
        }
    }

    /// A run of each node.
    async fn made(&self, fleet: &[Enrolled], round: usize) -> Result<Vec<Upload>, Failure> {
        let mut made = Vec::with_capacity(fleet.len());
        for node in fleet {
            let policy = node.policy(&self.server.url).await?;
            made.push(node.upload(&policy, round)?);
        }
        Ok(made)
    }

    /// Uploads runs on one of the ways, until the server has them.
    async fn sent(&self, uploads: Vec<Upload>, relayed: bool) -> Result<Leg, Failure> {
        let reports: u64 = uploads.iter().map(|upload| upload.reports).sum();
        let (to, peers) = match relayed {
            true => (&self.relay, &self.over),
            false => (&self.server, &self.direct),
        };
        let url: Arc<str> = to.url.as_str().into();
        let (mark, relay) = (self.server.mark()?, self.relay.cpu()?);
        let begin = Instant::now();
        let mut running = JoinSet::new();
        for (number, upload) in uploads.into_iter().enumerate() {
            if running.len() >= IN_FLIGHT
                && let Some(ended) = running.join_next().await
            {
                ended??;
            }
            let (peer, url) = (peers[number % IN_FLIGHT].clone(), Arc::clone(&url));
            running.spawn(async move { upload.send(&peer, &url).await });
        }
        while let Some(ended) = running.join_next().await {
            ended??;
        }
        let answered = begin.elapsed().as_secs_f64();
        if relayed {
            self.until("compliance_relay_spool_items", |count| count == 0)
                .await?;
        }
        Ok(Leg {
            reports: reports as f64,
            answered,
            whole: mark.used(&self.server)?,
            relay: self.relay.cpu()? - relay,
        })
    }
}
