//! What a whole server costs that a fleet talks to, over real sockets, on a real disk, each step
//! of it by the processor time and memory of the server's process alone, and of PostgreSQL's where that
//! is the store:
//!
//! `cargo run --release -p compliance --example fleet_cost -- [NODES [SAMPLE [ROUNDS [SECONDS [URL PID]]]]]`, 2,000
//! nodes, of which 200 report 5 times, then 20 s of a steady rate, without arguments. A URL is that of an empty
//! database in PostgreSQL, whose first process has the PID.
//!
//! Nodes enrol with keys of their own (P-256) and inventories of realistic sizes; then the
//! definitions of `realistic` are applied, single ones are changed, runs of the policies that
//! nodes fetch are drawn (2 % errors, 5 % repairs), signed and packed beforehand and uploaded,
//! 64 at once; as many runs as the whole fleet makes at one in five minutes are uploaded, each when it is due;
//! the REST API is asked; the server is killed and started again.

mod node;
#[path = "../realistic/mod.rs"]
mod realistic;
mod rows;
mod server;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use commit::postgres::PostgresSettings;
use compliance::client::ApiClient;
use compliance::model::attributes::{Comparator, ObjectType};
use compliance::model::query::Criterion;
use compliance::server::{Acceptance, Config};
use http::Method;
use net::Client;
use serde_json::{Value, json};
use telemetry::{Level, Logger, Sink};
use tokio::task::JoinSet;

use node::{Enrolled, Upload, client, enrolled, hostname};
use realistic::{ALONE, ALONE_TECHNIQUE, definitions, directive, group};
use server::{Server, Used};

/// Requests under way at once.
const IN_FLIGHT: usize = 64;
/// Uploads that are made before they are sent: they are held in memory.
const MADE: usize = 2_000;
/// Seconds from one run of a node to the next.
const INTERVAL: f64 = 300.0;
/// Calls of each kind to the REST API.
const CALLS: usize = 50;
/// A directive that is made over the REST API, and its rule.
const OWN: &str = "own";
/// How the child is told to be a server.
const SERVE: &str = "--serve";

type Failure = Box<dyn Error + Send + Sync>;

/// What is measured.
struct Options {
    nodes: usize,
    /// Nodes that report, and how often.
    sample: usize,
    rounds: usize,
    /// How long the steady rate lasts.
    seconds: usize,
    /// Address and first process of PostgreSQL.
    store: Option<(String, u32)>,
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    if let [serve, folder, store @ ..] = &arguments[..]
        && serve == SERVE
    {
        let (_ask, shutdown) = net::shutdown();
        let store = store.first().map(|url| PostgresSettings::at(url));
        let config = Config {
            acceptance: Acceptance::All,
            postgres: store.transpose()?,
            ..Config::new(([127, 0, 0, 1], 0).into(), folder)
        };
        let logger = Logger::new("server", Sink::nothing(), Level::Error);
        return Ok(runtime.block_on(compliance::server::run(config, logger, shutdown))?);
    }
    let number = |at: usize, usual: usize| arguments.get(at).map_or(Ok(usual), |text| text.parse());
    let nodes = number(0, 2_000)?;
    let store = match arguments.get(4..6) {
        Some([url, pid]) => Some((url.clone(), pid.parse()?)),
        _ => None,
    };
    let options = Options {
        nodes,
        sample: number(1, 200)?.min(nodes),
        rounds: number(2, 5)?,
        seconds: number(3, 20)?,
        store,
    };
    runtime.block_on(measure(options))
}

