mod trees;

use std::sync::atomic::{AtomicBool, Ordering};

use diego::models::{
    self, Action, CheckDefinition, CodependentAction, DesiredLrp, EmitProgressAction, HttpCheck,
    ParallelAction, SerialAction, Sidecar, TcpCheck, TimeoutAction, TryAction,
};
use tokio::time::{Instant, sleep};

use super::*;

/// Programs that end by themselves after as many milliseconds as their first argument says,
/// with the status that their second says; and ports that answer as long as they are told to.
struct Fake {
    began: Instant,
    /// From when to when, in milliseconds, which port answers.
    answers: Vec<(u16, u64, u64)>,
    said: Mutex<Vec<String>>,
    started: Mutex<Vec<String>>,
}

impl Fake {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            answers: Vec::new(),
            said: Mutex::default(),
            started: Mutex::default(),
        }
    }

    fn ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap()
    }
}

impl Leaves for Fake {
    async fn run(
        &self,
        run: &RunAction,
        log_context: &LogContext,
        ready: Ready<'_>,
        mut stop: Shutdown,
    ) -> Outcome {
        self.started.lock().unwrap().push(run.path.clone());
        ready.signal();
        let [lasts, status] = run.args.as_slice() else {
            panic!("a fake program has two arguments");
        };
        tokio::select! {
            () = sleep(Duration::from_millis(lasts.parse().unwrap())) => {}
            () = stop.requested() => return Err(Failure::cancelled()),
        }
        match status.as_str() {
            "0" => Ok(()),
            said if log_context.checks => {
                if let Some(heard) = &log_context.heard {
                    heard.push(said.as_bytes());
                }
                Err(Failure::worded(""))
            }
            status => Err(Failure::worded(format!(
                "{}: Exited with status {status}",
                log_context.source
            ))),
        }
    }

    async fn download(&self, _: &DownloadAction, _: &LogContext, mut stop: Shutdown) -> Outcome {
        stop.requested().await;
        Err(Failure::cancelled())
    }

    async fn upload(&self, _: &UploadAction, _: &LogContext, _: Shutdown) -> Outcome {
        Ok(())
    }

    async fn run_check(&self, check: &Check) -> Result<(), String> {
        let now = self.ms();
        let mut answers = self.answers.iter();
        match answers.any(|(port, from, to)| *port == check.port && (*from..*to).contains(&now)) {
            true => Ok(()),
            false => Err(format!("nobody at {}", check.port)),
        }
    }

    fn write_log(&self, source: &str, text: &str) {
        self.said.lock().unwrap().push(format!("{source}: {text}"));
    }
}

fn monitoring() -> Monitoring {
    Monitoring {
        healthy: Duration::from_secs(30),
        unhealthy: Duration::from_secs(2),
        pool: Pool::new("monitors", 1),
    }
}

fn run(lasts: u64, status: &str) -> Action {
    Action::from(RunAction {
        path: format!("{lasts}-{status}"),
        args: vec![lasts.to_string(), status.into()],
        ..RunAction::default()
    })
}

fn serial(actions: Vec<Action>) -> Action {
    Action::from(SerialAction {
        actions,
        ..SerialAction::default()
    })
}

fn parallel(actions: Vec<Action>) -> Action {
    Action::from(ParallelAction {
        actions,
        ..ParallelAction::default()
    })
}

fn codependent(actions: Vec<Action>) -> Action {
    Action::from(CodependentAction {
        actions,
        ..CodependentAction::default()
    })
}

fn tried(action: Action) -> Action {
    Action::from(TryAction {
        action: Some(Box::new(action)),
        ..TryAction::default()
    })
}

fn limited(action: Action, timeout_ms: i64) -> Action {
    Action::from(TimeoutAction {
        action: Some(Box::new(action)),
        timeout_ms,
        ..TimeoutAction::default()
    })
}

fn lrp(action: Action) -> DesiredLrp {
    DesiredLrp {
        action: Some(action),
        ..DesiredLrp::default()
    }
}

fn tcp(port: u32) -> models::Check {
    models::Check {
        tcp_check: Some(TcpCheck {
            port,
            ..TcpCheck::default()
        }),
        http_check: None,
    }
}

