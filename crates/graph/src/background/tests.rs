use super::*;
use crate::work::Calibration;

fn resources() -> Arc<SharedResources> {
    SharedResources::open(Calibration::measure(), &std::env::temp_dir()).unwrap()
}

fn neighbour(name: &str) -> Background {
    Background {
        name: name.into(),
        cpus: Vec::new(),
        cpu_share: 0.5,
        threads: 2,
        memory: 0,
        from: 0,
        lasts: None,
    }
}

fn wait_for(what: impl Fn() -> bool) {
    while !what() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn neighbours_work_when_it_is_their_time_until_they_are_stopped() {
    let late = Background {
        from: Nanos::MAX,
        ..neighbour("late")
    };
    let walks = Background {
        memory: 1 << 20,
        ..neighbour("walks")
    };
    let holds = Background {
        memory: 1 << 20,
        cpu_share: 0.0,
        ..neighbour("holds")
    };
    let all = [neighbour("spins"), late, walks, holds];
    let neighbours = Neighbours::start(&resources(), &all).unwrap();
    wait_for(|| {
        let seen = neighbours.seen();
        let worked = |at: usize| seen[at].active && seen[at].cpu > 20_000_000;
        worked(0) && worked(2) && seen[3].active
    });
    let seen = neighbours.seen();
    assert_eq!(seen[1].name, "late");
    assert!(!seen[1].active && seen[1].cpu == 0, "{seen:?}");
    assert!(seen[3].cpu < seen[0].cpu, "{seen:?}");
    assert!(neighbours.stop_within(Duration::from_secs(60)));
}

#[test]
fn one_that_lasts_for_a_time_ends_by_itself_and_took_no_more_than_its_share() {
    let short = Background {
        lasts: Some(100_000_000),
        ..neighbour("short")
    };
    let neighbours = Neighbours::start(&resources(), &[short]).unwrap();
    let threads = Arc::clone(&neighbours.threads);
    wait_for(|| *threads.0.lock().unwrap() == 0);
    let seen = neighbours.seen();
    assert!(!seen[0].active);
    // Two threads, half of 100 ms each, and a turn more; less if others took it.
    assert!(seen[0].cpu <= 115_000_000, "{seen:?}");
}

#[test]
fn what_the_machine_has_not_is_refused() {
    let wrong = [
        Background {
            cpus: vec![4000],
            ..neighbour("elsewhere")
        },
        Background {
            memory: 1 << 60,
            ..neighbour("large")
        },
        Background {
            threads: 5000,
            ..neighbour("many")
        },
    ];
    for (one, cause) in wrong
        .into_iter()
        .zip(["no-processor", "too-much", "too-much"])
    {
        let error = Neighbours::start(&resources(), &[one]).err().unwrap();
        assert_eq!(error.cause(), cause);
    }
}
