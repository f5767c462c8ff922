//! Writing spans.

use std::collections::{BTreeMap, HashMap};

use serde::{Serialize, Serializer};

use crate::attributes::{ATTEMPT, PEER, Spelling, Value, exact, to_micros, written};
use crate::{Origin, Span, SpanKind};
use crate::{SpanId, TraceId};

const NAMES: Spelling = Spelling {
    path: "url.path",
    status: "http.response.status_code",
    attempt: ATTEMPT,
};

/// Spans as an answer of the query service, which its page takes as a file too: traces in
/// the order in which they come.
pub fn write(spans: &[Span], origin: &Origin) -> Vec<u8> {
    let mut data: Vec<Trace<'_>> = Vec::new();
    let mut places: HashMap<TraceId, usize> = HashMap::new();
    for span in spans {
        let place = *places.entry(span.trace).or_insert_with(|| {
            data.push(Trace::new(span.trace));
            data.len() - 1
        });
        data[place].add(span, origin);
    }
    let answer = Answer {
        total: data.len(),
        data,
        limit: 0,
        offset: 0,
        errors: None,
    };
    // Neither a text nor a number of these can fail to be written.
    serde_json::to_vec(&answer).unwrap_or_default()
}

#[derive(Serialize)]
struct Answer<'a> {
    data: Vec<Trace<'a>>,
    total: usize,
    limit: u32,
    offset: u32,
    errors: Option<()>,
}

#[derive(Serialize)]
struct Trace<'a> {
    #[serde(rename = "traceID")]
    id: String,
    spans: Vec<Written<'a>>,
    /// By `p1` and so on.
    processes: BTreeMap<String, Process<'a>>,
    #[serde(skip)]
    process_of: HashMap<&'a str, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Process<'a> {
    service_name: &'a str,
    tags: [(); 0],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    #[serde(rename = "traceID")]
    trace: String,
    #[serde(rename = "spanID")]
    id: String,
    operation_name: &'a str,
    references: Vec<Reference>,
    start_time: u64,
    duration: u64,
    tags: Vec<Tag<'a>>,
    logs: [(); 0],
    #[serde(rename = "processID")]
    process: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reference {
    ref_type: &'static str,
    #[serde(rename = "traceID")]
    trace: String,
    #[serde(rename = "spanID")]
    id: String,
}

#[derive(Serialize)]
struct Tag<'a> {
    key: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(serialize_with = "exactly")]
    value: Value<'a>,
}

/// Jaeger has larger numbers as texts, too: its page would round them.
const LARGEST: u64 = (1 << 53) - 1;

fn exactly<S: Serializer>(value: &Value<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Value::Number(number) if *number > LARGEST => serializer.collect_str(number),
        value => value.serialize(serializer),
    }
}

impl<'a> Trace<'a> {
    fn new(id: TraceId) -> Self {
        Self {
            id: format!("{:032x}", id.0),
            spans: Vec::new(),
            processes: BTreeMap::new(),
            process_of: HashMap::new(),
        }
    }

    fn add(&mut self, span: &'a Span, origin: &Origin) {
        let service: &'a str = &span.service;
        let next = self.process_of.len() + 1;
        let processes = &mut self.processes;
        let process = self.process_of.entry(service).or_insert_with(|| {
            let name = format!("p{next}");
            let process = Process {
                service_name: service,
                tags: [],
            };
            processes.insert(name.clone(), process);
            name
        });
        let parent = (span.parent != SpanId::default()).then(|| Reference {
            ref_type: "CHILD_OF",
            trace: self.id.clone(),
            id: digits(span.parent),
        });
        let start = origin.epoch.to_unix(span.start);
        let end = origin.epoch.to_unix(span.end);
        let (start_time, duration) = to_micros(start, end);
        self.spans.push(Written {
            trace: self.id.clone(),
            id: digits(span.id),
            operation_name: &span.name,
            references: parent.into_iter().collect(),
            start_time,
            duration,
            tags: tags_of(span, start, end),
            logs: [],
            process: process.clone(),
        });
    }
}

fn digits(id: SpanId) -> String {
    format!("{:016x}", id.0)
}

fn tags_of(span: &Span, start: u64, end: u64) -> Vec<Tag<'_>> {
    let kind = match span.kind {
        SpanKind::Server => "server",
        SpanKind::Client => "client",
        SpanKind::Work | SpanKind::Internal => "internal",
    };
    let peer = (!span.peer.is_empty()).then_some((PEER, Value::Text(&span.peer)));
    // What the page marks red.
    let failed = !span.cause.is_empty() || span.status >= 500;
    let failed = failed.then_some(("error", Value::Bool(true)));
    let tags = [("span.kind", Value::Text(kind))].into_iter().chain(peer);
    let tags = tags
        .chain(failed)
        .chain(written(span, &NAMES))
        .chain(exact(start, end));
    let typed = tags.map(|(key, value)| Tag {
        key,
        kind: match value {
            Value::Text(_) => "string",
            Value::Number(_) => "int64",
            Value::Bool(_) | Value::Other => "bool",
        },
        value,
    });
    typed.collect()
}
