//! Spans of files and of running graphs.

use std::path::Path;

use anyhow::{Context, Result, bail};
use graph::topology::Topology;
use graph::trace::names::Names;
use graph::trace::{Origin, ReadError, Span, jaeger, otlp, zipkin};
use http::Uri;
use net::{Client, ClientOptions};

use super::make::whole;

/// Longest file of spans.
const FILE_BYTES: u64 = 1 << 30;

/// Longest answer of a running graph.
const ANSWER_BYTES: usize = 1 << 30;

/// Reads spans in whichever form they are: Zipkin's JSON is a list, OTLP's and Jaeger's are
/// objects with keys of their own; what is no JSON is OTLP in protobuf.
pub(super) fn read(bytes: &[u8], origin: &Origin) -> Result<Vec<Span>, ReadError> {
    let mut names = Names::default();
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'[') => zipkin::read(bytes, origin, &mut names),
        Some(b'{') if first_key(bytes).is_some_and(|key| jaeger::KEYS.contains(&key)) => {
            jaeger::read(bytes, origin, &mut names)
        }
        Some(b'{') => otlp::read_json(bytes, origin, &mut names),
        _ => otlp::read_protobuf(bytes, origin, &mut names),
    }
}

/// The first key of a JSON object.
fn first_key(json: &[u8]) -> Option<&str> {
    let key = json.trim_ascii_start().strip_prefix(b"{")?;
    let key = key.trim_ascii_start().strip_prefix(b"\"")?;
    let end = key.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(key.get(..end)?).ok()
}

/// The spans of a file.
pub(super) fn of_file(file: &Path) -> Result<Vec<Span>> {
    let bytes = whole(file, FILE_BYTES)?;
    if bytes.is_empty() {
        bail!("read {}: it is empty; expected spans", file.display());
    }
    // Wherever it comes from, its times count from 1970.
    read(&bytes, &Origin::unix()).with_context(|| {
        let file = file.display();
        format!("read {file}: expected spans of OTLP, Zipkin or Jaeger")
    })
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
        self.ask(&format!("/spans?{}", query.finish())).await
    }

    /// What runs and where: the answer of `/topology`.
    pub(super) async fn described(&self) -> Result<serde_json::Value> {
        let bytes = self.ask("/topology").await?;
        serde_json::from_slice(&bytes).context("read what the graph says of itself")
    }

    /// The topology in force.
    pub(super) async fn topology(&self) -> Result<Topology> {
        let text = self.ask("/profile").await?;
        let source = document::Source {
            name: format!("{}/profile", self.address),
            text: String::from_utf8(text).context("read the graph's profile")?,
        };
        let checked = super::checked(&source, None)?;
        Ok(checked.topology)
    }

    async fn ask(&self, what: &str) -> Result<Vec<u8>> {
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
    use super::*;

    #[test]
    fn forms_are_told_apart() {
        let origin = Origin::unix();
        assert!(read(b" []", &origin).unwrap().is_empty());
        let otlp = br#"{"resourceSpans":[]}"#;
        assert!(read(otlp, &origin).unwrap().is_empty());
        let error = read(b" {\n \"data\" : 3}", &origin)
            .unwrap_err()
            .to_string();
        assert!(error.contains("Jaeger"), "{error}");
        let error = read(b"\x01\xff", &origin).unwrap_err().to_string();
        assert!(error.contains("protobuf"), "{error}");
    }
}
