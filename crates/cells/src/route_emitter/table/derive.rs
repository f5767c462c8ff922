//! Which registrations follow from a desired LRP and the records of one of its instances.

use std::collections::BTreeMap;

use diego::models::PortMapping;

use super::facts::{Desired, Instance, Slots};
use super::{Audience, TableSettings};
use crate::route_emitter::registration::{Key, Registration, RegistryMessage, TcpMapping};

/// Registrations by what makes them the same one.
pub(super) type Registrations = BTreeMap<Key, Registration>;

/// All that follows for an audience; `None`: for everybody.
pub(super) fn registrations(
    desired: Option<&Desired>,
    slots: Option<&Slots>,
    settings: TableSettings,
    audience: Option<Audience>,
) -> Registrations {
    let mut all = Registrations::new();
    let (Some(desired), Some(slots)) = (desired, slots) else {
        return all;
    };
    for instance in slots.all() {
        // What is scaled down gets no requests while it ends.
        if instance.index >= desired.instances {
            continue;
        }
        if audience != Some(Audience::Internal) {
            external(desired, instance, settings, &mut all);
        }
        if audience != Some(Audience::External) {
            internal(desired, instance, &mut all);
        }
    }
    all
}

fn external(
    desired: &Desired,
    instance: &Instance,
    settings: TableSettings,
    all: &mut Registrations,
) {
    let direct = instance.is_direct(settings.direct_instance_routes);
    let host = host(instance, direct);
    // A copy of an instance that never ran has no address.
    if host.is_empty() {
        return;
    }
    let mut tags = None;
    let mapped = |port: u32| {
        let ports = instance.ports.iter();
        ports.filter(move |mapping| mapping.container_port == port)
    };
    for route in &desired.routes.http {
        for mapping in mapped(route.port) {
            let (port, tls_port) = ports(mapping, direct);
            let message = RegistryMessage {
                host: host.into(),
                port,
                tls_port,
                uris: vec![route.uri.clone()],
                protocol: route.protocol.clone(),
                app: desired.log_guid.to_string(),
                route_service_url: route.service_url.clone(),
                private_instance_id: instance.guid.to_string(),
                private_instance_index: instance.index.to_string(),
                server_cert_domain_san: instance.guid.to_string(),
                isolation_segment: route.segment.clone(),
                endpoint_updated_at_ns: 0,
                tags: tags.get_or_insert_with(|| desired.tags(instance)).clone(),
                availability_zone: instance.zone.to_string(),
                options: route.options.clone(),
            };
            add(all, Registration::Http(message));
        }
    }
    for route in &desired.routes.tcp {
        for mapping in mapped(route.port) {
            let (port, tls_port) = ports(mapping, direct);
            let (backend_tls_port, instance_id) = match settings.tcp_tls {
                true => (
                    i32::try_from(tls_port).unwrap_or(-1),
                    instance.guid.to_string(),
                ),
                false => (-1, String::new()),
            };
            // A port beyond these is none.
            let Ok(backend_port) = u16::try_from(port) else {
                continue;
            };
            let mapping = TcpMapping {
                router_group_guid: route.group.clone(),
                external_port: route.external_port,
                backend_ip: host.into(),
                backend_port,
                backend_tls_port,
                instance_id,
                backend_sni_hostname: route.sni.clone(),
            };
            add(all, Registration::Tcp(mapping));
        }
    }
}

fn internal(desired: &Desired, instance: &Instance, all: &mut Registrations) {
    if instance.container.is_empty() {
        return;
    }
    for hostname in &desired.routes.internal {
        let message = RegistryMessage {
            host: instance.container.to_string(),
            uris: vec![hostname.clone(), format!("{}.{hostname}", instance.index)],
            app: desired.log_guid.to_string(),
            private_instance_index: instance.index.to_string(),
            tags: [("component".into(), "route-emitter".into())].into(),
            ..RegistryMessage::default()
        };
        add(all, Registration::Internal(message));
    }
}

/// The ordinary record and the earlier route win.
fn add(all: &mut Registrations, registration: Registration) {
    all.entry(registration.key()).or_insert(registration);
}

fn host(instance: &Instance, direct: bool) -> &str {
    match direct {
        true => &instance.container,
        false => &instance.host,
    }
}

/// Without TLS, and with it.
fn ports(mapping: &PortMapping, direct: bool) -> (u32, u32) {
    match direct {
        true => (mapping.container_port, mapping.container_tls_proxy_port),
        false => (mapping.host_port, mapping.host_tls_proxy_port),
    }
}

/// Everywhere that registrations of an instance may lead to. Port 0 stands for its container.
pub(super) fn places(slots: &Slots, settings: TableSettings) -> Vec<(Box<str>, u32)> {
    let mut places = Vec::new();
    for instance in slots.all() {
        let direct = instance.is_direct(settings.direct_instance_routes);
        let host = host(instance, direct);
        for mapping in &instance.ports {
            let (port, tls_port) = ports(mapping, direct);
            let ports = [port, tls_port].into_iter().filter(|port| *port != 0);
            places.extend(ports.map(|port| (host.into(), port)));
        }
        places.push((instance.container.clone(), 0));
    }
    places.retain(|(host, _)| !host.is_empty());
    places.sort_unstable();
    places.dedup();
    places
}
