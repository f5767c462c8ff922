//! Measures the BBS over loopback HTTP: calls per second, and the server's own CPU
//! time per call, which a generator on the same machine does not falsify.
//!
//! `bbs_bench [calls] [processes]`: calls per kind, and processes of the bulk part.
//! `bbs_bench encryption [calls] [rounds]`: what encryption costs, on two servers by turns.

mod encryption;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cells::bbs::{self, Config};
use diego::{models, path};
use http::{Request, Response, StatusCode};
use net::{Body, Handler, Incoming};
use prost::Message;
use telemetry::{Level, Logger, Sink};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const IN_FLIGHT: usize = 32;
const SUBSCRIBERS: usize = 1000;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Runtime::new()?;
    if let [serve, folder, auctioneer, keys @ ..] = &arguments[..]
        && serve == "serve"
    {
        let keys = keys.first().map(Path::new);
        return runtime.block_on(serve_bbs(Path::new(folder), auctioneer, keys));
    }
    let encryption = arguments.first().is_some_and(|first| first == "encryption");
    let arguments = &arguments[usize::from(encryption)..];
    let number = |at: usize, usual: usize| {
        arguments
            .get(at)
            .map_or(Ok(usual), |text| text.parse::<usize>())
    };
    runtime.block_on(async {
        let listener = net::bind("127.0.0.1:0".parse()?).await?;
        let auctioneer = format!("http://{}", listener.local_addr()?);
        let (_stop, asked) = net::shutdown();
        let serve = net::serve(
            listener,
            None,
            net::Limits::default(),
            Arc::new(Auctioneer),
            asked,
        );
        tokio::spawn(serve);
        match encryption {
            true => encryption::compare(&auctioneer, number(0, 5000)?, number(1, 15)?).await,
            false => measure(&auctioneer, number(0, 20_000)?, number(1, 200_000)?).await,
        }
    })
}

async fn serve_bbs(folder: &Path, auctioneer: &str, keys: Option<&Path>) -> Result<(), Failure> {
    let mut config = Config::new("127.0.0.1:0".parse()?, folder);
    config.encryption = keys.map(bbs::EncryptionKeys::read).transpose()?;
    config.auctioneer_url = Some(auctioneer.to_owned());
    // Lines are made and written, as in service, but to nowhere.
    let log = std::fs::File::options().write(true).open("/dev/null")?;
    let running = bbs::start(config, Logger::new("bbs", Sink::to(log)?, Level::Info)).await?;
    std::fs::write(folder.join("address.new"), running.address().to_string())?;
    std::fs::rename(folder.join("address.new"), folder.join("address"))?;
    std::future::pending().await
}

/// Accepts every auction.
struct Auctioneer;

impl Handler for Auctioneer {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let body = net::read_body(request.into_body(), 64 << 20, Duration::from_secs(9)).await;
        let mut response = Response::new(net::empty());
        let status = if body.is_ok() {
            StatusCode::ACCEPTED
        } else {
            StatusCode::BAD_REQUEST
        };
        *response.status_mut() = status;
        response
    }
}

struct Server {
    child: Child,
    address: String,
}

impl Server {
    async fn start(folder: &Path, auctioneer: &str, keys: Option<&Path>) -> Result<Self, Failure> {
        let file = folder.join("address");
        let _ = std::fs::remove_file(&file);
        let child = Command::new(std::env::current_exe()?)
            .args(["serve", &folder.display().to_string(), auctioneer])
            .args(keys)
            .stdin(Stdio::null())
            .spawn()?;
        let start = Instant::now();
        while !file.exists() && start.elapsed() < Duration::from_secs(120) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let address = std::fs::read_to_string(&file)?;
        println!("server starts in {:?}", start.elapsed());
        Ok(Self { child, address })
    }

