use super::*;

#[tokio::test]
async fn folders_go_with_their_containers() {
    let bench = Bench::new();
    let job = task(sh("touch file"));
    bench.run(job.clone()).await;
    let folder = bench.executor.folder.path.join("0-g-1");
    assert!(folder.exists());
    bench.executor.forget(&job);
    while folder.exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let all = bench.executor.folder.path.clone();
    drop(bench);
    assert!(!all.exists());
}

#[tokio::test]
async fn what_a_container_left_is_not_looked_for_in_the_next_of_its_guid() {
    let bench = Bench::new();
    let job = task(sh("touch here; sleep 0.5; test -e here"));
    let mut other = job.clone();
    other.guid = "g-2".into();
    bench.executor.create(Arc::new(job.clone())).await.unwrap();
    // After one look comes a pause, in which the next container would have started.
    bench.executor.forget(&other);
    tokio::time::sleep(Duration::from_millis(50)).await;
    bench.executor.forget(&job);
    let end = bench.run(job).await.completion;
    assert!(!end.failed, "{}", end.reason);
}

/// Runs a container during which another one is forgotten.
async fn does_not_end_by_the_end_of(bench: &Bench, job: Job, other: &Job) {
    let forget = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        bench.executor.forget(other);
    };
    let (end, ()) = tokio::join!(bench.run(job), forget);
    assert!(!end.completion.failed, "{}", end.completion.reason);
}

#[tokio::test]
async fn the_end_of_a_container_is_not_that_of_one_whose_guid_is_much_alike() {
    let bench = Bench::new();
    let job = task(sh("sleep 1"));
    let mut other = job.clone();
    other.guid = "g_1".into();
    does_not_end_by_the_end_of(&bench, job, &other).await;
}

/// A task that one cell gave back may have come to another before the first has forgotten it.
#[tokio::test]
async fn the_end_of_a_container_is_not_that_of_one_of_its_guid_on_another_cell() {
    let bench = Bench::new();
    let job = task(sh("touch here; sleep 1; test -e here"));
    let mut other = job.clone();
    other.cell = 1;
    let created = Arc::new(other.clone());
    bench.executor.create(created).await.unwrap();
    does_not_end_by_the_end_of(&bench, job, &other).await;
}

#[tokio::test]
async fn reps_that_share_a_root_leave_each_others_files_alone() {
    let root = tempfile::tempdir().unwrap();
    let settings = ProcessSettings {
        root: Some(root.path().to_owned()),
        ..ProcessSettings::default()
    };
    let first = Bench::with(settings.clone());
    let fetched = first.executor.folder.path.join(".cache/0");
    std::fs::write(&fetched, "").unwrap();
    let second = Bench::with(settings);
    assert!(fetched.exists());
    assert!(!second.executor.folder.path.join(".cache/0").exists());
}
