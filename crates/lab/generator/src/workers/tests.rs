//! Both sides of the protocol against each other, over a bus made of two queues.

use std::time::Duration;

use super::coordinator::{Coordinator, Terms};
use super::driver::Core;
use super::message::{Answer, Hello, Order, Word, hello_subject, hex, worker_subject};
use super::share::shares;
use super::worker::{Over, Worker};

#[path = "../../tests/support/simulated.rs"]
#[allow(dead_code, unreachable_pub)]
mod simulated;

const MS: Duration = Duration::from_millis(1);
const SILENCE: Duration = Duration::from_secs(3);
/// How far the worker's clock is ahead.
const AHEAD_NS: i64 = 5_000_000_000;

struct Both {
    coordinator: Coordinator,
    worker: Worker,
    now: Duration,
    /// Whether what is said arrives.
    connected: bool,
}

impl Both {
    fn new(coordinator_version: &str, worker_version: &str) -> Self {
        let terms = Terms {
            session: "s".into(),
            token: 77,
            version: coordinator_version.into(),
            wanted: 1,
            silence: SILENCE,
        };
        Self {
            coordinator: Coordinator::new(terms, 0, 1000),
            worker: Worker::new("s".into(), hello(1, worker_version), AHEAD_NS, 1000),
            now: Duration::ZERO,
            connected: true,
        }
    }

    /// Both live for so long, a tick each millisecond.
    fn live(&mut self, length: Duration) {
        let until = self.now + length;
        while self.now < until {
            self.now += MS;
            self.coordinator.tick(self.now);
            self.worker.tick(self.now);
            while let Some((subject, bytes)) = self.coordinator.outgoing() {
                if self.connected && self.worker.subjects().contains(&subject) {
                    self.worker.take(&subject, &bytes, self.now);
                }
            }
            while let Some((subject, bytes)) = self.worker.outgoing() {
                if self.connected && self.coordinator.subjects().contains(&subject) {
                    self.coordinator.take(&subject, &bytes, self.now);
                }
            }
        }
    }
}

fn hello(id: u128, version: &str) -> Hello {
    Hello {
        id: hex(id),
        name: "w".into(),
        version: version.into(),
        cores: 2,
    }
}

#[test]
fn they_meet_and_agree_on_the_time() {
    let mut both = Both::new("1", "1");
    both.live(MS * 1000);
    assert!(both.worker.has_joined() && both.coordinator.complete());
    let peer = &both.coordinator.workers()[0];
    assert!(peer.aligned());
    assert_eq!(peer.offset().unwrap().ns, AHEAD_NS);
}

#[test]
fn another_version_is_refused() {
    let mut both = Both::new("1", "2");
    both.live(MS * 1000);
    assert!(!both.coordinator.complete());
    let why = "the worker is version 2, the coordinator 1; use the same on every machine";
    assert_eq!(both.worker.over(), Some(&Over::Refused(why.into())));
    let refusals: Vec<&str> = both.coordinator.refusals().collect();
    assert_eq!(refusals, [format!("w: {why}")]);
}

#[test]
fn a_silent_worker_is_lost_for_good() {
    let mut both = Both::new("1", "1");
    both.live(MS * 100);
    both.connected = false;
    both.live(SILENCE - MS * 500);
    assert_eq!(both.coordinator.workers()[0].lost, None);
    assert_eq!(both.worker.over(), None);
    both.live(MS * 1000);
    let lost = both.coordinator.workers()[0].lost.clone().unwrap();
    assert!(lost.starts_with("silent for"), "{lost}");
    assert!(matches!(both.worker.over(), Some(Over::Lost(_))));
    both.connected = true;
    both.live(MS * 1000);
    assert_eq!(both.coordinator.workers()[0].lost, Some(lost));
    // Even its hello does not bring it back.
    let again = serde_json::to_vec(&hello(1, "1")).unwrap();
    both.coordinator.take(&hello_subject("s"), &again, both.now);
    let (subject, bytes) = both.coordinator.outgoing().unwrap();
    assert_eq!(subject, worker_subject("s", &hex(1)));
    assert!(matches!(
        serde_json::from_slice(&bytes).unwrap(),
        Answer::Refused(_)
    ));
}

#[test]
fn a_short_silence_loses_nothing() {
    let mut both = Both::new("1", "1");
    both.live(MS * 100);
    both.connected = false;
    both.coordinator
        .tell(0, &Order::Prepare(Box::new(simulated::workload(1, 5000))));
    both.worker.tell(&Word::Ready);
    both.live(SILENCE / 2);
    assert_eq!(both.worker.hear(), None);
    both.connected = true;
    both.live(MS * 1000);
    let expected = Order::Prepare(Box::new(simulated::workload(1, 5000)));
    assert_eq!(both.worker.hear(), Some(expected));
    assert_eq!(both.coordinator.hear(0), Some(Word::Ready));
    assert!(both.coordinator.is_idle() && both.worker.is_idle());
}

#[test]
fn a_stop_ends_its_run_and_older_ones_only() {
    let mut both = Both::new("1", "1");
    both.live(MS * 100);
    both.coordinator.tell(0, &Order::Stop { run: 2 });
    both.live(MS * 100);
    assert_eq!(
        [1, 2, 3].map(|run| both.worker.goes_on(run)),
        [false, false, true]
    );
    both.coordinator.tell(0, &Order::Leave);
    both.live(MS * 100);
    assert_eq!(both.worker.over(), Some(&Over::Left));
    assert!(!both.worker.goes_on(3));
    assert!(both.coordinator.is_idle(), "the worker thanked for it");
}

#[test]
fn frames_of_strangers_change_nothing() {
    let mut both = Both::new("1", "1");
    both.live(MS * 100);
    let frame = super::frame::Frame {
        sender: 12345,
        body: super::frame::Body::Beat { acknowledged: 99 },
    };
    let bytes = frame.to_bytes();
    let subject = both.coordinator.subjects()[1].clone();
    both.coordinator.take(&subject, &bytes, both.now);
    both.coordinator.take(&subject, b"", both.now);
    both.worker.take("x", &bytes, both.now);
    both.worker.take("x", b"nonsense", both.now);
    both.live(MS * 1000);
    assert_eq!(both.coordinator.workers()[0].lost, None);
    assert_eq!(both.worker.over(), None);
}

#[test]
fn what_is_no_message_ends_the_session_with_that_one() {
    let mut both = Both::new("1", "1");
    both.live(MS * 100);
    let frame = super::frame::Frame {
        sender: 1,
        body: super::frame::Body::Data {
            number: 0,
            acknowledged: 0,
            last: true,
            content: b"{".to_vec(),
        },
    };
    let subject = both.coordinator.subjects()[1].clone();
    both.coordinator.take(&subject, &frame.to_bytes(), both.now);
    assert_eq!(both.coordinator.hear(0), None);
    let lost = both.coordinator.workers()[0].lost.clone().unwrap();
    assert!(lost.contains("something else than expected"), "{lost}");
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
