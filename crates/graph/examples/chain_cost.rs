//! What a request costs in a chain of three services, each a process of its own, asked
//! over one connection: processor time of all three, and latency. Beside it a chain in C
//! that does nothing but receive, send and wait (`bench/chain.c`, where a compiler is
//! found). Rounds are interleaved; the median of each row is shown with its range.
//!
//! `cargo run --release -p graph --example chain_cost [SECONDS [ROUNDS]]`: each row of a
//! round takes so many seconds (default 1.5, 5 rounds).
//!
//! Then: how long a thousand services take to start in one process, and their memory.
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use graph::metrics::Metrics;
use graph::service::{Directory, Host, HostConfig, Hosted};
use graph::topology::{self, ServiceId, Topology};
use graph::trace::Tracer;
use graph::work::{Calibration, Site};
use traces::StoreLimits;

const NAMES: [&str; 3] = ["broot", "bbranch", "bleaf"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("service") => serve(&arguments[1..]),
        Some("many") => many(arguments[1].parse().unwrap()),
        seconds => {
            let seconds = seconds.map_or(1.5, |text| text.parse().unwrap());
            let rounds = arguments.get(1).map_or(5, |text| text.parse().unwrap());
            compare(Duration::from_secs_f64(seconds), rounds);
        }
    }
}

fn read(text: String) -> Arc<Topology> {
    let name = "chain".to_owned();
    Arc::new(topology::read(&document::Source { name, text }).unwrap())
}

fn chain(sample: &str) -> Arc<Topology> {
    read(format!(
        r#"
[defaults]
response = "echo"
[trace]
sample = "{sample}"
[services.broot]
entry = true
steps = [{{ call = "bbranch" }}]
[services.bbranch]
steps = [{{ call = "bleaf" }}]
[services.bleaf]
"#
    ))
}

fn host(
    topology: Arc<Topology>,
    hosted: Vec<Hosted>,
    directory: Directory,
    threads: usize,
) -> (Host, Tracer) {
    let tracer = Tracer::new(StoreLimits::default(), Vec::new());
    let site = Site::open(Calibration::measure(), &std::env::temp_dir()).unwrap();
    let host = Host::start(HostConfig {
        topology,
        hosted,
        directory,
        threads,
        site,
        metrics: Arc::new(Metrics::new()),
        tracer: tracer.clone(),
        run: traces::ids::Run::default(),
    });
    (host.unwrap(), tracer)
}

/// One service: `NUMBER SAMPLE [NEXT]`. Ends with its standard input.
fn serve(arguments: &[String]) {
    let number: usize = arguments[0].parse().unwrap();
    let mut directory = Directory::default();
    if let Some(next) = arguments.get(2) {
        directory.set(NAMES[number + 1], 0, next.parse().unwrap());
    }
    let hosted = Hosted {
        service: ServiceId(number as u32),
        replica: 0,
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
    };
    let (host, tracer) = host(chain(&arguments[1]), vec![hosted], directory, 1);
    println!("{}", host.directory().get(NAMES[number], 0).unwrap());
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(100));
            tracer.collect();
        }
    });
    let _ = std::io::stdin().read(&mut [0]);
    host.stop();
}

/// A thousand services, each of which calls the next two.
fn many(count: usize) {
    let mut text = String::from("[defaults]\nresponse = \"16B\"\ntimeout = \"60s\"\n");
    for number in 0..count {
        writeln!(text, "[services.s{number}]").unwrap();
        if number == 0 {
            text.push_str("entry = true\n");
        }
        // A tree: ten below each.
        let below = (1..=10)
            .map(|child| number * 10 + child)
            .filter(|child| *child < count);
        let calls: Vec<_> = below
            .map(|child| format!("{{ call = \"s{child}\" }}"))
            .collect();
        if !calls.is_empty() {
            writeln!(text, "steps = [{{ parallel = [{}] }}]", calls.join(", ")).unwrap();
        }
    }
    let topology = read(text);
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let hosted = (0..count as u32).map(|service| Hosted {
        service: ServiceId(service),
        replica: 0,
        listen,
    });
    let before = memory();
    let began = Instant::now();
    let (host, _tracer) = host(topology, hosted.collect(), Directory::default(), 2);
    let started = began.elapsed();
    let mut stream = TcpStream::connect(host.directory().get("s0", 0).unwrap()).unwrap();
    let mut took = Vec::new();
    for _ in 0..20 {
        took.push(ask(&mut stream));
    }
    took.sort_unstable();
    println!(
        "{count} services in one process: started in {:.0} ms; {:.1} MB for all after 20 requests to each ({:.1} kB each); a request to all of them takes {:.1} ms",
        started.as_secs_f64() * 1e3,
        memory() as f64 / 1e6,
        (memory() - before) as f64 / 1e3 / count as f64,
        took[10] as f64 / 1e6,
    );
    host.stop();
}

/// Bytes of this process in memory.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}

/// A chain that runs.
struct Chain {
    name: &'static str,
    services: Vec<Child>,
    stream: TcpStream,
    /// Of each round: requests, processor time of each service, latencies at 50 % and 99 %.
    rounds: Vec<Round>,
}

