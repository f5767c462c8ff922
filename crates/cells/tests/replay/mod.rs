//! Replays a recorded scenario against a BBS over real sockets.

mod compare;
pub mod scenario;
mod schema;
mod world;

use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use compare::{Epochs, Side, compact, mask};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request};
use http_body_util::Full;
use scenario::{Scenario, Step};
use schema::Schema;
use serde_json::{Value, json};
use world::World;

fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(Schema::load)
}

/// Longest wait for events and calls that a step should bring.
const PATIENCE: Duration = Duration::from_secs(3);
/// Pause after them, for what should not come.
const SETTLE: Duration = Duration::from_millis(8);

/// Replays a scenario; returns what differs.
pub async fn replay(scenario: &Scenario) -> Vec<String> {
    let mut world = World::start(scenario.converge_interval()).await;
    let mut epochs = Epochs::default();
    let mut problems = Vec::new();
    for (number, step) in scenario.steps.iter().enumerate() {
        let mut found = run(&mut world, &mut epochs, step).await;
        if !passes_may_follow(scenario, number) {
            found.extend(consequences(&mut world, &mut epochs, step).await);
        }
        problems.extend(
            found
                .into_iter()
                .map(|problem| format!("step {number} {:?}: {problem}", step.name)),
        );
    }
    world.stop().await;
    problems
}

/// Whether what comes after a step is told with the next one, which waits for a pass of
/// convergence: the pass may begin at once.
fn passes_may_follow(scenario: &Scenario, number: usize) -> bool {
    let brings_nothing = |step: &Step| step.events.is_empty() && step.outbound.is_empty();
    let waits = |step: &Step| step.kind == "wait";
    scenario.converge_interval().is_some()
        && brings_nothing(&scenario.steps[number])
        && scenario.steps.get(number + 1).is_some_and(waits)
}

async fn run(world: &mut World, epochs: &mut Epochs, step: &Step) -> Vec<String> {
    match step.kind.as_str() {
        "wait" => {
            tokio::time::sleep(Duration::from_millis(step.ms)).await;
            Vec::new()
        }
        "stub" => {
            let stub = step.stub.as_ref().unwrap();
            world.set_status(&stub.target, stub.status);
            Vec::new()
        }
        "open_stream" => world.open(step.stream.as_ref().unwrap()).await,
        "locket" => locket(world, step).await,
        "http" => http_call(world, epochs, step).await,
        other => vec![format!("unknown kind {other}")],
    }
}

fn body(world: &World, step: &Step) -> Vec<u8> {
    let bytes = step.request.bytes();
    match &step.request.message {
        Some(message) => world
            .addresses()
            .iter()
            .fold(bytes, |bytes, (recorded, actual)| {
                schema().rewrite(message, &bytes, recorded, actual)
            }),
        None => bytes,
    }
}

async fn locket(world: &World, step: &Step) -> Vec<String> {
    let request = Request::post(world.uri(&step.path))
        .body(body(world, step))
        .unwrap();
    let answer = world
        .send(request.map(|body| Full::new(Bytes::from(body))))
        .await;
    let header = |name| {
        answer
            .headers
            .get(name)
            .map(|value: &HeaderValue| value.to_str().unwrap())
    };
    let code = header("grpc-status").unwrap_or("0").to_owned();
    let text = header("grpc-message").unwrap_or_default();
    if code != step.response.grpc_code_number.to_string() || text != step.response.grpc_message {
        return vec![format!("answered {code} {text:?}")];
    }
    Vec::new()
}

