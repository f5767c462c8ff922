//! Workers and their coordinator over a real NATS server, with simulated load.

// What fails outside of a test function fails the test as well.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::simulated::{RATE, Simulated, segment, workload};
use crate::support::{NatsServer, WorkerProcess, start, worker, worker_with};
use lab_generator::workers::{Nats, Settings};
use lab_load::{Flow, Generate, GenerateError, Recorded, Span};

const AT_ONCE: Duration = Duration::ZERO;
const SLOWLY: Duration = Duration::from_millis(100);

fn go_on(_: &Span) -> Flow {
    Flow::Continue
}

fn alone(threads: u32, seconds: u64) -> Recorded {
    let mut local = Simulated {
        workload: workload(threads, 0),
        second: AT_ONCE,
    };
    local.run(&segment(seconds), &mut go_on).unwrap()
}

fn assert_same(got: &Recorded, whole: &Recorded) {
    assert_eq!(got.total.planned, whole.total.planned);
    assert_eq!(got.total.kinds, whole.total.kinds);
    assert_eq!(got.total.threads_cpu.len(), whole.total.threads_cpu.len());
    let (got, whole) = (got.timeline.spans(), whole.timeline.spans());
    assert_eq!(got.len(), whole.len());
    for (got, whole) in got.iter().zip(whole) {
        assert_eq!((got.start, got.length), (whole.start, whole.length));
        assert_eq!(got.kinds, whole.kinds);
        assert_eq!(got.threads_cpu, whole.threads_cpu);
    }
}

#[test]
fn the_parts_of_three_workers_are_the_whole() {
    let server = NatsServer::start();
    let workers = ["a", "b", "b"].map(|name| worker(&server.nats(), name, AT_ONCE));
    let mut remote = start(&workload(2, 0), &server.settings(3)).unwrap();
    let whole = alone(6, 20);
    for _ in 0..2 {
        let mut watched = 0;
        let recorded = remote
            .run(&segment(20), &mut |span| {
                watched += span.planned;
                Flow::Continue
            })
            .unwrap();
        assert_same(&recorded, &whole);
        assert_eq!(watched, 20 * RATE);
        // What all of them say is told once.
        assert_eq!(recorded.notes, ["simulated"]);
        assert_eq!((recorded.cut, recorded.lost), (None, vec![]));
    }
    let facts = remote.workers();
    let mut names: Vec<&str> = facts.iter().map(|facts| facts.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "b#2"]);
    for facts in &facts {
        let clock = facts.clock.unwrap();
        // One machine, one clock: the estimate must not claim more than it knows.
        assert!(clock.ns.unsigned_abs() <= clock.uncertainty.as_nanos() as u64 + 1_000_000);
        assert!(facts.began_late.is_some() && facts.lost.is_none());
    }
    drop(remote);
    for worker in workers {
        worker.end().unwrap();
    }
}

#[test]
fn a_workload_larger_than_a_message_of_nats_arrives_in_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nats.conf");
    std::fs::write(&file, "max_payload: 4096\n").unwrap();
    let server = NatsServer::start_with(&["--config", file.to_str().unwrap()]);
    let length = 1 << 20;
    let worker = worker_with(&server.nats(), "w", move |workload| {
        let step = &workload.mix.journeys[0].steps[0];
        assert!(
            matches!(&step.body, lab_load::request::Body::Template(text) if text.len() == length)
        );
        Ok(Box::new(Simulated {
            workload,
            second: AT_ONCE,
        }))
    });
    let mut remote = start(&workload(1, length), &server.settings(1)).unwrap();
    let recorded = remote.run(&segment(5), &mut go_on).unwrap();
    assert_same(&recorded, &alone(1, 5));
    drop(remote);
    worker.end().unwrap();
}

#[test]
fn a_killed_worker_is_named_and_what_it_said_counts() {
    let server = NatsServer::start();
    let mut dies = WorkerProcess::simulated(&server, "dies", 100);
    let mut stays = WorkerProcess::simulated(&server, "stays", 100);
    let mut settings = server.settings(2);
    settings.silence = Duration::from_secs(1);
    let mut remote = start(&workload(1, 0), &settings).unwrap();
    let mut spans = 0;
    let recorded = remote
        .run(&segment(30), &mut |_| {
            spans += 1;
            if spans == 5 {
                dies.kill();
            }
            Flow::Continue
        })
        .unwrap();
    assert_eq!(recorded.lost.len(), 1);
    assert!(
        recorded.lost[0].starts_with("dies (silent for "),
        "{:?}",
        recorded.lost
    );
    assert_eq!(recorded.cut, None);
    let planned = recorded.total.planned;
    assert!(planned >= 30 * RATE / 2 + 5 * RATE / 2, "{planned}");
    assert!(planned < 30 * RATE, "{planned}");
    let timeline: u64 = recorded
        .timeline
        .spans()
        .iter()
        .map(|span| span.planned)
        .sum();
    assert_eq!(timeline, planned);

    let again = remote.run(&segment(2), &mut go_on).unwrap();
    assert_eq!(again.lost, recorded.lost, "it stays lost");
    assert_eq!(again.total.planned, RATE);
    drop(remote);
    assert!(stays.end());
}

