use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use net::{Body, Handler, Incoming, Limits, read_body};

use super::export::{Exporter, SenderOptions};
use traces::{Epoch, Origin, Store, StoreLimits, TraceId, otlp, zipkin};

use super::*;
use crate::samples::server;

fn tracer(exports: Vec<Export>) -> Tracer {
    Tracer::new(StoreLimits::default(), exports)
}

#[test]
fn what_threads_record_is_kept() {
    let tracer = tracer(Vec::new());
    let threads = (0..4_u128).map(|thread| {
        let mut recorder = tracer.recorder();
        std::thread::spawn(move || {
            for id in 0..10_000 {
                recorder.record(server(thread * 10_000 + u128::from(id) + 1, id + 1, 0, id));
            }
        })
    });
    let threads: Vec<_> = threads.collect();
    while threads.iter().any(|thread| !thread.is_finished()) {
        tracer.collect();
    }
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    tracer.collect();
    let counts = tracer.counts();
    assert_eq!(counts.recorded + counts.dropped, 40_000);
    assert_eq!(counts.store.received, counts.recorded);
    // The recorders are gone, their counts are not.
    tracer.collect();
    assert_eq!(tracer.counts().recorded, counts.recorded);
}

#[test]
fn a_recorder_that_nobody_collects_from_drops_and_counts() {
    let (mut recorder, buffers) = Recorder::new();
    let span = server(1, 1, 0, 1);
    for _ in 0..40_000 {
        recorder.record(span.clone());
    }
    let (recorded, dropped) = buffers.counts();
    assert_eq!(recorded + dropped, 40_000);
    assert!(dropped > 0);
    let (mut into, mut spare) = (Vec::new(), Vec::new());
    buffers.take(&mut into, &mut spare);
    assert_eq!(into.len() as u64, recorded);
    recorder.record(span);
    buffers.take(&mut into, &mut spare);
    assert_eq!(into.len() as u64, recorded + 1);
}

#[test]
fn two_readings_of_the_clocks_agree() {
    let (one, two) = (Epoch::now(), Epoch::now());
    // A second is what a stepping wall clock may do between them; microseconds are usual.
    assert!(one.nanos().abs_diff(two.nanos()) < 1_000_000_000);
    assert_eq!(one.of_unix(one.to_unix(12_345)), 12_345);
    assert_eq!(one.of_unix(5), 0);
}

/// A collector that answers with one status after the other, the last one for ever.
struct Collector {
    answers: Vec<StatusCode>,
    asked: AtomicUsize,
    store: Store,
}

impl Handler for Collector {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let turn = self.asked.fetch_add(1, Relaxed);
        let zipkin = request.uri().path() == zipkin::PATH;
        let body = read_body(request.into_body(), 1 << 24, Duration::from_secs(5)).await;
        let (body, origin) = (body.unwrap(), Origin::here());
        let status = self.answers.get(turn).or(self.answers.last()).copied();
        let status = status.unwrap_or(StatusCode::OK);
        if status.is_success() {
            let names = &mut traces::names::Names::default();
            let form = match zipkin {
                true => traces::Form::Zipkin,
                false => traces::Form::OtlpProtobuf,
            };
            let decoded = traces::decode_posted(form, &body, &origin, names).unwrap();
            assert_eq!(decoded.left_out(), None);
            self.store.extend(decoded.spans);
        }
        let mut answer = Response::new(net::full(Bytes::new()));
        *answer.status_mut() = status;
        answer
    }
}

impl Collector {
    /// Starts one; it ends with the returned sender.
    async fn start(
        answers: Vec<StatusCode>,
    ) -> (Arc<Self>, String, tokio::sync::watch::Sender<bool>) {
        let collector = Arc::new(Self {
            answers,
            asked: AtomicUsize::new(0),
            store: Store::new(StoreLimits::default()),
        });
        let listener = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (stop, shutdown) = net::shutdown();
        let handler = Arc::clone(&collector);
        tokio::spawn(net::serve(
            listener,
            None,
            Limits::default(),
            handler,
            shutdown,
        ));
        (collector, address, stop)
    }
}

fn export(format: Format, address: &str) -> Export {
    let path = match format {
        Format::Zipkin => zipkin::PATH,
        Format::Otlp => otlp::PATH,
    };
    Export {
        format,
        target: format!("{address}{path}").parse().unwrap(),
    }
}

#[tokio::test]
async fn spans_reach_both_kinds_of_collectors_and_the_last_ones_too() {
    for format in [Format::Otlp, Format::Zipkin] {
        let (collector, address, _stop) = Collector::start(vec![StatusCode::OK]).await;
        let tracer = tracer(vec![export(format, &address)]);
        let mut recorder = tracer.recorder();
        for trace in 1..=3000 {
            recorder.record(server(trace, 1, 10_000, 20_000));
        }
        let (stop, shutdown) = net::shutdown();
        let running = tokio::spawn(tracer.clone().run(shutdown));
        while tracer.counts().exports.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        recorder.record(server(9999, 1, 10_000, 20_000));
        stop.send(true).unwrap();
        running.await.unwrap();
        assert_eq!(collector.store.counts().received, 3001);
        let read = collector.store.trace(TraceId(9999));
        let kept = tracer.store().trace(TraceId(9999));
        assert_eq!(read[0].end - read[0].start, 10_000);
        if format == Format::Otlp {
            // The same machine, the same clock.
            assert_eq!(read, kept);
        }
    }
}

