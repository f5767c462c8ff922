//! One connection, driven by hand.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64};

use lab_load::request::{Composer, Mix, Step};
use wire::socket;

use super::*;
use crate::engine::{Addresses, Turns};
use crate::simulated;

#[test]
fn replies_that_came_before_a_failed_send_count() {
    let mut workload = simulated::workload(1, 0);
    // No request is composed.
    let mix = Mix::of(Step::new("get", "GET", "/"));
    let composer = Composer::new(&mix, &workload.target, 1).unwrap();
    workload.target.protocol = Protocol::Redis;
    workload.connections.held = 1;
    workload.connections.most = 1;
    workload.connections.streams = 3;
    let mut pool = Pool::new(Poller::new().unwrap(), &workload, 0, false);
    assert_eq!(pool.places(), 0..3);
    let setup = Arc::new(Setup {
        composer,
        addresses: Addresses::new(([127, 0, 0, 1], 1).into(), Vec::new()),
        tls: None,
        stop: AtomicBool::new(false),
        ends_at: AtomicU64::new(0),
        turns: Turns::default(),
        outages: Arc::default(),
        workload,
    });
    let mut record = Record::new(Arc::clone(&setup), None);
    let mut pipelines = Pipelines::new(Arc::clone(&setup));

    let (ours, theirs) = socket::pair().unwrap();
    let mut pipeline = Pipeline::start(Stream::Plain(ours), &setup.workload.target, 1);
    // Two were sent, and while the third is on its way the target answers those and is gone.
    pipeline.asked.extend([0, 1, 2]);
    pipeline.output.extend_from_slice(b"*1\r\n$4\r\nPING\r\n");
    let mut theirs = UnixStream::from(theirs);
    theirs.write_all(b"+PONG\r\n+PONG\r\n").unwrap();
    drop(theirs);
    pool[0].pipeline = Some(Box::new(pipeline));

    let pumped = pipelines.drive(&mut pool, &mut record, 0, false);
    let places: Vec<u32> = pipelines.answered.iter().map(|(place, _)| *place).collect();
    assert_eq!(places, [0, 1]);
    assert_eq!(pumped.broken, Some((Phase::Write, "closed early")));

    // What is asked for now waits for another connection instead of failing with this one.
    assert_eq!(pipelines.send_request(&mut pool, &mut record, 0), Ok(false));
    let pipeline = pool[0].pipeline.take().unwrap();
    let (asked, queue) = pipeline.into_places();
    assert_eq!((asked, queue), (VecDeque::from([2]), VecDeque::from([0])));
}
