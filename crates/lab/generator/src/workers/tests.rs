//! Both sides of a session against each other, over a bus made of queues.

use std::collections::BTreeMap;
use std::time::Duration;

use lab_load::request::{Journey, Mix, Step};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::connection::unix_ns;
use super::coordinator::{Coordinator, SessionConfig};
use super::driver::{Core, Outgoing};
use super::message::{Hello, Order, Packet, Reply, Request, WorkerReport};
use super::remote::longest_quiet;
use super::share::shares;
use super::worker::{Over, Worker};
use crate::simulated;

const MS: Duration = Duration::from_millis(1);
const SILENCE: Duration = Duration::from_secs(3);
/// How far each worker's clock is ahead of the one before.
const AHEAD: Duration = Duration::from_secs(5);
const TOKEN: u64 = 77;

/// Most packets of one sender that a bus loses one after the other: it is bad, and not gone, for
/// who hears nothing for long enough rightly gives up.
const LOST_IN_A_ROW: u32 = 3;

/// What a bus does to a packet.
#[derive(Debug, Clone, Copy)]
struct Bus {
    /// Shares of what is lost, of which no more than [`LOST_IN_A_ROW`] unless it is all, and of
    /// what comes twice.
    lost: f64,
    twice: f64,
    /// Longest delay, in milliseconds; what is delayed may be overtaken.
    delay_ms: u64,
}

const GOOD: Bus = Bus {
    lost: 0.0,
    twice: 0.0,
    delay_ms: 0,
};

struct Session {
    coordinator: Coordinator,
    workers: Vec<Worker>,
    now: Duration,
    bus: Bus,
    random: StdRng,
    /// What is on its way, and when it arrives.
    going: Vec<(Duration, Outgoing)>,
    /// By subject and sender, how many packets were lost since the last one that was not.
    lost_in_a_row: BTreeMap<(String, u64), u32>,
    /// What the workers were told and have said, and what the coordinator heard of it.
    orders: Vec<Vec<Order>>,
    reports: Vec<(usize, WorkerReport)>,
}

impl Session {
    fn new(coordinator_version: &str, worker_versions: &[&str]) -> Self {
        let config = SessionConfig {
            session: "s".into(),
            token: TOKEN,
            version: coordinator_version.into(),
            wanted: worker_versions.len(),
            silence: SILENCE,
        };
        let workers = (1..).zip(worker_versions);
        let workers = workers
            .map(|(id, version)| Worker::new("s".into(), hello(id, version), 1000))
            .collect();
        Self {
            coordinator: Coordinator::new(config, 1000),
            workers,
            now: Duration::ZERO,
            bus: GOOD,
            random: StdRng::seed_from_u64(0),
            going: Vec::new(),
            lost_in_a_row: BTreeMap::new(),
            orders: vec![Vec::new(); worker_versions.len()],
            reports: Vec::new(),
        }
    }

    /// One worker that has joined over a good bus.
    fn joined() -> Self {
        let mut session = Self::new("1", &["1"]);
        session.live(MS * 100);
        session
    }

    /// All live for so long, a tick each millisecond.
    fn live(&mut self, length: Duration) {
        let until = self.now + length;
        while self.now < until {
            self.now += MS;
            let mut said = self.coordinator.tick(self.now);
            for (worker, ahead) in self.workers.iter_mut().zip(1..) {
                said.extend(worker.tick(self.now + AHEAD * ahead));
            }
            self.publish(said);
            let now = self.now;
            while let Some(first) = self.going.iter().position(|(at, _)| *at <= now) {
                let (_, (subject, packet)) = self.going.remove(first);
                let answers = self.deliver(&subject, packet);
                self.publish(answers);
            }
        }
    }

    fn publish(&mut self, said: Vec<Outgoing>) {
        for outgoing in said {
            let (subject, packet) = &outgoing;
            let sender = match packet {
                Packet::Request(request) => request.sender,
                Packet::Reply(reply) => reply.sender,
                _ => 0,
            };
            let in_a_row = self.lost_in_a_row.entry((subject.clone(), sender));
            let in_a_row = in_a_row.or_default();
            let may_be_lost = *in_a_row < LOST_IN_A_ROW || self.bus.lost == 1.0;
            if self.random.random_bool(self.bus.lost) && may_be_lost {
                *in_a_row += 1;
                continue;
            }
            *in_a_row = 0;
            let count = 1 + usize::from(self.random.random_bool(self.bus.twice));
            for outgoing in std::iter::repeat_n(outgoing, count) {
                let delay = self.random.random_range(0..=self.bus.delay_ms);
                let at = self.now + MS * u32::try_from(delay).unwrap();
                self.going.push((at, outgoing));
            }
        }
    }

