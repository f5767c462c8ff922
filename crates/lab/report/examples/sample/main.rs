//! Writes made-up runs with their reports, for looking at the page and for its
//! tests in a browser: `cargo run -p lab-report --example sample -- FOLDER`; with a number
//! behind it one run of so many entities of fifteen phases, and nothing else.

mod loads;
mod many;
mod model;
mod searches;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use csv::push_record;
use jiff::Timestamp;
use lab_load::Summary;
use lab_store::{
    EntityCount, Environment, Event, EventKind, Expectation, FaultEffect, FaultRecord, LoopTurn,
    Outcome, ProcessSample, ProfileRecord, RunFile, RunFolder, SCHEMA, SystemSamples, Verdict,
};
use model::{Dice, LRP_POINTS, Life, TASK_POINTS};

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let folder = std::env::args()
        .nth(1)
        .ok_or("give the folder that shall hold the samples")?;
    let folder = Path::new(&folder);
    if let Some(count) = std::env::args().nth(2) {
        return many::run(folder, count.parse()?);
    }
    demo(folder, "road-to-100-cells", 4000)?;
    hostile(folder)?;
    aborted(folder)?;
    loaded(folder)?;
    broken(folder)?;
    for (name, summary) in loads::alone()? {
        let html = lab_report::load_html(&[summary], &environment("load", loads::BEGAN_NS))?;
        let path = folder.join(format!("load-{name}.html"));
        std::fs::write(&path, &html)?;
        println!("{} ({} bytes)", path.display(), html.len());
    }
    many::run(folder, 50_000)?;
    // Last, for it takes the longest.
    demo(folder, "hundred-thousand", 100_000)
}

/// A run with loads: one in three steps, and a probe that goes on over all of them.
fn loaded(folder: &Path) -> Result<(), Failure> {
    let mut dice = Dice::new(7);
    let run = begin(folder, "loaded", &[])?;
    let began_ns = run.environment()?.started_at_unix_ns;
    let begin_at = |summary: Summary, at_s: i64| Summary {
        began_unix_ns: began_ns + at_s * 1_000_000_000,
        ..summary
    };
    let front = |rate: f64, seconds: u32, stalls: &[(f64, f64)]| loads::Sketch {
        name: "front",
        rate,
        seconds,
        stalls: stalls.to_vec(),
        ..loads::Sketch::default()
    };
    let hold = front(1500.0, 40, &[(22.0, 1.2)]).run(&mut dice)?;
    let mut overload = front(5000.0, 20, &[]).run(&mut dice)?;
    loads::spoil(&mut overload);
    let mut search = front(900.0, 30, &[]).run(&mut dice)?;
    search.capacity = Some(searches::found(&mut dice, 8400.0));
    search.steady.state = "ramp".into();
    search.steady.from_s = 0.0;
    let probe = loads::Sketch {
        name: "probe",
        rate: 50.0,
        seconds: 104,
        connections: 4,
        stalls: vec![(24.0, 1.2)],
        ..loads::Sketch::default()
    };
    run.write_load(&begin_at(hold, 2), Some("hold"))?;
    run.write_load(&begin_at(overload, 48), Some("overload"))?;
    run.write_load(&begin_at(search, 72), Some("find the knee"))?;
    run.write_load(&begin_at(probe.run(&mut dice)?, 1), None)?;
    let mut events = run.appender::<Event>()?;
    for (name, from, to) in [
        ("hold", 2.0, 43.0),
        ("overload", 47.5, 69.0),
        ("find the knee", 71.0, 103.0),
    ] {
        for (t_s, kind) in [(from, EventKind::StepStarted), (to, EventKind::StepEnded)] {
            events.append(&Event {
                t_s,
                kind,
                name: name.into(),
                text: String::new(),
            })?;
        }
    }
    for (name, why) in [
        (
            "soak",
            "50 % of the knee is asked for, and no hold of \"find the knee\" confirmed a rate up to \
             the knee that it tells: the time was over",
        ),
        (
            "compare",
            "it uses {soaked}, which \"soak\" keeps, and that was skipped",
        ),
    ] {
        events.append(&Event {
            t_s: 103.2,
            kind: EventKind::StepSkipped,
            name: name.into(),
            text: why.into(),
        })?;
    }
    events.flush()?;
    write_processes(&run, &mut dice, 105.0)?;
    let fault = FaultRecord {
        step: "hold".into(),
        kind: "pause".into(),
        targets: vec!["front".into()],
        begin_s: 24.0,
        end_s: Some(25.2),
        text: "they go on".into(),
        effects: vec![FaultEffect {
            of: "probe.good".into(),
            text: "no effect seen; a change by 100 % that lasted 60 ms would have been seen".into(),
            seen: Some(false),
            ..FaultEffect::default()
        }],
    };
    run.write_json(RunFile::Faults, &[fault])?;
    let expectations = vec![Expectation {
        that: "hold: front p99 < 20ms".into(),
        measured: "912 ms".into(),
        values: Default::default(),
        units: std::collections::BTreeMap::new(),
        outcome: Outcome::Fail,
        note: String::new(),
    }];
    finish(&run, Outcome::Invalid, None, 105.0, expectations)
}

