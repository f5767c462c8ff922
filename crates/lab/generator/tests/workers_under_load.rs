//! Workers as processes of their own, with real load on a real target.

// What fails outside of a test function fails the test as well.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use crate::support::simulated;
use crate::support::{NatsServer, WorkerProcess, start};
use crate::target::{Behaviour, Target};
use lab_generator::Local;
use lab_load::arrivals::{Arrivals, Process, Shape};
use lab_load::{Flow, Generate, Length, Model, Recorded, Segment, Workload};

const RATE: f64 = 500.0;

fn target() -> Target {
    let behaviour = Behaviour {
        body: 100,
        log: true,
        ..Behaviour::default()
    };
    Target::start(0, behaviour).unwrap()
}

fn workload(target: &Target, threads: u32) -> Workload {
    let mut workload = simulated::workload(threads, 0);
    workload.target.port = target.address.port();
    workload.target.authority = target.address.to_string();
    workload.mix.journeys[0].steps.truncate(1);
    workload.mix.journeys[0].steps[0].body = lab_load::request::Body::Empty;
    workload.connections.most = 200;
    workload.timeout = Duration::from_secs(10);
    workload
}

fn segment(seconds: u64) -> Segment {
    Segment {
        model: Model::Open(Arrivals::Rate {
            process: Process::Poisson,
            shape: Shape::Constant(RATE),
        }),
        length: Length {
            duration: Some(Duration::from_secs(seconds)),
            requests: None,
        },
        first: 0,
    }
}

/// Everything that must be true of a run in which nothing was lost.
fn assert_whole(recorded: &Recorded, seconds: u64) {
    let planned = (RATE * seconds as f64) as u64;
    let requests = recorded.total.requests();
    assert_eq!(recorded.total.planned, planned);
    assert_eq!((requests.sent, requests.answered), (planned, planned));
    assert!(requests.errors.is_empty(), "{:?}", requests.errors);
    assert_eq!(requests.intended.count(), planned);
    assert_eq!((&recorded.cut, &recorded.lost), (&None, &vec![]));
    let spans = recorded.timeline.spans();
    assert_eq!(spans.iter().map(|span| span.planned).sum::<u64>(), planned);
    let starts: Vec<_> = spans.iter().map(|span| span.start).collect();
    assert!(starts.is_sorted(), "{starts:?}");
}

#[test]
fn one_two_and_three_workers_send_the_same_load() {
    let alone = target();
    let mut local = Local::start(workload(&alone, 1)).unwrap();
    let recorded = local.run(&segment(2), &mut |_| Flow::Continue).unwrap();
    assert_whole(&recorded, 2);
    drop(local);
    let planned_alone: Vec<u64> = recorded
        .timeline
        .spans()
        .iter()
        .map(|span| span.planned)
        .collect();
    assert_eq!(alone.end().len(), 1000);
    for count in 2..=3 {
        let server = NatsServer::start();
        let target = target();
        let names = ["a", "b", "c"];
        let mut workers: Vec<WorkerProcess> = names[..count]
            .iter()
            .map(|name| WorkerProcess::local(&server, name))
            .collect();
        let settings = server.settings(count as u32);
        let mut remote = start(&workload(&target, 2), &settings).unwrap();
        for _ in 0..2 {
            let recorded = remote.run(&segment(2), &mut |_| Flow::Continue).unwrap();
            assert_whole(&recorded, 2);
            // The schedule is the seed's, whoever carries it out.
            let spans = recorded.timeline.spans().iter();
            let planned: Vec<u64> = spans.map(|span| span.planned).collect();
            assert_eq!(planned[..2], planned_alone[..2]);
            assert_eq!(recorded.total.threads_cpu.len(), count * 2);
        }
        drop(remote);
        assert!(workers.iter_mut().all(WorkerProcess::end));
        assert_eq!(target.end().len(), 2000, "nothing but the load came");
    }
}

#[test]
fn a_worker_killed_under_load_is_lost_and_the_rest_is_right() {
    let server = NatsServer::start();
    let target = target();
    let mut dies = WorkerProcess::local(&server, "dies");
    let mut stays = WorkerProcess::local(&server, "stays");
    let mut settings = server.settings(2);
    settings.silence = Duration::from_secs(1);
    let mut remote = start(&workload(&target, 1), &settings).unwrap();
    let mut spans = 0;
    let recorded = remote
        .run(&segment(6), &mut |_| {
            spans += 1;
            if spans == 2 {
                dies.kill();
            }
            Flow::Continue
        })
        .unwrap();
    assert!(
        recorded.lost[0].starts_with("dies (silent for "),
        "{:?}",
        recorded.lost
    );
    let requests = recorded.total.requests();
    // What the lost one had under way at the end of its last second, one request for each of
    // its connections at most, it did not live to tell of; nor of what was due and a little late.
    let untold = requests.sent.checked_sub(requests.answered).unwrap();
    let unsent = recorded.total.planned.checked_sub(requests.sent).unwrap();
    assert!(untold <= 100 && unsent <= 100, "{untold}, {unsent}");
    assert!(requests.errors.is_empty(), "{:?}", requests.errors);
    // One half whole, of the other the seconds that it told of.
    let half = (RATE * 3.0) as u64;
    assert!(
        requests.sent > half && requests.sent < 2 * half,
        "{}",
        requests.sent
    );
    drop(remote);
    assert!(stays.end());
    assert!(target.end().len() as u64 >= requests.sent);
}

#[test]
fn workers_that_lose_their_coordinator_stop_their_load() {
    let mut server = NatsServer::start();
    let target = target();
    let mut worker = WorkerProcess::local(&server, "w");
    let mut settings = server.settings(1);
    settings.silence = Duration::from_secs(1);
    let mut remote = start(&workload(&target, 1), &settings).unwrap();
    let mut spans = 0;
    let recorded = remote
        .run(&segment(100_000), &mut |_| {
            spans += 1;
            if spans == 2 {
                server.kill();
            }
            Flow::Continue
        })
        .unwrap();
    assert_eq!(recorded.cut.as_deref(), Some("every worker was lost"));
    assert!(!worker.end(), "it says that it lost its coordinator");
    let seen = target.end().len() as f64;
    assert!(seen < RATE * 100_000.0, "{seen}");
    assert!(seen >= recorded.total.requests().sent as f64);
}

#[test]
fn a_target_that_refuses_is_said_by_the_worker() {
    let server = NatsServer::start();
    let target = target();
    let mut worker = WorkerProcess::local(&server, "w");
    let workload = workload(&target, 1);
    target.end();
    let error = start(&workload, &server.settings(1))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("worker w: ") && error.contains("refused"),
        "{error}"
    );
    assert!(worker.end());
}