fn checked(mut desired: DesiredLrp, checks: Vec<models::Check>) -> DesiredLrp {
    let definition = desired.check_definition.get_or_insert_default();
    definition.checks = checks;
    desired
}

/// What became of a container, with the milliseconds at which it did.
struct Seen {
    outcome: Outcome,
    ended: u64,
    signs: Vec<(u64, Sign)>,
    fake: Fake,
}

impl Seen {
    fn text(&self) -> &str {
        self.outcome.as_ref().err().map_or("", Failure::text)
    }
}

async fn contain(desired: &DesiredLrp, fake: Fake, stop_at: Option<u64>) -> Seen {
    let signs = Mutex::new(Vec::new());
    let (ask, stop) = net::shutdown();
    let monitoring = monitoring();
    let steps = Steps {
        leaves: &fake,
        monitoring: &monitoring,
    };
    let plan = Plan::of(desired);
    let tell = |sign| signs.lock().unwrap().push((fake.ms(), sign));
    let stopping = async {
        if let Some(at) = stop_at {
            sleep(Duration::from_millis(at)).await;
            ask.send_replace(true);
        }
        std::future::pending::<()>().await;
    };
    let outcome = tokio::select! {
        outcome = steps.contain(&plan, "APP", &tell, stop) => outcome,
        () = stopping => unreachable!(),
    };
    let ended = fake.ms();
    let signs = signs.into_inner().unwrap();
    Seen {
        outcome,
        ended,
        signs,
        fake,
    }
}

const NEVER: u64 = 1 << 40;

#[tokio::test(start_paused = true)]
async fn without_a_check_it_runs_once_it_was_started() {
    let mut desired = lrp(run(5000, "3"));
    desired.setup = Some(run(1000, "0"));
    let seen = contain(&desired, Fake::new(), None).await;
    assert_eq!(seen.signs, [(1000, Sign::Running)]);
    assert_eq!(
        (seen.text(), seen.ended),
        ("APP: Exited with status 3", 6000)
    );
    // What ends well has nothing to say.
    let seen = contain(&lrp(run(5000, "0")), Fake::new(), None).await;
    assert_eq!(seen.outcome, Ok(()));
    desired.setup = Some(run(1000, "9"));
    let seen = contain(&desired, Fake::new(), None).await;
    assert_eq!(
        (seen.text(), seen.signs.len()),
        ("APP: Exited with status 9", 0)
    );
    let seen = contain(&DesiredLrp::default(), Fake::new(), None).await;
    assert_eq!(seen.text(), "container cannot have empty action");
}

