mod accounts;
mod ends;
mod files;
mod health;
mod identity;

use std::sync::atomic::{AtomicBool, Ordering};

use std::time::Duration;

use diego::models::{
    Action, CodependentAction, DesiredLrp, DownloadAction, EmitProgressAction, EnvironmentVariable,
    LogRateLimit, ParallelAction, PortMapping, RunAction, SerialAction, TaskDefinition,
    TimeoutAction, TryAction,
};
use telemetry::{Level, Sink};
use tokio::sync::watch;

use super::*;

struct Bench {
    executor: Process,
    sink: Sink,
}

impl Bench {
    fn new() -> Self {
        Self::with(ProcessSettings::default())
    }

    fn with(settings: ProcessSettings) -> Self {
        let sink = Sink::memory();
        let logger = Logger::new("rep", sink.clone(), Level::Debug);
        Self {
            executor: Process::new(settings, Arc::default(), &logger).unwrap(),
            sink,
        }
    }

    async fn run_until(&self, job: Job, stop: Shutdown) -> End {
        let job = Arc::new(job);
        self.executor.create(Arc::clone(&job)).await.unwrap();
        self.executor.run(job, |_| (), stop).await
    }

    async fn run(&self, job: Job) -> End {
        let (_never, stop) = net::shutdown();
        self.run_until(job, stop).await
    }

    /// The reason why a task with this action fails; `None` when it does not.
    async fn reason(&self, action: Action) -> Option<String> {
        let end = self.run(task(action)).await.completion;
        end.failed.then_some(end.reason)
    }
}

pub(super) fn job(definition: Definition) -> Job {
    Job {
        cell: 0,
        guid: "g-1".into(),
        key: "g-1".into(),
        address: "10.0.0.1".into(),
        ports: vec![PortMapping {
            container_port: 8080,
            host_port: 61_001,
            ..PortMapping::default()
        }],
        network: None,
        definition,
    }
}

fn task(action: Action) -> Job {
    let definition = TaskDefinition {
        action: Some(action),
        log_source: "TEST".into(),
        ..TaskDefinition::default()
    };
    job(Definition::Task(Box::new(definition)))
}

fn lrp(action: Action) -> Job {
    let desired = DesiredLrp {
        action: Some(action),
        ..DesiredLrp::default()
    };
    job(Definition::Lrp(Arc::new(desired), 3))
}

fn sh(script: &str) -> Action {
    Action::from(RunAction {
        path: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        ..RunAction::default()
    })
}

fn serial(actions: Vec<Action>) -> Action {
    Action::from(SerialAction {
        actions,
        ..SerialAction::default()
    })
}

fn limited(action: Action, timeout_ms: i64) -> Action {
    let action = Some(Box::new(action));
    Action::from(TimeoutAction {
        action,
        timeout_ms,
        ..TimeoutAction::default()
    })
}

fn result_of(action: Action, file: &str) -> Job {
    let mut job = task(action);
    if let Definition::Task(definition) = &mut job.definition {
        definition.result_file = file.into();
    }
    job
}