/// A run of which some files were spoiled.
fn broken(folder: &Path) -> Result<(), Failure> {
    let run = begin(folder, "broken", &[("task", &["a", "b"])])?;
    let good = loads::Sketch {
        seconds: 5,
        ..loads::Sketch::default()
    };
    run.write_load(&good.run(&mut Dice::new(1))?, None)?;
    run.write(RunFile::Load("newer"), b"{\"schema\": 99}")?;
    run.write(RunFile::Load("cut"), b"{\"schema\": 1, \"na")?;
    run.write(RunFile::Lifecycle("task"), b"id,group,a,b\nx,,1,soon\n")?;
    run.write(RunFile::Lifecycle("lrp"), b"id,group,p,q\nx,,1,2000000\n")?;
    finish(&run, Outcome::Pass, None, 6.0, Vec::new())
}

/// What a run of the demo leaves.
fn demo(folder: &Path, name: &str, count: usize) -> Result<(), Failure> {
    let mut dice = Dice::new(20_151_001);
    let cells = 100.min(count / 10);
    let tasks = model::tasks(&mut dice, count, cells, 0.62);
    let tasks_end = last(&tasks);
    let lrps = model::lrps(&mut dice, count, cells, tasks_end + 0.9);
    let running = last_at(&lrps, 5);
    let end = last(&lrps) + 0.5;
    let run = begin(
        folder,
        name,
        &[("task", &TASK_POINTS), ("lrp", &LRP_POINTS)],
    )?;
    write_lives(&run, "task", &TASK_POINTS, &tasks)?;
    write_lives(&run, "lrp", &LRP_POINTS, &lrps)?;
    // Of the instances there is no log: their lines cannot be shown.
    write_log(&run, "task", &TASK_POINTS, &tasks[..count.min(4000)])?;

    let mut events = run.appender::<Event>()?;
    for (t_s, kind, name) in [
        (0.01, EventKind::SystemStarted, "bbs"),
        (0.31, EventKind::SystemReady, "bbs"),
        (0.60, EventKind::StepStarted, "tasks"),
        (2.31, EventKind::Made, "tasks"),
        (tasks_end + 0.1, EventKind::StepEnded, "tasks"),
        (tasks_end + 0.1, EventKind::StepStarted, "settle"),
        (tasks_end + 0.8, EventKind::StepEnded, "settle"),
        (tasks_end + 0.8, EventKind::StepStarted, "instances"),
        (running + 0.1, EventKind::StepEnded, "instances"),
        (running + 0.1, EventKind::StepStarted, "teardown"),
        (end - 0.2, EventKind::StepEnded, "teardown"),
    ] {
        events.append(&Event {
            t_s,
            kind,
            name: name.into(),
            text: String::new(),
        })?;
    }
    events.flush()?;

    write_counts(
        &run,
        "task",
        &tasks,
        &[("pending", 0, 4), ("running", 4, 7), ("resolved", 8, 99)],
        end,
    )?;
    write_counts(
        &run,
        "lrp",
        &lrps,
        &[("claimed", 2, 5), ("running", 5, 7)],
        end,
    )?;
    write_processes(&run, &mut dice, end)?;
    write_profile(&run)?;
    let mut loops = run.appender::<LoopTurn>()?;
    for turn in 0..(end / 1.5) as u32 {
        let t_s = 0.7 + 1.5 * f64::from(turn);
        let duration_s = 0.004 + 0.012 * (t_s / end) + dice.around(0.002, 1.5);
        loops.append(&LoopTurn {
            name: "convergence".into(),
            t_s,
            duration_s,
        })?;
    }
    loops.flush()?;
    let expect = |that: &str, measured: &str, outcome, note: &str| Expectation {
        that: that.into(),
        measured: measured.into(),
        values: Default::default(),
        units: std::collections::BTreeMap::new(),
        outcome,
        note: note.into(),
    };
    let total = format!("{:.2} s", tasks_end - 0.62);
    finish(
        &run,
        Outcome::Fail,
        None,
        end,
        vec![
            expect(
                "task.desired..resolved max < 30s",
                &total,
                Outcome::Pass,
                "",
            ),
            expect("task.complete >= 99.9%", "99.95 %", Outcome::Pass, ""),
            expect("lrp.desired..running p99 < 8s", "8.41 s", Outcome::Fail, ""),
            expect("loop.convergence p99 < 5s", "19.8 ms", Outcome::Pass, ""),
            expect("bbs rss max < 1GiB", "212 MiB", Outcome::Pass, ""),
        ],
    )
}

