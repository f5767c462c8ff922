use super::gather::Passes;
use super::times::Stopwatch;
use super::*;

fn options() -> Options {
    Options {
        bbs: "http://127.0.0.1:1".to_owned(),
        tls: None,
        processes: 10,
        reps: 4,
        trials: 1,
        cycle: Duration::ZERO,
        percent_writes: 5.0,
        fetches: 1,
        passes: 1,
        in_flight: 2,
        seed: 1,
    }
}

#[test]
fn every_process_is_dealt_out_once() {
    let of_rep = |rep| options().instances_of(rep);
    assert_eq!([0, 1, 2, 3].map(of_rep), [3, 3, 2, 2]);
}

#[test]
fn options_have_bounds() {
    type Spoil = fn(&mut Options);
    let wrong: [(&str, Spoil); 8] = [
        ("processes", |it| it.processes = 0),
        ("reps", |it| it.reps = 0),
        ("reps", |it| it.reps = 11),
        ("trials", |it| it.trials = 0),
        ("fetches", |it| it.fetches = 0),
        ("in-flight", |it| it.in_flight = 0),
        ("percent-writes", |it| it.percent_writes = 100.5),
        ("percent-writes", |it| it.percent_writes = f64::NAN),
    ];
    options().check().unwrap();
    for (option, spoil) in wrong {
        let mut options = options();
        spoil(&mut options);
        let error = options.check().unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("--{option}: expected")),
            "{error}"
        );
    }
}

#[test]
fn times_are_those_that_were_noted() {
    let noted = Stopwatch::new();
    assert_eq!(noted.times(), Times::default());
    for milliseconds in [10, 20, 30, 940] {
        noted.note(Duration::from_millis(milliseconds));
    }
    let times = noted.times();
    let near = |found: f64, wanted: f64| (found - wanted).abs() < wanted * 2e-3;
    assert_eq!(times.count, 4);
    assert!(
        near(times.fastest, 0.01) && near(times.slowest, 0.94),
        "{times:?}"
    );
    assert!(near(times.mean, 0.25) && near(times.p50, 0.02), "{times:?}");
    assert!(
        near(times.p99, 0.94) && near(times.deviation, 0.398_37),
        "{times:?}"
    );
}

#[test]
fn passes_are_read_from_a_page_of_metrics() {
    let page = "# TYPE bbs_convergence_passes_total counter\n\
                bbs_convergence_passes_total 7\nbbs_convergence_last_seconds 0.25\n\
                bbs_convergence_last_judged 1000\n";
    let read = Passes {
        count: 7,
        seconds: 0.25,
        judged: 1000,
    };
    assert_eq!(Passes::read(page), Some(read));
    assert_eq!(Passes::read("bbs_cells 3\n"), None);
}
