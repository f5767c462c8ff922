//! Spans of files and of running graphs.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use graph::topology::Topology;
use http::Uri;
use net::{Client, ClientOptions};
use traces::{Span, SpanKind};

/// Longest answer of a running graph.
const ANSWER_BYTES: usize = 1 << 30;

/// Longest wait for spans that are on their way.
const SETTLE_WITHIN: Duration = Duration::from_secs(3);

/// Processes hand on what they recorded ten times a second, and a root is told of 0.3 s after
/// its end.
const QUIET: Duration = Duration::from_millis(600);

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// How many traces lack spans that they should have: a call was answered by a service of the
/// graph that left none, or a request was made by a call that left none.
pub(super) fn incomplete(spans: &[Span], topology: &Topology) -> usize {
    let ids: HashSet<_> = spans.iter().map(|span| (span.trace, span.id)).collect();
    let servers = spans.iter().filter(|span| span.kind == SpanKind::Server);
    let answered: HashSet<_> = servers.map(|span| (span.trace, span.parent)).collect();
    let services: HashSet<&str> = topology.services.iter().map(|one| &*one.name).collect();
    let entry = topology.service(topology.entry).map(|one| &*one.name);
    let lacks = |span: &&Span| match span.kind {
        SpanKind::Client => {
            services.contains(&*span.peer)
                && span.status > 0
                && !answered.contains(&(span.trace, span.id))
        }
        // What a client of its own called may have a parent that is not ours.
        SpanKind::Server => {
            Some(&*span.service) != entry && !ids.contains(&(span.trace, span.parent))
        }
        SpanKind::Work | SpanKind::Internal => !ids.contains(&(span.trace, span.parent)),
    };
    let lacking: HashSet<_> = spans.iter().filter(lacks).map(|span| span.trace).collect();
    lacking.len()
}

/// A running graph, by the address of its control server.
pub(super) struct Running {
    address: String,
    client: Client,
}

impl Running {
    /// Does not connect yet.
    pub(super) fn at(address: &str) -> Self {
        Self {
            address: address.trim_end_matches('/').to_owned(),
            client: Client::new(ClientOptions {
                connections_per_host: 1,
                answer_bytes: ANSWER_BYTES,
                ..ClientOptions::default()
            }),
        }
    }

    /// Its last traces, as bytes in OTLP's JSON: at most so many, of requests to a path.
    pub(super) async fn spans(&self, last: u32, path: Option<&str>) -> Result<Vec<u8>> {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("limit", &last.to_string());
        if let Some(path) = path {
            query.append_pair("path", path);
        }
        self.get(&format!("/spans?{}", query.finish())).await
    }

    /// Waits until no more spans come in, as right after a load; not for ever: a graph that
    /// is asked all the time is never quiet.
    pub(super) async fn quiet(&self) -> Result<()> {
        let until = Instant::now() + SETTLE_WITHIN;
        let (mut known, mut since) = (None, Instant::now());
        while Instant::now() < until {
            let list = self.get("/traces?recent=1").await?;
            let list: serde_json::Value = serde_json::from_slice(&list)?;
            let changes = list.get("next").and_then(serde_json::Value::as_u64);
            if changes != known {
                (known, since) = (changes, Instant::now());
            } else if since.elapsed() >= QUIET {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// What runs and where: the answer of `/topology`.
    pub(super) async fn described(&self) -> Result<serde_json::Value> {
        let bytes = self.get("/topology").await?;
        serde_json::from_slice(&bytes).context("read what the graph says of itself")
    }

    /// The topology in force.
    pub(super) async fn topology(&self) -> Result<Topology> {
        let text = self.get("/profile").await?;
        let source = document::Source {
            name: format!("{}/profile", self.address),
            text: String::from_utf8(text).context("read the graph's profile")?,
        };
        let checked = super::checked(&source, None)?;
        Ok(checked.topology)
    }

    async fn get(&self, what: &str) -> Result<Vec<u8>> {
        let uri = format!("{}{what}", self.address);
        let uri: Uri = uri.parse().with_context(|| {
            format!("{uri} is no address; expected http://HOST:PORT of a graph's control server")
        })?;
        let answer = self
            .client
            .get(&uri)
            .await
            .with_context(|| format!("ask the graph at {}; does it run?", self.address))?;
        if !answer.status.is_success() {
            bail!(
                "ask the graph at {uri}: {}: {}",
                answer.status,
                String::from_utf8_lossy(&answer.body)
            );
        }
        Ok(answer.body.into())
    }
}

#[cfg(test)]
mod tests {
    use graph::topology::budget::{Costs, Simulation};

    use super::*;

    #[test]
    fn traces_that_lack_spans_are_counted_and_whole_ones_are_not() {
        let topology = graph::topology::generate::chain(3).unwrap();
        let (costs, mut spans) = (Costs::default(), Vec::new());
        let mut simulation = Simulation::new(&topology, "/", &costs).unwrap();
        for number in 0..4 {
            simulation.request(number, &mut spans).unwrap();
        }
        assert_eq!(incomplete(&spans, &topology), 0);
        // Of one trace the last service is missing, of another the entry.
        let of = |number: usize| {
            let mut traces: Vec<_> = spans.iter().map(|span| span.trace).collect();
            traces.dedup();
            traces[number]
        };
        let (one, other) = (of(0), of(1));
        let last = |span: &Span| span.kind == SpanKind::Server && &*span.service == "s3";
        let first = |span: &Span| &*span.service == "s1";
        spans.retain(|span| {
            !(span.trace == one && last(span) || span.trace == other && first(span))
        });
        assert_eq!(incomplete(&spans, &topology), 2);
    }
}