/// Stacks of two systems.
fn write_profile(run: &RunFolder) -> Result<(), Failure> {
    let stacks = "bbs;main;serve;commit;fdatasync (kernel) 120\nbbs;main;serve;encode 300\nbbs;main;serve;[libc.so.6] 60\n\
                  rep.0;main;run;create 240\nrep.0;main;poll 80\n";
    run.write(RunFile::Stacks, stacks.as_bytes())?;
    let system = |system: &str, samples| SystemSamples {
        system: system.into(),
        samples,
    };
    let record = ProfileRecord {
        from_s: 2.0,
        to_s: 12.0,
        why: "in which most processor time was used".into(),
        per_second: 99,
        samples: 800,
        lost: 0,
        systems: vec![system("bbs", 480), system("rep.0", 320)],
        note: None,
    };
    run.write_json(RunFile::Profile, &record)?;
    Ok(())
}

/// Names and ids that try to break out of where they are put; one entity.
fn hostile(folder: &Path) -> Result<(), Failure> {
    let evil = "</script><script>document.title='broken'</script><!-- \"&'";
    let run = begin(folder, "hostile", &[("task", &["a", evil, "c"])])?;
    let life = Life {
        id: evil.into(),
        cell: 0,
        at: vec![Some(-0.5), Some(0.25), Some(4500.0)],
    };
    write_log(&run, "task", &["a", evil, "c"], std::slice::from_ref(&life))?;
    write_lives(&run, "task", &["a", evil, "c"], &[life])?;
    let mut events = run.appender::<Event>()?;
    for (t_s, kind) in [
        (0.0, EventKind::StepStarted),
        (4000.0, EventKind::StepFailed),
    ] {
        events.append(&Event {
            t_s,
            kind,
            name: evil.into(),
            text: evil.into(),
        })?;
    }
    events.flush()?;
    finish(
        &run,
        Outcome::Inconclusive,
        None,
        4600.0,
        vec![Expectation {
            that: evil.into(),
            measured: String::new(),
            values: Default::default(),
            units: std::collections::BTreeMap::new(),
            outcome: Outcome::Inconclusive,
            note: evil.into(),
        }],
    )
}

