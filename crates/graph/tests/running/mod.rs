//! A whole graph that runs in this process, and who asks it.

#![allow(dead_code, unreachable_pub, reason = "not every test uses all of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use document::Source;
use graph::metrics::Metrics;
use graph::service::{Directory, Host, HostConfig, Hosted};
use graph::topology::{self, ServiceId, Topology};
use graph::trace::Tracer;
use graph::work::{Calibration, SharedResources};
use traces::ids::Run;
use traces::{Span, StoreLimits};

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A graph from its file.
pub fn graph(text: &str) -> Arc<Topology> {
    let source = Source {
        name: "graph.toml".to_owned(),
        text: text.to_owned(),
    };
    match topology::read(&source) {
        Ok(topology) => Arc::new(topology),
        Err(problems) => panic!("{problems}"),
    }
}

/// All services of a graph, one replica of each. The entry is called `root`.
pub struct Running {
    pub host: Host,
    tracer: Tracer,
    _folder: tempfile::TempDir,
}

impl Running {
    pub fn start(topology: &Arc<Topology>, threads: usize) -> Self {
        Self::start_as(topology, threads, Run::default())
    }

    pub fn start_as(topology: &Arc<Topology>, threads: usize, run: Run) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tracer = Tracer::new(StoreLimits::default(), Vec::new());
        let ids = (0..).map(ServiceId).take(topology.services.len());
        let hosted = ids.map(|service| Hosted {
            service,
            replica: 0,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        });
        let host = Host::start(HostConfig {
            hosted: hosted.collect(),
            topology: Arc::clone(topology),
            directory: Directory::default(),
            threads,
            resources: SharedResources::open(Calibration::measure(), folder.path()).unwrap(),
            metrics: Arc::new(Metrics::new()),
            tracer: tracer.clone(),
            run,
        });
        Self {
            host: host.unwrap(),
            tracer,
            _folder: folder,
        }
    }

    pub fn entry(&self) -> SocketAddr {
        self.host.directory().get("root", 0).unwrap()
    }

    /// Asks so many requests, then as many again under each of these profiles.
    pub fn spans_with_changes(self, profiles: &[&Arc<Topology>], requests: u64) -> Vec<Span> {
        ask(self.entry(), requests);
        for profile in profiles {
            self.host.swap(Arc::clone(profile)).unwrap();
            ask(self.entry(), requests);
        }
        self.ended((profiles.len() as u64 + 1) * requests)
    }

    /// All spans of so many requests, one after the other over one connection, and of what
    /// they left behind.
    pub fn spans(self, requests: u64) -> Vec<Span> {
        ask(self.entry(), requests);
        self.ended(requests)
    }

    fn ended(self, requests: u64) -> Vec<Span> {
        assert!(self.host.drain(PATIENCE));
        self.host.stop();
        self.tracer.collect();
        let store = self.tracer.store();
        let traces = store.recent(requests as usize);
        traces
            .iter()
            .flat_map(|one| store.trace(one.trace))
            .collect()
    }
}

fn ask(address: SocketAddr, requests: u64) {
    let mut stream = BufReader::new(TcpStream::connect(address).unwrap());
    stream.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
    for _ in 0..requests {
        let request = b"GET / HTTP/1.1\r\nhost: root\r\n\r\n";
        stream.get_mut().write_all(request).unwrap();
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(stream.read_line(&mut line).unwrap() > 0);
            let line = line.to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
    }
}
