//! What a whole server costs that a fleet talks to, over real sockets, on a real disk, each step
//! of it by the processor time and memory of the server's process alone:
//!
//! `cargo run --release -p compliance --example fleet_cost -- [NODES [SAMPLE [ROUNDS]]]`, 2,000
//! nodes, of which 200 report 5 times, without arguments.
//!
//! Nodes enrol with keys of their own (P-256) and inventories of realistic sizes; then the
//! definitions of `realistic` are applied, single ones are changed, runs of the policies that
//! nodes fetch are drawn (2 % errors, 5 % repairs), signed and packed beforehand and uploaded,
//! 64 at once; the REST API is asked; the server is killed and started again.

mod realistic;

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use compliance::agent::{self, AgentPolicy, Hollow, Rates, RunSettings};
use compliance::client::ApiClient;
use compliance::inventory::{InventorySignature, hollow, write};
use compliance::model::attributes::{Comparator, ObjectType};
use compliance::model::query::Criterion;
use compliance::reports::moment::Moment;
use compliance::reports::signature::{NodeCertificate, SigningKey, sign};
use compliance::server::{self, Acceptance, Config};
use compliance::trust::{self, Identity, ServerPin};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::{Method, Request};
use http_body_util::Full;
use jiff::Timestamp;
use net::{Answer, Client, ClientOptions};
use serde_json::{Value, json};
use telemetry::{Level, Logger, Sink};
use tokio::task::JoinSet;

use realistic::{ALONE, ALONE_TECHNIQUE, definitions, directive, group};

/// Requests under way at once.
const IN_FLIGHT: usize = 64;
/// How the child is told to be a server.
const SERVE: &str = "--serve";

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    if let [serve, folder] = &arguments[..]
        && serve == SERVE
    {
        let (_ask, shutdown) = net::shutdown();
        let config = Config {
            acceptance: Acceptance::All,
            ..Config::new(([127, 0, 0, 1], 0).into(), folder)
        };
        let logger = Logger::new("server", Sink::nothing(), Level::Error);
        return Ok(runtime.block_on(server::run(config, logger, shutdown))?);
    }
    let number = |at: usize, usual: usize| arguments.get(at).map_or(Ok(usual), |text| text.parse());
    let (nodes, sample, rounds) = (number(0, 2_000)?, number(1, 200)?, number(2, 5)?);
    runtime.block_on(measure(nodes, sample.min(nodes), rounds))
}

