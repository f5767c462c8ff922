use std::path::Path;
use std::sync::Arc;

use lab_experiment::plan::DriverKind;
use processes::{Reaper, RunTag};

use super::*;
use crate::processes::{Children, Launch, Output};

const SHORT: Duration = Duration::from_millis(300);

/// A busy machine lets a shell wait for longer than a test wants to.
const PATIENT: Limits = Limits {
    hello: Duration::from_secs(30),
    silence: Duration::from_secs(1),
    take: Duration::from_secs(30),
    close: SHORT,
};

/// A driver written in shell, under a reaper that only reads.
async fn open(folder: &Path, script: &str, limits: Limits) -> Result<Program, DriverError> {
    let reaper = ["sh", "-c", "echo ready; cat > /dev/null"].map(Into::into);
    let reaper = Arc::new(Reaper::start(&reaper).unwrap());
    let children = Children::new(reaper, RunTag::new("program-test", 0), ".".into());
    let launch = Launch {
        name: "driver-test".into(),
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: Vec::new(),
        cpus: None,
        cgroup: None,
        stdout: Output::Pipes,
        stderr: folder.join("driver.log"),
    };
    let driver = plan::Driver {
        name: "test".into(),
        kind: DriverKind::Program(Vec::new()),
        talk_to: None,
        remote: None,
        entities: BTreeMap::from([("order".to_owned(), vec!["placed".to_owned()])]),
    };
    let greeting = Greeting::default();
    let child = children.start(launch).unwrap();
    Program::open(&driver, child, greeting, limits, Alarm::new()).await
}

fn orders() -> Make {
    Make {
        what: "order".into(),
        count: 1,
        rate: Rate::Max,
        in_flight: 1,
        shape: None,
        options: BTreeMap::new(),
        later: BTreeMap::new(),
    }
}

const HELLO: &str = r#"read line; echo '{"ok":true,"entities":{"order":["placed"]}}'; "#;

#[tokio::test]
async fn one_that_does_not_greet_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits {
        hello: SHORT,
        ..PATIENT
    };
    let error = open(folder.path(), "read line; sleep 5", limits).await;
    let error = error.unwrap_err();
    assert!(
        error
            .cause
            .contains("no answer to the greeting within 300ms"),
        "{error}"
    );
}

#[tokio::test]
async fn silence_during_a_make_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits {
        silence: SHORT,
        ..PATIENT
    };
    let program = open(
        folder.path(),
        &format!("{HELLO} read line; sleep 5"),
        limits,
    )
    .await
    .unwrap();
    let error = program.make(&orders()).await.unwrap_err();
    assert!(
        error
            .cause
            .contains("no line for 300ms while it makes 1 order"),
        "{error}"
    );
    program.close().await;
}

#[tokio::test]
async fn counts_are_signs_of_life() {
    let folder = tempfile::tempdir().unwrap();
    let talk = "for n in 1 2 3 4 5 6; do sleep 0.25; echo '{\"counts\":{\"order\":{\"placed\":'$n'}}}'; done; \
                echo '{\"id\":1,\"done\":true,\"made\":1}'; read line";
    let script = format!("{HELLO} read line; {talk}");
    let program = open(folder.path(), &script, PATIENT).await.unwrap();
    let made = program.make(&orders()).await.unwrap();
    assert_eq!((made.accepted, made.refused), (1, 0));
    let mut counts = Counts::new();
    program.counts(&mut counts);
    assert_eq!(counts[&("order".to_owned(), "placed".to_owned())], 6);
    program.close().await;
}

#[tokio::test]
async fn what_a_driver_says_steers_no_terminal_and_may_count_anything() {
    let folder = tempfile::tempdir().unwrap();
    let answer = r#"{"id":1,"done":true,"failed":2,"errors":{"full\u001b[2J":18446744073709551615,"full\u0007[2J":1,"x":1}}"#;
    let script = format!("{HELLO} read line; printf '%s\\n' '{answer}'; read line");
    let program = open(folder.path(), &script, PATIENT).await.unwrap();
    let made = program.make(&orders()).await.unwrap();
    let full = ("full\u{fffd}[2J".to_owned(), u64::MAX);
    assert_eq!(made.errors, BTreeMap::from([full, ("x".to_owned(), 1)]));
    assert!(made.to_string().ends_with("; 1 times x"), "{made}");
    program.close().await;
}

#[tokio::test]
async fn counts_begin_at_zero() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("{HELLO} read line");
    let program = open(folder.path(), &script, PATIENT).await.unwrap();
    let mut counts = Counts::new();
    program.counts(&mut counts);
    assert_eq!(counts.into_values().collect::<Vec<_>>(), [0]);
    program.close().await;
}