/// A run that ended before anything was measured.
fn aborted(folder: &Path) -> Result<(), Failure> {
    let run = begin(folder, "aborted", &[])?;
    let reason = "the system `bbs` was not ready within 10 s: it exited with status 1 after 0.3 s";
    finish(&run, Outcome::Error, Some(reason.into()), 0.4, Vec::new())
}

fn environment(run_id: &str, started_at_unix_ns: i64) -> Environment {
    let command = ["headroom", "run", "experiments/road-to-100-cells.toml"];
    Environment {
        schema: SCHEMA,
        run_id: run_id.into(),
        started_at_unix_ns,
        command: command.map(str::to_owned).to_vec(),
        headroom_version: "0.1.0".into(),
        git_commit: Some("7c1f0a94b2e5d6f8a3b1c0d9e8f7a6b5c4d3e2f1-dirty".into()),
        cores: 2,
        cpu_model: "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz".into(),
        memory_bytes: 25_165_824_000,
        kernel: "Linux 6.8.0".into(),
        versions: BTreeMap::from([("sqlite".into(), "3.50.4".into())]),
        made_from: None,
    }
}

fn begin(folder: &Path, name: &str, lives: &[(&str, &[&str])]) -> Result<RunFolder, Failure> {
    let started_at: Timestamp = "2026-11-21T09:30:00.250Z".parse()?;
    // Samples of an earlier time would be told apart only by a number behind the name.
    let _ = std::fs::remove_dir_all(folder.join(format!("{name}-20261121-093000")));
    let run = RunFolder::create(folder, name, started_at)?;
    let started_at_ns = i64::try_from(started_at.as_nanosecond())?;
    run.write_json(RunFile::Environment, &environment(&run.id(), started_at_ns))?;
    let lifecycles: Vec<_> = lives
        .iter()
        .map(|(name, points)| {
            let points: Vec<[&str; 2]> = points.iter().map(|point| [*point; 2]).collect();
            serde_json::json!({"name": name, "key": [format!("{name}-guid")], "points": points})
        })
        .collect();
    run.write_json(
        RunFile::Plan,
        &serde_json::json!({
            "name": name,
            "about": "4,000 tasks, then 4,000 instances, on 100 simulated cells",
            "seed": 20_151_001,
            "lifecycles": lifecycles,
            "systems": [{"name": "bbs", "log": "lager"}],
        }),
    )?;
    run.write(
        RunFile::Experiment,
        b"lab  = 1\nname = \"road-to-100-cells\"\nseed = 20151001\n\n[let]\ncells = 100\n",
    )?;
    Ok(run)
}

fn finish(
    run: &RunFolder,
    outcome: Outcome,
    reason: Option<String>,
    duration_s: f64,
    expectations: Vec<Expectation>,
) -> Result<(), Failure> {
    run.write_json(
        RunFile::Verdict,
        &Verdict {
            probes: Vec::new(),
            left_out: Vec::new(),
            notes: Vec::new(),
            outcome,
            reason,
            duration_s,
            expectations,
        },
    )?;
    let html = lab_report::html(&RunFolder::open(run.path())?)?;
    run.write(RunFile::Report, html.as_bytes())?;
    println!(
        "{} ({} bytes)",
        run.file(RunFile::Report).display(),
        html.len()
    );
    Ok(())
}