    /// CPU time of all its threads, in seconds.
    fn cpu(&self) -> Result<f64, Failure> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields = stat.rsplit(") ").next().unwrap_or_default();
        let ticks: Vec<f64> = fields
            .split(' ')
            .filter_map(|field| field.parse().ok())
            .collect();
        // After the state letter come numbers; 11 and 12 are user and system time.
        Ok(ticks
            .get(10..12)
            .map_or(0.0, |both| both.iter().sum::<f64>())
            / 100.0)
    }

    fn rss_mb(&self) -> Result<u64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap_or_default();
        let kilobytes = line
            .split_whitespace()
            .nth(1)
            .unwrap_or("0")
            .parse::<u64>()?;
        Ok(kilobytes / 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: bbs\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// One connection that asks and reads whole answers.
struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(address: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: vec![0; 256 * 1024],
        })
    }

    /// Sends a request and returns the number of bytes of the answer's body, and
    /// the first of them.
    async fn ask(&mut self, request: &[u8]) -> Result<(usize, Vec<u8>), Failure> {
        self.stream.write_all(request).await?;
        let mut have = 0;
        let (body_at, length) = loop {
            let read = self.stream.read(&mut self.buffer[have..]).await?;
            if read == 0 {
                return Err("the server closed the connection".into());
            }
            have += read;
            let head = &self.buffer[..have];
            if let Some(at) = head.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let text = std::str::from_utf8(&head[..at])?.to_ascii_lowercase();
                let line = text
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: "));
                break (at + 4, line.ok_or("no content-length")?.parse::<usize>()?);
            }
        };
        let first = self.buffer[body_at..have.min(body_at + length)].to_vec();
        let mut got = have - body_at;
        while got < length {
            let read = self.stream.read(&mut self.buffer).await?;
            if read == 0 {
                return Err("the server closed the connection".into());
            }
            got += read;
        }
        Ok((length, first))
    }
}

/// Makes `calls` calls, 32 in flight, and prints what they took.
async fn run(
    server: &Server,
    name: &str,
    calls: usize,
    request: impl Fn(usize) -> Vec<u8> + Send + Sync + 'static,
) -> Result<(), Failure> {
    let request = Arc::new(request);
    let next = Arc::new(AtomicUsize::new(0));
    let (cpu, start) = (server.cpu()?, Instant::now());
    let mut workers = JoinSet::new();
    for _ in 0..IN_FLIGHT {
        let mut connection = Connection::open(&server.address).await?;
        let (request, next) = (Arc::clone(&request), Arc::clone(&next));
        workers.spawn(async move {
            let mut slowest = Duration::ZERO;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= calls {
                    return Ok::<_, Failure>(slowest);
                }
                let request = request(number);
                let sent = Instant::now();
                let (_, answer) = connection.ask(&request).await?;
                slowest = slowest.max(sent.elapsed());
                // Success is empty or a small answer without field 1 as a message.
                if answer.first() == Some(&0x0a) {
                    return Err(format!("call {number} was refused: {answer:?}").into());
                }
            }
        });
    }
    let mut slowest = Duration::ZERO;
    while let Some(done) = workers.join_next().await {
        slowest = slowest.max(done??);
    }
    let (elapsed, cpu) = (start.elapsed().as_secs_f64(), server.cpu()? - cpu);
    println!(
        "{name:14} {:9.0} calls/s  {:6.1} µs server CPU per call  slowest {:.1} ms",
        calls as f64 / elapsed,
        cpu * 1e6 / calls as f64,
        slowest.as_secs_f64() * 1e3,
    );
    Ok(())
}

