//! The table by example and by property, with a router that does what it is told.

mod examples;
mod properties;
mod syncs;

use std::collections::BTreeMap;

use diego::models::actual_lrp::Presence;
use diego::models::{
    ActualLrp, ActualLrpInfo, ActualLrpInstanceChangedEvent, ActualLrpInstanceCreatedEvent,
    ActualLrpInstanceKey, ActualLrpInstanceRemovedEvent, ActualLrpKey, ActualLrpNetInfo,
    DesiredLrp, DesiredLrpChangedEvent, DesiredLrpCreatedEvent, DesiredLrpRemovedEvent,
    ModificationTag, PortMapping, ProtoRoutes,
};
use prost::Message;

use super::*;
use crate::route_emitter::registration::RegistryMessage;

/// What a router knows that heard everything from the start.
#[derive(Debug, Default, Clone, PartialEq)]
struct Router(BTreeMap<Key, Registration>);

impl Router {
    fn hears(&mut self, changes: &Changes) {
        for registration in &changes.registered {
            // When it was changed is for metrics alone.
            let known = registration.clone().changed_at(0);
            self.0.insert(registration.key(), known);
        }
        for registration in &changes.unregistered {
            self.0.remove(&registration.key());
        }
    }

    /// Routes with the endpoints that they lead to.
    fn routes(&self) -> Vec<String> {
        let text = |key: &Key| match key {
            Key::Http { route, host, port } => format!("{route} {host}:{port}"),
            Key::Internal { hostname, host } => format!("{hostname} {host}"),
            Key::Tcp {
                port,
                host,
                backend_port,
                ..
            } => format!("{port} {host}:{backend_port}"),
        };
        self.0.keys().map(text).collect()
    }
}

/// Everything that the table says when it is asked for all.
fn everything(table: &Table) -> Router {
    let mut router = Router::default();
    for audience in [Audience::External, Audience::Internal] {
        let mut behind = None;
        loop {
            let (registered, next) = table.page(audience, behind.as_ref(), 2);
            router.hears(&Changes {
                registered,
                ..Changes::default()
            });
            behind = next;
            if behind.is_none() {
                break;
            }
        }
    }
    router
}

/// A table, and a router that hears what it says.
#[derive(Default)]
struct Heard {
    table: Table,
    router: Router,
}

impl Heard {
    fn new(settings: TableSettings) -> Self {
        Self {
            table: Table::new(settings),
            router: Router::default(),
        }
    }

    fn event(&mut self, name: &str, message: &impl Message) -> Changes {
        let mut all = Changes::default();
        for event in events_of(name, &message.encode_to_vec()).unwrap() {
            let changes = self.table.apply(event);
            self.hear(&changes);
            all.registered.extend(changes.registered);
            all.unregistered.extend(changes.unregistered);
            all.collisions += changes.collisions;
            all.unknown_process = all.unknown_process.or(changes.unknown_process);
        }
        all
    }

    fn hear(&mut self, changes: &Changes) {
        self.router.hears(changes);
        let told: Vec<_> = self.router.0.keys().collect();
        let known = everything(&self.table);
        assert_eq!(told, known.0.keys().collect::<Vec<_>>(), "{changes:#?}");
    }

    fn desire(&mut self, lrp: DesiredLrp) -> Changes {
        let event = DesiredLrpCreatedEvent {
            desired_lrp: Some(lrp),
            ..DesiredLrpCreatedEvent::default()
        };
        self.event("desired_lrp_created", &event)
    }

    fn update(&mut self, before: DesiredLrp, after: DesiredLrp) -> Changes {
        let event = DesiredLrpChangedEvent {
            before: Some(before),
            after: Some(after),
            ..DesiredLrpChangedEvent::default()
        };
        self.event("desired_lrp_changed", &event)
    }

    fn undesire(&mut self, lrp: DesiredLrp) -> Changes {
        let event = DesiredLrpRemovedEvent {
            desired_lrp: Some(lrp),
            ..DesiredLrpRemovedEvent::default()
        };
        self.event("desired_lrp_removed", &event)
    }

    fn create(&mut self, lrp: ActualLrp) -> Changes {
        let event = ActualLrpInstanceCreatedEvent {
            actual_lrp: Some(lrp),
            ..ActualLrpInstanceCreatedEvent::default()
        };
        self.event("actual_lrp_instance_created", &event)
    }

