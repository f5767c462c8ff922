use proptest::prelude::*;

use super::super::applied::tests::{MS, checked, toxic};
use super::super::toxic::{Jitter, LimitEnd, Protocol, RateOf};
use super::*;

fn applied(name: &str, kind: ToxicKind) -> Arc<Applied> {
    checked(Protocol::Udp, name, kind)
}

fn path(toxics: &[&Arc<Applied>]) -> DatagramPath {
    let mut path = DatagramPath::new(Direction::ToServer, 4);
    path.set(toxics.iter().map(|on| Arc::clone(on)).collect());
    path
}

/// One datagram that carries its number.
fn datagram(number: u32, size: usize) -> Bytes {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.resize(size.max(4), 0);
    bytes.into()
}

/// Everything that comes out until `until`: when, and which.
fn drain(path: &mut DatagramPath, from: Duration, until: Duration) -> Vec<(Duration, u32)> {
    let mut now = from;
    let mut seen = Vec::new();
    loop {
        match path.step(now) {
            DatagramStep::Send(bytes) => {
                let number = u32::from_be_bytes(bytes[..4].try_into().unwrap());
                seen.push((now, number));
            }
            DatagramStep::Wait(Some(next)) if next <= until => {
                assert!(next > now, "a wait of nothing would spin");
                now = next;
            }
            DatagramStep::Wait(_) => return seen,
        }
    }
}

fn numbers(seen: &[(Duration, u32)]) -> Vec<u32> {
    seen.iter().map(|seen| seen.1).collect()
}

fn send(path: &mut DatagramPath, count: u32, every: Duration, size: usize) {
    for number in 0..count {
        path.push(every * number, datagram(number, size), usize::MAX);
    }
}

#[test]
fn without_toxics_everything_passes_at_once_and_in_order() {
    let mut path = path(&[]);
    send(&mut path, 100, Duration::ZERO, 10);
    assert_eq!(
        numbers(&drain(&mut path, MS, MS)),
        (0..100).collect::<Vec<_>>()
    );
    assert_eq!(path.cost(), 0);
}

#[test]
fn a_partition_drops_what_comes_and_what_falls_due() {
    let slow = applied(
        "slow",
        ToxicKind::Delay {
            by: 100 * MS,
            jitter: Jitter::None,
        },
    );
    let cut = applied("cut", ToxicKind::Partition);
    let mut path = path(&[&slow]);
    send(&mut path, 3, 30 * MS, 10);
    path.set(vec![Arc::clone(&slow), Arc::clone(&cut)]);
    path.push(110 * MS, datagram(3, 10), usize::MAX);
    assert_eq!(drain(&mut path, 110 * MS, 140 * MS), []);
    path.set(vec![slow]);
    // The last was not due yet.
    assert_eq!(drain(&mut path, 140 * MS, 500 * MS), [(160 * MS, 2)]);
    let effect = cut.counters[0].snapshot();
    assert_eq!(
        (
            effect.dropped_datagrams,
            effect.dropped_bytes,
            effect.held_bytes
        ),
        (3, 30, 0)
    );
}

#[test]
fn the_share_that_was_asked_for_is_lost_or_doubled() {
    let lose = applied(
        "lose",
        ToxicKind::Lose {
            share: 0.1,
            retransmit: Duration::ZERO,
        },
    );
    let double = applied("double", ToxicKind::Duplicate { share: 0.05 });
    let mut path = path(&[&lose, &double]);
    let mut seen = Vec::new();
    for number in 0..20_000 {
        path.push(MS, datagram(number, 10), usize::MAX);
        seen.extend(drain(&mut path, MS, MS));
    }
    let (lost, doubled) = (lose.counters[0].snapshot(), double.counters[0].snapshot());
    assert!((1_870..2_130).contains(&lost.dropped_datagrams), "{lost:?}");
    assert!(
        (800..1_000).contains(&doubled.duplicated_datagrams),
        "{doubled:?}"
    );
    let passed = 20_000 - lost.dropped_datagrams + doubled.duplicated_datagrams;
    assert_eq!((seen.len() as u64, lost.datagrams), (passed, passed));
}