#[test]
fn nats_may_go_and_come_back_and_nothing_is_missing() {
    let mut server = NatsServer::start();
    let nats = server.nats();
    let workers = ["a", "b"].map(|name| worker(&nats, name, SLOWLY));
    let mut settings = server.settings(2);
    settings.silence = Duration::from_secs(30);
    let mut remote = start(&workload(1, 0), &settings).unwrap();
    let mut spans = 0;
    let recorded = remote
        .run(&segment(30), &mut |_| {
            spans += 1;
            if spans == 5 {
                server.kill();
                std::thread::sleep(Duration::from_millis(500));
                server.restart();
            }
            Flow::Continue
        })
        .unwrap();
    assert_same(&recorded, &alone(2, 30));
    assert_eq!((recorded.cut, recorded.lost), (None, vec![]));
    drop(remote);
    for worker in workers {
        worker.end().unwrap();
    }
}

#[test]
fn without_nats_each_side_takes_the_other_for_lost() {
    let mut server = NatsServer::start();
    let nats = server.nats();
    let workers = ["a", "b"].map(|name| worker(&nats, name, SLOWLY));
    let mut settings = server.settings(2);
    settings.silence = Duration::from_secs(1);
    let mut remote = start(&workload(1, 0), &settings).unwrap();
    let mut spans = 0;
    let recorded = remote
        .run(&segment(1_000_000), &mut |_| {
            spans += 1;
            if spans == 5 {
                server.kill();
            }
            Flow::Continue
        })
        .unwrap();
    assert_eq!(recorded.lost.len(), 2);
    assert_eq!(recorded.cut.as_deref(), Some("every worker was lost"));
    assert!(recorded.total.planned >= 5 * RATE);
    let error = remote.run(&segment(1), &mut go_on).unwrap_err();
    assert!(
        error.to_string().contains("every worker is lost"),
        "{error}"
    );
    for worker in workers {
        let error = worker.end().unwrap_err();
        assert!(
            error.to_string().contains("the coordinator was lost"),
            "{error}"
        );
    }
}

#[test]
fn stop_reaches_the_workers() {
    let server = NatsServer::start();
    let workers = ["a", "b"].map(|name| worker(&server.nats(), name, SLOWLY));
    let mut remote = start(&workload(1, 0), &server.settings(2)).unwrap();
    let recorded = remote
        .run(&segment(1_000_000), &mut |_| Flow::Stop)
        .unwrap();
    assert_eq!(recorded.cut.as_deref(), Some("told to stop"));
    assert!(recorded.lost.is_empty());
    let next = remote.run(&segment(2), &mut go_on).unwrap();
    assert_same(&next, &alone(2, 2));
    drop(remote);
    for worker in workers {
        worker.end().unwrap();
    }
}

#[test]
fn a_worker_ended_by_its_user_says_so() {
    let server = NatsServer::start();
    let [leaves, stays] = ["leaves", "stays"].map(|name| worker(&server.nats(), name, SLOWLY));
    let mut remote = start(&workload(1, 0), &server.settings(2)).unwrap();
    let recorded = remote
        .run(&segment(20), &mut |_| {
            leaves.interrupted.store(true, Ordering::Relaxed);
            Flow::Continue
        })
        .unwrap();
    // The load of the other went on to its end.
    let planned = recorded.total.planned;
    assert!((10 * RATE..20 * RATE).contains(&planned), "{planned}");
    assert_eq!(recorded.cut, None);
    assert_eq!(recorded.lost, ["leaves (ended by its own user)"]);
    leaves.end().unwrap();
    let next = remote.run(&segment(2), &mut go_on).unwrap();
    assert_eq!(next.lost, ["leaves (ended by its own user)"]);
    drop(remote);
    stays.end().unwrap();
}

#[test]
fn missing_workers_are_said_with_the_command_that_starts_one() {
    let server = NatsServer::start();
    let here = worker(&server.nats(), "here", AT_ONCE);
    let mut settings = server.settings(2);
    settings.within = Duration::from_millis(1500);
    let error = start(&workload(1, 0), &settings).unwrap_err().to_string();
    assert!(error.contains("wait for 2 workers: 1 came"), "{error}");
    let command = format!(
        "headroom load --worker --nats {} --session test",
        server.url()
    );
    assert!(error.contains(&command), "{error}");
    here.end().unwrap();
}

#[test]
fn a_worker_that_cannot_get_ready_says_why() {
    let server = NatsServer::start();
    let fails = worker_with(&server.nats(), "fails", |_| {
        Err(GenerateError::new("connect to 127.0.0.1:1", "refused").help("start the target"))
    });
    let error = start(&workload(1, 0), &server.settings(1)).unwrap_err();
    let expected = "worker fails: connect to 127.0.0.1:1: refused; start the target";
    assert_eq!(error.to_string(), expected);
    fails.end().unwrap();
}

