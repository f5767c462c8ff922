use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::files::serve;
use super::*;

/// Can the user `nobody` be given something to do here? Only root may, and where temporary files
/// lie that user must be let in.
pub(super) fn may_act_for_others() -> bool {
    let temporary = std::env::temp_dir();
    let open = |above: &Path| {
        let found = std::fs::metadata(above);
        found.is_ok_and(|found| found.permissions().mode() & 0o001 != 0)
    };
    let may = nix::unistd::geteuid().is_root() && temporary.ancestors().all(open);
    if !may {
        eprintln!("passed over: this needs root, and temporary files where all may pass");
    }
    may
}

#[tokio::test]
async fn an_action_runs_as_its_user_where_the_machine_has_it() {
    let bench = Bench::new();
    let run = async |user: &str, guid: &str| {
        let mut action = sh("id -u > who; echo $USER >> who");
        action.run_action.as_mut().unwrap().user = user.into();
        let mut job = result_of(action, "who");
        job.guid = guid.into();
        bench.run(job).await.completion
    };
    let own = nix::unistd::geteuid().as_raw();
    assert_eq!(run("root", "g-1").await.result, format!("{own}\nroot\n"));
    if !may_act_for_others() {
        return;
    }
    let nobody = Account::named("nobody").unwrap().unwrap().uid;
    let end = run("nobody", "g-2").await;
    assert_eq!(end.result, format!("{nobody}\nnobody\n"), "{}", end.reason);
    let reason = run("nobody-of-here", "g-3").await.reason;
    let expected = "unable to find user nobody-of-here: no matching entries in passwd file";
    assert!(reason.ends_with(expected), "{reason}");
}

#[tokio::test]
async fn what_a_user_downloads_is_its_own() {
    if !may_act_for_others() {
        return;
    }
    let bench = Bench::new();
    let served = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("sh")
        .current_dir(served.path())
        .args(["-c", "mkdir d && touch d/a && tar -czf app.tgz d"])
        .status();
    assert!(made.unwrap().success());
    let (url, _, _stop) = serve(std::fs::read(served.path().join("app.tgz")).unwrap()).await;
    let download = |user: &str| {
        Action::from(DownloadAction {
            from: url.clone(),
            to: "/opt/app".into(),
            user: user.into(),
            ..DownloadAction::default()
        })
    };
    let mut run = sh("echo more >> opt/app/d/a && touch opt/app/d/b");
    run.run_action.as_mut().unwrap().user = "nobody".into();
    let steps = vec![download("nobody"), run];
    assert_eq!(bench.reason(serial(steps)).await, None);
    let reason = bench.reason(download("nobody-of-here")).await.unwrap();
    assert_eq!(
        reason,
        "Copying into the container failed: unable to find user nobody-of-here: no matching entries in passwd file"
    );
}

#[tokio::test]
async fn a_second_user_of_a_container_takes_nothing_from_the_first() {
    if !may_act_for_others() {
        return;
    }
    let bench = Bench::new();
    let folder = tempfile::tempdir_in(&bench.executor.folder.path).unwrap();
    let [first, second] = ["nobody", "daemon"].map(|name| Account::named(name).unwrap().unwrap());
    for account in [&first, &second] {
        bench.executor.let_in(account, folder.path()).unwrap();
    }
    let found = folder.path().metadata().unwrap();
    assert_eq!(found.uid(), first.uid);
    assert_eq!(found.permissions().mode() & 0o777, 0o755);
}
