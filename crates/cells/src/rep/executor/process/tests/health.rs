use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use diego::models::{Check, CheckDefinition, TcpCheck};

use super::*;

fn tcp(port: u16) -> Check {
    Check {
        tcp_check: Some(TcpCheck {
            port: port.into(),
            interval_ms: 10,
            ..TcpCheck::default()
        }),
        http_check: None,
    }
}

fn quick() -> ProcessSettings {
    ProcessSettings {
        healthy_interval: Duration::from_millis(20),
        unhealthy_interval: Duration::from_millis(20),
        ..ProcessSettings::default()
    }
}

/// Runs an instance to its end; `act` is told of each sign.
async fn signs(bench: &Bench, job: Job, act: impl Fn(Sign) + Send + Sync) -> String {
    let (_never, stop) = net::shutdown();
    let job = Arc::new(job);
    bench.executor.create(Arc::clone(&job)).await.unwrap();
    bench.executor.run(job, act, stop).await.completion.reason
}

#[tokio::test]
async fn an_instance_runs_while_its_port_answers() {
    let bench = Bench::with(quick());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut job = lrp(sh("sleep 1000"));
    job.address = "127.0.0.1".into();
    job.ports[0].host_port = listener.local_addr().unwrap().port().into();
    if let Definition::Lrp(desired, _) = &mut job.definition {
        Arc::make_mut(desired).check_definition = Some(CheckDefinition {
            checks: vec![tcp(8080)],
            ..CheckDefinition::default()
        });
    }
    let listener = std::sync::Mutex::new(Some(listener));
    // Nobody listens any more once the check has passed. Closed is not enough: a process that
    // another test is just starting has the listener, too, until it is a program.
    let reason = signs(&bench, job, |sign| {
        assert_eq!(sign, Sign::Running);
        let listener = listener.lock().unwrap().take().unwrap();
        let socket = TcpStream::from(OwnedFd::from(listener));
        socket.shutdown(Shutdown::Both).unwrap();
    })
    .await;
    assert_eq!(
        reason,
        "Instance became unhealthy: Liveness check unsuccessful: failed to make TCP connection to 127.0.0.1:8080: dial tcp 127.0.0.1:8080: connect: connection refused"
    );
    assert!(listener.lock().unwrap().is_none(), "it ran");
}

#[tokio::test]
async fn a_monitor_is_a_program_in_the_container() {
    let bench = Bench::with(quick());
    let mut job = lrp(sh("touch up; sleep 1000"));
    if let Definition::Lrp(desired, _) = &mut job.definition {
        Arc::make_mut(desired).monitor = Some(sh("cat up"));
    }
    let up = bench.executor.folder.path.join("0-g-1/up");
    let reason = signs(&bench, job, |_| std::fs::remove_file(&up).unwrap()).await;
    assert_eq!(reason, "Instance became unhealthy: ");
    let mut job = lrp(sh("sleep 1000"));
    if let Definition::Lrp(desired, _) = &mut job.definition {
        let desired = Arc::make_mut(desired);
        let said = ParallelAction {
            actions: vec![sh("echo no such thing >&2; exit 4")],
            ..ParallelAction::default()
        };
        desired.monitor = Some(Action::from(said));
        desired.start_timeout_ms = 1;
    }
    let reason = signs(&bench, job, |_| panic!("it never becomes healthy")).await;
    assert!(
        reason.starts_with("Instance never healthy after "),
        "{reason}"
    );
    assert!(reason.ends_with(": no such thing"), "{reason}");
}

#[test]
fn checks_ask_at_the_port_behind_the_containers() {
    let job = task(sh("true"));
    let args = [
        "-z",
        "0.0.0.0",
        "8080",
        "-port=8080",
        "localhost:8080",
        "18080",
        "-t=80",
    ];
    let args = args.map(String::from);
    let expected = [
        "-z",
        "0.0.0.0",
        "61001",
        "-port=61001",
        "localhost:61001",
        "18080",
        "-t=80",
    ];
    assert_eq!(environment::ports_behind(&args, &job), expected);
}
