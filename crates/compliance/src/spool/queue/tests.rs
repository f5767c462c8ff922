use proptest::prelude::*;

use super::*;

const BOUNDS: Bounds = Bounds {
    bytes: 1_000,
    items: 10,
    age: Duration::from_secs(100),
};

fn entry(node: &str, run: Option<UnixMillis>, bytes: u64, arrived: UnixMillis) -> Entry {
    let node = node.into();
    Entry {
        node,
        run: run.map(|start| (start, 0)),
        bytes,
        arrived,
    }
}

/// Admits and writes a run; its number.
fn add(queue: &mut Queue, node: &str, run: UnixMillis, now: UnixMillis) -> u64 {
    match queue.admit(entry(node, Some(run), 10, now), now) {
        Admitted::Room(number) => {
            queue.written(number);
            number
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn items_go_in_order_and_those_of_a_node_one_after_the_other() {
    let mut queue = Queue::new(BOUNDS);
    let [a1, a2, b1, c1] =
        [("a", 1), ("a", 2), ("b", 1), ("c", 1)].map(|(node, run)| add(&mut queue, node, run, 0));
    assert_eq!(queue.next(0), Some(a1));
    assert_eq!(queue.next(0), Some(b1));
    assert_eq!(queue.next(0), Some(c1));
    assert_eq!(queue.next(0), None);
    assert_eq!(queue.done(c1, Outcome::Taken, 0), Done::Gone);
    assert_eq!(queue.next(0), None);
    // It stays first: the server was away.
    assert_eq!(queue.done(a1, Outcome::Away, 0), Done::Stays);
    assert_eq!(queue.next(0), Some(a1));
    assert_eq!(queue.done(a1, Outcome::Taken, 0), Done::Gone);
    assert_eq!(queue.next(0), Some(a2));
    assert_eq!(queue.done(a2, Outcome::Refused, 0), Done::Aside);
    assert_eq!(queue.done(b1, Outcome::Taken, 0), Done::Gone);
    assert_eq!((queue.next(0), queue.size()), (None, (0, 0)));
    // Whatever is told of one that is gone.
    assert_eq!(queue.done(b1, Outcome::Taken, 0), Done::Stays);
}

#[test]
fn what_is_not_written_yet_does_not_go_and_may_never_have_been() {
    let mut queue = Queue::new(BOUNDS);
    let Admitted::Room(number) = queue.admit(entry("a", Some(1), 900, 0), 0) else {
        panic!("no room");
    };
    assert_eq!(queue.next(0), None);
    // It takes room all the same, and is not known yet: it may fail.
    let again = queue.admit(entry("a", Some(1), 200, 0), 0);
    assert_eq!(again, Admitted::Full(Full::Bytes(900)));
    queue.not_written(number);
    let again = queue.admit(entry("a", Some(1), 200, 0), 0);
    assert!(matches!(again, Admitted::Room(_)), "{again:?}");
    assert_eq!(queue.size(), (1, 200));
}

#[test]
fn a_run_that_waits_is_known_until_it_went() {
    let mut queue = Queue::new(BOUNDS);
    let number = add(&mut queue, "a", 7, 0);
    let again = || entry("a", Some(7), 10, 0);
    assert_eq!(queue.admit(again(), 0), Admitted::Known);
    assert_eq!(queue.next(0), Some(number));
    assert_eq!(queue.admit(again(), 0), Admitted::Known);
    queue.done(number, Outcome::Taken, 0);
    assert!(matches!(queue.admit(again(), 0), Admitted::Room(_)));
}

#[test]
fn each_bound_refuses_and_drops_nothing() {
    let admit = |queue: &mut Queue, run, bytes, now| queue.admit(entry("a", run, bytes, now), now);
    let mut queue = Queue::new(BOUNDS);
    for run in 0..10 {
        add(&mut queue, "a", run, 0);
    }
    let full = Admitted::Full(Full::Items(10));
    assert_eq!(admit(&mut queue, Some(99), 1, 0), full);

    let mut queue = Queue::new(BOUNDS);
    assert!(matches!(admit(&mut queue, None, 250, 0), Admitted::Room(_)));
    let full = Admitted::Full(Full::Inventories(250));
    assert_eq!(admit(&mut queue, None, 1, 0), full);
    let all = admit(&mut queue, Some(1), 750, 0);
    assert!(matches!(all, Admitted::Room(_)), "{all:?}");
    let full = Admitted::Full(Full::Bytes(1_000));
    assert_eq!(admit(&mut queue, Some(2), 1, 0), full);

    let mut queue = Queue::new(BOUNDS);
    let first = add(&mut queue, "a", 1, 0);
    add(&mut queue, "b", 1, 50_000);
    assert!(matches!(
        admit(&mut queue, Some(2), 1, 100_000),
        Admitted::Room(_)
    ));
    let full = Admitted::Full(Full::Age(Duration::from_millis(100_001)));
    assert_eq!(admit(&mut queue, Some(3), 1, 100_001), full);
    // Once it went there is room again; a clock that goes back makes nothing old.
    assert_eq!(queue.next(0), Some(first));
    queue.done(first, Outcome::Taken, 0);
    assert!(matches!(
        admit(&mut queue, Some(3), 1, 100_001),
        Admitted::Room(_)
    ));
    assert_eq!(queue.oldest(0), Duration::ZERO);
}

#[test]
fn an_item_that_the_server_fails_on_holds_up_its_node_for_a_while_and_nobody_else() {
    let mut queue = Queue::new(BOUNDS);
    let (a1, a2) = (add(&mut queue, "a", 1, 0), add(&mut queue, "a", 2, 0));
    let b1 = add(&mut queue, "b", 1, 0);
    assert_eq!(queue.next(0), Some(a1));
    assert_eq!(queue.done(a1, Outcome::Failed, 0), Done::Stays);
    assert_eq!(queue.next(0), Some(b1));
    assert_eq!((queue.next(0), queue.wakes()), (None, Some(1_000)));
    assert_eq!((queue.next(999), queue.next(1_000)), (None, Some(a2)));
    assert_eq!(queue.wakes(), None);
    queue.done(a2, Outcome::Taken, 1_000);
    // Taken by the server, it ends the waits of its node.
    assert_eq!(queue.next(1_000), Some(a1));
    assert_eq!(queue.done(a1, Outcome::Failed, 1_000), Done::Stays);
    assert_eq!(queue.next(2_000), Some(a1));
    // Too old it is given up, as the server took others since it failed first.
    let late = 200_000;
    assert_eq!(queue.done(a1, Outcome::Failed, late), Done::Aside);
    queue.done(b1, Outcome::Taken, late);
    assert_eq!((queue.next(late * 100), queue.size()), (None, (0, 0)));
}

#[test]
fn nothing_is_given_up_while_the_server_takes_nothing_at_all() {
    let mut queue = Queue::new(BOUNDS);
    let a1 = add(&mut queue, "a", 1, 0);
    let mut now = 0;
    for _ in 0..30 {
        now = queue.wakes().unwrap_or(now);
        assert_eq!(queue.next(now), Some(a1));
        assert_eq!(queue.done(a1, Outcome::Failed, now), Done::Stays);
        assert!(queue.wakes().unwrap() <= now + 600_000);
    }
    assert!(now > 100_000);
}

#[test]
fn what_was_found_on_the_disk_waits_whatever_the_bounds_are() {
    let mut queue = Queue::new(BOUNDS);
    queue.restore(41, entry("a", Some(1), 5_000, 0));
    queue.restore(17, entry("a", None, 5_000, 0));
    let full = queue.admit(entry("b", Some(1), 1, 0), 0);
    assert_eq!(full, Admitted::Full(Full::Bytes(10_000)));
    for _ in 0..2 {
        let number = queue.next(0).unwrap();
        queue.done(number, Outcome::Taken, 0);
    }
    assert_eq!(add(&mut queue, "b", 1, 0), 42);
}

#[derive(Debug, Clone)]
enum Step {
    Add(u8, u8, u16),
    Fail(u8, u16),
    Next,
    Done(usize, u8),
    Later(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..5u8, 0..20u8, 1..300u16).prop_map(|(node, run, bytes)| Step::Add(node, run, bytes)),
        1 => (0..5u8, 1..300u16).prop_map(|(node, bytes)| Step::Fail(node, bytes)),
        4 => Just(Step::Next),
        4 => (any::<usize>(), 0..4u8).prop_map(|(which, outcome)| Step::Done(which, outcome)),
        1 => (0..200_000u32).prop_map(Step::Later),
    ]
}

proptest! {
    /// Whatever happens: what was written leaves only by being taken or put aside, once; bounds
    /// hold; of a node one item is under way; and a server that takes everything gets everything.
    #[test]
    fn nothing_is_lost_and_bounds_hold(steps in proptest::collection::vec(step(), 0..200)) {
        let mut queue = Queue::new(BOUNDS);
        let mut now: UnixMillis = 0;
        // What a plain list would hold.
        let mut waiting: BTreeMap<u64, (u8, u64)> = BTreeMap::new();
        let mut under_way: Vec<u64> = Vec::new();
        for step in steps {
            match step {
                Step::Add(node, run, bytes) => {
                    let run = (run > 2).then_some(UnixMillis::from(run));
                    let name = format!("n{node}");
                    match queue.admit(entry(&name, run, bytes.into(), now), now) {
                        Admitted::Room(number) => {
                            queue.written(number);
                            waiting.insert(number, (node, bytes.into()));
                        }
                        Admitted::Known => prop_assert!(run.is_some()),
                        Admitted::Full(_) => {}
                    }
                }
                Step::Fail(node, bytes) => {
                    let name = format!("n{node}");
                    let admitted = queue.admit(entry(&name, None, bytes.into(), now), now);
                    if let Admitted::Room(number) = admitted {
                        queue.not_written(number);
                    }
                }
                Step::Next => {
                    if let Some(number) = queue.next(now) {
                        let (node, _) = waiting[&number];
                        let busy = under_way.iter().any(|other| waiting[other].0 == node);
                        prop_assert!(!busy, "two of a node are under way");
                        under_way.push(number);
                    }
                }
                Step::Done(which, outcome) if !under_way.is_empty() => {
                    let number = under_way.swap_remove(which % under_way.len());
                    let outcome = [Outcome::Taken, Outcome::Refused, Outcome::Away, Outcome::Failed]
                        [usize::from(outcome)];
                    let done = queue.done(number, outcome, now);
                    match outcome {
                        Outcome::Taken => prop_assert_eq!(done, Done::Gone),
                        Outcome::Refused => prop_assert_eq!(done, Done::Aside),
                        Outcome::Away => prop_assert_eq!(done, Done::Stays),
                        Outcome::Failed => prop_assert_ne!(done, Done::Gone),
                    }
                    if done != Done::Stays {
                        waiting.remove(&number);
                    }
                }
                Step::Done(..) => {}
                Step::Later(millis) => now += UnixMillis::from(millis),
            }
            let bytes: u64 = waiting.values().map(|(_, bytes)| bytes).sum();
            prop_assert_eq!(queue.size(), (waiting.len(), bytes));
            prop_assert!(waiting.len() <= BOUNDS.items && bytes <= BOUNDS.bytes);
        }
        for number in under_way {
            queue.done(number, Outcome::Away, now);
        }
        // All that waits goes, that of each node in some order, once the waits are over.
        now += 1_000_000;
        while let Some(number) = queue.next(now) {
            prop_assert!(waiting.remove(&number).is_some());
            prop_assert_eq!(queue.done(number, Outcome::Taken, now), Done::Gone);
        }
        prop_assert!(waiting.is_empty());
        prop_assert_eq!(queue.size(), (0, 0));
    }
}
