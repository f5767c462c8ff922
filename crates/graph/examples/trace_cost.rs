//! What telemetry costs: processor time of counting a request, of a span that is
//! recorded, kept and exported, and of reading the counters of a thousand services.
//!
//! `cargo run --release -p graph --example trace_cost`

use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use graph::amount::Amount;
use graph::metrics::{History, Metrics};
use graph::topology::{
    Action, Connections, Edge, EdgeId, Endpoint, Faults, Placement, Protocol, Response, Service,
    ServiceId, Step, StepId, Topology, Tracing, Work,
};
use graph::trace::{Export, Format, Recorder, Tracer};
use traces::context;
use traces::ids::Run;
use traces::{Span, SpanKind, StoreLimits};
use traces::{SpanId, TraceId};
use wire::clock;

type Failure = Box<dyn std::error::Error>;

const REQUESTS: u32 = 2_000_000;
/// No more spans than wait for a collector.
const TRACES: u64 = 4_000;
const SPANS: u64 = 7;

fn main() -> Result<(), Failure> {
    let counting = per(REQUESTS.into(), counting);
    println!("a request counted (server, call, work): {counting:.0} ns");
    let context = per(REQUESTS.into(), contexts);
    println!("a context read and written (W3C and B3): {context:.0} ns");
    let tracer = Tracer::new(StoreLimits::default(), Vec::new());
    let mut recorder = tracer.recorder();
    let recording = per(TRACES * SPANS, || record(&mut recorder, 0));
    println!("a span recorded, on the thread of the request: {recording:.0} ns");
    tracer.collect();
    for format in [Format::Otlp, Format::Zipkin] {
        let cost = exporting(format)?;
        println!("a span recorded, kept and exported as {format:?}, in all: {cost:.0} ns");
    }
    thousand_services();
    Ok(())
}

/// Counters of a thousand services that all had requests: read, remembered, shown.
fn thousand_services() {
    let metrics = Metrics::new();
    let mut topology = topology();
    let service = topology.services[0].clone();
    topology.services = (0..1000)
        .map(|number| Service {
            name: format!("service-{number}"),
            ..service.clone()
        })
        .collect();
    topology.edges = (1..1000)
        .map(|to| Edge {
            from: ServiceId(to / 3),
            to: ServiceId(to),
            connections: Connections::Warm(1),
        })
        .collect();
    let all: Vec<_> = (0..1000)
        .map(|id| metrics.instance(&topology, ServiceId(id), 0))
        .collect();
    let requests = || {
        for (service, counters) in (0..).zip(&all) {
            for request in 0..100 {
                let latency = 50_000 + request * 7_919;
                counters.server(Some(0)).began(0);
                counters.server(Some(0)).answered(200, latency);
                counters.work(StepId(1)).done(latency / 2, 9_000, 0, 0);
                let calls = (0..3).map(|call| 3 * service + call);
                for to in calls.filter(|to| (1..1000).contains(to)) {
                    counters.client(EdgeId(to - 1)).began(0);
                    counters.client(EdgeId(to - 1)).ended(200, latency / 3, 0);
                }
            }
        }
    };
    let mut history = History::default();
    history.round(clock::now());
    history.read("", metrics.snapshot());
    requests();
    let reading = per(1, || {
        history.round(clock::now());
        history.read("", metrics.snapshot());
    });
    println!(
        "counters of 1,000 services read and remembered, once a second: {:.1} ms",
        reading / 1e6
    );
    let window = per(1, || {
        black_box(history.window(5_000_000_000));
    });
    println!("what came lately, for /stats: {:.1} ms", window / 1e6);
    let mut bytes = 0;
    let page = per(1, || {
        bytes = graph::metrics::page(&metrics.snapshot(), None)
            .into_text()
            .len()
    });
    println!(
        "the page of metrics: {:.1} ms, {:.1} MB",
        page / 1e6,
        bytes as f64 / 1e6
    );
}

/// Processor time of the thread in nanoseconds, of each of so many.
fn per(count: u64, run: impl FnOnce()) -> f64 {
    let before = clock::thread_cpu();
    run();
    (clock::thread_cpu() - before).as_nanos() as f64 / count as f64
}

fn counting() {
    let metrics = Metrics::new();
    let counters = metrics.instance(&topology(), ServiceId(0), 0);
    for request in 0..u64::from(REQUESTS) {
        let latency = 50_000 + request % 1000 * 997;
        let server = counters.server(Some(0));
        server.began(black_box(1000));
        let client = counters.client(EdgeId(0));
        client.began(0);
        client.ended(200, black_box(latency / 2), 500);
        counters
            .work(StepId(1))
            .done(black_box(10_000), 9_000, 0, 0);
        server.answered(200, black_box(latency));
    }
    black_box(metrics.snapshot());
}

fn contexts() {
    let fields: [(&[u8], &[u8]); 6] = [
        (b"Host", b"localhost:8888"),
        (b"User-Agent", b"cost"),
        (
            b"traceparent",
            b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ),
        (b"x-b3-traceid", b"4bf92f3577b34da6a3ce929d0e0e4736"),
        (b"x-b3-spanid", b"00f067aa0ba902b7"),
        (b"x-b3-sampled", b"1"),
    ];
    let (forms, mut passed, mut out) = (Tracing::default().forms(), Vec::new(), Vec::new());
    for _ in 0..REQUESTS {
        let context = context::read(black_box(fields).into_iter(), &mut passed);
        let outgoing = context::Outgoing {
            trace: context.trace,
            span: context.parent.child(context.trace, 1, 0),
            parent: context.parent,
            sampled: true,
            debug: false,
            passed: &passed,
        };
        out.clear();
        context::write(forms, &outgoing, &mut out);
        black_box(&out);
    }
}

