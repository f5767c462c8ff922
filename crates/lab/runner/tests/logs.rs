//! What logs tell of a run: by whom, until when, and what they do not tell.

use std::path::Path;

use crate::support::{notes, options, outcomes, plan, run, script};
use lab_store::{LoopTurn, Outcome};

/// Writes a line of a log: message and further members.
const SAY: &str = r#"say() { echo "{\"timestamp\":\"$(date +%s.%N)\",\"message\":\"$1\"$2}"; }; "#;

/// A member that elects when its leader goes: at the moment it is told to end.
const ELECTS_AT_THE_END: &str = r#"trap 'say election.start; say election.end; say task.done ",\"guid\":\"a\""; exit 0' TERM
say task.start ",\"guid\":\"a\""; say up
while :; do sleep 0.02; done"#;

fn experiment(folder: &Path, body: &str, count: u32, rest: &str) -> String {
    let member = folder.join("member.sh");
    script(&member, &format!("#!/bin/sh\n{SAY}\n{body}\n"));
    format!(
        r#"
[[system]]
name = "member"
run = "{}"
ready = "log up"
count = {count}
[[loop]]
name = "election"
start = "election.start"
end = "election.end"
[[lifecycle]]
name = "task"
key = ["guid"]
points = [["start", "task.start"], ["done", "task.done"]]
{rest}"#,
        member.display()
    )
}

#[test]
fn what_the_teardown_causes_is_stored_and_not_judged() {
    let scripts = tempfile::tempdir().unwrap();
    let (_folder, finished) = run(&experiment(
        scripts.path(),
        ELECTS_AT_THE_END,
        1,
        r#"
[[step]]
name = "quiet"
hold = "300ms"
[[expect]]
that = "loop.election count == 0"
[[expect]]
that = "task.start..done count == 0"
"#,
    ));
    let turns: Vec<LoopTurn> = finished.folder.records().unwrap();
    assert_eq!(turns.len(), 1, "the election was seen");
    // What never happened within the steps cannot be counted there.
    assert_ne!(
        finished.verdict.outcome,
        Outcome::Fail,
        "{:?}",
        finished.verdict
    );
    assert_eq!(finished.verdict.expectations[0].outcome, Outcome::Pass);
}

#[test]
fn what_happens_in_a_step_is_judged_to_its_last_line() {
    let scripts = tempfile::tempdir().unwrap();
    let body = "say task.start ',\"guid\":\"a\"'; say up\n\
        until [ -e \"$HEADROOM_GO\" ]; do sleep 0.02; done\n\
        say election.start; say election.end; say task.done ',\"guid\":\"a\"'\n\
        exec sleep 600";
    let go = scripts.path().join("go");
    let rest = format!(
        r#"
[[step]]
name = "elect"
run = "touch {}; until grep -q election.start {{work}}/../logs/member.log; do sleep 0.01; done"
[[expect]]
that = "loop.election count == 0"
[[expect]]
that = "task.start..done count == 1"
"#,
        go.display()
    );
    let text = experiment(scripts.path(), body, 1, &rest);
    let text = text.replace(
        "ready = \"log up\"",
        &format!(
            "ready = \"log up\"\nenv = {{ HEADROOM_GO = \"{}\" }}",
            go.display()
        ),
    );
    let (_folder, finished) = run(&text);
    assert_eq!(
        outcomes(&finished),
        [Outcome::Fail, Outcome::Pass],
        "{:?}",
        finished.verdict
    );
    assert_eq!(notes(&finished), Vec::<&str>::new());
}