fn run_action() -> models::Action {
    models::Action {
        run_action: Some(models::RunAction {
            path: "/bin/sh".into(),
            args: vec!["-c".into(), "exit 0".into()],
            user: "vcap".into(),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn desire_task(number: usize) -> Vec<u8> {
    let request = models::DesireTaskRequest {
        task_guid: format!("task-{number:08}"),
        domain: "bench".into(),
        task_definition: Some(models::TaskDefinition {
            root_fs: "preloaded:cflinuxfs4".into(),
            memory_mb: 64,
            disk_mb: 64,
            log_guid: "bench".into(),
            action: Some(run_action()),
            ..Default::default()
        }),
    };
    post(path::DESIRE_TASK, &request.encode_to_vec())
}

/// A process whose scheduling info has about 1.27 KB, as in published scale tests.
fn desire_lrp(number: usize) -> Vec<u8> {
    let guid = format!("BENCHMARK-BBS-GUID-{number:06}");
    let routes = format!(
        r#"[{{"hostnames":["{guid}.apps.example.com"],"port":8080,"padding":"{}"}}]"#,
        "x".repeat(980)
    );
    let tag = models::MetricTagValue {
        r#static: guid.clone(),
        ..Default::default()
    };
    let request = models::DesireLrpRequest {
        desired_lrp: Some(models::DesiredLrp {
            process_guid: guid.clone(),
            domain: "benchmark-bbs".into(),
            root_fs: "preloaded:cflinuxfs4".into(),
            instances: 1,
            memory_mb: 128,
            disk_mb: 256,
            log_guid: guid,
            annotation: "1700000000.0".into(),
            action: Some(run_action()),
            routes: Some(models::ProtoRoutes {
                routes: BTreeMap::from([("cf-router".into(), routes.into_bytes())]),
            }),
            metric_tags: BTreeMap::from([("source_id".into(), tag)]),
            ..Default::default()
        }),
    };
    post(path::DESIRE_LRP, &request.encode_to_vec())
}

fn instance(number: usize) -> (models::ActualLrpKey, models::ActualLrpInstanceKey) {
    let key = models::ActualLrpKey {
        process_guid: format!("BENCHMARK-BBS-GUID-{number:06}"),
        index: 0,
        domain: "benchmark-bbs".into(),
    };
    let instance = models::ActualLrpInstanceKey {
        instance_guid: format!("INSTANCE-GUID-{number:06}"),
        cell_id: format!("cell-{}", number % 1000),
    };
    (key, instance)
}

fn claim(number: usize) -> Vec<u8> {
    let (key, instance) = instance(number);
    let request = models::ClaimActualLrpRequest {
        process_guid: key.process_guid,
        index: 0,
        actual_lrp_instance_key: Some(instance),
    };
    post(path::CLAIM_ACTUAL_LRP, &request.encode_to_vec())
}

fn start(number: usize, host_port: u32) -> Vec<u8> {
    let (key, instance) = instance(number);
    let request = models::StartActualLrpRequest {
        actual_lrp_key: Some(key),
        actual_lrp_instance_key: Some(instance),
        actual_lrp_net_info: Some(models::ActualLrpNetInfo {
            address: "1.2.3.4".into(),
            instance_address: "2.2.2.2".into(),
            ports: vec![models::PortMapping {
                container_port: 8080,
                host_port,
                ..Default::default()
            }],
            ..Default::default()
        }),
        routable: Some(true),
        ..Default::default()
    };
    post(path::START_ACTUAL_LRP, &request.encode_to_vec())
}

async fn bulk(server: &Server) -> Result<(), Failure> {
    let (cpu, begin) = (server.cpu()?, Instant::now());
    let fetch = |path: &'static str| {
        let address = server.address.clone();
        async move {
            Connection::open(&address)
                .await?
                .ask(&post(path, b""))
                .await
        }
    };
    let both = tokio::join!(
        tokio::spawn(fetch(path::ACTUAL_LRPS)),
        tokio::spawn(fetch(path::DESIRED_LRP_SCHEDULING_INFOS)),
    );
    let (actual, infos) = (both.0??.0, both.1??.0);
    println!(
        "bulk fetch     {:.0} MB in {:?}, {:.2} s server CPU, server {} MB",
        (actual + infos) as f64 / 1e6,
        begin.elapsed(),
        server.cpu()? - cpu,
        server.rss_mb()?,
    );
    Ok(())
}

/// Opens streams of all instance events, read and thrown away.
async fn subscribe(server: &Server, bytes: &Arc<AtomicUsize>) -> Result<JoinSet<()>, Failure> {
    let mut streams = JoinSet::new();
    for _ in 0..SUBSCRIBERS {
        let mut stream = TcpStream::connect(&server.address).await?;
        stream.write_all(&post(path::INSTANCE_EVENTS, b"")).await?;
        let bytes = Arc::clone(bytes);
        streams.spawn(async move {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                bytes.fetch_add(read, Ordering::Relaxed);
            }
        });
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ok(streams)
}

async fn measure(auctioneer: &str, calls: usize, processes: usize) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(folder.path(), auctioneer, None).await?;
    run(&server, "Ping", calls, |_| post(path::PING, b"")).await?;
    run(&server, "DesireTask", calls, desire_task).await?;
    run(&server, "DesireLRP", calls, desire_lrp).await?;
    run(&server, "Claim", calls, claim).await?;
    run(&server, "Start", calls, |number| start(number, 61_999)).await?;
    run(&server, "Start, same", calls, |number| {
        start(number, 61_999)
    })
    .await?;

    let some = calls.min(2000);
    let bytes = Arc::new(AtomicUsize::new(0));
    let streams = subscribe(&server, &bytes).await?;
    let name = "Start, 1000 sub";
    run(&server, name, some, |number| start(number, 61_998)).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    println!(
        "{:14} {:.0} MB of events read",
        "",
        bytes.load(Ordering::Relaxed) as f64 / 1e6
    );
    drop(streams);

    if processes > calls {
        let rest = processes - calls;
        run(&server, "DesireLRP", rest, move |number| {
            desire_lrp(calls + number)
        })
        .await?;
        run(&server, "Claim", rest, move |number| claim(calls + number)).await?;
        run(&server, "Start", rest, move |number| {
            start(calls + number, 61_999)
        })
        .await?;
        println!(
            "server {} MB with {processes} + {processes}",
            server.rss_mb()?
        );
        for _ in 0..3 {
            bulk(&server).await?;
        }
        drop(server);
        let server = Server::start(folder.path(), auctioneer, None).await?;
        println!("server {} MB after a restart", server.rss_mb()?);
        bulk(&server).await?;
    }
    Ok(())
}
