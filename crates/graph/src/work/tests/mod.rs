mod pool;
mod programs;

use std::ffi::OsString;
use std::sync::Arc;

use super::*;
use crate::amount::Amount;
use crate::topology::Work;

const LONG: Nanos = Nanos::MAX;

fn resources() -> Arc<SharedResources> {
    let stand_in = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/stress-ng");
    SharedResources::with_stress_ng(
        Calibration::measure(),
        &std::env::temp_dir(),
        OsString::from(stand_in),
    )
    .unwrap()
}

fn constant(value: f64) -> Amount {
    Amount::Constant(value)
}

/// Does a work once, by a worker and equipment of its own.
fn once(
    resources: &Arc<SharedResources>,
    work: &Work,
    amount: f64,
    second: f64,
) -> Result<Done, WorkError> {
    let mut equipment = resources.equipment();
    let task = equipment.task(work)?;
    Worker::new(resources).perform(&task, amount, second, LONG)
}

#[test]
fn each_kind_is_done_and_says_what_it_did() {
    let resources = resources();
    let memory = Work::Memory {
        set: 1 << 16,
        touches: Amount::ZERO,
    };
    let disk = Work::Disk {
        read: Amount::ZERO,
        write: Amount::ZERO,
        sync: true,
    };
    let lock = Work::Lock {
        name: "row".into(),
        hold: Amount::ZERO,
    };
    let zero = Amount::ZERO;
    for (work, amount, second, count) in [
        (Work::Cpu(zero.clone()), 50_000.0, 0.0, 0),
        (Work::Ops(zero.clone()), 12_345.0, 0.0, 12_345),
        (Work::Primes(250_000), 0.0, 0.0, 22_044),
        (memory, 777.0, 0.0, 777),
        (disk, 100_000.0, 5_000.0, 105_000),
        (lock, 50_000.0, 0.0, 0),
        (Work::Sleep(zero), 100_000.0, 0.0, 0),
        (Work::Fork(vec!["true".into()]), 0.0, 0.0, 0),
    ] {
        let done = once(&resources, &work, amount, second).unwrap();
        assert_eq!(done.count, count, "{work:?}");
        assert!(done.wall > 0, "{work:?}: {done:?}");
        assert!(done.cpu > 0, "{work:?}: {done:?}");
        match work {
            Work::Cpu(_) | Work::Ops(_) | Work::Primes(_) | Work::Memory { .. } => {
                assert_eq!(done.waited, 0, "{work:?}");
            }
            Work::Sleep(_) => assert!(done.waited > 0 && done.stolen() == 0, "{done:?}"),
            _ => {}
        }
        assert!(done.stolen() <= done.wall);
    }
}

#[test]
fn amounts_that_are_no_amounts_are_nothing() {
    let resources = resources();
    for amount in [-5.0, f64::NAN, 0.0] {
        let done = once(&resources, &Work::Ops(Amount::ZERO), amount, amount).unwrap();
        assert_eq!(done.count, 0);
        once(&resources, &Work::Cpu(Amount::ZERO), amount, amount).unwrap();
    }
}

#[test]
fn work_is_not_begun_after_its_deadline() {
    let resources = resources();
    let task = resources
        .equipment()
        .task(&Work::Ops(Amount::ZERO))
        .unwrap();
    let error = Worker::new(&resources)
        .perform(&task, f64::MAX, 0.0, wire::clock::now())
        .unwrap_err();
    assert_eq!(error.cause(), "late");
    let sleep = resources
        .equipment()
        .task(&Work::Sleep(Amount::ZERO))
        .unwrap();
    let soon = wire::clock::now() + 1_000_000_000;
    let error = Worker::new(&resources)
        .perform(&sleep, 1e12, 0.0, soon)
        .unwrap_err();
    assert_eq!(error.cause(), "late");
}

#[test]
fn only_what_is_short_and_never_waits_fits_an_event_loop() {
    let resources = resources();
    let cheap = |work: Work| resources.equipment().task(&work).unwrap().fits_event_loop();
    assert!(cheap(Work::Cpu(constant(100_000.0))));
    assert!(cheap(Work::Cpu(Amount::Uniform {
        from: 0.0,
        to: 90_000.0
    })));
    assert!(!cheap(Work::Cpu(constant(100_001.0))));
    assert!(!cheap(Work::Cpu(Amount::Exponential { mean: 10.0 })));
    assert!(cheap(Work::Ops(constant(100.0))));
    assert!(!cheap(Work::Ops(constant(1e9))));
    assert!(cheap(Work::Primes(100)));
    assert!(!cheap(Work::Primes(1_000_000_000)));
    assert!(!cheap(Work::Sleep(constant(1.0))));
    assert!(!cheap(Work::Lock {
        name: "x".into(),
        hold: constant(1.0)
    }));
    assert!(!cheap(Work::Fork(vec!["true".into()])));
}

#[test]
fn steps_share_memory_and_give_it_back() {
    let resources = resources();
    let mut equipment = resources.equipment();
    let one = equipment.memory(1 << 20).unwrap();
    let same = equipment.memory(1 << 20).unwrap();
    assert!(Arc::ptr_eq(&one, &same));
    let other = equipment.memory(1 << 16).unwrap();
    assert_eq!(resources.memory_taken(), (1 << 20) + (1 << 16));
    // More than any machine has, and what is left is said.
    let error = equipment.memory(1 << 50).err().unwrap();
    assert_eq!(error.cause(), "too-much");
    drop((one, same));
    assert_eq!(resources.memory_taken(), 1 << 16);
    drop(other);
    assert_eq!(resources.memory_taken(), 0);
}

#[test]
fn a_folder_in_memory_is_told() {
    let in_memory = |folder: &str| {
        let calibration = Calibration::measure();
        let resources = SharedResources::open(calibration, std::path::Path::new(folder)).unwrap();
        resources.disk_is_memory()
    };
    assert!(!in_memory("/proc"));
    assert!(!in_memory("/no/such/folder"));
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    if mounts.contains(" /dev/shm tmpfs ") {
        assert!(in_memory("/dev/shm"));
    }
}

#[test]
fn primes_beyond_reach_are_refused() {
    let error = resources().equipment().task(&Work::Primes(u64::MAX)).err();
    let text = error.unwrap().to_string();
    assert!(text.contains("1000000000000"), "{text}");
}

#[test]
fn a_lock_is_shared_by_name_and_the_wait_for_it_is_told() {
    let resources = resources();
    let row = |name: &str| {
        let work = Work::Lock {
            name: name.into(),
            hold: Amount::ZERO,
        };
        resources.equipment().task(&work).unwrap()
    };
    let (one, other) = (row("row"), row("row"));
    let held = resources.lock("row");
    let held = held.take(LONG, &stop::Stop::default()).unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| Worker::new(&resources).perform(&one, 0.0, 0.0, LONG));
        // Another name is not held.
        let free = Worker::new(&resources).perform(&row("table"), 0.0, 0.0, LONG);
        assert!(free.is_ok());
        let soon = wire::clock::now() + 20_000_000;
        let late = Worker::new(&resources).perform(&other, 0.0, 0.0, soon);
        assert_eq!(late.unwrap_err().cause(), "late");
        drop(held);
        let done = waits.join().unwrap().unwrap();
        assert!(done.waited <= done.wall);
    });
}