#[test]
fn turns_of_several_processes_are_apart() {
    let scripts = tempfile::tempdir().unwrap();
    // All three begin before any of them ends.
    let body = "say task.start ',\"guid\":\"'$$'\"'; say up\n\
        until [ -e \"$0.go\" ]; do sleep 0.02; done\n\
        say election.start; touch \"$0.$$\"\n\
        until [ $(ls \"$0\".[0-9]* | wc -l) = 3 ]; do sleep 0.02; done\n\
        say election.end; say task.done ',\"guid\":\"'$$'\"'; exec sleep 600";
    let member = scripts.path().join("member.sh");
    let rest = format!(
        r#"
[[step]]
name = "elect"
run = "touch {0}.go; until [ $(cat {{work}}/../logs/member.*.log | grep -c task.done) = 3 ]; do sleep 0.02; done"
[[expect]]
that = "loop.election count == 3 and task.complete == 100%"
"#,
        member.display()
    );
    let (_folder, finished) = run(&experiment(scripts.path(), body, 3, &rest));
    assert_eq!(
        finished.verdict.outcome,
        Outcome::Pass,
        "{:?}",
        finished.verdict
    );
    let turns: Vec<LoopTurn> = finished.folder.records().unwrap();
    let mut names: Vec<&str> = turns.iter().map(|turn| turn.name.as_str()).collect();
    names.sort_unstable();
    let expected = [
        "election of member.0",
        "election of member.1",
        "election of member.2",
    ];
    assert_eq!(names, expected);
    let histograms = finished.folder.histograms().unwrap();
    let names: Vec<&str> = histograms.iter().map(|h| h.name.as_str()).collect();
    assert!(names.contains(&"loop.election"), "{names:?}");
    assert!(names.contains(&"loop.election of member.1"), "{names:?}");
}

#[test]
fn a_lifecycle_that_matches_nothing_says_so_and_names_the_nearest() {
    let scripts = tempfile::tempdir().unwrap();
    let body = "say task.start ',\"process-guid\":\"a\",\"index\":0'; say other; say up\n\
        exec sleep 600";
    let rest = "[[step]]\nname = \"look\"\nhold = \"300ms\"\n";
    let text = experiment(scripts.path(), body, 1, rest);
    let (_folder, finished) = run(&text);
    let notes = &finished.verdict.notes;
    let said = "lifecycle task found nothing: 0 of 3 log lines have the field `guid`; \
        the nearest is `process-guid`";
    assert!(notes.iter().any(|note| note == said), "{notes:?}");
    let said = "loop election found nothing: 0 of 3 log lines match its start or its end";
    assert!(notes.iter().any(|note| note == said), "{notes:?}");

    let (_folder, finished) = run(&text
        .replace("\"guid\"", "\"index\"")
        .replace("task.start", "job"));
    let notes = finished.verdict.notes.join("\n");
    assert!(
        notes.contains("1 of 3 log lines have its key, and none of them matches a point"),
        "{notes}"
    );
    assert!(notes.contains("they say \"task.start\""), "{notes}");
}

#[test]
fn paths_start_from_the_folder_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("bin")).unwrap();
    script(
        &folder.path().join("bin/server"),
        "#!/bin/sh\necho up $(cat near)\nexec sleep 600\n",
    );
    script(&folder.path().join("look"), "#!/bin/sh\necho looked\n");
    std::fs::write(folder.path().join("near"), "and near").unwrap();
    let text = |program: &str| {
        format!(
            "[[system]]\nname = \"server\"\nrun = \"{program}\"\nready = \"log up and near\"\n\
             [[step]]\nname = \"look\"\nrun = \"./look\"\n"
        )
    };
    let make = |program: &str| {
        let (plan, text) = plan(&text(program));
        let mut options = options(&folder.path().join("runs"));
        options.base = folder.path().to_owned();
        lab_runner::run(plan, &text, options)
    };
    assert_eq!(make("bin/server").unwrap().verdict.outcome, Outcome::Pass);
    let error = make("bin/sever").unwrap_err().to_string();
    let base = folder.path().display().to_string();
    assert!(
        error.contains("the folder of the experiment file") && error.contains(&base),
        "{error}"
    );
}

