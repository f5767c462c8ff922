//! Actions. Their depth is bounded by the decoder.

use diego::models::{
    Action, DownloadAction, EmitProgressAction, RunAction, TimeoutAction, TryAction, UploadAction,
};

use super::Problems;

/// Problems of an action that must have a member.
pub(super) fn action(action: &Action) -> Problems {
    let mut problems = Problems::new();
    // Of several members the first counts, in the order of their numbers.
    if let Some(action) = &action.download_action {
        download(&mut problems, action);
    } else if let Some(action) = &action.upload_action {
        upload(&mut problems, action);
    } else if let Some(action) = &action.run_action {
        run(&mut problems, action);
    } else if let Some(action) = &action.timeout_action {
        timeout(&mut problems, action);
    } else if let Some(EmitProgressAction { action, .. }) = action.emit_progress_action.as_deref() {
        inner(&mut problems, action.as_deref());
    } else if let Some(TryAction { action, .. }) = action.try_action.as_deref() {
        inner(&mut problems, action.as_deref());
    } else if let Some(list) = &action.parallel_action {
        all(&mut problems, &list.actions);
    } else if let Some(list) = &action.serial_action {
        all(&mut problems, &list.actions);
    } else if let Some(list) = &action.codependent_action {
        all(&mut problems, &list.actions);
    } else {
        problems.field("inner-action");
    }
    problems
}

/// Problems of a checksum, of which both parts are there or none.
pub(super) fn checksum(problems: &mut Problems, algorithm: &str, value: &str) {
    match (algorithm.is_empty(), value.is_empty()) {
        (true, true) => {}
        (true, false) => problems.field("checksum algorithm"),
        (false, true) => problems.field("checksum value"),
        (false, false) => {
            let known = ["md5", "sha1", "sha256"];
            let known = known
                .iter()
                .any(|name| algorithm.eq_ignore_ascii_case(name));
            problems.field_if(!known, "invalid algorithm");
        }
    }
}

fn download(problems: &mut Problems, action: &DownloadAction) {
    problems.field_if(action.from.is_empty(), "from");
    problems.field_if(action.to.is_empty(), "to");
    problems.field_if(action.user.is_empty(), "user");
    checksum(problems, &action.checksum_algorithm, &action.checksum_value);
}

fn upload(problems: &mut Problems, action: &UploadAction) {
    problems.field_if(action.to.is_empty(), "to");
    problems.field_if(action.from.is_empty(), "from");
    problems.field_if(action.user.is_empty(), "user");
}

fn run(problems: &mut Problems, action: &RunAction) {
    problems.field_if(action.path.is_empty(), "path");
    problems.field_if(action.user.is_empty(), "user");
}

fn timeout(problems: &mut Problems, action: &TimeoutAction) {
    inner(problems, action.action.as_deref());
    problems.field_if(action.timeout_ms <= 0, "timeout_ms");
}

fn inner(problems: &mut Problems, found: Option<&Action>) {
    match found {
        None => problems.field("action"),
        Some(found) => problems.append(action(found)),
    }
}

fn all(problems: &mut Problems, actions: &[Action]) {
    problems.field_if(actions.is_empty(), "actions");
    for found in actions {
        problems.append(action(found));
    }
}
