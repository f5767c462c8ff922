//! A run's folder, written and read back.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::path::Path;

use jiff::Timestamp;
use lab_store::{
    DatagramSample, EntityCount, Environment, Event, EventKind, FindingRecord, LimitSample,
    LoopTurn, MachineSample, Mark, Outcome, ProbeSample, ProcessSample, Record, RunFile, RunFolder,
    SCHEMA, StoreError, SystemProcess, ThreadSample, Verdict, remove_rests, runs_in,
};
use proptest::prelude::*;

fn start() -> Timestamp {
    "2026-11-21T09:30:00.999Z".parse().unwrap()
}

fn new_run(folder: &Path) -> RunFolder {
    RunFolder::create(folder, "demo", start()).unwrap()
}

fn environment(schema: u32) -> Environment {
    Environment {
        schema,
        run_id: "demo-20261121-093000".into(),
        started_at_unix_ns: i64::MAX,
        command: vec!["headroom".into(), "run".into(), "a b.toml".into()],
        headroom_version: "0.1.0".into(),
        git_commit: Some("abc-dirty".into()),
        cores: 2,
        cpu_model: "model".into(),
        memory_bytes: u64::MAX,
        kernel: "Linux 6".into(),
        versions: [("sqlite".into(), "3".into())].into(),
        made_from: None,
    }
}

fn verdict() -> Verdict {
    Verdict {
        probes: Vec::new(),
        left_out: Vec::new(),
        notes: Vec::new(),
        outcome: Outcome::Pass,
        reason: None,
        duration_s: 0.1 + 0.2,
        expectations: vec![],
    }
}

#[test]
fn an_id_is_the_name_and_the_second_and_is_never_shared() {
    let folder = tempfile::tempdir().unwrap();
    let ids: Vec<String> = (0..3).map(|_| new_run(folder.path()).id()).collect();
    assert_eq!(
        ids,
        [
            "demo-20261121-093000",
            "demo-20261121-093000-2",
            "demo-20261121-093000-3"
        ]
    );
}

#[test]
fn runs_that_start_together_get_folders_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let ids = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| new_run(folder.path()).id()))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect::<std::collections::BTreeSet<_>>()
    });
    assert_eq!(ids.len(), 8);
}

#[test]
fn names_that_could_leave_the_folder_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "",
        "..",
        ".hidden",
        "a/b",
        "a\\b",
        "a b",
        "é",
        &"x".repeat(101),
    ] {
        let error = RunFolder::create(folder.path(), name, start()).unwrap_err();
        assert!(
            matches!(error, StoreError::Name { .. }),
            "{name:?}: {error}"
        );
    }
    let lifecycle = RunFile::Lifecycle("../../etc/x").relative_path();
    assert_eq!(
        lifecycle,
        Path::new("lifecycles/_.._.._etc_x.csv").to_owned()
    );
}

#[test]
fn a_folder_that_cannot_be_made_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = RunFolder::create(&file, "demo", start())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cannot make the folder") && error.contains("check the path"),
        "{error}"
    );
}

#[test]
fn only_a_finished_run_of_a_known_schema_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let open = |run: &RunFolder| RunFolder::open(run.path());
    let run = new_run(folder.path());
    assert!(matches!(open(&run), Err(StoreError::NotARun { .. })));
    run.write(
        RunFile::Environment,
        b"{\"schema\": 99, \"from\": \"the future\"}",
    )
    .unwrap();
    assert!(matches!(
        open(&run),
        Err(StoreError::Newer { found: 99, .. })
    ));
    run.write_json(RunFile::Environment, &environment(SCHEMA))
        .unwrap();
    assert!(matches!(open(&run), Err(StoreError::Unfinished { .. })));
    run.write_json(RunFile::Verdict, &verdict()).unwrap();
    let found = open(&run).unwrap();
    assert_eq!(found.environment().unwrap(), environment(SCHEMA));
    assert_eq!(found.verdict().unwrap(), verdict());
    assert_eq!(found.histograms().unwrap(), []);
}

