//! Records in the forms that older clients read.
//!
//! Version 2 knows no image layers, version 0 moreover no cached dependencies and
//! no timeouts in milliseconds.

use diego::models::image_layer::{DigestAlgorithm, Type as LayerType};
use diego::models::{
    Action, CachedDependency, DesiredLrp, DownloadAction, ImageLayer, ParallelAction, SerialAction,
    Task,
};

/// The desired LRP in the second version's form: shared layers are cached
/// dependencies, exclusive ones are downloaded before setup.
pub fn desired_v2(mut desired: DesiredLrp) -> DesiredLrp {
    let layers = std::mem::take(&mut desired.image_layers);
    prepend_shared(&layers, &mut desired.cached_dependencies);
    if let Some(downloads) = exclusive(&layers, &desired.legacy_download_user) {
        desired.setup = Some(before(downloads, desired.setup));
    }
    desired
}

/// The task in the second version's form: as for desired LRPs, but the downloads
/// come before its action.
pub fn task_v2(mut task: Task) -> Task {
    if let Some(definition) = &mut task.task_definition {
        let layers = std::mem::take(&mut definition.image_layers);
        prepend_shared(&layers, &mut definition.cached_dependencies);
        if let Some(downloads) = exclusive(&layers, &definition.legacy_download_user) {
            definition.action = Some(before(downloads, definition.action.take()));
        }
    }
    task
}

/// The desired LRP in the first version's form: timeouts also in seconds and
/// nanoseconds, cached dependencies downloaded before setup, without their checksums.
pub fn desired_v0(desired: DesiredLrp) -> DesiredLrp {
    let mut desired = desired_v2(desired);
    let seconds = u32::try_from(desired.start_timeout_ms / 1000).unwrap_or(0);
    desired.deprecated_start_timeout_s = seconds;
    for action in [
        &mut desired.setup,
        &mut desired.action,
        &mut desired.monitor,
    ] {
        *action = action.take().and_then(timed);
    }
    let cached = std::mem::take(&mut desired.cached_dependencies);
    if !cached.is_empty() {
        let user = &desired.legacy_download_user;
        let downloads = cached.into_iter().map(|from| download_cached(from, user));
        let downloads = parallel(downloads.collect());
        desired.setup = Some(serial(
            [downloads].into_iter().chain(desired.setup).collect(),
        ));
    }
    desired
}

fn prepend_shared(layers: &[ImageLayer], cached: &mut Vec<CachedDependency>) {
    let shared = layers
        .iter()
        .filter(|layer| layer.layer_type() == LayerType::Shared)
        .map(|layer| {
            let (algorithm, value) = checksum(layer);
            CachedDependency {
                name: layer.name.clone(),
                from: layer.url.clone(),
                to: layer.destination_path.clone(),
                cache_key: cache_key(layer),
                checksum_algorithm: algorithm.to_owned(),
                checksum_value: value,
                ..CachedDependency::default()
            }
        });
    cached.splice(0..0, shared);
}

fn exclusive(layers: &[ImageLayer], user: &str) -> Option<Action> {
    let downloads: Vec<Action> = layers
        .iter()
        .filter(|layer| layer.layer_type() == LayerType::Exclusive)
        .map(|layer| {
            let (algorithm, value) = checksum(layer);
            Action::from(DownloadAction {
                artifact: layer.name.clone(),
                from: layer.url.clone(),
                to: layer.destination_path.clone(),
                cache_key: cache_key(layer),
                user: user.to_owned(),
                checksum_algorithm: algorithm.to_owned(),
                checksum_value: value,
                ..DownloadAction::default()
            })
        })
        .collect();
    (!downloads.is_empty()).then(|| parallel(downloads))
}

fn download_cached(from: CachedDependency, user: &str) -> Action {
    Action::from(DownloadAction {
        artifact: from.name,
        from: from.from,
        to: from.to,
        cache_key: from.cache_key,
        log_source: from.log_source,
        user: user.to_owned(),
        ..DownloadAction::default()
    })
}

fn algorithm(layer: &ImageLayer) -> Option<&'static str> {
    match layer.digest_algorithm() {
        DigestAlgorithm::Sha256 => Some("sha256"),
        DigestAlgorithm::Sha512 => Some("sha512"),
        DigestAlgorithm::Invalid => None,
    }
}

fn checksum(layer: &ImageLayer) -> (&'static str, String) {
    match algorithm(layer) {
        Some(algorithm) => (algorithm, layer.digest_value.clone()),
        None => ("", String::new()),
    }
}

fn cache_key(layer: &ImageLayer) -> String {
    match algorithm(layer) {
        Some(algorithm) => format!("{algorithm}:{}", layer.digest_value),
        None => layer.url.clone(),
    }
}

fn parallel(actions: Vec<Action>) -> Action {
    Action::from(ParallelAction {
        actions,
        ..ParallelAction::default()
    })
}

fn before(first: Action, then: Option<Action>) -> Action {
    match then {
        None => first,
        Some(then) => serial(vec![first, then]),
    }
}

fn serial(actions: Vec<Action>) -> Action {
    Action::from(SerialAction {
        actions,
        ..SerialAction::default()
    })
}

