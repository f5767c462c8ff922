//! Faults of steps: what is hit, for how long, and that it is put right again.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::{all, faults, log, notes, of, outcomes, passed, run, server};
use lab_runner::Finished;
use lab_store::{EventKind, Outcome};

/// Three copies that say ten times a second that they are there, with a child in a session
/// of its own that does the same, as databases have.
const BEATS: &str = r#"
[[system]]
name = "beat"
run = "sh -c 'setsid sh -c \"while :; do echo child \\$(date +%s.%N); sleep 0.1; done\" & echo up; while :; do echo parent $(date +%s.%N); sleep 0.1; done'"
ready = "log up"
count = 3
"#;

fn made(text: &str) -> (tempfile::TempDir, Finished) {
    run(&format!("{BEATS}{text}"))
}

/// Times at which a copy's parent or child said that it was there, since the Unix epoch.
fn beats(finished: &Finished, copy: &str, who: &str) -> Vec<f64> {
    let text = log(finished, copy);
    let lines = text.lines().filter_map(|line| line.strip_prefix(who));
    lines.map(|time| time.trim().parse().unwrap()).collect()
}

/// The longest silence between two beats, in seconds.
fn silence(beats: &[f64]) -> f64 {
    let gaps = beats.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.fold(0.0, f64::max)
}

#[test]
fn a_pause_stops_every_process_of_the_copies_that_are_hit_and_of_no_other() {
    let (_folder, finished) = made(
        r#"
[[step]]
name = "stop one"
hold = "3s"
fault = { pause = "beat.1", at = "500ms", for = "1500ms" }
"#,
    );
    passed(&finished);
    for who in ["parent", "child"] {
        let hit = silence(&beats(&finished, "beat.1", who));
        assert!(hit > 1.4, "{who} was silent for {hit} s");
        for copy in ["beat.0", "beat.2"] {
            let other = silence(&beats(&finished, copy, who));
            assert!(other < hit - 0.2, "{copy}: {who} was silent for {other} s");
        }
    }
    let (began, ended) = (
        of(&finished, EventKind::FaultBegan),
        of(&finished, EventKind::FaultEnded),
    );
    assert_eq!((&*began[0].1, &*began[0].2), ("stop one", "pause beat.1"));
    let lasted = ended[0].0 - began[0].0;
    assert!(lasted >= 1.5, "{lasted}");
}

#[test]
fn what_is_killed_is_down_until_the_fault_ends_and_then_started_again() {
    let (_folder, finished) = made(
        r#"
[[step]]
name = "kill two"
hold = "500ms"
fault = { kill = "beat", pick = 2, for = "1s" }
[[step]]
name = "afterwards"
hold = "300ms"
"#,
    );
    passed(&finished);
    let exited = of(&finished, EventKind::SystemExited);
    let killed: Vec<&str> = exited
        .iter()
        .filter(|(.., text)| text == "was ended by SIGKILL")
        .map(|(_, name, _)| &**name)
        .collect();
    assert_eq!(killed.len(), 2, "{exited:?}");
    for copy in ["beat.0", "beat.1", "beat.2"] {
        let ups = log(&finished, copy).matches("up\n").count();
        let is_hit = killed.contains(&copy);
        assert_eq!(ups, if is_hit { 2 } else { 1 }, "{copy}, {killed:?}");
        if is_hit {
            let hit = silence(&beats(&finished, copy, "parent"));
            assert!(hit >= 0.5, "{copy} was silent for {hit} s");
            // The child left the process group, and was hit all the same.
            let hit = silence(&beats(&finished, copy, "child"));
            assert!(hit >= 0.5, "{copy}'s child was silent for {hit} s");
        }
    }
    // Each end is told once.
    assert_eq!(exited.len(), 5, "{exited:?}");
}

#[test]
fn the_same_seed_hits_the_same_copies_and_others_hit_others() {
    let hit = |seed: u64| {
        let (_folder, finished) = run(&format!(
            r#"seed = {seed}
[[system]]
name = "many"
run = "sleep 600"
count = 6
[[step]]
name = "half"
fault = {{ kill = "many", pick = "50%", for = "10ms" }}
"#
        ));
        let began = of(&finished, EventKind::FaultBegan);
        began[0].2.clone()
    };
    let first = hit(1);
    assert_eq!(first.matches("many.").count(), 3, "{first}");
    assert_eq!(hit(1), first);
    let others: Vec<String> = (2..6).map(hit).collect();
    assert!(others.iter().any(|other| *other != first), "{others:?}");
}