#[test]
fn a_file_is_replaced_as_a_whole_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let run = new_run(folder.path());
    run.write(RunFile::Experiment, b"old").unwrap();
    run.write(RunFile::Experiment, b"new").unwrap();
    assert_eq!(run.read_text(RunFile::Experiment).unwrap(), "new");
    let names: Vec<_> = std::fs::read_dir(run.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert!(
        !names
            .iter()
            .any(|name| name.to_string_lossy().ends_with(".part")),
        "{names:?}"
    );
}

#[test]
fn errors_in_files_name_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let run = new_run(folder.path());
    let problem =
        |file: RunFile<'static>, text: &str, read: fn(&RunFolder) -> Option<StoreError>| {
            run.write(file, text.as_bytes()).unwrap();
            read(&run).expect("an error").to_string()
        };
    let loops = |run: &RunFolder| run.records::<LoopTurn>().err();
    let text = problem(
        RunFile::Loops,
        "name,t_s,duration_s\na,1,2\nb,soon,2\n",
        loops,
    );
    assert!(
        text.contains("loops.csv, line 3") && text.contains("\"soon\""),
        "{text}"
    );
    let text = problem(RunFile::Loops, "name,t_s\n", loops);
    assert!(
        text.contains("line 1") && text.contains("`name,t_s,duration_s`"),
        "{text}"
    );
    let text = problem(RunFile::Loops, "name,t_s,duration_s\na,1\n", loops);
    assert!(
        text.contains("line 2: expected 3 fields, found 2"),
        "{text}"
    );
    let text = problem(RunFile::Events, "{}\n", |run| run.records::<Event>().err());
    assert!(text.contains("events.jsonl, line 1"), "{text}");
    let text = problem(RunFile::Verdict, "{\n \"outcome\": 1}", |run| {
        run.verdict().err()
    });
    assert!(text.contains("verdict.json, line 2"), "{text}");
}

#[test]
fn numbers_that_are_not_finite_are_refused_and_files_stay_whole() {
    let folder = tempfile::tempdir().unwrap();
    let run = new_run(folder.path());
    let mut loops = run.appender::<LoopTurn>().unwrap();
    let turn = |t_s| LoopTurn {
        name: "x".into(),
        t_s,
        duration_s: 1.0,
    };
    let error = loops.append(&turn(f64::NAN)).unwrap_err().to_string();
    assert!(error.contains("t_s is NaN"), "{error}");
    loops.append(&turn(1.0)).unwrap();
    loops.flush().unwrap();
    assert_eq!(run.records::<LoopTurn>().unwrap(), [turn(1.0)]);
}

#[test]
fn an_absent_or_empty_file_holds_no_records() {
    let folder = tempfile::tempdir().unwrap();
    let run = new_run(folder.path());
    assert_eq!(run.records::<EntityCount>().unwrap(), []);
    run.write(RunFile::Entities, b"").unwrap();
    assert_eq!(run.records::<EntityCount>().unwrap(), []);
}

#[test]
fn of_a_file_that_is_being_written_the_whole_lines_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let run = new_run(folder.path());
    assert_eq!(run.records_so_far::<EntityCount>().unwrap(), []);
    let count = |count| EntityCount {
        t_s: 1.5,
        what: "task".into(),
        state: "running".into(),
        count,
    };
    let mut counts = run.appender().unwrap();
    counts.append(&count(1234)).unwrap();
    counts.append(&count(5678)).unwrap();
    counts.flush().unwrap();
    let whole = std::fs::read(run.file(RunFile::Entities)).unwrap();
    let mut seen = Vec::new();
    // Whatever part of it a reader finds, no number is a part of one.
    for end in 0..=whole.len() {
        run.write(RunFile::Entities, &whole[..end]).unwrap();
        let read = run.records_so_far::<EntityCount>().unwrap();
        let all = [count(1234), count(5678)];
        assert!(all.starts_with(&read), "{read:?}");
        seen.push(read.len());
    }
    seen.dedup();
    assert_eq!(seen, [0, 1, 2]);
}

/// What was appended, in two sessions, is what is read.
/// A run that began so many seconds after the others' start.
fn run_at(folder: &Path, seconds: i64, schema: u32) -> RunFolder {
    let run = new_run(folder);
    let mut environment = environment(schema);
    environment.started_at_unix_ns = seconds * 1_000_000_000;
    run.write_json(RunFile::Environment, &environment).unwrap();
    run
}