    fn change(&mut self, before: ActualLrp, after: ActualLrp) -> Changes {
        let event = ActualLrpInstanceChangedEvent {
            actual_lrp_key: after.actual_lrp_key.clone(),
            actual_lrp_instance_key: after.actual_lrp_instance_key.clone(),
            before: Some(info(before)),
            after: Some(info(after)),
            ..ActualLrpInstanceChangedEvent::default()
        };
        self.event("actual_lrp_instance_changed", &event)
    }

    fn remove(&mut self, lrp: ActualLrp) -> Changes {
        let event = ActualLrpInstanceRemovedEvent {
            actual_lrp: Some(lrp),
            ..ActualLrpInstanceRemovedEvent::default()
        };
        self.event("actual_lrp_instance_removed", &event)
    }

    fn sync(&mut self, snapshot: Snapshot) -> Changes {
        self.table.begin_sync();
        self.answer(snapshot)
    }

    fn answer(&mut self, snapshot: Snapshot) -> Changes {
        let changes = self.table.finish_sync(snapshot).unwrap();
        self.hear(&changes);
        changes
    }
}

fn info(lrp: ActualLrp) -> ActualLrpInfo {
    ActualLrpInfo {
        actual_lrp_net_info: lrp.actual_lrp_net_info,
        state: lrp.state,
        since: lrp.since,
        modification_tag: lrp.modification_tag,
        presence: lrp.presence,
        routable: lrp.routable,
        availability_zone: lrp.availability_zone,
        ..ActualLrpInfo::default()
    }
}

fn tag(epoch: &str, index: u32) -> Option<ModificationTag> {
    Some(ModificationTag {
        epoch: epoch.into(),
        index,
    })
}

/// A process `p` of the domain `d`, of which `instances` are wanted.
fn process(instances: i32, index: u32, routes: &[(&str, &str)]) -> DesiredLrp {
    let routes = routes.iter();
    let routes = routes.map(|(router, json)| ((*router).to_owned(), json.as_bytes().to_vec()));
    DesiredLrp {
        process_guid: "p".into(),
        domain: "d".into(),
        instances,
        log_guid: "app".into(),
        routes: Some(ProtoRoutes {
            routes: routes.collect(),
        }),
        modification_tag: tag("desired", index),
        ..DesiredLrp::default()
    }
}

/// As [`process`], with HTTP routes to port 8080.
fn web(instances: i32, index: u32, hostnames: &[&str]) -> DesiredLrp {
    let json = serde_json::json!([{"hostnames": hostnames, "port": 8080}]);
    process(instances, index, &[("cf-router", &json.to_string())])
}

/// An instance of `p` that runs: on the cell 10.0.0.1 at the port 61000 + `number`.
fn runs(index: i32, number: u32, tag_index: u32) -> ActualLrp {
    let guid = format!("guid-{number}");
    ActualLrp {
        actual_lrp_key: Some(ActualLrpKey {
            process_guid: "p".into(),
            index,
            domain: "d".into(),
        }),
        modification_tag: tag(&guid, tag_index),
        actual_lrp_instance_key: Some(ActualLrpInstanceKey {
            instance_guid: guid,
            cell_id: "cell".into(),
        }),
        actual_lrp_net_info: Some(ActualLrpNetInfo {
            address: "10.0.0.1".into(),
            instance_address: format!("10.255.0.{number}"),
            ports: vec![PortMapping {
                container_port: 8080,
                host_port: 61_000 + number,
                ..PortMapping::default()
            }],
            ..ActualLrpNetInfo::default()
        }),
        state: "RUNNING".into(),
        since: 77,
        routable: Some(true),
        availability_zone: "z1".into(),
        ..ActualLrp::default()
    }
}

fn with(mut lrp: ActualLrp, change: impl FnOnce(&mut ActualLrp)) -> ActualLrp {
    change(&mut lrp);
    lrp
}

fn evacuating(lrp: ActualLrp) -> ActualLrp {
    with(lrp, |lrp| {
        lrp.presence = Presence::Evacuating.into();
        lrp.modification_tag = tag("copy", 0);
    })
}

fn http(registration: &Registration) -> &RegistryMessage {
    match registration {
        Registration::Http(message) => message,
        other => panic!("{other:?}"),
    }
}
