//! Desired LRPs: creation, update, their views, and what follows for instances.

use std::collections::BTreeMap;

use diego::auction::{LrpStartRequest, Placement, Resource};
use diego::models::metric_tag_value::DynamicValue;
use diego::models::{
    DesiredLrp, DesiredLrpKey, DesiredLrpResource, DesiredLrpSchedulingInfo, DesiredLrpUpdate,
    MetricTagValue, ModificationTag, ProtoRoutes, VolumeMount, VolumePlacement,
};

use super::Context;

/// The router whose route data instances carry as internal routes.
const INTERNAL_ROUTER: &str = "internal-router";

/// A new desired LRP.
pub fn create(request: DesiredLrp, context: &mut Context<'_>) -> DesiredLrp {
    DesiredLrp {
        modification_tag: Some(ModificationTag {
            epoch: (context.new_guid)(),
            index: 0,
        }),
        routes: Some(kept(request.routes.unwrap_or_default())),
        // Readers of the first version get it from the one in milliseconds.
        deprecated_start_timeout_s: 0,
        ..request
    }
}

/// The desired LRP with the fields set that the update carries. Even an update
/// that carries none raises the modification index.
pub fn update(desired: &DesiredLrp, update: &DesiredLrpUpdate) -> DesiredLrp {
    let mut new = desired.clone();
    if let Some(instances) = update.instances {
        new.instances = instances;
    }
    if let Some(routes) = &update.routes {
        new.routes = Some(kept(routes.clone()));
    }
    if let Some(annotation) = &update.annotation {
        new.annotation.clone_from(annotation);
    }
    if !update.metric_tags.is_empty() {
        new.metric_tags.clone_from(&update.metric_tags);
    }
    if let Some(username) = &update.image_username {
        new.image_username.clone_from(username);
    }
    if let Some(password) = &update.image_password {
        new.image_password.clone_from(password);
    }
    let tag = new.modification_tag.unwrap_or_default();
    new.modification_tag = Some(ModificationTag {
        index: tag.index.wrapping_add(1),
        ..tag
    });
    new
}

/// Routes as they are kept: with their JSON as Go's encoder writes it. Clients that compare what
/// they read with what they wrote know it so from Diego's BBS.
fn kept(mut routes: ProtoRoutes) -> ProtoRoutes {
    for json in routes.routes.values_mut() {
        // What is no text in UTF-8 stays as it came.
        if let Ok(compact) = diego::json::compact(json) {
            *json = compact.into_bytes();
        }
    }
    routes
}

/// A record in two parts: what the scheduling info holds, and the rest as a
/// [`DesiredLrp`] without it.
pub fn split(desired: DesiredLrp) -> (DesiredLrpSchedulingInfo, DesiredLrp) {
    let mut rest = desired;
    let info = DesiredLrpSchedulingInfo {
        desired_lrp_key: Some(DesiredLrpKey {
            process_guid: std::mem::take(&mut rest.process_guid),
            domain: std::mem::take(&mut rest.domain),
            log_guid: std::mem::take(&mut rest.log_guid),
        }),
        annotation: std::mem::take(&mut rest.annotation),
        instances: std::mem::take(&mut rest.instances),
        desired_lrp_resource: Some(DesiredLrpResource {
            memory_mb: std::mem::take(&mut rest.memory_mb),
            disk_mb: std::mem::take(&mut rest.disk_mb),
            root_fs: std::mem::take(&mut rest.root_fs),
            max_pids: std::mem::take(&mut rest.max_pids),
        }),
        routes: Some(rest.routes.take().unwrap_or_default()),
        modification_tag: Some(rest.modification_tag.take().unwrap_or_default()),
        volume_placement: Some(VolumePlacement {
            driver_names: volume_drivers(&rest.volume_mounts),
        }),
        placement_tags: std::mem::take(&mut rest.placement_tags),
    };
    (info, rest)
}