#[tokio::test(start_paused = true)]
async fn it_runs_once_its_checks_pass_and_ends_when_one_fails() {
    let desired = checked(lrp(run(NEVER, "0")), vec![tcp(8080), tcp(9090)]);
    let mut fake = Fake::new();
    fake.answers = vec![(8080, 1000, NEVER), (9090, 3500, 70_000)];
    let seen = contain(&desired, fake, None).await;
    // 8080 is found at 2 s, 9090 at 4 s; the liveness checks come 0, 30, 60, 90 s later.
    assert_eq!(seen.signs, [(4000, Sign::Running)]);
    assert_eq!(seen.ended, 94_000);
    assert_eq!(
        seen.text(),
        "Instance became unhealthy: Liveness check unsuccessful: nobody at 9090"
    );
    assert_eq!(
        *seen.fake.said.lock().unwrap(),
        [
            "APP: Starting health monitoring of container",
            "APP: Container became healthy",
            "HEALTH: Liveness check unsuccessful: nobody at 9090",
            "APP: Container became unhealthy",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_never_becomes_healthy_ends_after_its_time() {
    let mut desired = checked(lrp(run(NEVER, "0")), vec![tcp(1), tcp(2)]);
    desired.start_timeout_ms = 3000;
    let seen = contain(&desired, Fake::new(), None).await;
    assert_eq!((seen.signs.len(), seen.ended), (0, 3000));
    let one = |port| {
        format!(
            "Timed out after 3s (2 attempts) waiting for startup check to succeed: nobody at {port}"
        )
    };
    let expected = format!("Instance never healthy after 3s: {}; {}", one(1), one(2));
    assert_eq!(seen.text(), expected);
    let last = seen.fake.said.lock().unwrap().pop().unwrap();
    assert_eq!(
        last,
        "APP: Failed after 3s: startup health check never passed."
    );

    // Without a time it goes on asking.
    desired.start_timeout_ms = 0;
    let seen = contain(&desired, Fake::new(), Some(500_000)).await;
    assert_eq!(
        (seen.text(), seen.signs.len(), seen.ended),
        ("", 0, 500_000)
    );
}

#[tokio::test(start_paused = true)]
async fn a_monitor_must_succeed_and_go_on_doing_so() {
    let mut desired = lrp(run(NEVER, "0"));
    desired.monitor = Some(run(500, "0"));
    let seen = contain(&desired, Fake::new(), Some(40_000)).await;
    assert_eq!(seen.signs, [(2500, Sign::Running)]);
    assert_eq!(seen.text(), "", "asked to stop, it has not failed");

    desired.monitor = Some(run(500, "1"));
    desired.start_timeout_ms = 3000;
    let seen = contain(&desired, Fake::new(), None).await;
    // At 2.5 s there is time left, at 5 s there is none.
    assert_eq!((seen.signs.len(), seen.ended), (0, 5000));
    assert_eq!(seen.text(), "Instance never healthy after 5s: ");

    // What is checked side by side is told by what it wrote, in the order in which it stands:
    // the second one ended first.
    let both = vec![run(100, "no answer"), limited(run(NEVER, "0"), 50)];
    desired.monitor = Some(parallel(both));
    let seen = contain(&desired, Fake::new(), None).await;
    let expected = "Instance never healthy after 4.2s: no answer; Failed to invoke process: exceeded 50ms timeout";
    assert_eq!(seen.text(), expected);
}

/// A process may have gone into the background, as daemons do.
#[tokio::test(start_paused = true)]
async fn a_program_that_ends_well_is_not_missed_while_the_check_passes() {
    let desired = checked(lrp(run(5000, "0")), vec![tcp(80)]);
    let mut fake = Fake::new();
    fake.answers = vec![(80, 0, 100_000)];
    let seen = contain(&desired, fake, None).await;
    assert_eq!(seen.signs, [(0, Sign::Running)]);
    assert_eq!(seen.ended, 120_000);
    let text = "Instance became unhealthy: Liveness check unsuccessful: nobody at 80";
    assert_eq!(seen.text(), text);

    let desired = checked(lrp(run(5000, "1")), vec![tcp(80)]);
    let seen = contain(&desired, Fake::new(), None).await;
    assert_eq!(
        (seen.text(), seen.ended),
        ("APP: Exited with status 1", 5000)
    );
}

#[tokio::test(start_paused = true)]
async fn the_first_of_programs_with_sidecars_ends_all() {
    let car = |action| Sidecar {
        action: Some(action),
        ..Sidecar::default()
    };
    for (main, beside, text) in [
        (run(NEVER, "0"), run(1000, "1"), "APP: Exited with status 1"),
        (run(NEVER, "0"), run(1000, "0"), ""),
        (run(1000, "0"), run(NEVER, "0"), ""),
    ] {
        let mut desired = lrp(main);
        desired.sidecars = vec![car(beside), car(run(NEVER, "0"))];
        let seen = contain(&desired, Fake::new(), None).await;
        assert_eq!(seen.signs, [(0, Sign::Running)]);
        assert_eq!((seen.text(), seen.ended), (text, 1000));
    }
}

#[tokio::test(start_paused = true)]
async fn readiness_says_who_is_routed_to_and_ends_nothing() {
    let mut desired = lrp(run(NEVER, "0"));
    let http = HttpCheck {
        port: 80,
        interval_ms: 1000,
        ..HttpCheck::default()
    };
    desired.check_definition = Some(CheckDefinition {
        readiness_checks: vec![models::Check {
            http_check: Some(http),
            tcp_check: None,
        }],
        ..CheckDefinition::default()
    });
    let mut fake = Fake::new();
    fake.answers = vec![(80, 3000, 6500), (80, 9000, NEVER)];
    let seen = contain(&desired, fake, Some(20_000)).await;
    let expected = [
        (0, Sign::Routable(false)),
        (0, Sign::Running),
        (4000, Sign::Routable(true)),
        (7000, Sign::Routable(false)),
        (9000, Sign::Routable(true)),
    ];
    assert_eq!((seen.signs.as_slice(), seen.text()), (&expected[..], ""));
}

#[tokio::test(start_paused = true)]
async fn checks_without_a_port_are_left_out_and_many_refused() {
    let desired = checked(lrp(run(1000, "0")), vec![tcp(0), tcp(70_000)]);
    let seen = contain(&desired, Fake::new(), Some(5000)).await;
    assert_eq!(seen.signs, [(0, Sign::Running)]);
    let desired = checked(lrp(run(1000, "0")), (1..=65).map(tcp).collect());
    let seen = contain(&desired, Fake::new(), None).await;
    assert_eq!(seen.text(), "the container has 65 checks, but may have 64");
    // Times that nobody can keep are bent into ones that can be.
    let odd = models::Check {
        tcp_check: Some(TcpCheck {
            port: 1,
            connect_timeout_ms: u64::MAX,
            interval_ms: 1,
        }),
        http_check: None,
    };
    let desired = checked(lrp(run(1, "0")), vec![odd]);
    let Health::Asked(asked) = Plan::of(&desired).health else {
        panic!("it has a check");
    };
    assert_eq!(asked.checks[0].within, Duration::from_secs(24 * 3600));
    assert_eq!(asked.checks[0].every, Some(Duration::from_millis(10)));
}

#[tokio::test(start_paused = true)]
async fn a_download_runs_at_once_and_is_cancelled() {
    let download = Action::from(DownloadAction::default());
    let seen = contain(&lrp(download), Fake::new(), Some(3000)).await;
    assert_eq!(seen.signs, [(0, Sign::Running)]);
    assert_eq!((seen.text(), seen.ended), ("cancelled", 3000));
}

#[tokio::test(start_paused = true)]
async fn progress_is_told_under_its_name() {
    let told = EmitProgressAction {
        action: Some(Box::new(run(10, "5"))),
        start_message: "begin".into(),
        success_message: "never".into(),
        failure_message_prefix: "broke".into(),
        log_source: "STG".into(),
    };
    let action = Action::from(told);
    let seen = contain(&lrp(action), Fake::new(), None).await;
    assert_eq!(seen.text(), "APP: Exited with status 5");
    let said = seen.fake.said.lock().unwrap();
    assert_eq!(
        *said,
        ["STG: begin", "STG: broke: APP: Exited with status 5"]
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_to_stop_begins_nothing() {
    let steps = vec![tried(run(NEVER, "0")), run(77, "0")];
    let seen = contain(&lrp(serial(steps.clone())), Fake::new(), Some(100)).await;
    assert_eq!(seen.fake.started.lock().unwrap().len(), 1, "after a stop");
    let seen = contain(&lrp(limited(serial(steps), 50)), Fake::new(), None).await;
    assert_eq!(
        seen.fake.started.lock().unwrap().len(),
        1,
        "after the limit"
    );
    assert_eq!(seen.text(), "exceeded 50ms timeout");
    let deep = (0..100).fold(run(1, "0"), |action, _| serial(vec![action]));
    let seen = contain(&lrp(deep), Fake::new(), None).await;
    assert_eq!(seen.text(), "actions are nested more than 64 deep");
    let seen = contain(&lrp(Action::default()), Fake::new(), None).await;
    assert_eq!(seen.text(), "an action of no known kind is not supported");
}

#[test]
fn it_is_ready_when_all_parts_are() {
    let told = AtomicBool::new(false);
    let mut parts = Ready::new(|| told.store(true, Ordering::Relaxed)).split(3);
    for _ in 0..2 {
        parts.pop().unwrap().signal();
        assert!(!told.load(Ordering::Relaxed));
    }
    parts.pop().unwrap().signal();
    assert!(told.load(Ordering::Relaxed));
    let untold = AtomicBool::new(false);
    let mut parts = Ready::new(|| untold.store(true, Ordering::Relaxed)).split(2);
    parts.pop().unwrap().signal();
    drop(parts);
    assert!(!untold.load(Ordering::Relaxed), "one of them never was");
}