#[test]
fn those_that_come_late_are_overtaken_by_those_after_them() {
    let reorder = applied(
        "reorder",
        ToxicKind::Reorder {
            share: 0.1,
            by: 25 * MS,
        },
    );
    let mut path = path(&[&reorder]);
    send(&mut path, 1_000, 10 * MS, 10);
    let seen = drain(&mut path, Duration::ZERO, Duration::MAX);
    assert_eq!(seen.len(), 1_000);
    let late = seen
        .iter()
        .filter(|(at, number)| *at == *number * 10 * MS + 25 * MS)
        .count();
    let in_time = seen
        .iter()
        .filter(|(at, number)| *at == *number * 10 * MS)
        .count();
    assert_eq!(late + in_time, 1_000);
    assert_eq!(
        late as u64,
        reorder.counters[0].snapshot().reordered_datagrams
    );
    assert!((70..130).contains(&late), "{late}");
    assert!(
        seen.windows(2).any(|pair| pair[0].1 > pair[1].1),
        "nothing was overtaken"
    );
}

#[test]
fn a_delay_that_is_taken_off_lets_what_it_held_through_in_order() {
    let jitter = Jitter::Uniform(50 * MS);
    let slow = applied(
        "slow",
        ToxicKind::Delay {
            by: 100 * MS,
            jitter,
        },
    );
    let [mut path, mut other] = [path(&[&slow]), path(&[&slow])];
    send(&mut other, 50, Duration::ZERO, 10);
    let kept_on = numbers(&drain(&mut other, Duration::ZERO, Duration::MAX));
    assert!(
        !kept_on.is_sorted(),
        "jitter lets datagrams overtake each other"
    );
    send(&mut path, 50, Duration::ZERO, 10);
    assert_eq!(slow.counters[0].snapshot().held_bytes, 500);
    path.set(Vec::new());
    assert_eq!(
        numbers(&drain(&mut path, MS, MS)),
        (0..50).collect::<Vec<_>>()
    );
    assert_eq!(slow.counters[0].snapshot().held_bytes, 0);
}

#[test]
fn a_throttle_queues_up_to_its_bound_and_drops_the_rest() {
    let kind = ToxicKind::Throttle {
        bytes_per_s: 10_000,
        burst_bytes: 1_000,
        of: RateOf::Link,
    };
    let mut path = path(&[&applied("slow", kind)]);
    send(&mut path, 5_000, Duration::ZERO, 100);
    assert_eq!(path.overflowed(), 5_000 - MOST_DATAGRAMS as u64);
    let seen = drain(&mut path, Duration::ZERO, Duration::from_secs(10));
    // A burst of 10, then 100 a second.
    assert_eq!(seen.len(), 1_010);
    assert_eq!(seen[9].0, Duration::ZERO);
    assert_eq!(seen[10].0, 10 * MS);
}

#[test]
fn a_datagram_larger_than_a_burst_passes_all_the_same() {
    let kind = ToxicKind::Throttle {
        bytes_per_s: 1_000,
        burst_bytes: 100,
        of: RateOf::Connection,
    };
    let mut path = path(&[&applied("slow", kind)]);
    send(&mut path, 3, Duration::ZERO, 1_000);
    let seen: Vec<_> = drain(&mut path, Duration::ZERO, Duration::MAX)
        .iter()
        .map(|seen| seen.0)
        .collect();
    assert_eq!(seen, [0, 1_000, 2_000].map(Duration::from_millis));
}

#[test]
fn after_the_limit_nothing_passes() {
    let kind = ToxicKind::Limit {
        bytes: 1_000,
        end: LimitEnd::Close,
    };
    let mut path = path(&[&applied("limit", kind)]);
    send(&mut path, 100, Duration::ZERO, 30);
    assert_eq!(drain(&mut path, MS, MS).len(), 33);
}

#[test]
fn when_all_connections_have_left_no_memory_one_datagram_still_passes() {
    let mut path = path(&[]);
    for number in 0..3 {
        path.push(MS, datagram(number, 10), 0);
    }
    assert_eq!(numbers(&drain(&mut path, MS, MS)), [0]);
    assert_eq!(path.overflowed(), 2);
}

proptest! {
    #[test]
    fn every_datagram_comes_once_and_exactly_when_it_was_drawn(
        gaps in prop::collection::vec(0..50_u64, 1..60), by in 0..200_u64, jitter in 0..300_u64, seed: u64,
    ) {
        let kind = ToxicKind::Delay { by: by as u32 * MS, jitter: Jitter::Uniform(jitter as u32 * MS) };
        let toxic = Arc::new(Applied::new(toxic("it", kind), seed, Arc::default()));
        let mut path = path(&[&toxic]);
        let mut at = Duration::ZERO;
        let mut expected = Vec::new();
        for (number, gap) in gaps.iter().enumerate() {
            at += *gap as u32 * MS;
            path.push(at, datagram(number as u32, 10), usize::MAX);
            expected.push((at + toxic.delay(&[8, number as u64, 0]), number as u32));
        }
        expected.sort();
        prop_assert_eq!(drain(&mut path, Duration::ZERO, Duration::MAX), expected);
    }
}