/// Records traces of seven spans each, as a chain of three services makes them.
fn record(recorder: &mut Recorder, seed: u64) {
    let names = ["root", "branch", "leaf", "/", "cpu", ""].map(traces::Name::from);
    let [root, branch, leaf, path, cpu, none] = &names;
    for number in 0..TRACES {
        let trace = TraceId::of_request(seed, Run(0), number);
        let start = clock::now();
        let mut parent = SpanId(0);
        let spans = [
            (SpanKind::Server, root, path, none),
            (SpanKind::Client, root, path, branch),
            (SpanKind::Server, branch, path, none),
            (SpanKind::Work, branch, cpu, none),
            (SpanKind::Client, branch, path, leaf),
            (SpanKind::Server, leaf, path, none),
            (SpanKind::Work, leaf, cpu, none),
        ];
        for (step, (kind, service, name, peer)) in (0..).zip(spans) {
            let id = parent.child(trace, step, 0);
            recorder.record(Span {
                trace,
                id,
                parent,
                kind,
                service: service.clone(),
                name: name.clone(),
                peer: peer.clone(),
                start,
                end: start + 50_000,
                cpu: 9_000,
                queue: 700,
                status: if kind == SpanKind::Work { 0 } else { 200 },
                attempt: 0,
                revision: 1,
                cause: "",
            });
            parent = id;
        }
    }
}

/// Processor time of the whole process for each span, that of the collector's side taken
/// off.
fn exporting(format: Format) -> Result<f64, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let target = format!("http://{}/spans", listener.local_addr()?).parse()?;
    let sink = std::thread::spawn(move || -> Result<Duration, String> {
        let before = clock::thread_cpu();
        let (stream, _) = listener.accept().map_err(|error| error.to_string())?;
        swallow(stream).map_err(|error| error.to_string())?;
        Ok(clock::thread_cpu() - before)
    });
    let limits = StoreLimits {
        spans: 1 << 20,
        bytes: 1 << 30,
        ..StoreLimits::default()
    };
    let tracer = Tracer::new(limits, vec![Export { format, target }]);
    let mut recorder = tracer.recorder();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (stop, shutdown) = net::shutdown();
    let running = tracer.clone();
    let collector = std::thread::spawn(move || runtime.block_on(running.run(shutdown)));
    let before = process_cpu()?;
    // In portions, so that the queue of the exporter is long enough.
    const PORTIONS: u64 = 20;
    for portion in 1..=PORTIONS {
        let seen = tracer.counts();
        let done = seen.exports.first().map_or(0, |export| export.sent);
        record(&mut recorder, portion);
        while tracer
            .counts()
            .exports
            .first()
            .map_or(0, |export| export.sent)
            == done
        {
            clock::nap(Duration::from_millis(5));
        }
        clock::nap(Duration::from_millis(300));
    }
    let spent = process_cpu()? - before;
    stop.send(true)?;
    collector.join().map_err(|_| "the collector panicked")?;
    let counts = tracer.counts();
    drop(tracer);
    let sink = sink.join().map_err(|_| "the sink panicked")??;
    let sent = counts
        .exports
        .first()
        .map_or(counts.recorded, |export| export.sent);
    println!(
        "  {} recorded, {} dropped; exporters then: {sent}",
        counts.recorded, counts.dropped
    );
    Ok((spent.saturating_sub(sink)).as_nanos() as f64 / counts.recorded as f64)
}

/// Reads requests and answers each with 200, until the connection ends.
fn swallow(stream: TcpStream) -> std::io::Result<()> {
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::with_capacity(1 << 20, stream);
    let mut body = Vec::new();
    loop {
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().unwrap_or(0);
                }
                Some(_) => {}
                None if line.trim_end().is_empty() => break,
                None => {}
            }
        }
        body.clear();
        (&mut reader).take(length).read_to_end(&mut body)?;
        writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
    }
}

fn process_cpu() -> Result<Duration, Failure> {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF)?;
    let time = |time: nix::sys::time::TimeVal| {
        Duration::from_micros(time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64)
    };
    Ok(time(usage.user_time()) + time(usage.system_time()))
}

fn topology() -> Topology {
    let service = |name: &str, steps| Service {
        name: name.to_owned(),
        protocol: Protocol::Http1,
        replicas: 1,
        workers: 0,
        queue: 0,
        endpoints: vec![Endpoint {
            path: "/".to_owned(),
            steps,
            response: Response::Bytes(Amount::ZERO),
            latency: Amount::ZERO,
            step: StepId(2),
        }],
        faults: Faults::default(),
        placement: Placement::default(),
        labels: Vec::new(),
    };
    let work = Step {
        id: StepId(1),
        action: Action::Work(Work::Cpu(Amount::Constant(1e4))),
    };
    Topology {
        name: "cost".to_owned(),
        seed: 1,
        services: vec![service("root", vec![work]), service("leaf", Vec::new())],
        edges: vec![Edge {
            from: ServiceId(0),
            to: ServiceId(1),
            connections: Connections::Warm(1),
        }],
        entry: ServiceId(0),
        tracing: Tracing::default(),
        background: Vec::new(),
    }
}
