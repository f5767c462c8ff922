use super::super::toxic::Protocol;
use super::*;

pub(in crate::proxy) const MS: Duration = Duration::from_millis(1);

/// A toxic for everybody and both directions.
pub(in crate::proxy) fn toxic(name: &str, kind: ToxicKind) -> Toxic {
    Toxic {
        name: name.into(),
        kind,
        direction: None,
        clients: Clients::All,
    }
}

fn applied(kind: ToxicKind) -> Applied {
    Applied::new(toxic("it", kind), 3, Arc::default())
}

/// The same, as a proxy of this protocol puts it on.
pub(in crate::proxy) fn checked(protocol: Protocol, name: &str, kind: ToxicKind) -> Arc<Applied> {
    let toxic = toxic(name, kind);
    toxic.check(protocol).unwrap();
    Arc::new(Applied::new(toxic, 11, Arc::default()))
}

#[test]
fn delays_follow_their_distribution() {
    let by = 100 * MS;
    // Mean and deviation in milliseconds, least and most.
    for (jitter, mean, deviation, least, most) in [
        (Jitter::None, 100.0, 0.0, 100.0, 100.0),
        (
            Jitter::Uniform(30 * MS),
            100.0,
            30.0 / 3_f64.sqrt(),
            70.0,
            130.0,
        ),
        (Jitter::Normal(20 * MS), 100.0, 19.7, 40.0, 160.0),
        (Jitter::Exponential(20 * MS), 120.0, 20.0, 100.0, 300.0),
    ] {
        let toxic = applied(ToxicKind::Delay { by, jitter });
        let delays: Vec<f64> = (0..20_000)
            .map(|n| toxic.delay(&[0, n]).as_secs_f64() * 1e3)
            .collect();
        let found = stats::mean(&delays).unwrap();
        assert!((found - mean).abs() < 0.7, "{jitter:?}: mean {found}");
        let found = stats::variance(&delays).unwrap().sqrt();
        assert!(
            (found - deviation).abs() < 0.7,
            "{jitter:?}: deviation {found}"
        );
        assert!(
            delays.iter().all(|delay| *delay >= least && *delay <= most),
            "{jitter:?}"
        );
    }
}

#[test]
fn no_delay_is_negative() {
    let jitter = Jitter::Uniform(100 * MS);
    let toxic = applied(ToxicKind::Delay {
        by: 10 * MS,
        jitter,
    });
    let delays: Vec<_> = (0..1000).map(|n| toxic.delay(&[n])).collect();
    assert!(delays.contains(&Duration::ZERO));
    assert!(delays.iter().all(|delay| *delay <= 110 * MS));
}

#[test]
fn each_retransmission_waits_twice_as_long_as_the_one_before() {
    assert_eq!(stalled(200 * MS, 0), Duration::ZERO);
    assert_eq!(stalled(200 * MS, 1), 200 * MS);
    assert_eq!(stalled(200 * MS, 3), 1400 * MS);
    // From the eleventh on it is two minutes.
    assert_eq!(stalled(200 * MS, 11), 1023 * 200 * MS + LONGEST_RETRANSMIT);
}

#[test]
fn losses_are_as_frequent_as_was_asked_for() {
    let toxic = applied(ToxicKind::Lose {
        share: 0.1,
        retransmit: 200 * MS,
    });
    let losses: Vec<u32> = (0..50_000).map(|n| toxic.losses(&[n])).collect();
    let times = |least: u32| losses.iter().filter(|times| **times >= least).count() as f64 / 5e4;
    assert!((times(1) - 0.1).abs() < 0.006, "{}", times(1));
    assert!((times(2) - 0.01).abs() < 0.002, "{}", times(2));
}

#[test]
fn a_share_of_clients_is_always_the_same_share() {
    let mut toxic = Toxic {
        name: "it".into(),
        kind: ToxicKind::Partition,
        direction: Some(Direction::ToClient),
        clients: Clients::Share(0.2),
    };
    let anybody = IpAddr::from([127, 0, 0, 1]);
    let touched = |toxic: &Toxic, way| -> Vec<u64> {
        let applied = Applied::new(toxic.clone(), 3, Arc::default());
        (0..10_000)
            .filter(|n| applied.touches(way, anybody, *n))
            .collect()
    };
    let some = touched(&toxic, Direction::ToClient);
    assert!((1_850..2_150).contains(&some.len()), "{}", some.len());
    assert_eq!(some, touched(&toxic, Direction::ToClient));
    assert_eq!(touched(&toxic, Direction::ToServer), [0; 0]);
    toxic.name = "other".into();
    assert_ne!(some, touched(&toxic, Direction::ToClient));
    toxic.clients = Clients::Addresses(vec![[127, 0, 0, 2].into()]);
    assert_eq!(touched(&toxic, Direction::ToClient), [0; 0]);
}

#[test]
fn what_has_no_meaning_is_refused_with_what_would_do_instead() {
    use super::super::toxic::{Protocol, ResetWhen};
    let toxic = |kind| Toxic {
        name: "it".into(),
        kind,
        direction: None,
        clients: Clients::All,
    };
    for (protocol, kind, said) in [
        (
            Protocol::Udp,
            ToxicKind::Reset(ResetWhen::Now),
            "use partition, lose or delay",
        ),
        (
            Protocol::Tcp,
            ToxicKind::Duplicate { share: 0.1 },
            "use delay with jitter, or lose",
        ),
        (
            Protocol::Tcp,
            ToxicKind::Lose {
                share: 1.0,
                retransmit: MS,
            },
            "use partition",
        ),
        (
            Protocol::Udp,
            ToxicKind::Lose {
                share: f64::NAN,
                retransmit: MS,
            },
            "more than 0",
        ),
        (
            Protocol::Tcp,
            ToxicKind::CloseSlowly(Duration::from_secs(3601)),
            "at most an hour",
        ),
        (
            Protocol::Tcp,
            ToxicKind::Slice {
                bytes: 5,
                vary: 5,
                pause: MS,
            },
            "less variation",
        ),
        (
            Protocol::Tcp,
            ToxicKind::Throttle {
                bytes_per_s: 0,
                burst_bytes: 1,
                of: RateOf::Link,
            },
            "partition lets nothing pass",
        ),
    ] {
        let error = toxic(kind).check(protocol).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    assert_eq!(
        toxic(ToxicKind::Lose {
            share: 1.0,
            retransmit: MS
        })
        .check(Protocol::Udp),
        Ok(())
    );
}