#[tokio::test]
async fn statuses_and_results_come_back() {
    let bench = Bench::new();
    assert_eq!(bench.run(task(sh("exit 0"))).await.exit_status, Some(0));
    let end = bench.run(task(sh("echo oh no >&2; exit 7"))).await;
    assert_eq!(end.exit_status, Some(7));
    assert_eq!(end.completion.reason, "TEST: Exited with status 7");
    assert!(bench.sink.kept().contains(r#""output-tail":"oh no\n""#));
    assert!(bench.sink.kept().contains(r#""line":"Exit status 7""#));
    let end = bench
        .run(result_of(sh("printf 42 > answer"), "answer"))
        .await;
    assert_eq!(end.completion.result, "42");
    for script in [
        "true",
        "head -c 51201 /dev/zero > answer",
        r"printf '\377' > answer",
    ] {
        let _ = std::fs::remove_file(bench.executor.folder.path.join("0-g-1/answer"));
        let end = bench.run(result_of(sh(script), "answer")).await;
        assert_eq!(end.completion.reason, "failed to fetch result", "{script}");
    }
    let end = bench.run(result_of(sh("exit 1"), "answer")).await;
    assert_eq!(
        end.completion.reason, "TEST: Exited with status 1",
        "its own reason stays"
    );
    let script = "printf 'so far' > answer; exit 1";
    let end = bench.run(result_of(sh(script), "answer")).await.completion;
    assert_eq!(end.reason, "TEST: Exited with status 1");
    assert_eq!(end.result, "so far");
}

#[tokio::test]
async fn processes_see_the_platforms_environment() {
    let bench = Bench::new();
    let mut action = sh("env > vars");
    let variable = |name: &str, value: &str| EnvironmentVariable {
        name: name.into(),
        value: value.into(),
    };
    action.run_action.as_mut().unwrap().env = vec![
        variable("OWN", "1"),
        variable("PORT", "8080"),
        variable("NAME=ODD", "x"),
    ];
    let mut job = lrp(action);
    if let Definition::Lrp(desired, _) = &mut job.definition {
        Arc::make_mut(desired).environment_variables =
            vec![variable("OWN", "0"), variable("ALL", "2")];
    }
    bench.run(job).await;
    let file = bench.executor.folder.path.join("0-g-1/vars");
    let vars = std::fs::read_to_string(&file).unwrap();
    for expected in [
        "INSTANCE_GUID=g-1",
        "NAME=ODD=x",
        "INSTANCE_INDEX=3",
        "CF_INSTANCE_INDEX=3",
        "CF_INSTANCE_IP=10.0.0.1",
        "CF_INSTANCE_PORT=61001",
        "CF_INSTANCE_ADDR=10.0.0.1:61001",
        r#"CF_INSTANCE_PORTS=[{"external":61001,"internal":8080}]"#,
        "OWN=1",
        "ALL=2",
        "PORT=61001",
    ] {
        assert!(
            vars.lines().any(|line| line == expected),
            "{expected} in\n{vars}"
        );
    }
    assert!(
        !vars.contains("CARGO"),
        "nothing of the rep's own environment"
    );
    bench.run(task(sh("env > vars"))).await;
    let vars = std::fs::read_to_string(&file).unwrap();
    assert!(
        vars.contains("CF_INSTANCE_IP=") && !vars.contains("INSTANCE_GUID"),
        "a task is no instance: {vars}"
    );
}

#[tokio::test]
async fn the_reaper_is_charged_with_what_every_process_carries() {
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    // Its end of the pipe, and what it does with the tag, are tested with it.
    let script = format!("echo ready; cat > {}", told.display());
    let bench = Bench::with(ProcessSettings {
        reaper: ["sh", "-c", &script].map(Into::into).to_vec(),
        ..ProcessSettings::default()
    });
    let carried = folder.path().join("carried");
    let child = format!("sh -c 'echo $HEADROOM_RUN > {}' & wait", carried.display());
    assert_eq!(bench.reason(sh(&child)).await, None);
    drop(bench);
    let told = std::fs::read_to_string(told).unwrap();
    let carried = std::fs::read_to_string(carried).unwrap();
    let lines: Vec<&str> = told.lines().collect();
    let [tag, containers] = lines.as_slice() else {
        panic!("{told}")
    };
    let tag = tag.strip_prefix("tag ").unwrap();
    assert!(
        carried.split(',').any(|one| one == tag),
        "{carried:?} has no {tag:?}"
    );
    let containers = containers.strip_prefix("folder ").unwrap();
    assert!(
        containers.contains("/headroom-containers-") && containers.contains("/rep-"),
        "{containers}"
    );
}

#[test]
fn a_port_is_the_one_behind_the_containers() {
    let mut job = task(sh("true"));
    job.ports.push(PortMapping {
        container_port: 9090,
        host_port: 61_002,
        ..PortMapping::default()
    });
    for (wanted, expected) in [
        (None, "61001"),
        (Some("8080"), "61001"),
        // A sidecar's.
        (Some("9090"), "61002"),
        (Some("7000"), "7000"),
        (Some("a socket"), "a socket"),
    ] {
        let own = wanted.map(|value| EnvironmentVariable {
            name: "PORT".into(),
            value: value.into(),
        });
        let own: Vec<_> = own.into_iter().collect();
        let env = environment::of(&job, Path::new("/c"), &[], &own);
        assert_eq!(env["PORT"], expected, "{wanted:?}");
    }
    job.ports.clear();
    assert!(!environment::of(&job, Path::new("/c"), &[], &[]).contains_key("PORT"));
}

#[tokio::test]
async fn actions_are_joined_as_their_names_say() {
    let bench = Bench::new();
    let steps = vec![sh("exit 0"), sh("exit 2"), sh("touch never")];
    assert_eq!(
        bench.reason(serial(steps)).await.unwrap(),
        "TEST: Exited with status 2"
    );
    assert!(!bench.executor.folder.path.join("0-g-1/never").exists());

    let actions = vec![sh("sleep 0.2; exit 3"), sh("exit 0"), sh("exit 4")];
    let parallel = ParallelAction {
        actions,
        ..ParallelAction::default()
    };
    let action = Action::from(parallel);
    assert_eq!(
        bench.reason(action).await.unwrap(),
        "TEST: Exited with status 3; TEST: Exited with status 4"
    );

    assert_eq!(bench.reason(tried(sh("exit 1"))).await, None);

    let told = EmitProgressAction {
        action: Some(Box::new(sh("exit 5"))),
        start_message: "begin".into(),
        failure_message_prefix: "broke".into(),
        ..EmitProgressAction::default()
    };
    let action = Action::from(told);
    assert_eq!(
        bench.reason(action).await.unwrap(),
        "TEST: Exited with status 5"
    );
    assert!(
        bench
            .sink
            .kept()
            .contains("broke: TEST: Exited with status 5")
    );

    let reason = bench.reason(limited(sh("sleep 1000"), 50)).await.unwrap();
    assert_eq!(reason, "exceeded 50ms timeout");
    assert_eq!(bench.reason(limited(sh("exit 0"), 600_000)).await, None);

    let actions = vec![sh("sleep 1000"), sh("exit 6")];
    let codependent = CodependentAction {
        actions,
        ..CodependentAction::default()
    };
    let action = Action::from(codependent);
    assert_eq!(
        bench.reason(action).await.unwrap(),
        "TEST: Exited with status 6"
    );

    let action = Action::from(DownloadAction::default());
    assert_eq!(bench.reason(action).await.unwrap(), "Downloading failed");
}

#[tokio::test]
async fn a_program_starts_in_its_folder_and_is_looked_for_there() {
    let bench = Bench::new();
    let script = r#"pwd > $HOME/where
        printf '#!/bin/sh\necho run >> $HOME/where\n' > run && chmod +x run"#;
    let mut first = sh(script);
    first.run_action.as_mut().unwrap().dir = "/not/here/yet".into();
    let mut second = sh("");
    second.run_action = Some(RunAction {
        path: "./run".into(),
        dir: "/not/here/yet".into(),
        ..RunAction::default()
    });
    let job = result_of(serial(vec![first, second]), "where");
    let result = bench.run(job).await.completion.result;
    assert!(result.ends_with("/0-g-1/not/here/yet\nrun\n"), "{result}");
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let mut action = sh("");
    action.run_action.as_mut().unwrap().path = "/no/such/program".into();
    let reason = Bench::new().reason(action).await.unwrap();
    assert!(
        reason.contains("TEST: failed to run /no/such/program"),
        "{reason}"
    );
}

#[tokio::test]
async fn an_instance_that_ends_by_itself_has_nothing_to_say() {
    let end = Bench::new().run(lrp(sh("exit 0"))).await.completion;
    assert_eq!((end.failed, end.reason.as_str()), (false, ""));
}

/// Starts an instance, stops it once it runs, and returns how it ended.
async fn stopped(bench: &Bench, script: &str) -> End {
    stopped_after(bench, script, Duration::ZERO).await
}

/// The same, so long after it runs.
async fn stopped_after(bench: &Bench, script: &str, after: Duration) -> End {
    let (ask, stop) = net::shutdown();
    let job = Arc::new(lrp(sh(script)));
    let ready = bench.executor.folder.path.join("0-g-1/ready");
    bench.executor.create(Arc::clone(&job)).await.unwrap();
    let announced = AtomicBool::new(false);
    let started = |sign| announced.store(sign == Sign::Running, Ordering::Relaxed);
    let stopper = async |ask: watch::Sender<bool>| {
        while !ready.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        tokio::time::sleep(after).await;
        ask.send(true).unwrap();
    };
    let (end, ()) = tokio::join!(bench.executor.run(job, started, stop), stopper(ask));
    assert!(announced.load(Ordering::Relaxed));
    end
}

#[tokio::test]
async fn a_stop_asks_first() {
    let script = "trap 'exit 3' TERM; touch ready; while :; do sleep 0.01; done";
    assert_eq!(stopped(&Bench::new(), script).await.exit_status, Some(3));
}

/// The grace once was counted from the start of the process.
#[tokio::test]
async fn what_has_run_for_longer_than_the_grace_has_all_of_it() {
    let grace = Duration::from_secs(3);
    let bench = Bench::with(ProcessSettings {
        grace,
        ..ProcessSettings::default()
    });
    let script = "trap 'sleep 0.2; exit 3' TERM; touch ready; while :; do sleep 0.01; done";
    let end = stopped_after(&bench, script, grace + Duration::from_millis(100)).await;
    assert_eq!(end.exit_status, Some(3));
}

fn tried(action: Action) -> Action {
    Action::from(TryAction {
        action: Some(Box::new(action)),
        ..TryAction::default()
    })
}

/// A step that is only tried succeeds also when it ended because of the stop.
#[tokio::test]
async fn what_was_asked_to_stop_begins_nothing() {
    let bench = Bench::new();
    let (ask, stop) = net::shutdown();
    let steps = vec![tried(sh("touch ready; sleep 600")), sh("touch second")];
    let job = Arc::new(lrp(serial(steps)));
    let folder = bench.executor.folder.path.join("0-g-1");
    bench.executor.create(Arc::clone(&job)).await.unwrap();
    let stopper = async {
        while !folder.join("ready").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        ask.send(true).unwrap();
    };
    tokio::join!(bench.executor.run(job, |_| (), stop), stopper);
    assert!(!folder.join("second").exists(), "after a stop");

    let steps = vec![tried(sh("sleep 600")), sh("touch third")];
    let end = bench.run(task(limited(serial(steps), 50))).await;
    assert!(end.completion.failed);
    assert!(!folder.join("third").exists(), "after the limit");
}

#[tokio::test]
async fn a_stop_kills_what_does_not_listen() {
    let grace = std::time::Duration::from_millis(50);
    let bench = Bench::with(ProcessSettings {
        grace,
        ..ProcessSettings::default()
    });
    let script = "trap '' TERM; touch ready; while :; do sleep 0.01; done";
    assert_eq!(stopped(&bench, script).await.exit_status, Some(137));
}

#[tokio::test]
async fn what_a_process_leaves_behind_is_killed() {
    let bench = Bench::new();
    let end = bench
        .run(task(sh("sleep 1000 & echo $! > child; exit 0")))
        .await;
    assert_eq!(end.exit_status, Some(0));
    let child = std::fs::read_to_string(bench.executor.folder.path.join("0-g-1/child")).unwrap();
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", child.trim()));
    // Killed, it is gone or a zombie that waits for its new parent.
    while state().is_ok_and(|state| !state.contains(") Z")) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Neither the process group nor a control group's limits hold one that leads its own session.
#[tokio::test]
async fn what_left_its_group_ends_with_its_container_and_no_other() {
    let bench = Bench::new();
    let child = "setsid sh -c 'echo $$ > child; exec sleep 1000' > /dev/null 2>&1 &
        until test -s child; do sleep 0.01; done";
    let mut pids = Vec::new();
    for guid in ["g-1", "g-2"] {
        let mut job = task(sh(child));
        job.guid = guid.into();
        assert_eq!(bench.run(job.clone()).await.exit_status, Some(0));
        let folder = bench.executor.folder.path.join(job.name());
        let file = folder.join("child");
        let text = std::fs::read_to_string(file).unwrap();
        pids.push((job, text.trim().parse::<u32>().unwrap()));
    }
    let runs = |pid: u32| {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        state.is_ok_and(|state| !state.contains(") Z"))
    };
    for at in 0..pids.len() {
        assert!(pids[at..].iter().all(|(_, pid)| runs(*pid)));
        let (job, pid) = &pids[at];
        let folder = bench.executor.folder.path.join(job.name());
        bench.executor.forget(job);
        while runs(*pid) || folder.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn a_result_that_is_no_file_fails_its_task() {
    let bench = Bench::new();
    for script in ["mkfifo out", "mkdir out", "ln -s /dev/zero out"] {
        let end = bench.run(result_of(sh(script), "out")).await.completion;
        assert_eq!(end.reason, "failed to fetch result", "{script}");
        std::fs::remove_dir_all(bench.executor.folder.path.join("0-g-1")).unwrap();
    }
}

#[tokio::test]
async fn a_variable_that_no_process_can_have_fails_what_asks_for_it() {
    let bench = Bench::new();
    for (name, value) in [("", "x"), ("=B", "x"), ("A\0", "x"), ("A", "x\0y")] {
        let mut action = sh("true");
        let variable = EnvironmentVariable {
            name: name.into(),
            value: value.into(),
        };
        action.run_action.as_mut().unwrap().env.push(variable);
        let reason = bench.reason(action).await.unwrap();
        assert!(
            reason.contains(&format!("{name:?} cannot be passed")),
            "{reason}"
        );
    }
}

#[tokio::test]
async fn a_relative_folder_serves_as_an_absolute_one() {
    let parent = tempfile::tempdir_in(".").unwrap();
    let root = Path::new(parent.path().file_name().unwrap()).join("containers");
    let bench = Bench::with(ProcessSettings {
        root: Some(root),
        ..ProcessSettings::default()
    });
    let script = "test $HOME = $PWD && cd $HOME && touch $TMPDIR/here && test -e here";
    assert_eq!(bench.reason(sh(script)).await, None);
}

#[tokio::test]
async fn a_guid_cannot_lead_out_of_the_folder() {
    for guid in ["../up", "/etc", "..", "", "a/b", ".cache"] {
        let mut job = task(sh("true"));
        job.guid = guid.into();
        assert!(
            Bench::new().executor.create(Arc::new(job)).await.is_err(),
            "{guid:?}"
        );
    }
}

#[tokio::test]
async fn a_carriage_return_ends_a_line_of_the_log() {
    let bench = Bench::new();
    let script = r"printf '1 of 2\r2 of 2\r\ndone'";
    assert_eq!(bench.reason(sh(script)).await, None);
    let kept = bench.sink.kept();
    let lines = kept.lines().filter(|line| line.contains(r#""line":"#));
    assert_eq!(lines.count(), 4, "and the exit status: {kept}");
    for line in ["1 of 2", "2 of 2", "done", "Exit status 0"] {
        assert!(kept.contains(&format!(r#""line":"{line}""#)), "{kept}");
    }
}

#[tokio::test]
async fn logs_have_a_rate() {
    let bench = Bench::new();
    // One that does not log what containers write says when that is too much all the same.
    let sink = Sink::memory();
    let quiet = Bench {
        executor: Process::new(
            ProcessSettings::default(),
            Arc::default(),
            &Logger::new("rep", sink.clone(), Level::Info),
        )
        .unwrap(),
        sink,
    };
    let mut job = task(sh("for n in 1 2 3 4 5 6 7 8 9; do echo line $n; done"));
    if let Definition::Task(task) = &mut job.definition {
        task.log_rate_limit = Some(LogRateLimit {
            bytes_per_second: 20,
        });
    }
    quiet.run(job.clone()).await;
    assert_eq!(quiet.executor.metrics.counters.muted.now(), 1);
    let kept = quiet.sink.kept();
    assert!(kept.contains("app instance exceeded log rate limit (20 bytes/sec)"));
    assert!(!kept.contains("line 1"), "{kept}");
    bench.run(job).await;
    let kept = bench.sink.kept();
    assert!(kept.contains(r#""line":"line 1""#), "{kept}");
    assert!(kept.contains("app instance exceeded log rate limit (20 bytes/sec)"));
    assert!(!kept.contains(r#""line":"line 9""#), "{kept}");
}

#[tokio::test]
async fn a_container_is_kept_to_its_limits() {
    let settings = ProcessSettings {
        limits: true,
        ..ProcessSettings::default()
    };
    let logger = Logger::new("rep", Sink::memory(), Level::Debug);
    let Ok(executor) = Process::new(settings, Arc::default(), &logger) else {
        eprintln!("passed over: no control groups here");
        return;
    };
    let bench = Bench {
        executor,
        sink: Sink::memory(),
    };
    let mut job = task(sh("sh -c true; true"));
    if let Definition::Task(task) = &mut job.definition {
        task.max_pids = 1;
    }
    let end = bench.run(job.clone()).await.completion;
    assert!(end.failed, "a shell alone is one process already");
    bench.executor.forget(&job);
    let hog = "head -c 200000000 /dev/zero | tail";
    let mut job = task(sh(&format!("{hog} >/dev/null; exec {hog} >/dev/null")));
    job.guid = "g-2".into();
    if let Definition::Task(task) = &mut job.definition {
        task.memory_mb = 20;
    }
    let reason = bench.run(job.clone()).await.completion.reason;
    assert!(reason.ends_with(" (out of memory)"), "{reason}");
    bench.executor.forget(&job);
}

#[tokio::test]
async fn containers_have_networks_of_their_own() {
    let settings = ProcessSettings {
        networks: 2,
        ..ProcessSettings::default()
    };
    let logger = Logger::new("rep", Sink::memory(), Level::Debug);
    let Ok(executor) = Process::new(settings, Arc::default(), &logger) else {
        eprintln!("passed over: this needs root and iproute2");
        return;
    };
    let bench = Bench {
        executor,
        sink: Sink::memory(),
    };
    let taken = |guid| match bench.executor.network(guid) {
        Network::Own { address, namespace } => (address, namespace),
        other => panic!("{other:?}"),
    };
    let (address, namespace) = taken("0-g-1");
    let (other, _) = taken("1-g-1");
    assert_ne!(address, other);
    assert_eq!(bench.executor.network("0-g-3"), Network::NoneLeft);
    let mut job = lrp(sh("ip -4 -o addr show > seen; ip route show >> seen"));
    job.network = Some(namespace);
    bench.run(job.clone()).await;
    let seen = std::fs::read_to_string(bench.executor.folder.path.join("0-g-1/seen")).unwrap();
    assert!(seen.contains(&format!(" {address}/")), "{seen}");
    assert!(seen.contains("default via "), "{seen}");
    assert!(!seen.contains(&other), "{seen}");
    bench.executor.forget(&job);
    assert_eq!(taken("0-g-3").0, address, "what was given back");
}
