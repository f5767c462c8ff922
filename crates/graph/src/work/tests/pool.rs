use std::collections::BTreeMap;
use std::time::Duration;

use wire::poller::Poller;

use super::*;

/// An event loop's end of things.
struct Loop {
    poller: Poller,
    inbox: Arc<Inbox>,
}

impl Loop {
    fn new() -> Self {
        let poller = Poller::new().unwrap();
        let inbox = Inbox::new(poller.waker().clone());
        Self { poller, inbox }
    }

    /// Waits for so many results, as an event loop does.
    fn take(&mut self, count: usize) -> Vec<Ended> {
        let mut all = Vec::new();
        while all.len() < count {
            self.poller.wait(None).unwrap();
            self.inbox.drain(&mut all);
        }
        all
    }
}

fn config(threads: u32, queue: u32) -> WorkersConfig {
    WorkersConfig {
        name: "test".into(),
        threads,
        queue,
        cpus: Vec::new(),
    }
}

fn job(task: &Arc<Task>, amount: f64, key: u64) -> Job {
    Job {
        task: Arc::clone(task),
        amount,
        second: 0.0,
        key,
        deadline: LONG,
    }
}

fn task(resources: &Arc<SharedResources>, work: &Work) -> Arc<Task> {
    Arc::new(resources.equipment().task(work).unwrap())
}

#[test]
fn every_job_comes_back_once_with_its_key() {
    let (resources, mut events) = (resources(), Loop::new());
    let workers = Workers::new(&resources, &events.inbox, config(3, 100)).unwrap();
    assert_eq!(workers.threads(), 0, "none before there is work");
    let ops = task(&resources, &Work::Ops(Amount::ZERO));
    let fails = task(&resources, &Work::Fork(vec!["false".into()]));
    for key in 0..50 {
        workers.submit(job(&ops, key as f64, key)).unwrap();
    }
    workers.submit(job(&fails, 0.0, 50)).unwrap();
    let mut seen = BTreeMap::new();
    for ended in events.take(51) {
        assert!(ended.submitted <= ended.begun);
        assert!(seen.insert(ended.key, ended.result).is_none());
    }
    for (key, result) in seen {
        match result {
            Ok(done) => assert_eq!(done.count, key),
            Err(error) => assert_eq!((key, error.cause()), (50, "program")),
        }
    }
    assert!((1..=3).contains(&workers.threads()));
    assert!(workers.stop_within(Duration::from_secs(60)));
}

#[test]
fn what_neither_runs_nor_may_wait_is_refused() {
    let (resources, mut events) = (resources(), Loop::new());
    let workers = Workers::new(&resources, &events.inbox, config(2, 3)).unwrap();
    let lock = resources.lock("held");
    let held = lock.take(LONG, &stop::Stop::default()).unwrap();
    let waits = task(
        &resources,
        &Work::Lock {
            name: "held".into(),
            hold: Amount::ZERO,
        },
    );
    let accepted = (0..).take_while(|key| workers.submit(job(&waits, 0.0, *key)).is_ok());
    // Two that run or are about to, three that wait.
    assert_eq!(accepted.count(), 5);
    assert_eq!(workers.submit(job(&waits, 0.0, 9)), Err(Refused::Full));
    while workers.waiting() > 3 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(workers.waiting(), 3);
    drop(held);
    assert!(events.take(5).iter().all(|ended| ended.result.is_ok()));
    workers.submit(job(&waits, 0.0, 10)).unwrap();
    assert_eq!(events.take(1)[0].key, 10);
}

#[test]
fn a_job_that_waited_past_its_deadline_is_not_done() {
    let (resources, mut events) = (resources(), Loop::new());
    let workers = Workers::new(&resources, &events.inbox, config(1, 3)).unwrap();
    let late = Job {
        deadline: wire::clock::now(),
        ..job(&task(&resources, &Work::Ops(Amount::ZERO)), f64::MAX, 1)
    };
    workers.submit(late).unwrap();
    let ended = events.take(1);
    assert_eq!(ended[0].result.as_ref().unwrap_err().cause(), "late");
}

#[test]
fn stopping_gives_everything_back() {
    let (resources, mut events) = (resources(), Loop::new());
    let workers = Workers::new(&resources, &events.inbox, config(2, 10)).unwrap();
    let endless = task(&resources, &Work::Cpu(Amount::ZERO));
    for key in 0..8 {
        workers.submit(job(&endless, f64::MAX, key)).unwrap();
    }
    assert!(workers.stop_within(Duration::from_secs(60)));
    let mut keys: Vec<u64> = Vec::new();
    for ended in events.take(8) {
        assert_eq!(ended.result.unwrap_err().cause(), "stopped");
        keys.push(ended.key);
    }
    keys.sort_unstable();
    assert_eq!(keys, (0..8).collect::<Vec<_>>());
}

#[test]
fn a_stopped_pool_takes_no_more() {
    let (resources, events) = (resources(), Loop::new());
    let workers = Workers::new(&resources, &events.inbox, config(1, 10)).unwrap();
    workers.request_stop();
    let ops = task(&resources, &Work::Ops(Amount::ZERO));
    assert_eq!(workers.submit(job(&ops, 1.0, 1)), Err(Refused::Stopped));
}

#[test]
fn a_defect_in_work_fails_its_job_and_nothing_else() {
    let (resources, mut events) = (resources(), Loop::new());
    let workers = Workers::new(&resources, &events.inbox, config(1, 10)).unwrap();
    workers
        .submit(job(&Arc::new(Task::that_panics()), 1.0, 1))
        .unwrap();
    let ops = task(&resources, &Work::Ops(Amount::ZERO));
    workers.submit(job(&ops, 7.0, 2)).unwrap();
    let mut ended = events.take(2);
    ended.sort_by_key(|ended| ended.key);
    assert_eq!(ended[0].result.as_ref().unwrap_err().cause(), "panic");
    assert_eq!(ended[1].result.as_ref().unwrap().count, 7);
}

#[test]
fn threads_run_where_they_shall() {
    let (resources, mut events) = (resources(), Loop::new());
    let cpu = affinity::numbers(&resources.allowed)[0];
    let pinned = WorkersConfig {
        cpus: vec![cpu],
        ..config(1, 1)
    };
    let workers = Workers::new(&resources, &events.inbox, pinned).unwrap();
    // A program inherits the processors of the thread that starts it.
    let line = format!("grep -Eq '^Cpus_allowed_list:.{cpu}$' /proc/self/status");
    let check = Work::Fork(vec!["sh".into(), "-c".into(), line]);
    workers
        .submit(job(&task(&resources, &check), 0.0, 1))
        .unwrap();
    let ended = events.take(1);
    assert!(ended[0].result.is_ok(), "{:?}", ended[0].result);

    let elsewhere = WorkersConfig {
        cpus: vec![100_000],
        ..config(1, 1)
    };
    let error = Workers::new(&resources, &events.inbox, elsewhere)
        .err()
        .unwrap();
    assert_eq!(error.cause(), "no-processor");
}