#[test]
fn a_load_that_fails_on_one_worker_stops_on_all() {
    struct Fails;
    impl Generate for Fails {
        fn run(
            &mut self,
            _: &lab_load::Segment,
            _: &mut dyn FnMut(&Span) -> Flow,
        ) -> Result<Recorded, GenerateError> {
            Err(GenerateError::new("open the trace", "nothing"))
        }
    }
    let server = NatsServer::start();
    let fails = worker_with(&server.nats(), "fails", |_| Ok(Box::new(Fails)));
    let stops = worker(&server.nats(), "stops", SLOWLY);
    let mut remote = start(&workload(1, 0), &server.settings(2)).unwrap();
    let error = remote.run(&segment(1_000_000), &mut go_on).unwrap_err();
    assert_eq!(error.to_string(), "worker fails: open the trace: nothing");
    drop(remote);
    fails.end().unwrap();
    stops.end().unwrap();
}

#[test]
fn more_workers_than_asked_for_are_refused() {
    let server = NatsServer::start();
    let workers = ["a", "b"].map(|name| worker(&server.nats(), name, AT_ONCE));
    let remote = start(&workload(1, 0), &server.settings(1)).unwrap();
    // The one that is taken in leaves well; the other is told why not.
    let mut ends = Vec::new();
    let mut remote = Some(remote);
    for worker in workers {
        if ends.is_empty() {
            std::thread::sleep(Duration::from_millis(600));
            remote.take();
        }
        ends.push(worker.end());
    }
    let refused: Vec<String> = ends
        .into_iter()
        .filter_map(Result::err)
        .map(|error| error.to_string())
        .collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(
        refused[0].contains("all 1 workers are there already"),
        "{refused:?}"
    );
}

#[test]
fn a_server_that_asks_for_a_token_gets_it_and_no_error_shows_it() {
    let server = NatsServer::start_with(&["--auth", "s3cret"]);
    let right = [("HEADROOM_NATS_TOKEN", "s3cret")];
    let worker = worker(&server.nats_with(&right), "w", AT_ONCE);
    let settings = |nats| Settings::new(nats, "test".into(), 1);
    let wrong = server.nats_with(&[("HEADROOM_NATS_TOKEN", "wr0ng")]);
    let error = start(&workload(1, 0), &settings(wrong))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("HEADROOM_NATS_TOKEN") && !error.contains("wr0ng"),
        "{error}"
    );
    let mut remote = start(&workload(1, 0), &settings(server.nats_with(&right))).unwrap();
    assert_same(&remote.run(&segment(2), &mut go_on).unwrap(), &alone(1, 2));
    drop(remote);
    worker.end().unwrap();
}

#[test]
fn a_server_that_asks_for_tls_gets_it_once_its_authority_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(path("cert"), made.cert.pem()).unwrap();
    std::fs::write(path("key"), made.signing_key.serialize_pem()).unwrap();
    let (certificate, key) = (path("cert"), path("key"));
    let server = NatsServer::start_with(&["--tls", "--tlscert", &certificate, "--tlskey", &key]);
    let error = start(&workload(1, 0), &server.settings(1))
        .unwrap_err()
        .to_string();
    assert!(error.contains("HEADROOM_NATS_CA"), "{error}");
    let missing = path("missing");
    let unread = server.nats_with(&[("HEADROOM_NATS_CA", &missing)]);
    let error = start(&workload(1, 0), &Settings::new(unread, "test".into(), 1))
        .unwrap_err()
        .to_string();
    assert!(error.contains(&missing), "{error}");
    let asked = server.nats_with(&[("HEADROOM_NATS_CA", &certificate)]);
    let always = Nats::new(Some(&server.url().replace("nats:", "tls:")), |name| {
        (name == "HEADROOM_NATS_CA").then(|| certificate.clone())
    });
    let worker = worker(&asked, "w", AT_ONCE);
    let settings = Settings::new(always.unwrap(), "test".into(), 1);
    let mut remote = start(&workload(1, 0), &settings).unwrap();
    assert_same(&remote.run(&segment(2), &mut go_on).unwrap(), &alone(1, 2));
    drop(remote);
    worker.end().unwrap();
}

#[test]
fn a_server_that_is_not_there_is_said_at_once() {
    let mut server = NatsServer::start();
    server.kill();
    let error = start(&workload(1, 0), &server.settings(1))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&server.url()) && error.contains("nats-server"),
        "{error}"
    );
}

#[test]
fn wrong_settings_are_refused_before_anything_is_tried() {
    let nats = Nats::new(Some("nats://127.0.0.1:1"), |_| None).unwrap();
    for (session, workers, silence_s, found) in [
        ("a.b", 1, 3, "\"a.b\""),
        ("", 1, 3, "\"\""),
        ("a", 0, 3, "0 workers"),
        ("a", 1001, 3, "1001 workers"),
        ("a", 1, 0, "silence of 0 ms"),
    ] {
        let mut settings = Settings::new(nats.clone(), session.into(), workers);
        settings.silence = Duration::from_secs(silence_s);
        let error = start(&workload(1, 0), &settings).unwrap_err();
        assert!(error.found.contains(found), "{error}");
    }
}