/// The whole record again.
pub fn join(info: DesiredLrpSchedulingInfo, rest: DesiredLrp) -> DesiredLrp {
    let key = info.desired_lrp_key.unwrap_or_default();
    let resource = info.desired_lrp_resource.unwrap_or_default();
    DesiredLrp {
        process_guid: key.process_guid,
        domain: key.domain,
        log_guid: key.log_guid,
        annotation: info.annotation,
        instances: info.instances,
        memory_mb: resource.memory_mb,
        disk_mb: resource.disk_mb,
        root_fs: resource.root_fs,
        max_pids: resource.max_pids,
        routes: info.routes,
        modification_tag: info.modification_tag,
        placement_tags: info.placement_tags,
        ..rest
    }
}

/// The parts that routing needs.
pub fn routing_info(info: DesiredLrpSchedulingInfo, rest: DesiredLrp) -> DesiredLrp {
    let key = info.desired_lrp_key.unwrap_or_default();
    DesiredLrp {
        process_guid: key.process_guid,
        domain: key.domain,
        log_guid: key.log_guid,
        instances: info.instances,
        routes: info.routes,
        modification_tag: info.modification_tag,
        metric_tags: rest.metric_tags,
        ..DesiredLrp::default()
    }
}

/// The record as list and get answer it: `metrics_guid` and the tag `source_id`
/// fill each other.
pub fn answered(mut desired: DesiredLrp) -> DesiredLrp {
    const SOURCE_ID: &str = "source_id";
    match desired.metric_tags.get(SOURCE_ID) {
        Some(tag) if desired.metrics_guid.is_empty() => {
            desired.metrics_guid.clone_from(&tag.r#static);
        }
        None if !desired.metrics_guid.is_empty() => {
            let value = MetricTagValue {
                r#static: desired.metrics_guid.clone(),
                ..MetricTagValue::default()
            };
            desired.metric_tags.insert(SOURCE_ID.into(), value);
        }
        _ => {}
    }
    desired
}

/// What the auctioneer must know to place instances.
pub fn auction(info: &DesiredLrpSchedulingInfo, indices: Vec<i32>) -> LrpStartRequest {
    let key = info.desired_lrp_key.clone().unwrap_or_default();
    let resource = info.desired_lrp_resource.clone().unwrap_or_default();
    LrpStartRequest {
        process_guid: key.process_guid,
        domain: key.domain,
        indices,
        placement: Placement {
            placement_tags: info.placement_tags.clone(),
            volume_drivers: info
                .volume_placement
                .as_ref()
                .map(|placement| placement.driver_names.clone())
                .unwrap_or_default(),
            root_fs: resource.root_fs,
        },
        resource: Resource {
            memory_mb: resource.memory_mb,
            disk_mb: resource.disk_mb,
            max_pids: resource.max_pids,
        },
    }
}

/// Internal routes of the desired LRP as raw JSON; `None` when it names none.
pub fn internal_routes(desired: &DesiredLrp) -> Option<&[u8]> {
    let routes = desired.routes.as_ref()?;
    routes.routes.get(INTERNAL_ROUTER).map(Vec::as_slice)
}

/// Host names of the internal routes; none when there are no such routes.
///
/// Returns `None` when their JSON is not a list of objects.
pub fn hostnames(desired: &DesiredLrp) -> Option<Vec<String>> {
    #[derive(serde::Deserialize, Default)]
    #[serde(default)]
    struct Route {
        hostname: String,
    }
    let Some(json) = internal_routes(desired) else {
        return Some(Vec::new());
    };
    let routes: Option<Vec<Route>> = serde_json::from_slice(json).ok()?;
    let routes = routes.unwrap_or_default().into_iter();
    Some(routes.map(|route| route.hostname).collect())
}

/// Metric tags of one instance: dynamic values become its index or guid.
pub fn metric_tags(
    tags: &BTreeMap<String, MetricTagValue>,
    index: i32,
    instance: &str,
) -> BTreeMap<String, String> {
    let value = |tag: &MetricTagValue| match tag.dynamic() {
        DynamicValue::Index => index.to_string(),
        DynamicValue::InstanceGuid => instance.to_owned(),
        DynamicValue::Invalid => tag.r#static.clone(),
    };
    tags.iter()
        .map(|(name, tag)| (name.clone(), value(tag)))
        .collect()
}

/// The drivers that a cell must have for the volumes.
pub(crate) fn volume_drivers(mounts: &[VolumeMount]) -> Vec<String> {
    mounts.iter().map(|mount| mount.driver.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_record_make_the_record() {
        let desired = DesiredLrp {
            process_guid: "p".into(),
            domain: "d".into(),
            log_guid: "l".into(),
            annotation: "a".into(),
            instances: 3,
            memory_mb: 1,
            disk_mb: 2,
            max_pids: 4,
            root_fs: "preloaded:x".into(),
            routes: Some(Default::default()),
            modification_tag: Some(Default::default()),
            placement_tags: vec!["t".into()],
            metrics_guid: "m".into(),
            cpu_weight: 9,
            ..DesiredLrp::default()
        };
        let (info, rest) = split(desired.clone());
        assert_eq!(
            rest,
            DesiredLrp {
                metrics_guid: "m".into(),
                cpu_weight: 9,
                ..Default::default()
            }
        );
        assert_eq!(join(info, rest), desired);
    }

    #[test]
    fn an_empty_update_changes_the_modification_index_alone() {
        let desired = DesiredLrp {
            modification_tag: Some(ModificationTag {
                epoch: "e".into(),
                index: 4,
            }),
            ..DesiredLrp::default()
        };
        let new = update(&desired, &DesiredLrpUpdate::default());
        assert_eq!(new.modification_tag.as_ref().map(|tag| tag.index), Some(5));
        assert_eq!(
            DesiredLrp {
                modification_tag: desired.modification_tag.clone(),
                ..new
            },
            desired
        );
    }

    #[test]
    fn routes_are_kept_as_go_writes_them() {
        let routes = |json: &str| ProtoRoutes {
            routes: [("cf-router".into(), json.as_bytes().to_vec())].into(),
        };
        let sent = Some(routes(
            "[ {\"hostnames\": [\"a.b/<c>?d&e f\"],\n\t\"port\": 8080} ]",
        ));
        let expected = Some(routes(
            r#"[{"hostnames":["a.b/\u003cc\u003e?d\u0026e f"],"port":8080}]"#,
        ));
        let mut new_guid = String::new;
        let mut context = Context {
            now: 0,
            new_guid: &mut new_guid,
        };
        let request = DesiredLrp {
            routes: sent.clone(),
            ..DesiredLrp::default()
        };
        assert_eq!(create(request, &mut context).routes, expected);
        let change = DesiredLrpUpdate {
            routes: sent,
            ..DesiredLrpUpdate::default()
        };
        let desired = DesiredLrp::default();
        assert_eq!(update(&desired, &change).routes, expected);
    }

    #[test]
    fn internal_routes_are_host_names_or_nothing_is_told() {
        let with = |json: &str| {
            let routes = [(INTERNAL_ROUTER.into(), json.as_bytes().to_vec())].into();
            DesiredLrp {
                routes: Some(diego::models::ProtoRoutes { routes }),
                ..DesiredLrp::default()
            }
        };
        assert_eq!(hostnames(&DesiredLrp::default()), Some(vec![]));
        assert_eq!(hostnames(&with("null")), Some(vec![]));
        let routes = with(r#" [ {"hostname":"a.internal","port":8080}, {} ] "#);
        assert_eq!(
            hostnames(&routes),
            Some(vec!["a.internal".into(), "".into()])
        );
        for bad in ["{}", "[1]", "[", r#"[{"hostname":1}]"#] {
            assert_eq!(hostnames(&with(bad)), None, "{bad}");
        }
    }

    #[test]
    fn dynamic_tags_name_the_instance() {
        let tag = |dynamic: DynamicValue| MetricTagValue {
            dynamic: dynamic.into(),
            ..Default::default()
        };
        let desired = DesiredLrp {
            metric_tags: BTreeMap::from([
                ("g".into(), tag(DynamicValue::InstanceGuid)),
                ("i".into(), tag(DynamicValue::Index)),
            ]),
            ..DesiredLrp::default()
        };
        let tags = metric_tags(&desired.metric_tags, 7, "ig");
        assert_eq!((tags["g"].as_str(), tags["i"].as_str()), ("ig", "7"));
    }
}
