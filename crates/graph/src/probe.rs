//! What hops, handling and handing over take on this machine, measured with the services
//! themselves: a graph of two, asked a few times.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::analysis::Question;
use crate::metrics::Metrics;
use crate::service::{Directory, Host, HostConfig, Hosted, StartError};
use crate::topology::{self, ServiceId};
use crate::trace::Tracer;
use crate::work::{Calibration, SharedResources, WorkError};
use traces::StoreLimits;
use traces::analysis::Floors;

/// A hop, and work that is just too long for an event loop.
const GRAPH: &str = "name = \"probe\"\n[defaults]\nresponse = \"64B\"\n\
     [services.root]\nentry = true\nsteps = [{ call = \"leaf\" }]\n\
     [services.leaf]\nsteps = [{ cpu = \"110us\" }]\n";

/// Requests; the first ones open connections and warm caches.
const REQUESTS: usize = 80;

/// Between two of them, so that processors fall asleep as they do under load that is not
/// heavy.
const PAUSE: Duration = Duration::from_millis(1);

/// Longest wait for one.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The graph of two is none.
    #[error("measure hops: {0}")]
    Graph(String),
    /// Its place cannot be made.
    #[error("measure hops: {0}")]
    Site(#[from] WorkError),
    /// It did not start.
    #[error("measure hops: {0}")]
    Start(#[from] StartError),
    /// It did not answer.
    #[error("measure hops: ask: {0}")]
    Ask(#[from] io::Error),
}

/// Measures under the load that there is; takes about 200 ms and little processor time.
///
/// # Errors
/// When the two services do not start or do not answer.
pub fn measure(calibration: Calibration, folder: &Path) -> Result<Floors, ProbeError> {
    let source = document::Source {
        name: "probe".to_owned(),
        text: GRAPH.to_owned(),
    };
    let topology = topology::read(&source).map_err(|error| ProbeError::Graph(error.to_string()))?;
    let topology = Arc::new(topology);
    let tracer = Tracer::new(StoreLimits::of_collected(), Vec::new());
    let ids = (0..).map(ServiceId).take(topology.services.len());
    let host = Host::start(HostConfig {
        hosted: ids
            .map(|service| Hosted {
                service,
                replica: 0,
                listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            })
            .collect(),
        topology: Arc::clone(&topology),
        directory: Directory::default(),
        threads: topology.services.len(),
        resources: SharedResources::open(calibration, folder)?,
        metrics: Arc::new(Metrics::new()),
        tracer: tracer.clone(),
        run: traces::ids::Run::default(),
    })?;
    let asked = match host.directory().get("root", 0) {
        Some(address) => send_requests(address),
        None => Err(io::ErrorKind::AddrNotAvailable.into()),
    };
    host.drain(PATIENCE);
    host.stop();
    asked?;
    tracer.collect();
    let store = tracer.store();
    let traces = store.recent(REQUESTS);
    let spans: Vec<_> = traces
        .iter()
        .flat_map(|one| store.trace(one.trace))
        .collect();
    let question = Question {
        topology: Some(&topology),
        ..Question::default()
    };
    Ok(question.analyse(&spans).floors)
}

fn send_requests(address: SocketAddr) -> io::Result<()> {
    let mut stream = BufReader::new(TcpStream::connect_timeout(&address, PATIENCE)?);
    stream.get_ref().set_read_timeout(Some(PATIENCE))?;
    stream.get_ref().set_nodelay(true)?;
    for _ in 0..REQUESTS {
        std::thread::sleep(PAUSE);
        stream
            .get_mut()
            .write_all(b"GET / HTTP/1.1\r\nhost: root\r\n\r\n")?;
        let mut length = 0;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        io::copy(&mut stream.by_ref().take(length), &mut io::sink())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_handling_and_handing_over_are_measured_with_the_engine_itself() {
        let folder = tempfile::tempdir().unwrap();
        let floors = measure(Calibration::measure(), folder.path()).unwrap();
        // Whatever else runs: each takes a microsecond at least, and is not for free.
        for one in [floors.out, floors.back, floors.handling, floors.handoff] {
            assert!(one.median_ns > 500.0, "{floors:?}");
            assert!(one.spread_ns >= 0.0, "{floors:?}");
        }
    }
}