/// Writes the timeout in nanoseconds beside that in milliseconds. As with the original a try and
/// an emit-progress action are lost, only what they do is left, and a timeout within another stays
/// as it is. Of several members the first counts. The depth is bounded by what the decoder accepts.
fn timed(mut action: Action) -> Option<Action> {
    let whole = action.download_action.is_some()
        || action.upload_action.is_some()
        || action.run_action.is_some();
    if whole {
        return Some(action);
    }
    if let Some(timeout) = &mut action.timeout_action {
        timeout.deprecated_timeout_ns = timeout.timeout_ms.saturating_mul(1_000_000);
        return Some(action);
    }
    if let Some(progress) = action.emit_progress_action {
        return progress.action.and_then(|inner| timed(*inner));
    }
    if let Some(attempt) = action.try_action {
        return attempt.action.and_then(|inner| timed(*inner));
    }
    let actions = if let Some(list) = &mut action.parallel_action {
        &mut list.actions
    } else if let Some(list) = &mut action.serial_action {
        &mut list.actions
    } else if let Some(list) = &mut action.codependent_action {
        &mut list.actions
    } else {
        return Some(action);
    };
    *actions = std::mem::take(actions)
        .into_iter()
        .filter_map(timed)
        .collect();
    Some(action)
}

#[cfg(test)]
mod tests {
    use diego::models::{
        DesireTaskRequest, EmitProgressAction, TaskCreatedEvent, TimeoutAction, TryAction,
    };
    use prost::Message;
    use serde_json::Value;

    use super::*;

    fn bytes(hex: &Value) -> Vec<u8> {
        let hex = hex.as_str().unwrap();
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(byte).collect()
    }

    /// The first version of a task is the second: nothing else was ever converted.
    #[test]
    fn a_task_of_the_old_stream_is_as_recorded() {
        let file = include_str!("../../../tests/data/bbs/sse_legacy.json");
        let file: Value = serde_json::from_str(file).unwrap();
        let steps = file["steps"].as_array().unwrap();
        let desire = steps
            .iter()
            .find(|step| step["path"] == "/v1/tasks/desire.r2")
            .unwrap();
        let request = DesireTaskRequest::decode(&*bytes(&desire["request"]["hex"])).unwrap();
        let event = TaskCreatedEvent::decode(&*bytes(&desire["events"][0]["data_hex"])).unwrap();
        let recorded = event.task.unwrap();
        let mut ours = task_v2(crate::bbs::model::task::desire(
            request,
            recorded.created_at,
        ));
        let mut recorded = recorded;
        for task in [&mut ours, &mut recorded] {
            let definition = task.task_definition.as_mut().unwrap();
            definition.network.get_or_insert_default();
        }
        assert_eq!(ours, recorded);
    }

    fn timeout(timeout_ms: i64, inner: Action) -> Action {
        Action::from(TimeoutAction {
            action: Some(Box::new(inner)),
            timeout_ms,
            ..TimeoutAction::default()
        })
    }

    fn progress(inner: Action) -> Action {
        Action::from(EmitProgressAction {
            action: Some(Box::new(inner)),
            start_message: "s".into(),
            ..EmitProgressAction::default()
        })
    }

    fn attempt(inner: Action) -> Action {
        Action::from(TryAction {
            action: Some(Box::new(inner)),
            ..TryAction::default()
        })
    }

    #[test]
    fn the_first_version_loses_wrappers_and_tells_outer_timeouts_in_nanoseconds() {
        let with_ns = |ms: i64, inner: Action| {
            let mut action = timeout(ms, inner);
            action
                .timeout_action
                .as_mut()
                .unwrap()
                .deprecated_timeout_ns = ms * 1_000_000;
            action
        };
        let plain = || Action::from(DownloadAction::default());
        let within = || attempt(timeout(3, plain()));
        for (action, expected) in [
            (plain(), plain()),
            (progress(attempt(plain())), plain()),
            (progress(timeout(2, within())), with_ns(2, within())),
            (
                parallel(vec![attempt(timeout(4, plain())), serial(vec![within()])]),
                parallel(vec![with_ns(4, plain()), serial(vec![with_ns(3, plain())])]),
            ),
        ] {
            let desired = desired_v0(DesiredLrp {
                setup: Some(action.clone()),
                action: Some(action.clone()),
                monitor: Some(action),
                ..DesiredLrp::default()
            });
            for found in [desired.setup, desired.action, desired.monitor] {
                assert_eq!(found.as_ref(), Some(&expected));
            }
        }
    }

    #[test]
    fn cached_dependencies_of_the_first_version_are_a_serial_setup() {
        let cached = CachedDependency {
            from: "f".into(),
            to: "t".into(),
            checksum_algorithm: "sha256".into(),
            checksum_value: "c".into(),
            ..CachedDependency::default()
        };
        let desired = |setup: Option<Action>| {
            let desired = desired_v0(DesiredLrp {
                cached_dependencies: vec![cached.clone()],
                setup,
                ..DesiredLrp::default()
            });
            assert!(desired.cached_dependencies.is_empty());
            let serial = desired.setup.unwrap().serial_action.unwrap();
            let downloads = serial.actions[0].parallel_action.as_ref().unwrap();
            let download = downloads.actions[0].download_action.as_ref().unwrap();
            assert_eq!((&*download.from, &*download.checksum_value), ("f", ""));
            serial.actions.len()
        };
        assert_eq!(desired(None), 1);
        assert_eq!(desired(Some(Action::from(DownloadAction::default()))), 2);
    }
}