#[test]
fn a_hundred_copies_die_and_come_back_together() {
    let (_folder, finished) = run(r#"
[[system]]
name = "many"
run = "sleep 600"
count = 100
[[step]]
name = "all"
fault = { kill = "many", pick = "all", for = "10ms" }
"#);
    passed(&finished);
    let count = |kind| of(&finished, kind).len();
    assert_eq!(count(EventKind::SystemStarted), 200);
    assert_eq!(count(EventKind::SystemReady), 200);
    // Each end is told once, that of the first processes and that of the second.
    assert_eq!(count(EventKind::SystemExited), 200);
    assert_eq!(faults(&finished)[0].targets.len(), 100);
}

#[test]
fn a_restart_is_orderly_and_lasts_until_they_are_ready() {
    let (_folder, finished) = run(r#"
[[system]]
name = "polite"
run = "sh -c 'trap \"echo bye; exit 0\" TERM; sleep 0.3; echo up; while :; do sleep 0.05; done'"
ready = "log up"
[[step]]
name = "renew"
fault = { restart = "polite" }
"#);
    passed(&finished);
    let text = log(&finished, "polite");
    assert_eq!(text.matches("up\n").count(), 2, "{text}");
    assert!(text.starts_with("up\nbye\n"), "{text}");
    let events = all(&finished);
    let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
    let at = |kind| kinds.iter().rposition(|one| *one == kind).unwrap();
    assert!(
        at(EventKind::SystemReady) < at(EventKind::FaultEnded),
        "{kinds:?}"
    );
}

#[test]
fn a_supervised_system_is_started_again_and_the_fault_ends_with_it() {
    let (_folder, finished) = run(r#"
[[system]]
name = "kept"
run = "sh -c 'echo up; exec sleep 600'"
ready = "log up"
on_exit = "restart"
restart_after = "700ms"
[[step]]
name = "crash"
hold = "3s"
fault = { kill = "kept", at = "100ms" }
"#);
    passed(&finished);
    assert_eq!(log(&finished, "kept"), "up\nup\n");
    let lasted =
        of(&finished, EventKind::FaultEnded)[0].0 - of(&finished, EventKind::FaultBegan)[0].0;
    assert!((0.7..2.8).contains(&lasted), "{lasted}");
}

#[test]
fn what_ends_by_itself_ends_the_run_unless_the_file_says_otherwise() {
    let ended = |on_exit: &str| {
        let (_folder, finished) = run(&format!(
            r#"
[[system]]
name = "short"
run = "sh -c 'echo up; sleep 0.2; exit 3'"
ready = "log up"
{on_exit}
[[step]]
name = "longer"
hold = "1s"
"#
        ));
        let ups = log(&finished, "short").matches("up").count();
        (
            finished.verdict.outcome,
            finished.verdict.reason.unwrap_or_default(),
            ups,
        )
    };
    let (outcome, why, ups) = ended("");
    assert_eq!((outcome, ups), (Outcome::Error, 1));
    assert!(why.contains("short ended with status 3"), "{why}");
    assert_eq!(ended("on_exit = \"expected\"").0, Outcome::Pass);
    let (outcome, why, ups) = ended("on_exit = \"restart\"\nrestart_after = \"10ms\"");
    assert_eq!(outcome, Outcome::Pass, "{why}");
    assert!(ups >= 2, "{ups}");
}

#[test]
fn what_ends_by_itself_starts_again_when_its_whole_tree_has_ended() {
    let (_folder, finished) = run(r#"
[[system]]
name = "kept"
run = "sh -c 'echo up; (setsid sh -c \"sleep 0.5; echo gone\" &); sleep 0.1; exit 1'"
ready = "log up"
on_exit = "restart"
restart_after = "10ms"
[[step]]
name = "look"
hold = "2s"
"#);
    passed(&finished);
    let text = log(&finished, "kept");
    assert!(text.starts_with("up\ngone\nup\n"), "{text}");
    assert!(!text.contains("up\nup\n"), "{text}");
}

#[test]
fn what_is_to_stay_down_no_supervisor_starts() {
    let (_folder, finished) = run(r#"
[[system]]
name = "kept"
run = "sh -c 'echo up; exec sleep 600'"
ready = "log up"
on_exit = "restart"
restart_after = "10ms"
[[step]]
name = "crash"
hold = "600ms"
fault = { kill = "kept", at = "100ms", keep = true }
"#);
    passed(&finished);
    assert_eq!(log(&finished, "kept"), "up\n");
}

#[test]
fn a_fault_of_what_has_ended_says_so_and_accuses_no_other_fault() {
    let (_folder, finished) = run(r#"
[[system]]
name = "short"
run = "sh -c 'echo up; sleep 0.5'"
ready = "log up"
on_exit = "expected"
[[step]]
name = "late"
hold = "1s"
[[step]]
name = "break"
fault = { pause = "short", for = "50ms" }
"#);
    let verdict = finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Error, "{verdict:?}");
    let why = verdict.reason.unwrap_or_default();
    assert!(why.contains("the others have ended"), "{why}");
}

#[test]
fn two_faults_do_not_hit_the_same_copy_and_say_when_none_is_left() {
    let (_folder, finished) = made(
        r#"
[[step]]
name = "all, twice"
fault = [{ pause = "beat", pick = "all", for = "1s" }, { pause = "beat", pick = 1, at = "200ms", for = "1s" }]
"#,
    );
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Error, "{verdict:?}");
    let why = verdict.reason.clone().unwrap_or_default();
    assert!(why.contains("another fault has the others"), "{why}");
    // What was stopped was let go, or it could not have ended by being asked.
    let exited = of(&finished, EventKind::SystemExited);
    assert!(
        exited
            .iter()
            .all(|(.., text)| text == "was ended by SIGTERM"),
        "{exited:?}"
    );
}

#[test]
fn a_fault_is_undone_when_the_step_fails() {
    let (_folder, finished) = made(
        r#"
[[step]]
name = "in vain"
hold = "100ms"
fault = { pause = "beat", pick = "all" }
run = "sleep 0.3; exit 1"
"#,
    );
    assert_eq!(finished.verdict.outcome, Outcome::Error);
    assert_eq!(notes(&finished), Vec::<&str>::new());
}

/// A server under load, and another one that nobody uses, with the steps given.
fn under_load(steps: &str) -> (tempfile::TempDir, Finished) {
    let scripts = tempfile::tempdir().unwrap();
    let server = server(scripts.path());
    run(&format!(
        r#"
[[system]]
name = "web"
run = "python3 {0} {{port}}"
ready = "tcp"
[[system]]
name = "unused"
run = "python3 {0} {{port}}"
ready = "tcp"
[[load]]
name = "traffic"
http = "GET http://{{web.addr}}/"
rate = "constant 200/s"
timeout = "1s"
connections = 300
guard = {{ late_after = "1s", steal_share = "100%", little = "100%" }}
{steps}"#,
        server.display()
    ))
}

#[test]
fn the_recovery_of_a_load_is_that_of_the_server_that_was_killed() {
    let (_folder, finished) = under_load(
        r#"
[[step]]
name = "kill"
load = { traffic = "on" }
hold = "3s"
fault = { kill = "web", for = "1s" }
[[step]]
name = "afterwards"
load = { traffic = "on" }
hold = "3s"
[[expect]]
that = "recovery(traffic.good) > 1s and 'kill': recovery(traffic) < 60s and recovery_from_end(traffic) < 10s"
[[expect]]
that = "depth(traffic) >= 95% and detection(traffic) < 10s and lost(traffic) >= 190"
"#,
    );
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:?}");
    let made = faults(&finished);
    let [fault] = made.as_slice() else {
        panic!("{made:?}")
    };
    assert_eq!(
        (&*fault.step, &*fault.kind, &*fault.targets),
        ("kill", "kill", &["web".to_owned()][..])
    );
    // The truth: nobody answers from the signal until there is a new process, and all is well
    // soon after it listens; a busy machine may keep both waiting between the two.
    let since = |kind| {
        let times = of(&finished, kind);
        let again = times.iter().rfind(|(_, name, _)| name == "web").unwrap();
        again.0 - fault.begin_s
    };
    let (started, listens) = (
        since(EventKind::SystemStarted),
        since(EventKind::SystemReady),
    );
    let effect = &fault.effects[0];
    assert_eq!((&*effect.of, effect.seen), ("traffic.good", Some(true)));
    let (found, about) = (effect.recovery_s.unwrap(), effect.resolution_s.unwrap());
    assert!(
        found >= started - about && found <= listens + 1.0,
        "{found} ± {about} instead of {started} to {listens}: {effect:?}"
    );
    // Each request that was due meanwhile failed, one every 5 ms, but those at the end may have
    // waited for it.
    let lost = effect.lost.unwrap();
    assert!(
        lost >= started * 200.0 - 20.0 && lost <= found * 200.0 + 20.0,
        "{lost} in {found} s, {started} s until it was started"
    );
}

#[test]
fn a_fault_recurs_until_its_step_is_over_and_picks_anew() {
    let text = r#"
[[step]]
name = "again and again"
hold = "6s"
fault = [
  { pause = "beat", pick = 1, every = "200ms", for = "50ms" },
  { pause = "beat.0", every = "exponential 10m", for = "50ms" },
]
[[step]]
name = "never again"
hold = "500ms"
"#;
    // On a machine that is far too busy one can take seconds; then there are too few to tell.
    let mut runs = (0..3).map(|_| made(text));
    let is_enough = |finished: &Finished| of(finished, EventKind::FaultBegan).len() >= 6;
    let finished = runs.find(|(_, finished)| is_enough(finished));
    let (_folder, finished) = finished.expect("six faults in one of three runs");
    passed(&finished);
    let began = of(&finished, EventKind::FaultBegan);
    let ended = of(&finished, EventKind::FaultEnded);
    // Each takes a quarter of a second or more; on a busy machine the step takes longer, too.
    let at = |kind: EventKind| of(&finished, kind)[0].0;
    let took = at(EventKind::StepEnded) - at(EventKind::StepStarted);
    let most = (took / 0.25) as usize + 1;
    assert!(began.len() <= most, "{began:?} in {took} s");
    assert_eq!(began.len(), ended.len());
    assert!(began.iter().all(|(_, step, _)| step == "again and again"));
    let hit: std::collections::BTreeSet<&str> = began.iter().map(|(.., text)| &**text).collect();
    assert!(hit.len() > 1, "{hit:?}");
}

#[test]
fn what_a_fault_did_again_and_again_is_told_as_a_median_with_its_interval() {
    let (_folder, finished) = under_load(
        r#"
[[step]]
name = "shaky"
load = { traffic = "on" }
hold = "15s"
fault = { reset = "web", at = "1s", every = "1500ms", for = "100ms" }
"#,
    );
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:?}");
    let made = faults(&finished);
    assert!(made.len() >= 6, "{made:?}");
    let seen = made.iter().flat_map(|fault| &fault.effects);
    let seen = seen.filter(|effect| effect.seen == Some(true)).count();
    assert!(seen >= 5, "{seen} of {}: {made:#?}", made.len());
    let note = verdict.notes.iter();
    let mut note =
        note.filter(|note| note.starts_with("shaky: reset, recovery of traffic.good: median "));
    let note = note.next().unwrap_or_else(|| panic!("{verdict:?}"));
    assert!(note.contains(&format!("of {seen} faults")), "{note}");
}

#[test]
fn a_fault_of_something_else_has_no_effect() {
    let (_folder, finished) = under_load(
        r#"
[[step]]
name = "nobody cares"
load = { traffic = "on" }
hold = "3s"
fault = [{ kill = "unused", at = "1s", for = "300ms" }, { pause = "unused", at = "2s", for = "100ms" }, { slow = "unused", to = "10%", at = "2400ms", for = "300ms" }]
[[expect]]
that = "recovery(traffic.good) == 0 and lost(traffic) == 0 and depth(traffic) == 0%"
[[expect]]
that = "detection(traffic) < 1s"
"#,
    );
    // Where nothing was seen, nobody knows how fast it would have been.
    assert_eq!(
        outcomes(&finished),
        [Outcome::Pass, Outcome::Inconclusive],
        "{:?}",
        faults(&finished)
    );
}

/// A request that waits is no request that failed, and it is told all the same.
#[test]
fn a_pause_that_no_timeout_notices_is_told_as_a_wait() {
    let (_folder, finished) = under_load(
        r#"
[[step]]
name = "patience"
load = { traffic = "on" }
hold = "4s"
fault = { pause = "web", at = "1500ms", for = "250ms" }
[[expect]]
that = "recovery(traffic.good) == 0 and lost(traffic) == 0"
"#,
    );
    assert_eq!(finished.verdict.outcome, Outcome::Pass, "{finished:?}");
    let made = faults(&finished);
    let text = &made[0].effects[0].text;
    let (_, waits) = text.split_once("; the slowest good answer took ").unwrap();
    let (since, before) = waits.split_once(", before the fault ").unwrap();
    let seconds = |text: &str| {
        units::parse_duration(&text.replace(' ', ""))
            .unwrap()
            .as_secs_f64()
    };
    let (since, before) = (seconds(since), seconds(before));
    // A busy machine keeps others waiting before, too, and tells of the end of a pause later.
    assert!(since > 0.2 && before > 0.0, "{text}");
}

#[test]
fn what_does_not_come_back_is_not_said_to_have() {
    let (_folder, finished) = under_load(
        r#"
[[step]]
name = "for good"
load = { traffic = "on" }
hold = "3s"
fault = { kill = "web", at = "1s", keep = true }
[[expect]]
that = "recovery(traffic) < 1s"
[[expect]]
that = "recovery(traffic) > 1s"
[[expect]]
that = "recovery(traffic) < 1h"
"#,
    );
    let expected = [Outcome::Fail, Outcome::Pass, Outcome::Inconclusive];
    assert_eq!(outcomes(&finished), expected, "{:?}", faults(&finished));
    let effect = faults(&finished)[0].effects[0].clone();
    assert!(
        effect.at_least && effect.text.contains("not as before within"),
        "{effect:?}"
    );
}

#[test]
fn a_delay_between_a_load_and_its_target_is_seen_by_both_ways_together_and_ends() {
    let (_folder, finished) = under_load(
        r#"
# On a busy machine the first requests wait for connections.
[[step]]
name = "begin"
load = { traffic = "on" }
hold = "1s"
[[step]]
name = "far away"
load = { traffic = "on" }
hold = "2s"
fault = { delay = "traffic -> web", by = "200ms", at = "0s", for = "1900ms" }
[[step]]
name = "near again"
load = { traffic = "on" }
hold = "1s"
[[expect]]
# One way alone would be 200 ms, and what the generator was late is taken off.
that = "'far away': traffic p50 >= 210ms and 'far away': traffic errors == 0%"
[[expect]]
that = "'near again': traffic p50 >= 0ms"
"#,
    );
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:?}");
    // Whatever else the machine does takes a part of both.
    let p50 =
        |step: &str, at: usize| verdict.expectations[at].values[&format!("'{step}': traffic p50")];
    assert!(p50("near again", 1) < p50("far away", 0), "{verdict:?}");
    let made = &faults(&finished)[0];
    assert_eq!(made.targets, ["traffic -> web"]);
    assert!(made.text.contains("connections, "), "{}", made.text);
}

#[test]
fn what_a_partition_holds_is_an_outage_and_a_reset_fails_what_is_under_way() {
    let (_folder, finished) = under_load(
        r#"
[[step]]
name = "cut off"
load = { traffic = "on" }
hold = "2s"
fault = { partition = "web", for = "1500ms" }
[[step]]
name = "connected"
load = { traffic = "on" }
hold = "4s"
[[step]]
name = "reset"
load = { traffic = "on" }
hold = "2s"
fault = { reset = "web", for = "300ms" }
[[step]]
name = "again"
load = { traffic = "on" }
hold = "3s"
[[expect]]
# Requests wait a second: those of the first half second of the partition wait in vain.
that = "'cut off': lost(traffic) > 80 and 'cut off': depth(traffic) >= 75%"
[[expect]]
that = "'cut off': recovery(traffic) > 400ms and 'cut off': recovery(traffic) < 60s"
[[expect]]
that = "'reset': lost(traffic) >= 30 and 'reset': recovery(traffic) >= 150ms and 'reset': recovery(traffic) < 60s"
"#,
    );
    let verdict = &finished.verdict;
    let made = faults(&finished);
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:?} {made:#?}");
    assert!(
        made[1].text.contains("connections reset"),
        "{}",
        made[1].text
    );
}

#[test]
fn a_throttle_lets_through_what_it_says() {
    let (_folder, finished) = run(r#"
[[system]]
name = "files"
run = "sh -c 'cd {work} && head -c 400000 /dev/zero > file && exec python3 -m http.server {port} --bind 127.0.0.1'"
ready = "tcp"
[[system]]
name = "reader"
run = "sh -c 'while :; do begin=$(date +%s%N); python3 -c \"import urllib.request as u; print(len(u.urlopen(\\\"http://{files.addr}/file\\\").read()))\"; echo took $((($(date +%s%N) - begin) / 1000000)); sleep 0.2; done'"
ready = "log took"
[[step]]
name = "narrow"
fault = { throttle = "reader -> files", to = "200kB/s", for = "6s" }
run = "sleep 6"
"#);
    passed(&finished);
    let text = log(&finished, "reader");
    let took = text.lines().filter_map(|line| line.strip_prefix("took "));
    let longest: u64 = took.map(|ms| ms.parse().unwrap()).max().unwrap();
    // 400 kB at 200 kB/s, less the burst of a tenth of a second. What a busy machine adds to
    // it has no bound; the reads that were not narrowed took a part of this.
    assert!(longest >= 1_700, "{text}");
    assert!(text.lines().any(|line| line == "400000"), "{text}");
}