    /// As NATS does: through bytes, to whoever listens on the subject.
    fn deliver(&mut self, subject: &String, packet: Packet) -> Vec<Outgoing> {
        let packet = Packet::from_bytes(&packet.to_bytes()).unwrap();
        let mut answers = Vec::new();
        if self.coordinator.subjects().contains(subject) {
            answers.extend(self.coordinator.take(packet.clone(), self.now));
        }
        for (worker, ahead) in self.workers.iter_mut().zip(1..) {
            if worker.subjects().contains(subject) {
                answers.extend(worker.take(packet.clone(), self.now + AHEAD * ahead));
            }
        }
        answers
    }

    /// Everybody reads what came.
    fn receive(&mut self) {
        for (worker, orders) in self.workers.iter_mut().zip(&mut self.orders) {
            while let Some(Ok(order)) = worker.receive() {
                orders.push(order);
            }
        }
        self.reports.extend(self.coordinator.reports());
    }

    fn disconnect(&mut self) {
        self.bus.lost = 1.0;
    }

    fn lost(&self, worker: usize) -> Option<&str> {
        self.coordinator.workers[worker].connection.lost()
    }
}

fn hello(id: u64, version: &str) -> Hello {
    Hello {
        id,
        name: format!("w{id}"),
        version: version.into(),
        cores: 2,
    }
}

fn prepare(bytes: usize) -> Order {
    Order::Prepare(Box::new(simulated::workload(1, bytes)))
}

