use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::work::task::Kind;

fn job(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("stress.cfg");
    fs::write(&path, script).unwrap();
    path
}

#[test]
fn the_job_file_is_read_anew_for_every_request() {
    let (resources, folder) = (resources(), tempfile::tempdir().unwrap());
    let path = job(folder.path(), "exit 0");
    let work = Work::StressNg { job: path.clone() };
    let task = resources.equipment().task(&work).unwrap();
    let mut worker = Worker::new(&resources);
    assert!(worker.perform(&task, 0.0, 0.0, LONG).is_ok());
    job(folder.path(), "echo no such stressor >&2; exit 1");
    let error = worker.perform(&task, 0.0, 0.0, LONG).unwrap_err();
    assert_eq!(error.cause(), "program");
    assert!(error.to_string().contains("no such stressor"), "{error}");
    fs::remove_file(&path).unwrap();
    let error = worker.perform(&task, 0.0, 0.0, LONG).unwrap_err();
    assert_eq!(error.cause(), "no-job-file");
    assert!(error.to_string().contains("stress.cfg"), "{error}");
}

#[test]
fn a_program_that_is_not_installed_fails_the_request() {
    let folder = tempfile::tempdir().unwrap();
    let resources = SharedResources::with_stress_ng(
        Calibration::measure(),
        folder.path(),
        OsString::from("/no/such/stress-ng"),
    )
    .unwrap();
    let path = job(folder.path(), "");
    for work in [
        Work::StressNg { job: path.clone() },
        Work::StressNgBackground { job: path },
        Work::Fork(vec!["/no/such/program".into()]),
        Work::Fork(Vec::new()),
    ] {
        let error = once(&resources, &work, 0.0, 0.0).unwrap_err();
        assert_eq!(error.cause(), "no-program", "{work:?}");
    }
}

#[test]
fn a_load_runs_beside_the_requests_one_at_a_time() {
    let (resources, folder) = (resources(), tempfile::tempdir().unwrap());
    let go = folder.path().join("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.01; done", go.display());
    let path = job(folder.path(), &script);
    let mut equipment = resources.equipment();
    let begin = equipment
        .task(&Work::StressNgBackground { job: path })
        .unwrap();
    let wait = equipment.task(&Work::StressNgStatus).unwrap();
    let mut worker = Worker::new(&resources);
    worker.perform(&wait, 0.0, 0.0, LONG).unwrap();
    for _ in 0..3 {
        worker.perform(&begin, 0.0, 0.0, LONG).unwrap();
        let running = LoadStatus {
            started: 1,
            done: 0,
            failed: 0,
        };
        assert_eq!(equipment.load.status(), running);
        assert!(running.is_running());
    }
    let soon = wire::clock::now() + 1_000_000;
    let error = worker.perform(&wait, 0.0, 0.0, soon).unwrap_err();
    assert_eq!(error.cause(), "late");
    fs::write(&go, "").unwrap();
    worker.perform(&wait, 0.0, 0.0, LONG).unwrap();
    let status = equipment.load.status();
    assert_eq!((status.started, status.done, status.failed), (1, 1, 0));
    worker.perform(&begin, 0.0, 0.0, LONG).unwrap();
    worker.perform(&wait, 0.0, 0.0, LONG).unwrap();
    assert_eq!(equipment.load.status().done, 2);
}

#[test]
fn a_load_that_fails_is_counted_and_the_next_may_begin() {
    let (resources, folder) = (resources(), tempfile::tempdir().unwrap());
    let path = job(folder.path(), "exit 3");
    let mut equipment = resources.equipment();
    let begin = equipment
        .task(&Work::StressNgBackground { job: path.clone() })
        .unwrap();
    let wait = equipment.task(&Work::StressNgStatus).unwrap();
    let mut worker = Worker::new(&resources);
    worker.perform(&begin, 0.0, 0.0, LONG).unwrap();
    worker.perform(&wait, 0.0, 0.0, LONG).unwrap();
    assert_eq!(equipment.load.status().failed, 1);
    fs::remove_file(path).unwrap();
    let error = worker.perform(&begin, 0.0, 0.0, LONG).unwrap_err();
    assert_eq!(error.cause(), "no-job-file");
    let status = equipment.load.status();
    assert_eq!((status.started, status.done, status.failed), (2, 2, 2));
}

#[test]
fn the_end_of_an_instance_ends_its_load() {
    let (resources, folder) = (resources(), tempfile::tempdir().unwrap());
    let pid = folder.path().join("pid");
    let script = format!(
        "echo $$ > {0}.new; mv {0}.new {0}; sleep 1000",
        pid.display()
    );
    let path = job(folder.path(), &script);
    let mut equipment = resources.equipment();
    let begin = equipment
        .task(&Work::StressNgBackground { job: path })
        .unwrap();
    Worker::new(&resources)
        .perform(&begin, 0.0, 0.0, LONG)
        .unwrap();
    let number = loop {
        match fs::read_to_string(&pid) {
            Ok(text) => break text.trim().to_owned(),
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    };
    drop(equipment);
    while Path::new("/proc").join(&number).exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // A step that outlives it cannot begin another.
    Worker::new(&resources)
        .perform(&begin, 0.0, 0.0, LONG)
        .unwrap();
    let Kind::LoadBegin { load, .. } = &begin.kind else {
        panic!("it begins a load");
    };
    assert_eq!(load.status().started, 1);
}

/// With the real program, where it is installed.
#[test]
fn stress_ng_itself_takes_job_files() {
    let folder = tempfile::tempdir().unwrap();
    let resources = SharedResources::open(Calibration::measure(), folder.path()).unwrap();
    let path = job(folder.path(), "run sequential\ncpu 1\ncpu-ops 20\n");
    let work = Work::StressNg { job: path };
    match once(&resources, &work, 0.0, 0.0) {
        Ok(done) => assert!(done.cpu > 1_000_000, "{done:?}"),
        Err(error) => return assert_eq!(error.cause(), "no-program", "{error}"),
    }
    job(folder.path(), "no-such-stressor 1\n");
    let error = once(&resources, &work, 0.0, 0.0).unwrap_err().to_string();
    assert!(error.contains("no-such-stressor"), "{error}");
}
