//! Requests about desired LRPs.

use diego::error::{Type, error};
use diego::models::{
    DesireLrpRequest, DesiredLrp, DesiredLrpByProcessGuidRequest, Error, ProtoRoutes,
    RemoveDesiredLrpRequest, UpdateDesiredLrpRequest,
};
use serde::de::IgnoredAny;

use super::action::action;
use super::{ANNOTATION_BYTES, Problems, Validate, egress, fits, is_guid, is_root_fs, parts};

/// Most bytes of all routes together.
const ROUTES_BYTES: usize = 128 * 1024;

/// Most instances of one process. The protocol has no such bound; without one a
/// single request could fill memory and disk.
const INSTANCES: i32 = 100_000;

impl Validate for DesireLrpRequest {
    fn check(&self, problems: &mut Problems) {
        let Some(lrp) = &self.desired_lrp else {
            return problems.field("desired_lrp");
        };
        whole(problems, lrp);
        run(problems, lrp);
    }

    fn storable(&self) -> Result<(), Error> {
        let Some(lrp) = &self.desired_lrp else {
            return Ok(());
        };
        routes_are_json(lrp.routes.as_ref())?;
        let names = [&*lrp.process_guid, &lrp.domain, &lrp.log_guid];
        fits(names, &lrp.root_fs)
    }
}

/// What the original checks of a desired LRP as a whole, in its order. Some fields it checks once
/// more with what is run, and names them twice.
fn whole(problems: &mut Problems, lrp: &DesiredLrp) {
    let mounted_is_long = parts::is_too_much_mounted(&lrp.volume_mounted_files);
    problems.field_if(mounted_is_long, "volumeMountedFiles");
    problems.field_if(lrp.domain.is_empty(), "domain");
    problems.field_if(lrp.root_fs.is_empty(), "rootfs");
    problems.field_if(!is_root_fs(&lrp.root_fs), "rootfs");
    problems.field_if(!(0..=INSTANCES).contains(&lrp.instances), "instances");
    problems.field_if(lrp.memory_mb < 0, "memory_mb");
    problems.field_if(lrp.disk_mb < 0, "disk_mb");
    let rate_is_bad = parts::is_bad_rate(lrp.log_rate_limit.as_ref());
    problems.field_if(rate_is_bad, "log_rate_limit_bytes_per_second");
    problems.field_if(lrp.annotation.len() > ANNOTATION_BYTES, "annotation");
    problems.field_if(lrp.max_pids < 0, "max_pids");
    problems.field_if(are_long(lrp.routes.as_ref()), "routes");
    if lrp.metric_tags.is_empty() {
        problems.field("metric_tags");
    } else {
        let found = parts::metric_tags(&lrp.metric_tags, &lrp.metrics_guid);
        problems.within("metric_tags", found);
    }
}

/// What the original checks of what is run, its key first.
fn run(problems: &mut Problems, lrp: &DesiredLrp) {
    problems.field_if(lrp.domain.is_empty(), "domain");
    problems.field_if(!is_guid(&lrp.process_guid), "process_guid");
    let mounted_is_long = parts::is_too_much_mounted(&lrp.volume_mounted_files);
    problems.field_if(mounted_is_long, "volumeMountedFiles");
    if let Some(setup) = &lrp.setup {
        problems.within("setup", action(setup));
    }
    match &lrp.action {
        None => problems.text("invalid action type"),
        Some(found) => problems.within("action", action(found)),
    }
    if let Some(monitor) = &lrp.monitor {
        problems.within("monitor", action(monitor));
    }
    for variable in &lrp.environment_variables {
        if variable.name.is_empty() {
            problems.text("invalid field: name cannot be blank");
        }
    }
    for rule in &lrp.egress_rules {
        problems.within("egress_rules", egress::rule(rule));
    }
    parts::cached(problems, &lrp.cached_dependencies);
    parts::layers(problems, &lrp.image_layers, &lrp.legacy_download_user);
    parts::sidecars(problems, &lrp.sidecars);
    parts::volume_mounts(problems, &lrp.volume_mounts);
    let (username, password) = (&lrp.image_username, &lrp.image_password);
    parts::credentials(problems, !username.is_empty(), !password.is_empty());
    parts::checks(problems, lrp.check_definition.as_ref());
    let rate_is_bad = parts::is_bad_rate(lrp.log_rate_limit.as_ref());
    problems.field_if(rate_is_bad, "log_rate_limit");
}

fn are_long(routes: Option<&ProtoRoutes>) -> bool {
    let bytes = |routes: &ProtoRoutes| routes.routes.values().map(Vec::len).sum::<usize>();
    routes.map_or(0, bytes) > ROUTES_BYTES
}

/// Is what each router is to know JSON? Other text would break every reader of the record.
///
/// # Errors
/// InvalidRequest with the general text, as of what the database of the original cannot hold: for
/// an update it counts only where there is something to update.
pub(crate) fn routes_are_json(routes: Option<&ProtoRoutes>) -> Result<(), Error> {
    let mut values = routes.into_iter().flat_map(|routes| routes.routes.values());
    let is_json = |value: &Vec<u8>| serde_json::from_slice::<IgnoredAny>(value).is_ok();
    match values.all(is_json) {
        true => Ok(()),
        false => Err(error(Type::InvalidRequest)),
    }
}

impl Validate for UpdateDesiredLrpRequest {
    fn check(&self, problems: &mut Problems) {
        problems.field_if(self.process_guid.is_empty(), "process_guid");
        if let Some(update) = &self.update {
            problems.field_if(
                !(0..=INSTANCES).contains(&update.instances.unwrap_or(0)),
                "instances",
            );
            let annotation = update.annotation.as_deref().unwrap_or_default();
            problems.field_if(annotation.len() > ANNOTATION_BYTES, "annotation");
            problems.field_if(are_long(update.routes.as_ref()), "routes");
            problems.within("metric_tags", parts::metric_tags(&update.metric_tags, ""));
            // An empty one is given too: both empty is how they are taken away.
            let (username, password) = (&update.image_username, &update.image_password);
            parts::credentials(problems, username.is_some(), password.is_some());
        }
    }
}

impl Validate for RemoveDesiredLrpRequest {
    fn check(&self, problems: &mut Problems) {
        problems.field_if(self.process_guid.is_empty(), "process_guid");
    }
}

impl Validate for DesiredLrpByProcessGuidRequest {
    fn check(&self, problems: &mut Problems) {
        problems.field_if(self.process_guid.is_empty(), "process_guid");
    }
}