/// A hundred and twenty tasks of two copies, in files of their own that are rotated while they grow,
/// and one that was there before the run.
#[test]
fn logs_that_programs_write_themselves_are_read_through_rotation() {
    let scripts = tempfile::tempdir().unwrap();
    let member = scripts.path().join("member.sh");
    let body = r#"
mkdir -p "$1"; cd "$1"
until [ -e ../go ]; do sleep 0.02; done
task=0
while [ $task -lt 60 ]; do
  say task.start ",\"guid\":\"$2-$task\"" >> app.log
  say task.done ",\"guid\":\"$2-$task\"" >> app.log
  task=$((task + 1))
  if [ $((task % 20)) = 0 ]; then mv app.log app.log.$task; sleep 0.2; fi
done
say late ',"guid":"x"' >> app.log
touch written
exec sleep 600"#;
    script(&member, &format!("#!/bin/sh\n{SAY}\n{body}\n"));
    let old = scripts.path().join("old.log");
    let line = "{\"timestamp\":\"1700000000.0\",\"message\":\"task.start\",\"guid\":\"old\"}\n";
    std::fs::write(&old, line).unwrap();
    let (_folder, finished) = run(&format!(
        r#"
[[system]]
name = "member"
run = "{} {{work}}/own-{{index}} {{index}}"
count = 2
inputs = ["{{work}}/own-{{index}}/app.log*", "{}"]
[[lifecycle]]
name = "task"
key = ["guid"]
points = [["start", "task.start"], ["done", "task.done"]]
[[probe]]
name = "late"
log = "member"
pattern = "late"
every = "50ms"
within = "10s"
[[probe]]
name = "each"
log = "member"
of = "member"
pattern = "late"
every = "50ms"
within = "10s"
[[step]]
name = "before"
wait = {{ until = "late.value == 0 and each.value max == 0", at_most = "20s" }}
[[step]]
name = "work"
run = "touch {{work}}/go; until [ -e {{work}}/own-0/written -a -e {{work}}/own-1/written ]; do sleep 0.02; done"
wait = {{ until = "late.value == 2 and each.value min == 1", at_most = "20s" }}
[[expect]]
that = "task.start..done count == 120"
[[expect]]
that = "task.complete == 100%"
"#,
        member.display(),
        old.display()
    ));
    assert_eq!(
        finished.verdict.outcome,
        Outcome::Pass,
        "{:?}",
        finished.verdict
    );
    for copy in 0..2 {
        let log = finished
            .folder
            .path()
            .join(format!("logs/member.{copy}.files.log"));
        let log = std::fs::read_to_string(log).unwrap();
        assert_eq!(log.lines().count(), 121, "{log}");
    }
}

/// Two copies that write to one file: each of its lines is read once, with those of the first.
#[test]
fn a_file_that_several_copies_write_to_is_read_once() {
    let scripts = tempfile::tempdir().unwrap();
    let member = scripts.path().join("member.sh");
    let body = r#"
until [ -e "$1/go" ]; do sleep 0.02; done
say task.start ",\"guid\":\"$2\"" >> "$1/app.log"
say task.done ",\"guid\":\"$2\"" >> "$1/app.log"
touch "$1/written-$2"
exec sleep 600"#;
    script(&member, &format!("#!/bin/sh\n{SAY}\n{body}\n"));
    let (_folder, finished) = run(&format!(
        r#"
[[system]]
name = "member"
run = "{} {{work}} {{index}}"
count = 2
inputs = ["{{work}}/app.log"]
[[lifecycle]]
name = "task"
key = ["guid"]
points = [["start", "task.start"], ["done", "task.done"]]
[[step]]
name = "work"
run = "touch {{work}}/go; until [ -e {{work}}/written-0 -a -e {{work}}/written-1 ]; do sleep 0.02; done"
[[expect]]
that = "task.complete == 100%"
"#,
        member.display()
    ));
    assert_eq!(
        finished.verdict.outcome,
        Outcome::Pass,
        "{:?}",
        finished.verdict
    );
    let logs = finished.folder.path().join("logs");
    let lines = |copy: u32| {
        let log = std::fs::read_to_string(logs.join(format!("member.{copy}.files.log")));
        log.unwrap().lines().count()
    };
    assert_eq!((lines(0), lines(1)), (4, 0));
}
