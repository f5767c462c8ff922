//! Parts that desired LRPs and tasks share.

use std::collections::BTreeMap;

use diego::models::image_layer::{DigestAlgorithm, MediaType, Type as LayerType};
use diego::models::{
    CachedDependency, Check, CheckDefinition, File, ImageLayer, LogRateLimit, MetricTagValue,
    Sidecar, VolumeMount,
};

use super::Problems;
use super::action::{action, checksum};

/// Most bytes of all mounted files together.
const MOUNTED_BYTES: usize = 1024 * 1024;

pub(super) fn cached(problems: &mut Problems, dependencies: &[CachedDependency]) {
    for dependency in dependencies {
        let mut found = Problems::new();
        found.field_if(dependency.from.is_empty(), "from");
        found.field_if(dependency.to.is_empty(), "to");
        checksum(
            &mut found,
            &dependency.checksum_algorithm,
            &dependency.checksum_value,
        );
        problems.within("cached_dependency", found);
    }
}

pub(super) fn layers(problems: &mut Problems, layers: &[ImageLayer], user: &str) {
    for layer in layers {
        problems.within("image_layer", image_layer(layer));
    }
    let exclusive = |layer: &ImageLayer| layer.layer_type == i32::from(LayerType::Exclusive);
    let needs_user = user.is_empty() && layers.iter().any(exclusive);
    problems.field_if(needs_user, "legacy_download_user");
}

fn image_layer(layer: &ImageLayer) -> Problems {
    let mut problems = Problems::new();
    problems.field_if(layer.url.is_empty(), "url");
    problems.field_if(layer.destination_path.is_empty(), "destination_path");
    let kind = LayerType::try_from(layer.layer_type).unwrap_or(LayerType::LayerTypeInvalid);
    problems.field_if(kind == LayerType::LayerTypeInvalid, "layer_type");
    let media = MediaType::try_from(layer.media_type).unwrap_or(MediaType::Invalid);
    problems.field_if(media == MediaType::Invalid, "media_type");
    let algorithm = DigestAlgorithm::try_from(layer.digest_algorithm);
    let given = algorithm != Ok(DigestAlgorithm::Invalid);
    let known = given && algorithm.is_ok();
    let exclusive = kind == LayerType::Exclusive;
    let valued = !layer.digest_value.is_empty();
    // Two rules of the original ask for an algorithm, and both name it.
    problems.field_if((valued || exclusive) && !given, "digest_algorithm");
    problems.field_if((given || exclusive) && !valued, "digest_value");
    problems.field_if(valued && !known, "digest_algorithm");
    problems
}

pub(super) fn sidecars(problems: &mut Problems, sidecars: &[Sidecar]) {
    let mut found = Problems::new();
    for sidecar in sidecars {
        match &sidecar.action {
            None => found.text("invalid action type"),
            Some(inner) => found.within("action", action(inner)),
        }
        found.field_if(sidecar.memory_mb < 0, "memory_mb");
        found.field_if(sidecar.disk_mb < 0, "disk_mb");
    }
    problems.within("sidecars", found);
}

pub(super) fn volume_mounts(problems: &mut Problems, mounts: &[VolumeMount]) {
    for mount in mounts {
        let mut need = |bad: bool, what: &str| {
            if bad {
                problems.text(format!("invalid volume_mount {what}"));
            }
        };
        need(mount.driver.is_empty(), "driver");
        need(!matches!(mount.mode.as_str(), "r" | "rw"), "mode");
        let shared = mount.shared.as_ref();
        need(
            shared.is_some_and(|device| device.volume_id.is_empty()),
            "volume id",
        );
        let dedicated = mount.dedicated.as_ref();
        need(
            dedicated.is_some_and(|device| device.mounter_id.is_empty()),
            "mounter id",
        );
    }
}

pub(super) fn checks(problems: &mut Problems, definition: Option<&CheckDefinition>) {
    let Some(definition) = definition else {
        return;
    };
    let mut found = Problems::new();
    for check in definition.checks.iter().chain(&definition.readiness_checks) {
        one_check(&mut found, check);
    }
    problems.within("check_definition", found);
}

fn one_check(problems: &mut Problems, check: &Check) {
    let port = match (&check.tcp_check, &check.http_check) {
        (Some(_), Some(_)) => return problems.field("check"),
        (Some(tcp), None) => tcp.port,
        (None, Some(http)) => http.port,
        (None, None) => 0,
    };
    problems.field_if(!(1..=65_535).contains(&port), "port");
}

/// Problems of a user name and a password, of which both are given or none.
pub(super) fn credentials(problems: &mut Problems, username: bool, password: bool) {
    problems.field_if(username && !password, "image_password");
    problems.field_if(!username && password, "image_username");
}

pub(super) fn is_bad_rate(limit: Option<&LogRateLimit>) -> bool {
    limit.is_some_and(|limit| limit.bytes_per_second < -1)
}

pub(super) fn is_too_much_mounted(files: &[File]) -> bool {
    files.iter().map(|file| file.content.len()).sum::<usize>() > MOUNTED_BYTES
}

/// Problems of tags: each is static or dynamic, and `source_id` is the guid of
/// metrics where one is given.
pub(super) fn metric_tags(tags: &BTreeMap<String, MetricTagValue>, metrics_guid: &str) -> Problems {
    let mut problems = Problems::new();
    for tag in tags.values() {
        let dynamic = matches!(tag.dynamic, 1 | 2);
        if tag.r#static.is_empty() != dynamic {
            problems.field("static");
            problems.field("dynamic");
        }
    }
    let source = tags.get("source_id").map(|tag| tag.r#static.as_str());
    if !metrics_guid.is_empty() && source != Some(metrics_guid) {
        problems.field("source_id should match metrics_guid");
    }
    problems
}
