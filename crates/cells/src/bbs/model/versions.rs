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
/// nanoseconds, cached dependencies downloaded before setup.
pub fn desired_v0(desired: DesiredLrp) -> DesiredLrp {
    let mut desired = desired_v2(desired);
    let seconds = u32::try_from(desired.start_timeout_ms / 1000).unwrap_or(0);
    desired.deprecated_start_timeout_s = seconds;
    for action in [
        &mut desired.setup,
        &mut desired.action,
        &mut desired.monitor,
    ] {
        action.iter_mut().for_each(fill_timeouts);
    }
    let cached = std::mem::take(&mut desired.cached_dependencies);
    if !cached.is_empty() {
        let user = &desired.legacy_download_user;
        let downloads = cached.into_iter().map(|from| download_cached(from, user));
        desired.setup = Some(before(parallel(downloads.collect()), desired.setup));
    }
    desired
}

/// The task in the first version's form: timeouts also in nanoseconds.
pub fn task_v0(task: Task) -> Task {
    let mut task = task_v2(task);
    if let Some(definition) = &mut task.task_definition {
        definition.action.iter_mut().for_each(fill_timeouts);
    }
    task
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
            download(DownloadAction {
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
    download(DownloadAction {
        artifact: from.name,
        from: from.from,
        to: from.to,
        cache_key: from.cache_key,
        log_source: from.log_source,
        user: user.to_owned(),
        checksum_algorithm: from.checksum_algorithm,
        checksum_value: from.checksum_value,
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

fn download(action: DownloadAction) -> Action {
    Action {
        download_action: Some(action),
        ..Action::default()
    }
}

fn parallel(actions: Vec<Action>) -> Action {
    let action = ParallelAction {
        actions,
        ..ParallelAction::default()
    };
    Action {
        parallel_action: Some(action),
        ..Action::default()
    }
}

fn before(first: Action, then: Option<Action>) -> Action {
    let Some(then) = then else {
        return first;
    };
    let action = SerialAction {
        actions: vec![first, then],
        ..SerialAction::default()
    };
    Action {
        serial_action: Some(action),
        ..Action::default()
    }
}

/// Writes the timeout in nanoseconds beside that in milliseconds. The depth is
/// bounded by what the decoder accepts.
fn fill_timeouts(action: &mut Action) {
    let mut inner = Vec::new();
    if let Some(timeout) = &mut action.timeout_action {
        timeout.deprecated_timeout_ns = timeout.timeout_ms.saturating_mul(1_000_000);
        inner.extend(timeout.action.as_deref_mut());
    }
    if let Some(progress) = &mut action.emit_progress_action {
        inner.extend(progress.action.as_deref_mut());
    }
    if let Some(attempt) = &mut action.try_action {
        inner.extend(attempt.action.as_deref_mut());
    }
    if let Some(list) = &mut action.parallel_action {
        inner.extend(&mut list.actions);
    }
    if let Some(list) = &mut action.serial_action {
        inner.extend(&mut list.actions);
    }
    if let Some(list) = &mut action.codependent_action {
        inner.extend(&mut list.actions);
    }
    inner.into_iter().for_each(fill_timeouts);
}