async fn measure(options: Options) -> Result<(), Failure> {
    let folder = std::env::temp_dir().join(format!("headroom-fleet-cost-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let done = measured(&folder, &options).await;
    std::fs::remove_dir_all(&folder)?;
    done
}

/// Everybody who asks.
struct Fleet {
    nodes: Vec<Arc<Enrolled>>,
    clients: Arc<Vec<Client>>,
    url: Arc<str>,
}

async fn measured(folder: &Path, options: &Options) -> Result<(), Failure> {
    let (store, database) = options.store.clone().unzip();
    let mut server = Server::start(folder, store.as_deref(), database).await?;
    println!(
        "{:<42}{:>9}{:>10}{:>10}{:>12}{:>9}{:>9}",
        "", "wall s", "cpu s", "database", "per unit", "MB", "at most"
    );
    let fleet = enrol(&server, options.nodes).await?;
    let api = ApiClient::of_data(folder, None)?;
    define_all(&server, &api, options.nodes).await?;
    let mut stored = reports(&server, &fleet, options).await?;
    if store.is_none() {
        let bytes = |name| std::fs::metadata(folder.join(name)).map(|data| data.len());
        let (database, log) = (bytes("compliance.sqlite")?, bytes("compliance.sqlite-wal")?);
        println!(
            "  the database has {:.1} MB, its log {:.1} MB",
            database as f64 / 1e6,
            log as f64 / 1e6
        );
    }
    if options.seconds > 0 {
        stored += steady(&server, &fleet, options).await?;
    }
    asked(&server, &api, &fleet.nodes[0].id).await?;

    server.kill()?;
    let start = Instant::now();
    let server = Server::start(folder, store.as_deref(), database).await?;
    let (cpu, (resident, _)) = (server.cpu()?, server.resident()?);
    println!(
        "killed and started again: {:.1} s, {cpu:.1} s of processor time, {:.0} MB",
        start.elapsed().as_secs_f64(),
        resident / 1e6
    );
    let found = ApiClient::of_data(folder, None)?;
    let found = found.call(Method::GET, "system/store", None).await?;
    println!("  it has {found}");
    if found["reports"] != json!(stored) {
        return Err(format!("{stored} reports were answered, and it has {found}").into());
    }
    Ok(())
}

async fn enrol(server: &Server, nodes: usize) -> Result<Fleet, Failure> {
    let mark = server.mark()?;
    let clients = (0..IN_FLIGHT).map(|_| client(None));
    let mut fleet = Fleet {
        nodes: Vec::with_capacity(nodes),
        clients: Arc::new(clients.collect::<Result<_, _>>()?),
        url: server.url.as_str().into(),
    };
    let enrolled = each(nodes, |number| {
        let (clients, url) = (Arc::clone(&fleet.clients), Arc::clone(&fleet.url));
        async move { enrolled(number, &clients[number % IN_FLIGHT], &url).await }
    });
    fleet.nodes = enrolled.await?.into_iter().map(Arc::new).collect();
    mark.told(server, "inventories sent and accepted", nodes, "node")?;
    Ok(fleet)
}

/// Applies all definitions, then two that differ by little.
async fn define_all(server: &Server, api: &ApiClient, nodes: usize) -> Result<(), Failure> {
    let mark = server.mark()?;
    let one = Criterion::new(
        ObjectType::Node,
        "nodeHostname",
        Comparator::Eq,
        hostname(nodes / 2),
    );
    let mut all = definitions(one);
    let took = define(api, &json!(all)).await?;
    mark.told(server, "definitions applied, policies made", nodes, "node")?;
    println!("  by the server's own clock {:.1} s", took / 1e3);

    let changed = directive(ALONE, ALONE_TECHNIQUE, "second");
    all.directives.insert(ALONE.into(), changed);
    let mark = server.mark()?;
    let took = define(api, &json!(all)).await?;
    mark.told(server, "a directive of one node", 1, "change")?;
    println!("  by the server's own clock {took:.1} ms");

    edited(server, api).await?;

    let ubuntu = Criterion::new(ObjectType::Node, "osName", Comparator::Eq, "Ubuntu");
    let changed = group("group7", vec![ubuntu]);
    all.groups.insert(changed.id.clone(), changed);
    let mark = server.mark()?;
    let took = define(api, &json!(all)).await?;
    mark.told(server, "the query of a group", 1, "change")?;
    println!("  by the server's own clock {took:.1} ms");
    Ok(())
}

/// Changes a directive of one node over the REST API, again and again.
async fn edited(server: &Server, api: &ApiClient) -> Result<(), Failure> {
    let own = |value: usize| {
        let directive = json!(directive(OWN, ALONE_TECHNIQUE, &format!("value {value}")));
        json!({"parameters": directive["parameters"]})
    };
    let mut made = own(0);
    for (field, value) in [
        ("id", OWN),
        ("displayName", OWN),
        ("techniqueName", &format!("t{ALONE_TECHNIQUE}")),
        ("techniqueVersion", "1.0"),
    ] {
        made[field] = value.into();
    }
    api.call(Method::PUT, "directives", Some(&made)).await?;
    let rule =
        json!({"id": OWN, "displayName": OWN, "directives": [OWN], "targets": ["group:one"]});
    api.call(Method::PUT, "rules", Some(&rule)).await?;
    let mark = server.mark()?;
    let (path, mut latencies) = (format!("directives/{OWN}"), Vec::new());
    for change in 1..=CALLS {
        let start = Instant::now();
        api.call(Method::POST, &path, Some(&own(change))).await?;
        latencies.push(start.elapsed());
    }
    mark.told(server, "changes of a directive of one node", CALLS, "call")?;
    println!("  answered within {}", percentiles(&mut latencies));
    Ok(())
}

/// Uploads runs as fast as they are answered; says how many reports they had.
async fn reports(server: &Server, fleet: &Fleet, options: &Options) -> Result<u64, Failure> {
    let all: Vec<(usize, usize)> = (0..options.rounds)
        .flat_map(|round| (0..options.sample).map(move |node| (node, round)))
        .collect();
    let (mut sum, mut bytes, mut latencies) = (0, 0, Vec::with_capacity(all.len()));
    let mut used = Used::default();
    for part in all.chunks(MADE) {
        let uploads = fleet.made(part).await?;
        sum += uploads.iter().map(|upload| upload.reports).sum::<u64>();
        bytes += uploads
            .iter()
            .map(|upload| upload.body.len())
            .sum::<usize>();
        let mark = server.mark()?;
        let sent = each(uploads.len(), |number| {
            let (clients, upload) = (Arc::clone(&fleet.clients), Arc::clone(&uploads[number]));
            let url = Arc::clone(&fleet.url);
            async move {
                let start = Instant::now();
                upload.send(&clients[number % IN_FLIGHT], &url).await?;
                Ok(start.elapsed())
            }
        });
        latencies.extend(sent.await?);
        used += mark.used(server)?;
    }
    used.told(server, "reports", sum, "report")?;
    println!(
        "  {:.0} reports/s; {:.0} reports a run, {:.1} kB packed; answered within {}",
        sum as f64 / used.wall,
        sum as f64 / all.len() as f64,
        bytes as f64 / all.len() as f64 / 1e3,
        percentiles(&mut latencies)
    );
    Ok(sum)
}

/// Uploads runs when they are due, as many a second as the whole fleet makes; says how many reports
/// they had.
async fn steady(server: &Server, fleet: &Fleet, options: &Options) -> Result<u64, Failure> {
    let rate = options.nodes as f64 / INTERVAL;
    let count = (rate * options.seconds as f64).ceil() as usize;
    let wanted: Vec<_> = (0..count)
        .map(|number| {
            (
                number % options.sample,
                options.rounds + number / options.sample,
            )
        })
        .collect();
    let uploads = fleet.made(&wanted).await?;
    let sum: u64 = uploads.iter().map(|upload| upload.reports).sum();
    let mark = server.mark()?;
    let begin = tokio::time::Instant::now();
    let mut running = JoinSet::new();
    for (number, upload) in uploads.into_iter().enumerate() {
        let due = begin + Duration::from_secs_f64(number as f64 / rate);
        tokio::time::sleep_until(due).await;
        let (clients, url) = (Arc::clone(&fleet.clients), Arc::clone(&fleet.url));
        running.spawn(async move {
            upload.send(&clients[number % IN_FLIGHT], &url).await?;
            Ok::<_, Failure>(due.elapsed())
        });
    }
    let mut lags = Vec::with_capacity(count);
    while let Some(ended) = running.join_next().await {
        lags.push(ended??);
    }
    tokio::time::sleep_until(begin + Duration::from_secs_f64(count as f64 / rate)).await;
    let used = mark.used(server)?;
    used.told(server, "reports at a steady rate", sum, "report")?;
    println!(
        "  {:.0} reports/s: the server {:.3} cores, the database {:.3} cores; in the compliance of the fleet {}",
        sum as f64 / used.wall,
        used.cpu / used.wall,
        used.database / used.wall,
        percentiles(&mut lags)
    );
    Ok(sum)
}

/// Asks the REST API.
async fn asked(server: &Server, api: &ApiClient, node: &str) -> Result<(), Failure> {
    let tree = format!("nodes/{node}/compliance");
    for (what, path) in [
        ("global compliance", "compliance"),
        ("the tree of a node", &*tree),
    ] {
        let mark = server.mark()?;
        let mut latencies = Vec::new();
        for _ in 0..CALLS {
            let start = Instant::now();
            api.call(Method::GET, path, None).await?;
            latencies.push(start.elapsed());
        }
        mark.told(server, what, CALLS, "call")?;
        println!("  answered within {}", percentiles(&mut latencies));
    }
    Ok(())
}

impl Fleet {
    /// Runs of these nodes, each in this round of its.
    async fn made(&self, wanted: &[(usize, usize)]) -> Result<Vec<Arc<Upload>>, Failure> {
        each(wanted.len(), |number| {
            let (node, round) = wanted[number];
            let (node, url) = (Arc::clone(&self.nodes[node]), Arc::clone(&self.url));
            async move {
                let policy = node.policy(&url).await?;
                Ok(Arc::new(node.upload(&policy, round)?))
            }
        })
        .await
    }
}

/// Does `count` of something, so many at once that the server is never without work; what comes
/// of it is in no order.
async fn each<T, F>(count: usize, start: impl Fn(usize) -> F) -> Result<Vec<T>, Failure>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let (mut running, mut done) = (JoinSet::new(), Vec::with_capacity(count));
    for number in 0..count {
        if running.len() >= IN_FLIGHT
            && let Some(ended) = running.join_next().await
        {
            done.push(ended??);
        }
        running.spawn(start(number));
    }
    while let Some(ended) = running.join_next().await {
        done.push(ended??);
    }
    Ok(done)
}

async fn define(api: &ApiClient, all: &Value) -> Result<f64, Failure> {
    let now = api.call(Method::GET, "definitions", None).await?;
    let path = format!("definitions?base={}", now["version"]);
    let done = api.call(Method::PUT, &path, Some(all)).await?;
    let took = done["plan"]["milliseconds"].as_f64();
    took.ok_or_else(|| "the answer has no plan".into())
}

fn percentiles(all: &mut [Duration]) -> String {
    all.sort_unstable();
    let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    format!(
        "{:.2} ms (p50), {:.2} ms (p99), {:.2} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    )
}