const HASTY: SenderOptions = SenderOptions {
    answer_within: Duration::from_secs(5),
    attempts: 3,
    pause: Duration::from_millis(1),
};

/// Sends a span to a collector with these answers: what became of it.
async fn sent_to(answers: &[u16]) -> (ExportCounts, usize) {
    let answers = answers
        .iter()
        .map(|status| StatusCode::from_u16(*status).unwrap());
    let (collector, address, _stop) = Collector::start(answers.collect()).await;
    let counts = sent(export(Format::Otlp, &address)).await;
    (counts, collector.asked.load(Relaxed))
}

async fn sent(export: Export) -> ExportCounts {
    let exporter = Exporter::start(export, Origin::here(), HASTY);
    exporter.send(&[server(1, 1, 0, 1)]);
    while exporter.counts().sent + exporter.counts().dropped == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let counts = exporter.counts();
    exporter.finish().await.unwrap();
    counts
}

#[tokio::test]
async fn a_collector_that_recovers_gets_the_batch_again() {
    let (counts, asked) = sent_to(&[503, 429, 200]).await;
    assert_eq!(
        (counts.sent, counts.dropped, counts.failures, asked),
        (1, 0, 2, 3)
    );
}

#[tokio::test]
async fn a_batch_is_given_up_and_counted() {
    let (counts, asked) = sent_to(&[503]).await;
    assert_eq!(
        (counts.sent, counts.dropped, counts.failures, asked),
        (0, 1, 3, 3)
    );
    // What is refused for good is not sent again.
    for refused in [400, 500] {
        let (counts, asked) = sent_to(&[refused]).await;
        assert_eq!(
            (counts.sent, counts.dropped, counts.failures, asked),
            (0, 1, 1, 1)
        );
    }
    // Nobody listens there.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let counts = sent(export(Format::Otlp, &address)).await;
    assert_eq!((counts.sent, counts.dropped, counts.failures), (0, 1, 3));
}

#[tokio::test]
async fn spans_that_a_collector_rejects_are_not_sent() {
    let listener = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (_stop, shutdown) = net::shutdown();
    let handler = ::collector::Collector::new(StoreLimits::default());
    tokio::spawn(net::serve(
        listener,
        None,
        Limits::default(),
        handler,
        shutdown,
    ));
    let exporter = Exporter::start(export(Format::Otlp, &address), Origin::here(), HASTY);
    // No trace has the number 0.
    exporter.send(&[server(1, 1, 0, 1), server(0, 2, 0, 1)]);
    while exporter.counts().sent + exporter.counts().dropped < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let counts = exporter.counts();
    assert_eq!((counts.sent, counts.dropped, counts.failures), (1, 1, 0));
}

#[tokio::test]
async fn a_collector_that_never_answers_costs_spans_and_no_time() {
    // It accepts connections, by the kernel's queue alone.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let exporter = Exporter::start(
        export(Format::Otlp, &address),
        Origin::here(),
        SenderOptions::default(),
    );
    let spans: Vec<_> = (1..=100_000).map(|trace| server(trace, 1, 0, 1)).collect();
    exporter.send(&spans);
    let counts = exporter.counts();
    assert_eq!((counts.sent, counts.failures), (0, 0));
    assert!(counts.dropped >= 60_000, "{counts:?}");
}

#[tokio::test]
async fn targets_can_be_changed_while_it_runs() {
    let (first, one, _stop_one) = Collector::start(vec![StatusCode::OK]).await;
    let (second, two, _stop_two) = Collector::start(vec![StatusCode::OK]).await;
    let tracer = tracer(vec![export(Format::Otlp, &one)]);
    let mut recorder = tracer.recorder();
    recorder.record(server(1, 1, 0, 1));
    let (stop, shutdown) = net::shutdown();
    let running = tokio::spawn(tracer.clone().run(shutdown));
    while first.store.counts().received < 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let target = export(Format::Zipkin, &two);
    tracer.export_to(vec![target.clone()]);
    while !tracer
        .counts()
        .exports
        .iter()
        .any(|counts| counts.export == target)
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    recorder.record(server(2, 1, 0, 1));
    stop.send(true).unwrap();
    running.await.unwrap();
    assert_eq!(first.store.counts().received, 1);
    assert_eq!(second.store.counts().received, 1);
}

#[test]
fn targets_come_from_the_profile() {
    let tracing = crate::topology::Tracing {
        zipkin: Some("http://z:9411/api/v2/spans".parse().unwrap()),
        otlp: Some("http://o:4318/v1/traces".parse().unwrap()),
        ..Default::default()
    };
    let exports = Export::all(&tracing);
    let targets: Vec<_> = exports.iter().map(|one| one.target.to_string()).collect();
    assert_eq!(
        targets,
        ["http://z:9411/api/v2/spans", "http://o:4318/v1/traces"]
    );
    let tracing = crate::topology::Tracing {
        zipkin: Some("http://z:9411".parse().unwrap()),
        otlp: Some("http://o:4318/".parse().unwrap()),
        ..Default::default()
    };
    assert_eq!(Export::all(&tracing), exports);
    assert!(Export::all(&Default::default()).is_empty());
    let secret = Export {
        format: Format::Otlp,
        target: "http://me:word@o/v1/traces?key=1".parse().unwrap(),
    };
    assert_eq!(secret.shown(), "http://o:80/v1/traces");
}