struct Round {
    requests: usize,
    cpu: Vec<u64>,
    p50: u64,
    p99: u64,
}

impl Chain {
    fn start(name: &'static str, service: impl Fn(usize, Option<&str>) -> Command) -> Self {
        let mut next: Option<String> = None;
        let mut services = Vec::new();
        for number in (0..NAMES.len()).rev() {
            let mut command = service(number, next.as_deref());
            let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut line = String::new();
            let mut output = BufReader::new(child.stdout.take().unwrap());
            output.read_line(&mut line).unwrap();
            next = Some(line.trim().to_owned());
            services.push(child);
        }
        services.reverse();
        let stream = TcpStream::connect(next.unwrap()).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut chain = Self {
            name,
            services,
            stream,
            rounds: Vec::new(),
        };
        for _ in 0..2000 {
            ask(&mut chain.stream);
        }
        chain
    }

    fn cpu(&self) -> Vec<u64> {
        self.services.iter().map(|child| cpu(child.id())).collect()
    }

    fn round(&mut self, length: Duration) {
        let before = self.cpu();
        let mut took = Vec::new();
        let until = Instant::now() + length;
        while Instant::now() < until {
            for _ in 0..50 {
                took.push(ask(&mut self.stream));
            }
        }
        let after = self.cpu();
        took.sort_unstable();
        self.rounds.push(Round {
            requests: took.len(),
            cpu: after
                .iter()
                .zip(&before)
                .map(|(after, before)| after - before)
                .collect(),
            p50: took[took.len() / 2],
            p99: took[took.len() * 99 / 100],
        });
    }

    fn show(&self) {
        let of = |what: &dyn Fn(&Round) -> f64| {
            let mut all: Vec<f64> = self.rounds.iter().map(what).collect();
            all.sort_unstable_by(f64::total_cmp);
            let (low, high) = (all[0], all[all.len() - 1]);
            format!("{:7.1} ({low:.1} – {high:.1})", all[all.len() / 2])
        };
        let each = |at: usize| of(&|round| round.cpu[at] as f64 / 1e3 / round.requests as f64);
        println!(
            "  {:24} CPU µs {:26} p50 µs {:26} p99 µs {}",
            self.name,
            of(&|round| round.cpu.iter().sum::<u64>() as f64 / 1e3 / round.requests as f64),
            of(&|round| round.p50 as f64 / 1e3),
            of(&|round| round.p99 as f64 / 1e3),
        );
        println!("  {:24} each {} | {} | {}", "", each(0), each(1), each(2));
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        for child in &mut self.services {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Asks once, and says how long that took.
fn ask(stream: &mut TcpStream) -> u64 {
    let began = Instant::now();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let mut room = [0; 4096];
    // Answers are small: they come in one piece.
    let count = stream.read(&mut room).unwrap();
    assert!(
        room[..count].starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&room[..count])
    );
    began.elapsed().as_nanos() as u64
}

/// Processor time of all threads of a process, in nanoseconds.
fn cpu(process: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let one = |path: PathBuf| -> u64 {
        let text = std::fs::read_to_string(path.join("schedstat")).unwrap_or_default();
        let time = text.split_whitespace().next().map(str::parse);
        time.and_then(Result::ok).unwrap_or(0)
    };
    tasks.map(|task| one(task.unwrap().path())).sum()
}

/// The chain in C, if it can be compiled.
fn compile(folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/chain.c");
    let program = folder.join("chain");
    let compiler = Command::new("cc")
        .args(["-O2", "-o"])
        .arg(&program)
        .arg(source)
        .status();
    compiler
        .is_ok_and(|status| status.success())
        .then_some(program)
}

fn compare(length: Duration, rounds: usize) {
    let folder = tempfile::tempdir().unwrap();
    let c = compile(folder.path());
    if c.is_none() {
        println!("no C compiler: no floor");
    }
    let this = std::env::current_exe().unwrap();
    for one in [false, true] {
        if one {
            // What is started from now on inherits it.
            wire::clock::pin_to(0).unwrap();
        }
        let own = |sample: &'static str| {
            let this = this.clone();
            move |number: usize, next: Option<&str>| {
                let mut command = Command::new(&this);
                command
                    .args(["service", &number.to_string(), sample])
                    .args(next);
                command
            }
        };
        let mut chains = vec![
            Chain::start("metrics", own("0%")),
            Chain::start("metrics, 1 % traces", own("1%")),
            Chain::start("metrics, all traces", own("100%")),
        ];
        if let Some(c) = &c {
            chains.push(Chain::start("C, epoll", |_, next: Option<&str>| {
                let mut command = Command::new(c);
                command
                    .arg("0")
                    .args(next.and_then(|next| next.split(':').nth(1)));
                command
            }));
        }
        for _ in 0..rounds {
            for chain in &mut chains {
                chain.round(length);
            }
        }
        println!(
            "{}",
            if one {
                "everything on processor 0"
            } else {
                "wherever the kernel puts it"
            }
        );
        for chain in &chains {
            chain.show();
        }
    }
    let many = Command::new(&this).args(["many", "1000"]).status();
    assert!(many.unwrap().success());
}