fn write_lives(
    run: &RunFolder,
    name: &str,
    points: &[&str],
    lives: &[Life],
) -> Result<(), Failure> {
    let mut text = String::new();
    push_record(
        &mut text,
        ["id", "group"].into_iter().chain(points.iter().copied()),
    );
    for life in lives {
        let mut fields = vec![life.id.clone(), format!("cell-{}", life.cell)];
        let ns = |at: f64| ((at * 1e9) as i64).to_string();
        fields.extend(life.at.iter().map(|at| at.map(ns).unwrap_or_default()));
        push_record(&mut text, fields.iter().map(String::as_str));
    }
    Ok(run.write(RunFile::Lifecycle(name), text.as_bytes())?)
}

/// The log that the lives of one kind were found in.
fn write_log(run: &RunFolder, name: &str, points: &[&str], lives: &[Life]) -> Result<(), Failure> {
    let began_ns = run.environment()?.started_at_unix_ns;
    let mut lines: Vec<(i64, String)> = Vec::new();
    for life in lives {
        for (point, at) in points.iter().zip(&life.at) {
            let Some(at) = at else { continue };
            let ns = began_ns + (at * 1e9) as i64;
            let (seconds, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
            let line = serde_json::json!({
                "timestamp": format!("{seconds}.{rest:09}"),
                "source": "bbs",
                "message": format!("bbs.{name}.{point}"),
                "log_level": 1,
                "data": {
                    format!("{name}-guid"): life.id, "cell-id": format!("cell-{}", life.cell),
                },
            });
            lines.push((ns, line.to_string()));
        }
    }
    lines.sort_unstable();
    let lines: Vec<String> = lines.into_iter().map(|(_, line)| line + "\n").collect();
    Ok(run.write(RunFile::Log("bbs"), lines.concat().as_bytes())?)
}

/// Ten times a second, how many lives are between two points.
fn write_counts(
    run: &RunFolder,
    what: &str,
    lives: &[Life],
    states: &[(&str, usize, usize)],
    end: f64,
) -> Result<(), Failure> {
    let mut series = run.appender::<EntityCount>()?;
    for tick in 0..(end * 10.0) as u32 {
        let t_s = f64::from(tick) / 10.0;
        let passed = |life: &Life, point: usize| {
            life.at
                .get(point)
                .copied()
                .flatten()
                .is_some_and(|at| at <= t_s)
        };
        for (state, from, to) in states {
            let count = lives
                .iter()
                .filter(|life| passed(life, *from) && !passed(life, *to))
                .count() as u64;
            series.append(&EntityCount {
                t_s,
                what: what.into(),
                state: (*state).into(),
                count,
            })?;
        }
    }
    Ok(series.flush()?)
}

fn write_processes(run: &RunFolder, dice: &mut Dice, end: f64) -> Result<(), Failure> {
    let mut series = run.appender::<ProcessSample>()?;
    for tick in 1..(end * 10.0) as u32 {
        let t_s = f64::from(tick) / 10.0;
        for (system, cpu, rss_mib, fds, threads) in [
            ("locket", 0.02, 14.0, 40, 4),
            ("bbs", 0.9, 60.0, 420, 12),
            ("auctioneer", 0.35, 24.0, 130, 8),
            ("cells", 0.7, 90.0, 640, 10),
        ] {
            let busy = if (t_s * 0.31).sin() > -0.4 { 1.0 } else { 0.15 };
            series.append(&ProcessSample {
                t_s,
                system: system.into(),
                cpu_cores: dice.around(cpu, 1.2) * busy,
                rss_bytes: ((rss_mib + 140.0 * rss_mib / 60.0 * t_s / end) * 1_048_576.0) as u64,
                fds: fds + (busy * 30.0) as u64 + dice.below(4) as u64,
                threads,
            })?;
        }
    }
    Ok(series.flush()?)
}

fn last(lives: &[Life]) -> f64 {
    lives
        .iter()
        .flat_map(|life| life.at.iter().flatten())
        .copied()
        .fold(0.0, f64::max)
}

fn last_at(lives: &[Life], point: usize) -> f64 {
    lives
        .iter()
        .filter_map(|life| life.at[point])
        .fold(0.0, f64::max)
}
