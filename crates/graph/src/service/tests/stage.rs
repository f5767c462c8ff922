//! A graph that runs, and a client of it.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::Nanos;
use crate::metrics::Metrics;
use crate::service::{Directory, Host, HostConfig, Hosted};
use crate::topology::{ServiceId, Topology, of_text};
use crate::trace::Tracer;
use crate::work::{Calibration, SharedResources};
use traces::{Span, StoreLimits};
use traces::{SpanId, TraceId};

/// A graph from its file. If that says nothing of time-outs, they are so long that a busy
/// machine meets none.
pub(super) fn graph(text: &str) -> Arc<Topology> {
    const PATIENT: &str = "[defaults]\ntimeout = \"60s\"\n";
    let text = match (text.contains("timeout"), text.contains("[defaults]\n")) {
        (true, _) => text.to_owned(),
        (false, true) => text.replace("[defaults]\n", PATIENT),
        (false, false) => format!("{text}\n{PATIENT}"),
    };
    Arc::new(of_text(&text))
}

/// Where a test plays a callee.
pub(super) fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// A graph that runs in this process.
pub(super) struct Stage {
    pub(super) host: Host,
    pub(super) topology: Arc<Topology>,
    pub(super) metrics: Arc<Metrics>,
    tracer: Tracer,
    /// Spans that were looked at.
    seen: Mutex<HashSet<(TraceId, SpanId, Nanos)>>,
    _folder: tempfile::TempDir,
}

impl Stage {
    pub(super) fn new(text: &str) -> Self {
        Self::on(text, 1)
    }

    /// On so many threads.
    pub(super) fn on(text: &str, threads: usize) -> Self {
        let topology = graph(text);
        let all = (0..topology.services.len() as u32).map(ServiceId);
        let all: Vec<_> = all.collect();
        Self::of(topology, &all, Directory::default(), threads)
    }

    /// All services but the one called `leaf`, which the test plays.
    pub(super) fn without_leaf(text: &str, leaf: &TcpListener) -> Self {
        let topology = graph(text);
        let all = (0..).map(ServiceId).zip(&topology.services);
        let others = all.filter(|(_, service)| service.name != "leaf");
        let others: Vec<_> = others.map(|(id, _)| id).collect();
        let mut directory = Directory::default();
        directory.set("leaf", 0, leaf.local_addr().unwrap());
        Self::of(topology, &others, directory, 1)
    }

    /// Some services of a graph.
    pub(super) fn of(
        topology: Arc<Topology>,
        services: &[ServiceId],
        directory: Directory,
        threads: usize,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let calibration = Calibration {
            op_ns: 1.0,
            op_best_ns: 1.0,
            clock_ns: 400.0,
        };
        let tracer = Tracer::new(StoreLimits::default(), Vec::new());
        let hosted = services.iter().flat_map(|service| {
            let replicas = topology.service(*service).unwrap().replicas;
            (0..replicas).map(|replica| Hosted {
                service: *service,
                replica,
                listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            })
        });
        let metrics = Arc::new(Metrics::new());
        let host = Host::start(HostConfig {
            hosted: hosted.collect(),
            topology: Arc::clone(&topology),
            directory,
            threads,
            resources: SharedResources::open(calibration, folder.path()).unwrap(),
            metrics: Arc::clone(&metrics),
            tracer: tracer.clone(),
            run: traces::ids::Run::default(),
        });
        Self {
            host: host.unwrap(),
            topology,
            metrics,
            tracer,
            seen: Mutex::default(),
            _folder: folder,
        }
    }

    /// Where the first instance of a service listens.
    pub(super) fn address(&self, service: &str) -> SocketAddr {
        self.host.directory().get(service, 0).unwrap()
    }

    /// A client of a service.
    pub(super) fn client(&self, service: &str) -> Client {
        Client::new(self.address(service))
    }

    /// All spans since the last time.
    pub(super) fn spans(&self) -> Vec<Span> {
        self.tracer.collect();
        let store = self.tracer.store();
        let mut seen = self.seen.lock().unwrap();
        let mut spans = Vec::new();
        for trace in store.recent(100_000) {
            let new = store.trace(trace.trace).into_iter();
            spans.extend(new.filter(|span| seen.insert((span.trace, span.id, span.start))));
        }
        spans
    }

    /// So many spans since the last time: they are recorded behind the answer.
    pub(super) fn wait_for_spans(&self, count: usize) -> Vec<Span> {
        let mut spans = self.spans();
        for _ in 0..5000 {
            if spans.len() >= count {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
            spans.append(&mut self.spans());
        }
        assert_eq!(spans.len(), count, "{spans:#?}");
        spans
    }

    /// Ends it in good order.
    pub(super) fn drain(self) {
        assert!(self.host.drain(Duration::from_secs(60)));
        self.host.stop();
    }
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn failed(&self) -> (u16, &str) {
        (self.status, self.field("x-headroom-failed").unwrap_or(""))
    }
}

/// One connection.
pub(super) struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self::of(TcpStream::connect(address).unwrap())
    }

    /// Over a connection that is made.
    pub(super) fn of(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Self {
            reader: BufReader::new(stream),
        }
    }

    pub(super) fn send(&mut self, text: &str) {
        self.reader.get_mut().write_all(text.as_bytes()).unwrap();
    }

    pub(super) fn get(&mut self, path: &str) -> Answer {
        self.ask("GET", path, "")
    }

    /// Asks with more fields, each with its line end.
    pub(super) fn ask(&mut self, method: &str, path: &str, fields: &str) -> Answer {
        self.send(&format!(
            "{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"
        ));
        self.answer(method != "HEAD")
    }

    /// The next answer.
    pub(super) fn answer(&mut self, has_body: bool) -> Answer {
        self.try_answer(has_body).expect("an answer")
    }

    /// The next answer; `None`: the connection ended before.
    pub(super) fn try_answer(&mut self, has_body: bool) -> Option<Answer> {
        let mut line = String::new();
        if matches!(self.reader.read_line(&mut line), Ok(0) | Err(_)) {
            return None;
        }
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut fields = Vec::new();
        loop {
            line.clear();
            self.reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            fields.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let mut answer = Answer {
            status,
            fields,
            body: String::new(),
        };
        if has_body {
            let length = answer
                .field("content-length")
                .map_or(0, |text| text.parse().unwrap());
            let mut body = vec![0; length];
            self.reader.read_exact(&mut body).unwrap();
            answer.body = String::from_utf8(body).unwrap();
        }
        Some(answer)
    }

    /// Whether the other side ended the connection.
    pub(super) fn is_closed(&mut self) -> bool {
        matches!(self.reader.read(&mut [0]), Ok(0) | Err(_))
    }
}
