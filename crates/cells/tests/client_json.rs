//! Messages are printed and read as Go's types did in the recordings: keys, their order, values.

use std::fmt;

use diego::json::{self, Shape, shapes};
use diego::models::{self, DesireLrpRequest, DesireTaskRequest, UpdateDesiredLrpRequest};
use prost::Message;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::replay::scenario;

#[derive(serde::Deserialize)]
struct File {
    steps: Vec<Step>,
}

#[derive(serde::Deserialize)]
struct Step {
    name: String,
    #[serde(default)]
    request: Recorded,
    #[serde(default)]
    response: Recorded,
    #[serde(default)]
    events: Vec<Event>,
}

#[derive(serde::Deserialize, Default)]
struct Recorded {
    message: Option<String>,
    hex: Option<String>,
    zlib_base64: Option<String>,
    json: Option<Box<RawValue>>,
}

#[derive(serde::Deserialize)]
struct Event {
    event: String,
    data_hex: Option<String>,
    zlib_base64: Option<String>,
    json: Option<Box<RawValue>>,
}

/// JSON with the order of its keys, however its texts are escaped.
#[derive(Debug, PartialEq)]
enum Ordered {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Ordered>),
    Object(Vec<(String, Ordered)>),
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Ordered;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_unit<E>(self) -> Result<Ordered, E> {
                Ok(Ordered::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Ordered, E> {
                Ok(Ordered::Bool(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Ordered, E> {
                Ok(Ordered::Number(value.to_string()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Ordered, E> {
                Ok(Ordered::Number(value.to_string()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Ordered, E> {
                Ok(Ordered::Number(value.to_string()))
            }

            fn visit_str<E>(self, value: &str) -> Result<Ordered, E> {
                Ok(Ordered::Text(value.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Ordered, A::Error> {
                let mut found = Vec::new();
                while let Some(value) = list.next_element()? {
                    found.push(value);
                }
                Ok(Ordered::List(found))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered, A::Error> {
                let mut found = Vec::new();
                while let Some(member) = map.next_entry()? {
                    found.push(member);
                }
                Ok(Ordered::Object(found))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

fn parsed(text: &str) -> Ordered {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

impl Ordered {
    /// The value of a key; nothing where it is absent.
    fn take(self, key: &str) -> Ordered {
        let Ordered::Object(members) = self else {
            return Ordered::Null;
        };
        let found = members.into_iter().find(|(name, _)| name == key);
        found.map_or(Ordered::Null, |(_, value)| value)
    }
}

/// Answers whose records commands print: the records' key and shape.
fn records(message: &str) -> Option<(&'static str, &'static Shape)> {
    Some(match message {
        "CellsResponse" => ("cells", &shapes::CELL_PRESENCE),
        "ActualLRPsResponse" => ("actual_lrps", &shapes::ACTUAL_LRP),
        "ActualLRPsByProcessGuidsResponse" => ("actual_lrps", &shapes::ACTUAL_LRP),
        "ActualLRPGroupsResponse" => ("actual_lrp_groups", &shapes::ACTUAL_LRP_GROUP),
        "ActualLRPGroupResponse" => ("actual_lrp_group", &shapes::ACTUAL_LRP_GROUP),
        "DesiredLRPsResponse" => ("desired_lrps", &shapes::DESIRED_LRP),
        "DesiredLRPResponse" => ("desired_lrp", &shapes::DESIRED_LRP),
        "DesiredLRPSchedulingInfosResponse" => (
            "desired_lrp_scheduling_infos",
            &shapes::DESIRED_LRP_SCHEDULING_INFO,
        ),
        "DesiredLRPSchedulingInfoByProcessGuidResponse" => (
            "desired_lrp_scheduling_info",
            &shapes::DESIRED_LRP_SCHEDULING_INFO,
        ),
        "TasksResponse" => ("tasks", &shapes::TASK),
        "TaskResponse" => ("task", &shapes::TASK),
        _ => return None,
    })
}

#[derive(Clone, PartialEq, Message)]
struct Rows {
    #[prost(bytes = "vec", repeated, tag = "2")]
    rows: Vec<Vec<u8>>,
}

fn steps() -> impl Iterator<Item = Step> {
    let files = scenario::files();
    files.flat_map(|file| serde_json::from_slice::<File>(&file).unwrap().steps)
}

fn bytes(recorded: &Recorded) -> Vec<u8> {
    scenario::bytes(recorded.hex.as_deref(), recorded.zlib_base64.as_deref())
}

#[test]
fn records_in_answers_are_printed_as_recorded() {
    let mut seen = 0;
    for step in steps() {
        let answer = &step.response;
        let shape = answer.message.as_deref().and_then(records);
        let (Some((key, shape)), Some(view)) = (shape, &answer.json) else {
            continue;
        };
        let rows = Rows::decode(&*bytes(answer)).unwrap().rows;
        let printed = rows
            .iter()
            .map(|row| parsed(&json::print(shape, row).unwrap()));
        let expected = match parsed(view.get()).take(key) {
            Ordered::Null => Vec::new(),
            Ordered::List(list) => list,
            one => vec![one],
        };
        seen += expected.len();
        assert_eq!(printed.collect::<Vec<_>>(), expected, "{}", step.name);
    }
    assert!(seen > 200, "{seen} records");
}

#[test]
fn events_are_printed_as_recorded() {
    let mut seen = 0;
    for event in steps().flat_map(|step| step.events) {
        let Some(view) = &event.json else { continue };
        let shape = shapes::of_event(&event.event).unwrap();
        let data = scenario::bytes(event.data_hex.as_deref(), event.zlib_base64.as_deref());
        let printed = parsed(&json::print(shape, &data).unwrap());
        assert_eq!(printed, parsed(view.get()), "{}", event.event);
        seen += 1;
    }
    assert!(seen > 700, "{seen} events");
}

#[derive(serde::Deserialize)]
struct Desire {
    desired_lrp: Option<Box<RawValue>>,
    update: Option<Box<RawValue>>,
    task_definition: Option<Box<RawValue>>,
    #[serde(default)]
    task_guid: String,
    #[serde(default)]
    domain: String,
}

/// A message as people write it. Nothing for a number without a name, which was sent to be refused:
/// it cannot be written.
fn read<M: Message + Default>(shape: &'static Shape, spec: Option<&str>) -> Option<Option<M>> {
    let Some(spec) = spec else {
        return Some(None);
    };
    match json::read(shape, spec) {
        Ok(bytes) => Some(Some(M::decode(&*bytes).unwrap())),
        Err(error) if error.to_string().contains("expected one of ") => None,
        Err(error) => panic!("{error} in {spec}"),
    }
}

#[test]
fn what_was_desired_is_read_as_it_was_sent() {
    let (mut lrps, mut updates, mut tasks) = (0, 0, 0);
    for step in steps() {
        let request = &step.request;
        let (Some(message), Some(view)) = (request.message.as_deref(), &request.json) else {
            continue;
        };
        let sent = bytes(request);
        let said = || serde_json::from_str::<Desire>(view.get()).unwrap();
        match message {
            "DesireLRPRequest" => {
                let sent = DesireLrpRequest::decode(&*sent).unwrap().desired_lrp;
                let spec = said().desired_lrp;
                let Some(read) = read(&shapes::DESIRED_LRP, spec.as_deref().map(RawValue::get))
                else {
                    continue;
                };
                assert_eq!(compact(read), compact(sent), "{}", step.name);
                lrps += 1;
            }
            "UpdateDesiredLRPRequest" => {
                let sent = UpdateDesiredLrpRequest::decode(&*sent).unwrap().update;
                let spec = said().update;
                let spec = spec.as_deref().map(RawValue::get);
                let Some(read) =
                    read::<models::DesiredLrpUpdate>(&shapes::DESIRED_LRP_UPDATE, spec)
                else {
                    continue;
                };
                assert_eq!(read, sent, "{}", step.name);
                updates += 1;
            }
            "DesireTaskRequest" => {
                let sent = DesireTaskRequest::decode(&*sent).unwrap();
                let Desire {
                    task_definition,
                    task_guid,
                    domain,
                    ..
                } = said();
                // As people write it: all in one object.
                let names = serde_json::json!({ "task_guid": task_guid, "domain": domain });
                let names = names.to_string();
                let spec = task_definition.map(|spec| spec.get().trim().to_owned());
                let spec = match spec.as_deref().and_then(|spec| spec.strip_suffix('}')) {
                    Some(spec) => format!("{spec},{}", names.trim_start_matches('{')),
                    None => names,
                };
                let Some(Some(read)) = read::<models::Task>(&shapes::TASK, Some(&spec)) else {
                    continue;
                };
                assert_eq!(read.task_guid, sent.task_guid, "{}", step.name);
                assert_eq!(read.domain, sent.domain, "{}", step.name);
                let definition = read.task_definition;
                assert_eq!(definition, sent.task_definition, "{}", step.name);
                tasks += 1;
            }
            _ => {}
        }
    }
    assert!(
        lrps > 100 && updates > 20 && tasks > 60,
        "{lrps} LRPs, {updates} updates, {tasks} tasks"
    );
}

/// The views have the JSON of routes without its spaces.
fn compact(lrp: Option<models::DesiredLrp>) -> Option<models::DesiredLrp> {
    let mut lrp = lrp?;
    for value in lrp
        .routes
        .iter_mut()
        .flat_map(|routes| routes.routes.values_mut())
    {
        if let Ok(text) = json::compact(value) {
            *value = text.into_bytes();
        }
    }
    Some(lrp)
}