fn request(sender: u64, content: &'static [u8]) -> Packet {
    Packet::Request(Request {
        sender,
        number: 0,
        last: true,
        sent_ns: 0,
        content: content.into(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_bad_bus_loses_no_message_and_repeats_none(
        seed in any::<u64>(),
        lost in 0.0..0.3f64,
        twice in 0.0..0.5f64,
        delay_ms in 0u64..200,
    ) {
        let mut session = Session::new("1", &["1"; 3]);
        session.bus = Bus { lost, twice, delay_ms };
        session.random = StdRng::seed_from_u64(seed);
        for _ in 0..120 {
            if session.workers.iter().all(Worker::has_joined) {
                break;
            }
            session.live(MS * 500);
        }
        prop_assert!(session.workers.iter().all(Worker::has_joined), "they joined");
        for run in 0..5 {
            session.coordinator.broadcast(&prepare(100 * run));
            for worker in &mut session.workers {
                let run = run as u64;
                worker.send(&WorkerReport::Done { run, end: Err(lab_load::GenerateError::new("x", "y".repeat(3000))) });
            }
            session.live(MS * 100);
            session.receive();
        }
        for _ in 0..120 {
            if session.coordinator.is_idle() && session.workers.iter().all(Worker::is_idle) {
                break;
            }
            session.live(MS * 500);
            session.receive();
        }
        let orders: Vec<Order> = (0..5).map(|run| prepare(100 * run)).collect();
        for (place, peer) in session.coordinator.workers.iter().enumerate() {
            prop_assert_eq!(peer.connection.lost(), None);
            // Places are given in the order of arrival.
            let id: usize = peer.name[1..].parse().unwrap();
            prop_assert_eq!(&session.orders[id - 1], &orders);
            let reports = session.reports.iter().filter(|(from, _)| *from == place);
            let runs: Vec<u64> = reports
                .map(|(_, report)| match report {
                    WorkerReport::Done { run, .. } => *run,
                    other => panic!("{other:?}"),
                })
                .collect();
            prop_assert_eq!(runs, [0, 1, 2, 3, 4]);
            let clock = peer.connection.offset().unwrap();
            let error = clock.ns.abs_diff(unix_ns(AHEAD) * id as i64);
            prop_assert!(u128::from(error) <= clock.uncertainty.as_nanos() + 1);
        }
    }
}

#[test]
fn they_meet_and_agree_on_the_time() {
    let mut session = Session::new("1", &["1"]);
    session.live(MS * 1000);
    assert!(session.workers[0].has_joined() && session.coordinator.is_complete());
    let peer = &session.coordinator.workers[0];
    assert!(peer.connection.is_aligned());
    assert_eq!(peer.connection.offset().unwrap().ns, unix_ns(AHEAD));
}

#[test]
fn another_version_is_refused() {
    let mut session = Session::new("1", &["2"]);
    session.live(MS * 1000);
    assert!(!session.coordinator.is_complete());
    let why = "the worker is version 2, the coordinator 1; use the same on every machine";
    let refused = Some(Err(Over::Refused(why.into())));
    assert_eq!(session.workers[0].receive(), refused);
    assert_eq!(session.coordinator.refusals, [format!("w1: {why}")]);
}

#[test]
fn a_silent_worker_is_lost_for_good() {
    let mut session = Session::joined();
    session.disconnect();
    session.live(SILENCE - MS * 500);
    assert_eq!(session.lost(0), None);
    assert_eq!(session.workers[0].receive(), None);
    assert!(session.workers[0].goes_on(1));
    session.live(MS * 1000);
    let lost = session.lost(0).unwrap().to_owned();
    assert!(lost.starts_with("silent for"), "{lost}");
    let over = session.workers[0].receive();
    assert!(matches!(over, Some(Err(Over::Lost(_)))), "{over:?}");
    assert!(!session.workers[0].goes_on(1));
    session.bus = GOOD;
    session.live(MS * 1000);
    assert_eq!(session.lost(0), Some(&*lost));
    // Even its hello does not bring it back.
    let again = Packet::Hello(hello(1, "1"));
    let (subject, answer) = session.coordinator.take(again, session.now).unwrap();
    assert_eq!(session.workers[0].subjects(), [subject]);
    assert!(matches!(answer, Packet::Refused(_)), "{answer:?}");
}

#[test]
fn a_short_silence_loses_nothing() {
    let mut session = Session::joined();
    session.disconnect();
    session.coordinator.broadcast(&prepare(5000));
    session.workers[0].send(&WorkerReport::Ready);
    session.live(SILENCE / 2);
    session.receive();
    assert_eq!((&session.orders[0], &session.reports), (&vec![], &vec![]));
    session.bus = GOOD;
    session.live(MS * 1000);
    session.receive();
    assert_eq!(session.orders[0], [prepare(5000)]);
    assert_eq!(session.reports, [(0, WorkerReport::Ready)]);
    assert!(session.coordinator.is_idle() && session.workers[0].is_idle());
}

#[test]
fn a_stop_ends_its_run_and_older_ones_only() {
    let mut session = Session::joined();
    session.coordinator.broadcast(&Order::Stop { run: 2 });
    session.live(MS * 100);
    assert_eq!(
        [1, 2, 3].map(|run| session.workers[0].goes_on(run)),
        [false, false, true]
    );
    session.coordinator.broadcast(&Order::Leave);
    session.live(MS * 100);
    assert!(!session.workers[0].goes_on(3));
    session.receive();
    assert_eq!(session.orders[0], [Order::Stop { run: 2 }, Order::Leave]);
    assert!(session.coordinator.is_idle(), "the worker acknowledged it");
}

#[test]
fn packets_of_strangers_change_nothing() {
    let mut session = Session::joined();
    let reply = Packet::Reply(Reply {
        sender: 12345,
        number: 99,
        sent_ns: 0,
        came_ns: 0,
    });
    for packet in [reply, request(12345, b"{"), Packet::Refused("no".into())] {
        assert_eq!(session.coordinator.take(packet.clone(), session.now), None);
        assert_eq!(session.workers[0].take(packet, session.now + AHEAD), None);
    }
    session.live(MS * 1000);
    assert_eq!(session.lost(0), None);
    assert_eq!(session.workers[0].receive(), None);
}

#[test]
fn what_is_no_message_ends_the_session_with_that_one() {
    let mut session = Session::new("1", &["1"]);
    let welcome = session.coordinator.take(Packet::Hello(hello(1, "1")), MS);
    assert!(matches!(welcome, Some((_, Packet::Welcome { .. }))));
    session.coordinator.take(request(1, b"{"), MS);
    assert_eq!(session.coordinator.reports(), []);
    let lost = session.lost(0).unwrap();
    assert!(lost.contains("something unexpected"), "{lost}");
}

#[test]
fn shares_cover_all_threads_and_connections() {
    let mut workload = simulated::workload(3, 0);
    workload.connections.held = 10;
    workload.connections.most = 25;
    let shares = shares(&workload, 4).unwrap();
    let firsts: Vec<u32> = shares.iter().map(|share| share.share.first).collect();
    assert_eq!(firsts, [0, 3, 6, 9]);
    assert!(
        shares
            .iter()
            .all(|share| share.share.threads == 12 && share.threads == 3)
    );
    let held: Vec<u32> = shares.iter().map(|share| share.connections.held).collect();
    assert_eq!(held, [3, 3, 2, 2]);
    let most: Vec<u32> = shares.iter().map(|share| share.connections.most).collect();
    assert_eq!(most, [7, 6, 6, 6]);
    workload.threads = u32::MAX;
    assert!(super::share::shares(&workload, 4).is_err());
}

/// One that ends by a number of requests tells of no second after the last was due.
#[test]
fn a_load_may_be_quiet_for_as_long_as_its_last_journey_takes() {
    let mut workload = simulated::workload(3, 0);
    workload.timeout = Duration::from_secs(30);
    workload.mix = Mix::of(Step::new("get", "GET", "/"));
    assert_eq!(longest_quiet(&workload), Duration::from_secs(60));
    let mut pausing = Step::new("pause", "GET", "/");
    pausing.think = Duration::from_secs(100);
    workload.mix.journeys.push(Journey {
        name: "pausing".to_owned(),
        weight: 1.0,
        steps: vec![pausing, Step::new("last", "GET", "/")],
    });
    assert_eq!(longest_quiet(&workload), Duration::from_secs(190));
}