async fn measure(nodes: usize, sample: usize, rounds: usize) -> Result<(), Failure> {
    let folder = std::env::temp_dir().join(format!("headroom-fleet-cost-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let done = measured(&folder, nodes, sample, rounds).await;
    std::fs::remove_dir_all(&folder)?;
    done
}

async fn measured(
    folder: &Path,
    nodes: usize,
    sample: usize,
    rounds: usize,
) -> Result<(), Failure> {
    let mut server = Server::start(folder).await?;
    println!(
        "{:<42}{:>9}{:>10}{:>12}{:>9}",
        "", "wall s", "cpu s", "per unit", "MB"
    );

    let mark = server.mark()?;
    let clients: Arc<Vec<Client>> = Arc::new(
        (0..IN_FLIGHT)
            .map(|_| client(None))
            .collect::<Result<_, _>>()?,
    );
    let mut fleet = Vec::with_capacity(nodes);
    each(IN_FLIGHT, nodes, |number| {
        let (clients, url) = (Arc::clone(&clients), server.url.clone());
        async move { enrolled(number, &clients[number % IN_FLIGHT], &url).await }
    })
    .await?
    .into_iter()
    .for_each(|one| fleet.push(one));
    let api = ApiClient::of_data(folder, None)?;
    mark.told(&server, "inventories sent and accepted", nodes, "node")?;

    let mark = server.mark()?;
    let one = Criterion::new(
        ObjectType::Node,
        "nodeHostname",
        Comparator::Eq,
        hostname(nodes / 2),
    );
    let mut all = definitions(one);
    let took = define(&api, &json!(all)).await?;
    mark.told(&server, "definitions applied, policies made", nodes, "node")?;
    println!("  by the server's own clock {:.1} s", took / 1e3);

    for (what, change) in [("a directive of one node", 0), ("the query of a group", 1)] {
        match change {
            0 => drop(
                all.directives
                    .insert(ALONE.into(), directive(ALONE, ALONE_TECHNIQUE, "second")),
            ),
            _ => {
                let ubuntu = Criterion::new(ObjectType::Node, "osName", Comparator::Eq, "Ubuntu");
                let group = group("group7", vec![ubuntu]);
                drop(all.groups.insert(group.id.clone(), group));
            }
        }
        let mark = server.mark()?;
        let took = define(&api, &json!(all)).await?;
        mark.told(&server, what, 1, "change")?;
        println!("  by the server's own clock {took:.1} ms");
    }

    let mut calls = 0;
    let mut uploads = Vec::new();
    for node in fleet.iter().take(sample) {
        let policy = policy(node, &server.url).await?;
        for round in 0..rounds {
            let (count, upload) = upload(node, &policy, round)?;
            calls = count;
            uploads.push(upload);
        }
    }
    let bytes: usize = uploads.iter().map(|(_, body)| body.len()).sum();
    println!(
        "a run: {calls} reports, {:.1} kB packed",
        bytes as f64 / uploads.len() as f64 / 1e3
    );
    let database = || std::fs::metadata(folder.join("compliance.sqlite")).map(|data| data.len());
    let before = database()?;
    let count = uploads.len();
    let uploads = Arc::new(uploads);
    let mark = server.mark()?;
    let mut latencies = each(IN_FLIGHT, count, |number| {
        let (clients, uploads) = (Arc::clone(&clients), Arc::clone(&uploads));
        let url = server.url.clone();
        async move {
            let (name, body) = &uploads[number];
            let start = Instant::now();
            let answer = put(
                &clients[number % IN_FLIGHT],
                &format!("{url}/reports/{name}"),
                body.clone(),
            )
            .await?;
            match answer.status.as_u16() {
                201 => Ok(start.elapsed()),
                status => Err(format!("an upload was answered {status}").into()),
            }
        }
    })
    .await?;
    mark.told(&server, "reports", count * calls, "report")?;
    println!("  answered within {}", percentiles(&mut latencies));
    println!(
        "  the database grows by {:.1} kB a run",
        (database()?.saturating_sub(before)) as f64 / count as f64 / 1e3
    );

    let one = format!("nodes/{}/compliance", fleet[0].id);
    for (what, path) in [
        ("global compliance", "compliance"),
        ("the tree of a node", &*one),
    ] {
        let mark = server.mark()?;
        let mut latencies = Vec::new();
        for _ in 0..50 {
            let start = Instant::now();
            api.call(Method::GET, path, None).await?;
            latencies.push(start.elapsed());
        }
        mark.told(&server, what, 50, "call")?;
        println!("  answered within {}", percentiles(&mut latencies));
    }
    drop(uploads);

    server.kill()?;
    let start = Instant::now();
    let server = Server::start(folder).await?;
    let (cpu, resident) = (server.cpu()?, server.resident()?);
    println!(
        "killed and started again: {:.1} s, {cpu:.1} s of processor time, {:.0} MB",
        start.elapsed().as_secs_f64(),
        resident / 1e6
    );
    let stored = ApiClient::of_data(folder, None)?;
    let stored = stored.call(Method::GET, "system/store", None).await?;
    println!("  it has {stored}");
    if stored["runs"] != json!(count) {
        return Err(format!("{count} runs were answered, and it has {stored}").into());
    }
    Ok(())
}

/// Does `count` of something, so many at once.
async fn each<T, F>(
    at_once: usize,
    count: usize,
    start: impl Fn(usize) -> F,
) -> Result<Vec<T>, Failure>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let (mut running, mut done) = (JoinSet::new(), Vec::with_capacity(count));
    for number in 0..count {
        if running.len() >= at_once
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

/// A node that is known to the server.
struct Enrolled {
    id: String,
    identity: Identity,
    key: SigningKey,
    certificate: NodeCertificate,
}

fn hostname(number: usize) -> String {
    format!("srv-{number:05}.dc{}.example.org", number % 7)
}

async fn enrolled(number: usize, client: &Client, url: &str) -> Result<Enrolled, Failure> {
    let id = format!("{:08x}-0000-4000-8000-{number:012x}", number * 7_919);
    let identity = Identity::make(Some(&id), &[])?;
    let key = SigningKey::from_pem(identity.key.as_bytes())?;
    let certificate = NodeCertificate::from_pem(identity.certificate.as_bytes())?;
    let now = Timestamp::now();
    let (hostname, pem) = (hostname(number), &identity.certificate);
    let mut facts = hollow::node(number as u64, &id, &hostname, "root", pem, now);
    facts.node.properties = realistic::properties(number, "1");
    let xml = write(&facts);
    let date = now.to_string();
    let signature = InventorySignature::sign(xml.as_bytes(), &key, &certificate, &hostname, &date)?;
    let path = format!("{url}/inventories/{id}.ocs");
    put(client, &format!("{path}.sign"), signature.to_file().into()).await?;
    let answer = put(client, &format!("{path}.gz"), packed(xml.as_bytes())?).await?;
    if answer.status.as_u16() != 201 {
        return Err(format!("an inventory was answered {}", answer.status).into());
    }
    Ok(Enrolled {
        id,
        identity,
        key,
        certificate,
    })
}

/// The policy of a node, as its agent reads it.
async fn policy(node: &Enrolled, url: &str) -> Result<AgentPolicy, Failure> {
    let client = client(Some(&node.identity))?;
    let request = Request::get(format!("{url}/policies/{}/rules/policy.json.gz", node.id));
    let answer = client.request(request.body(Full::default())?).await?;
    let json = std::io::read_to_string(GzDecoder::new(&answer.body[..]))?;
    Ok(AgentPolicy::from_json(&json, json.len())?)
}

/// Draws a run, signs and packs it: how many reports it has, the name of its file, and the file.
fn upload(
    node: &Enrolled,
    policy: &AgentPolicy,
    round: usize,
) -> Result<(usize, (String, Bytes)), Failure> {
    let rates = Rates {
        error: 0.02,
        repaired: 0.05,
        ..Rates::NONE
    };
    let mut methods = Hollow::new(rates, node.id.len() as u64, round as u64)?;
    let now = Timestamp::now().as_second() - 600 + round as i64;
    let start = Moment::utc(Timestamp::from_second(now)?);
    let settings = RunSettings::default();
    let outcome = agent::run(policy, &mut methods, &settings, start, || Duration::ZERO);
    let signed = sign(
        outcome.log.as_bytes(),
        &node.key,
        &node.certificate,
        Timestamp::now(),
    )?;
    let name = format!("{}.gz", outcome.info.file_name());
    let calls: u64 = outcome.counts.iter().sum();
    Ok((usize::try_from(calls)?, (name, packed(&signed)?)))
}

async fn define(api: &ApiClient, all: &Value) -> Result<f64, Failure> {
    let now = api.call(Method::GET, "definitions", None).await?;
    let path = format!("definitions?base={}", now["version"]);
    let done = api.call(Method::PUT, &path, Some(all)).await?;
    let took = done["plan"]["milliseconds"].as_f64();
    took.ok_or_else(|| "the answer has no plan".into())
}

fn packed(bytes: &[u8]) -> Result<Bytes, Failure> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.into())
}

fn client(identity: Option<&Identity>) -> Result<Client, Failure> {
    let tls = trust::client(Arc::new(ServerPin::default()), identity)?;
    Ok(Client::new(ClientOptions {
        connections_per_host: 1,
        answer_within: Duration::from_secs(600),
        tls: Some(tls),
        ..ClientOptions::default()
    }))
}

async fn put(client: &Client, url: &str, body: Bytes) -> Result<Answer, Failure> {
    let request = Request::put(url).body(Full::new(body))?;
    Ok(client.request(request).await?)
}

fn percentiles(all: &mut [Duration]) -> String {
    all.sort_unstable();
    let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    format!(
        "{:.1} ms (p50), {:.1} ms (p99), {:.1} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    )
}

/// The server, a process of its own.
struct Server {
    child: Child,
    url: String,
}

/// What the server had used at some moment.
struct Mark {
    at: Instant,
    cpu: f64,
}

impl Server {
    async fn start(folder: &Path) -> Result<Self, Failure> {
        let address = folder.join(server::files::ADDRESS);
        let _ = std::fs::remove_file(&address);
        let child = Command::new(std::env::current_exe()?)
            .arg(SERVE)
            .arg(folder)
            .spawn()?;
        let mut server = Self {
            child,
            url: String::new(),
        };
        while server.url.is_empty() {
            if let Some(status) = server.child.try_wait()? {
                return Err(format!("the server ended with {status}").into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            server.url = std::fs::read_to_string(&address).unwrap_or_default();
        }
        Ok(server)
    }

    fn kill(&mut self) -> Result<(), Failure> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    fn stat(&self, file: &str) -> Result<String, Failure> {
        let path = format!("/proc/{}/{file}", self.child.id());
        Ok(std::fs::read_to_string(path)?)
    }

    /// Seconds of processor time, user and system, in hundredths.
    fn cpu(&self) -> Result<f64, Failure> {
        let stat = self.stat("stat")?;
        let after = stat.rsplit(')').next().unwrap_or_default();
        let fields: Vec<&str> = after.split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).map_or(Ok(0.0), |text| text.parse::<f64>());
        Ok((ticks(11)? + ticks(12)?) / 100.0)
    }

    /// Bytes of memory.
    fn resident(&self) -> Result<f64, Failure> {
        let stat = self.stat("statm")?;
        let pages: f64 = stat.split(' ').nth(1).unwrap_or_default().parse()?;
        Ok(pages * 4_096.0)
    }

    fn mark(&self) -> Result<Mark, Failure> {
        let (at, cpu) = (Instant::now(), self.cpu()?);
        Ok(Mark { at, cpu })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.kill();
    }
}

impl Mark {
    fn told(self, server: &Server, what: &str, units: usize, unit: &str) -> Result<(), Failure> {
        let (wall, cpu) = (self.at.elapsed().as_secs_f64(), server.cpu()? - self.cpu);
        let each = cpu / units as f64;
        let each = match each {
            each if each < 1e-3 => format!("{:.2} µs", each * 1e6),
            each => format!("{:.2} ms", each * 1e3),
        };
        println!(
            "{:<42}{wall:>9.2}{cpu:>10.2}{each:>12}{:>9.0}",
            format!("{units} {what}, by {unit}"),
            server.resident()? / 1e6,
        );
        Ok(())
    }
}
