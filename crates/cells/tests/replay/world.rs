//! A BBS with stand-ins for everybody that it calls.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cells::bbs::{self, Config, Running};
use diego::TRACE_HEADER;
use diego::sse::{Decoder, Event};
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use net::{Answer, Body, Client, ClientOptions, Handler, Incoming};
use serde_json::{Value, json};
use telemetry::{Level, Logger, Sink};
use tempfile::TempDir;
use tokio::sync::watch;

use super::scenario::Stream;

/// Addresses in the recording, by the stand-in that answers them here.
const RECORDED: [(&str, &str); 2] = [
    ("rep", "https://127.0.0.1:28895"),
    ("callback", "http://127.0.0.1:28896"),
];

/// Answers like one of the BBS's peers and keeps what it was asked.
struct Stub {
    target: &'static str,
    status: AtomicU16,
    calls: Arc<Mutex<Vec<Value>>>,
}

impl Handler for Stub {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let body = net::read_body(body, 1 << 20, Duration::from_secs(5))
            .await
            .unwrap();
        let header = |name: &str| head.headers.get(name).map(|value| value.to_str().unwrap());
        let call = json!({
            "target": self.target,
            "method": head.method.as_str(),
            "path": head.uri.path(),
            "content_type": header(CONTENT_TYPE.as_str()),
            "trace": header(TRACE_HEADER),
            "json": serde_json::from_slice::<Value>(&body).unwrap_or_default(),
        });
        let mut status = self.status.load(Ordering::SeqCst);
        if self.target == "callback" {
            // The last element of the path is the status that it wants.
            status = head.uri.path().rsplit('/').next().unwrap().parse().unwrap();
        }
        self.calls.lock().unwrap().push(call);
        let mut response = Response::new(net::empty());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        response
    }
}

type Events = Arc<Mutex<Vec<(String, Event)>>>;

pub struct World {
    bbs: Running,
    client: Client,
    calls: Arc<Mutex<Vec<Value>>>,
    stubs: HashMap<&'static str, Arc<Stub>>,
    addresses: Vec<(String, String)>,
    events: Events,
    next_ids: HashMap<String, u64>,
    _stop_stubs: Vec<watch::Sender<bool>>,
    _folder: TempDir,
}

impl World {
    /// With passes of convergence this often; `None`: with none while it is watched.
    pub async fn start(converge_interval: Option<Duration>) -> Self {
        let calls: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (mut stubs, mut urls, mut stops) = (HashMap::new(), HashMap::new(), Vec::new());
        for target in ["auctioneer", "rep", "callback"] {
            let stub = Arc::new(Stub {
                target,
                status: AtomicU16::new(202),
                calls: Arc::clone(&calls),
            });
            let listener = net::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
            urls.insert(target, format!("http://{}", listener.local_addr().unwrap()));
            let (stop, asked) = net::shutdown();
            let serve = net::serve(
                listener,
                None,
                net::Limits::default(),
                Arc::clone(&stub),
                asked,
            );
            tokio::spawn(serve);
            stops.push(stop);
            stubs.insert(target, stub);
        }
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::new("127.0.0.1:0".parse().unwrap(), folder.path());
        config.auctioneer_url = Some(urls["auctioneer"].clone());
        const HOURS: Duration = Duration::from_secs(36_000);
        config.limits.converge_interval = converge_interval.unwrap_or(HOURS);
        let logger = Logger::new("bbs", Sink::nothing(), Level::Info);
        let addresses = RECORDED
            .iter()
            .map(|(target, recorded)| ((*recorded).to_owned(), urls[target].clone()))
            .collect();
        Self {
            bbs: bbs::start(config, logger).await.unwrap(),
            client: Client::new(ClientOptions::default()),
            calls,
            stubs,
            addresses,
            events: Events::default(),
            next_ids: HashMap::new(),
            _stop_stubs: stops,
            _folder: folder,
        }
    }

    pub async fn stop(self) {
        self.bbs.stop().await.unwrap();
    }

    /// Recorded addresses with those that stand for them here.
    pub fn addresses(&self) -> &[(String, String)] {
        &self.addresses
    }

    /// The value with our addresses as the recorded ones.
    pub fn as_recorded(&self, value: Value) -> Value {
        match value {
            Value::String(text) => {
                let replace = |text: String, (recorded, actual): &(String, String)| {
                    text.replace(actual, recorded)
                };
                Value::String(self.addresses.iter().fold(text, replace))
            }
            Value::Array(list) => list
                .into_iter()
                .map(|value| self.as_recorded(value))
                .collect(),
            Value::Object(object) => {
                let fields = object.into_iter();
                Value::Object(
                    fields
                        .map(|(name, value)| (name, self.as_recorded(value)))
                        .collect(),
                )
            }
            other => other,
        }
    }

    pub fn uri(&self, path: &str) -> Uri {
        format!("http://{}{path}", self.bbs.address())
            .parse()
            .unwrap()
    }

    pub fn set_status(&self, target: &str, status: u16) {
        self.stubs[target].status.store(status, Ordering::SeqCst);
    }

    pub async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        self.client.request(request).await.unwrap()
    }

    /// Opens a stream and gathers its events from now on.
    pub async fn open(&mut self, stream: &Stream) -> Vec<String> {
        let mut request = Request::new(Full::new(Bytes::from(stream.request())));
        *request.method_mut() = Method::from_bytes(stream.method.as_bytes()).unwrap();
        *request.uri_mut() = self.uri(&stream.path);
        let response = self.client.open(request).await.unwrap();
        let mut problems = Vec::new();
        if response.status() != StatusCode::OK {
            problems.push(format!("status {}", response.status()));
        }
        for line in stream.response_head.iter().skip(1) {
            let (name, value) = line.split_once(": ").unwrap();
            let found = response
                .headers()
                .get(name)
                .map(|value| value.to_str().unwrap());
            if name != "Date" && found != Some(value) {
                problems.push(format!("header {name}: {found:?} instead of {value:?}"));
            }
        }
        let (name, events) = (stream.name.clone(), Arc::clone(&self.events));
        let mut body = response.into_body();
        tokio::spawn(async move {
            let mut decoder = Decoder::default();
            while let Some(Ok(frame)) = body.frame().await {
                let Ok(data) = frame.into_data() else {
                    continue;
                };
                let new = decoder.feed(&data).unwrap();
                let new = new.into_iter().map(|event| (name.clone(), event));
                events.lock().unwrap().extend(new);
            }
        });
        problems
    }

    /// Waits until so many events and calls have arrived, or as long as it may.
    pub async fn wait_for(&self, events: usize, calls: usize, patience: Duration) {
        let arrived = async {
            while self.events.lock().unwrap().len() < events
                || self.calls.lock().unwrap().len() < calls
            {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let _ = tokio::time::timeout(patience, arrived).await;
    }

    /// The events since the last call, by stream; their numbers have no gaps.
    pub fn take_events(&mut self, problems: &mut Vec<String>) -> Vec<(String, Event)> {
        let events = std::mem::take(&mut *self.events.lock().unwrap());
        for (stream, event) in &events {
            let next = self.next_ids.entry(stream.clone()).or_default();
            if event.id != *next {
                problems.push(format!(
                    "stream {stream}: id {} instead of {next}",
                    event.id
                ));
            }
            *next = event.id + 1;
        }
        events
    }

    /// The outbound calls since the last call.
    pub fn take_calls(&self) -> Vec<Value> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }
}