async fn http_call(world: &World, epochs: &mut Epochs, step: &Step) -> Vec<String> {
    let mut request = Request::new(Full::new(Bytes::from(body(world, step))));
    *request.method_mut() = Method::from_bytes(step.method.as_bytes()).unwrap();
    *request.uri_mut() = world.uri(&step.path);
    let kind = HeaderValue::from_static("application/x-protobuf");
    request.headers_mut().insert(CONTENT_TYPE, kind);
    for header in &step.request.headers {
        let name = HeaderName::from_bytes(header.name.as_bytes()).unwrap();
        request
            .headers_mut()
            .insert(name, HeaderValue::from_str(&header.value).unwrap());
    }
    let answer = world.send(request).await;
    let mut problems = Vec::new();
    let expected = &step.response;
    if answer.status.as_u16() != expected.status {
        problems.push(format!(
            "status {} instead of {}",
            answer.status, expected.status
        ));
    }
    let kind = answer
        .headers
        .get(CONTENT_TYPE)
        .map_or("", |kind| kind.to_str().unwrap());
    if kind != expected.content_type {
        problems.push(format!(
            "content type {kind:?} instead of {:?}",
            expected.content_type
        ));
    }
    if let Some(text) = &expected.text
        && answer.body != text.as_bytes()
    {
        problems.push(format!("text {:?} instead of {text:?}", answer.body));
    }
    let Some(message) = &expected.body.message else {
        return problems;
    };
    let view = |bytes: &[u8]| schema().view(message, bytes).unwrap_or_else(Value::String);
    let mut recorded = view(&expected.body.bytes());
    let mut received = world.as_recorded(view(&answer.body));
    if step.quirk.is_some() {
        let kind = |value: &Value| value.pointer("/error/type").cloned();
        (recorded, received) = (json!(kind(&recorded)), json!(kind(&received)));
    }
    for (side, value) in [
        (Side::Recorded, &mut recorded),
        (Side::Received, &mut received),
    ] {
        mask(value, &step.volatile);
        epochs.sort(side, value, &step.unordered);
    }
    problems.extend(epochs.differ(&[recorded], &[received]));
    problems
}

/// Compares the events and outbound calls that followed a step.
async fn consequences(world: &mut World, epochs: &mut Epochs, step: &Step) -> Vec<String> {
    world
        .wait_for(step.events.len(), step.outbound.len(), PATIENCE)
        .await;
    tokio::time::sleep(SETTLE).await;
    let mut problems = Vec::new();
    let (mut recorded, mut received) = (Vec::new(), Vec::new());
    for event in &step.events {
        let mut payload = schema().view(&event.message, &event.bytes()).unwrap();
        mask(&mut payload, &event.volatile);
        recorded.push(json!({"stream": event.stream, "event": event.event, "payload": payload}));
    }
    for (stream, event) in world.take_events(&mut problems) {
        // What is volatile follows from the kind of the event.
        let same = step
            .events
            .iter()
            .find(|recorded| recorded.event == event.name);
        let Some(same) = same else {
            received.push(json!({"stream": stream, "event": event.name}));
            continue;
        };
        let payload = schema().view(&same.message, &event.payload);
        let mut payload = world.as_recorded(payload.unwrap_or_else(Value::String));
        let kin = step
            .events
            .iter()
            .filter(|recorded| recorded.event == event.name);
        kin.for_each(|recorded| mask(&mut payload, &recorded.volatile));
        received.push(json!({"stream": stream, "event": event.name, "payload": payload}));
    }
    let mut calls = (Vec::new(), Vec::new());
    for call in &step.outbound {
        let mut json = call.json.clone().unwrap_or_default();
        mask(&mut json, &call.volatile);
        epochs.sort(Side::Recorded, &mut json, &call.unordered);
        let mut call = json!({
            "target": call.target, "method": call.method, "path": call.path, "json": json,
            "content_type": call.content_type, "trace": call.x_vcap_request_id,
        });
        compact(&mut call);
        calls.0.push(call);
    }
    for mut call in world.take_calls() {
        let path = call["path"].as_str().unwrap_or_default().to_owned();
        if let Some(same) = step.outbound.iter().find(|recorded| recorded.path == path) {
            mask(&mut call["json"], &same.volatile);
            epochs.sort(Side::Received, &mut call["json"], &same.unordered);
        }
        compact(&mut call);
        calls.1.push(call);
    }
    if step.kind == "wait" {
        // How often a pass repeats itself within a pause is a matter of timing.
        for list in [&mut recorded, &mut received, &mut calls.0, &mut calls.1] {
            list.sort_by_key(Value::to_string);
            list.dedup();
        }
    }
    if step.quirk.is_none() {
        problems.extend(epochs.differ(&recorded, &received));
        problems.extend(epochs.differ(&calls.0, &calls.1));
    }
    problems
}