#[test]
fn runs_are_listed_in_the_order_of_their_begin_with_what_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let newer = run_at(folder.path(), 0, SCHEMA + 1);
    let late = run_at(folder.path(), 2_000, SCHEMA);
    let early = run_at(folder.path(), 1_000, SCHEMA);
    early.write_json(RunFile::Verdict, &verdict()).unwrap();
    std::fs::write(early.file(RunFile::Log("web")), [b'x'; 5_000]).unwrap();
    // One that has only begun, and what is no run.
    new_run(folder.path());
    std::fs::create_dir(folder.path().join("notes")).unwrap();
    std::fs::write(folder.path().join("history.jsonl"), "").unwrap();
    let runs = runs_in(folder.path()).unwrap();
    let ids: Vec<String> = runs.iter().map(|run| run.folder.id()).collect();
    assert_eq!(ids, [early.id(), late.id(), newer.id()]);
    let found = runs[0].found.as_ref().unwrap();
    assert_eq!(
        (found.name(), &*found.began()),
        ("demo", "1970-01-01 00:16")
    );
    assert_eq!(found.verdict, Some(verdict()));
    assert!(
        (5_000..10_000).contains(&runs[0].bytes),
        "{}",
        runs[0].bytes
    );
    assert_eq!(runs[1].found.as_ref().unwrap().verdict, None);
    let error = runs[2].found.as_ref().unwrap_err();
    assert!(matches!(error, StoreError::Newer { .. }), "{error}");
    runs_in(&folder.path().join("nowhere")).unwrap_err();
}

#[test]
fn a_run_that_could_not_be_stored_is_told_from_one_that_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    run_at(folder.path(), 1, SCHEMA);
    run_at(folder.path(), 2, SCHEMA).break_off();
    let runs = runs_in(folder.path()).unwrap();
    let found: Vec<(bool, bool)> = runs
        .iter()
        .map(|run| run.found.as_ref().unwrap())
        .map(|found| (found.verdict.is_some(), found.is_broken))
        .collect();
    assert_eq!(found, [(false, false), (false, true)]);
}

#[test]
fn a_removal_that_was_cut_short_leaves_no_half_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_at(folder.path(), 1, SCHEMA);
    // As far as a removal gets that is killed: it has another name, and a part of its files.
    let gone = format!(".removed-{}", run.id());
    std::fs::rename(run.path(), folder.path().join(&gone)).unwrap();
    assert!(runs_in(folder.path()).unwrap().is_empty());
    remove_rests(folder.path()).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    run_at(folder.path(), 1, SCHEMA);
    let run = runs_in(folder.path()).unwrap().remove(0);
    run.remove().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

fn round_trip<R: Record + PartialEq + std::fmt::Debug>(records: &[R]) {
    let folder = tempfile::tempdir().unwrap();
    let run = new_run(folder.path());
    let (first, second) = records.split_at(records.len() / 2);
    for part in [first, second] {
        let mut file = run.appender::<R>().unwrap();
        for record in part {
            file.append(record).unwrap();
        }
        file.flush().unwrap();
    }
    assert_eq!(run.records::<R>().unwrap(), records);
}

#[test]
fn what_limited_a_run_comes_back_and_older_runs_have_none() {
    let folder = tempfile::tempdir().unwrap();
    let run = new_run(folder.path());
    assert_eq!(run.findings().unwrap(), []);
    let finding = FindingRecord {
        kind: "pool".into(),
        system: "bbs".into(),
        part: "task a→b".into(),
        text: "a pool of 20".into(),
        from_s: 0.5,
        to_s: 9.0,
        effect: 0.9,
        interval: [0.8, 0.95],
        of: "time".into(),
        evidence: [("level".to_owned(), 20.0)].into(),
        mark: Mark {
            chart: "lifecycle".into(),
            name: "task".into(),
            phase: Some(1),
            level: Some(20.0),
        },
        explained_by: None,
    };
    let found = vec![
        finding.clone(),
        FindingRecord {
            explained_by: Some(0),
            ..finding
        },
    ];
    run.write_json(RunFile::Findings, &found).unwrap();
    assert_eq!(run.findings().unwrap(), found);
}

fn number() -> impl Strategy<Value = f64> {
    prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn events_come_back(records in prop::collection::vec((number(), 0..8_usize, ".*", ".*"), 0..6)) {
        use EventKind::*;
        let kinds = [SystemStarted, SystemReady, SystemExited, StepStarted, StepEnded, StepFailed, Made, Interrupted];
        let events: Vec<Event> = records.into_iter()
            .map(|(t_s, kind, name, text)| Event { t_s, kind: kinds[kind], name, text })
            .collect();
        round_trip(&events);
    }

    #[test]
    fn samples_come_back(records in prop::collection::vec((number(), ".*|[,\"\n\r]*", number(), any::<[u64; 3]>()), 0..6)) {
        let samples: Vec<ProcessSample> = records.into_iter()
            .map(|(t_s, system, cpu_cores, [rss_bytes, fds, threads])| {
                ProcessSample { t_s, system, cpu_cores, rss_bytes, fds, threads }
            })
            .collect();
        round_trip(&samples);
    }

    #[test]
    fn processes_of_systems_come_back(
        records in prop::collection::vec((".*", any::<[u32; 2]>(), ".*|[,\"\n\r]*", [number(), number(), number(), number()], any::<u64>()), 0..6),
    ) {
        let processes: Vec<SystemProcess> = records.into_iter()
            .map(|(system, [pid, parent], command, [from_s, to_s, cpu_s, cpu_cores_max], rss_bytes_max)| {
                SystemProcess { system, pid, parent, command, from_s, to_s, cpu_s, cpu_cores_max, rss_bytes_max }
            })
            .collect();
        round_trip(&processes);
    }

    #[test]
    fn use_of_the_machine_comes_back(
        records in prop::collection::vec((number(), ".*", ".*|[,\"\n\r]*", any::<[u64; 7]>(), number()), 0..6),
    ) {
        let threads: Vec<ThreadSample> = records.iter().cloned()
            .map(|(t_s, system, name, of, cpu_cores)| {
                ThreadSample { waited_cores: t_s, t_s, system, pid: of[0] as u32, thread: of[1] as u32, name, cpu_cores }
            })
            .collect();
        round_trip(&threads);
        let limits: Vec<LimitSample> = records.iter().cloned()
            .map(|(t_s, of, what, used, _)| LimitSample { t_s, of, what, used: used[0], most: used[1] })
            .collect();
        round_trip(&limits);
        let machine: Vec<MachineSample> = records.iter()
            .map(|(t_s, _, _, of, cores)| {
                let [established, time_wait, other, opened, received, dropped, _] = *of;
                let (t_s, idle_cores, own_cores) = (*t_s, *cores, *t_s);
                MachineSample { t_s, idle_cores, own_cores, established, time_wait, other, opened, received, dropped }
            })
            .collect();
        round_trip(&machine);
        let datagrams: Vec<DatagramSample> = records.into_iter()
            .map(|(t_s, system, _, of, _)| DatagramSample { t_s, system, port: of[0] as u16, dropped: of[1] })
            .collect();
        round_trip(&datagrams);
    }

    #[test]
    fn counts_come_back(records in prop::collection::vec((number(), ".*", ".*", any::<u64>()), 0..6)) {
        let counts: Vec<EntityCount> = records.into_iter()
            .map(|(t_s, what, state, count)| EntityCount { t_s, what, state, count })
            .collect();
        round_trip(&counts);
    }

    #[test]
    fn tries_of_probes_come_back(
        records in prop::collection::vec(
            ([number(), number()], [".*", ".*", ".*|[,\"\n\r]*", ".*"], any::<u64>(), prop::option::of(number())), 0..6),
    ) {
        let tries: Vec<ProbeSample> = records.into_iter()
            .map(|([t_s, latency_s], [probe, of, text, error], skipped, value)| {
                ProbeSample { t_s, probe, of, latency_s, skipped, value, text, error }
            })
            .collect();
        round_trip(&tries);
    }

    #[test]
    fn turns_come_back(records in prop::collection::vec((".*", number(), number()), 0..6)) {
        let turns: Vec<LoopTurn> = records.into_iter()
            .map(|(name, t_s, duration_s)| LoopTurn { name, t_s, duration_s })
            .collect();
        round_trip(&turns);
    }
}
