//! Numbers that are exact, whatever the machine does meanwhile.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use crate::target::{Behaviour, Target};
use crate::workload::{closed, open, plain, run};
use lab_generator::{Local, Stopper};
use lab_load::arrivals::{Arrivals, Process, Shape};
use lab_load::summary::{Rates, WarmUp};
use lab_load::{
    Flow, Generate as _, Length, Model, Pace, Recorded, Segment, Slo, Summary, Workload,
};

#[test]
fn every_arrival_of_the_plan_is_sent_by_any_number_of_threads() {
    for threads in [1, 3] {
        let behaviour = Behaviour {
            log: true,
            ..Behaviour::default()
        };
        let target = Target::start(0, behaviour).unwrap();
        let mut workload = plain(target.address, 8);
        workload.threads = threads;
        workload.share.threads = threads;
        let recorded = run(workload, &open(Process::Poisson, 3000.0, 1.5));
        let seen = recorded.total.requests();
        assert_eq!(
            (recorded.total.planned, seen.sent, seen.answered),
            (4500, 4500, 4500)
        );
        assert_eq!(seen.lateness.count() + seen.waited, 4500);
        assert_eq!(target.end().len(), 4500);
        let spans = recorded.timeline.spans().iter();
        assert_eq!(spans.filter(|span| !span.after_end).count(), 2);
        assert_eq!(recorded.sending().length, Duration::from_millis(1500));
        assert_eq!(recorded.total.threads_cpu.len(), threads as usize);
        // Little's law holds exactly, by construction.
        let latencies = seen.actual.sum_seconds();
        let integral = recorded.total.in_flight_seconds;
        assert!(
            (integral / latencies - 1.0).abs() < 0.05,
            "{integral} {latencies}"
        );
    }
}

#[test]
fn another_rate_holds_from_its_moment_on() {
    for threads in [1, 3] {
        let behaviour = Behaviour {
            log: true,
            ..Behaviour::default()
        };
        let target = Target::start(0, behaviour).unwrap();
        let mut workload = plain(target.address, 8);
        workload.threads = threads;
        workload.share.threads = threads;
        let mut local = Local::start(workload).unwrap();
        let stopper = local.stopper();
        let second = 1_000_000_000;
        let began = Stopper::now() + second / 5;
        stopper.begin_next_at(began);
        // One of before is not its own, one of after the end changes nothing.
        stopper.turn_at(began - 1, 9.0);
        stopper.turn_at(began + second / 2, 3000.0);
        stopper.turn_at(began + second, 200.0);
        stopper.turn_at(began + 3 * second, 9.0);
        let segment = open(Process::Constant, 1000.0, 2.0);
        let recorded = local.run(&segment, &mut |_| Flow::Continue).unwrap();
        let all = 500 + 1500 + 200;
        let seen = recorded.total.requests();
        assert_eq!(
            (recorded.total.planned, seen.sent, seen.answered),
            (all, all, all)
        );
        let spans = recorded.timeline.spans().iter();
        let planned: Vec<u64> = spans.map(|span| span.planned).collect();
        // What is due at the very end of a second may count to it.
        let off = planned[0].abs_diff(2000) + planned[1].abs_diff(200);
        assert!(off <= 2, "{planned:?}");
        let Model::Open(arrivals) = &recorded.segment.model else {
            panic!("an open loop");
        };
        assert_eq!(
            arrivals.describe(),
            "constant 1000/s for 500ms, 3000/s for 500ms, 200/s for 1s"
        );
        // The next segment has its own rate.
        let again = local.run(&open(Process::Constant, 100.0, 0.5), &mut |_| {
            Flow::Continue
        });
        assert_eq!(again.unwrap().total.planned, 50);
        assert_eq!(target.end().len() as u64, all + 50);
    }
}

#[test]
fn users_make_exactly_as_many_requests_as_asked() {
    let target = Target::start(0, Behaviour::default()).unwrap();
    for pace in [Pace::Exact, Pace::Coalesce, Pace::Spin] {
        let mut workload = plain(target.address, 7);
        workload.threads = 3;
        workload.share.threads = 3;
        workload.pace = pace;
        let total = run(workload, &closed(1000)).total;
        let seen = total.requests();
        assert_eq!(
            (total.planned, seen.sent, seen.answered),
            (1000, 1000, 1000)
        );
        assert_eq!(seen.intended, seen.actual, "users have no schedule");
        assert_eq!(total.connections.opened, 7);
    }
}

#[test]
fn ticks_group_requests_and_lose_none() {
    let target = Target::start(0, Behaviour::default()).unwrap();
    let mut workload = plain(target.address, 30);
    workload.pace = Pace::Tick(Duration::from_millis(10));
    let total = run(workload, &open(Process::Constant, 1000.0, 0.5)).total;
    assert_eq!(total.requests().answered, 500);
}

#[test]
fn connections_are_added_while_all_are_busy() {
    let behaviour = Behaviour {
        delay: Duration::from_millis(100),
        ..Behaviour::default()
    };
    let target = Target::start(0, behaviour).unwrap();
    let mut workload = plain(target.address, 2);
    workload.connections.most = 200;
    let total = run(workload, &open(Process::Constant, 500.0, 1.0)).total;
    let seen = total.requests();
    assert_eq!((seen.sent, seen.answered, seen.waited), (500, 500, 0));
    assert!(total.connections.open >= 40, "{:?}", total.connections);
}

#[test]
fn what_no_connection_became_free_for_is_counted_as_given_up() {
    let behaviour = Behaviour {
        delay: Duration::from_secs(3),
        ..Behaviour::default()
    };
    let target = Target::start(0, behaviour).unwrap();
    let workload = plain(target.address, 1);
    let recorded = run(workload, &open(Process::Constant, 20.0, 1.0));
    let total = &recorded.total;
    assert_eq!((total.planned, total.requests().sent), (20, 1));
    let tried = total.tried();
    assert_eq!((tried.all, tried.failed), (20, 19));
    // Its one answer came when all was over.
    assert_eq!(recorded.sending().requests().answered, 0);
    assert_eq!(recorded.after_end().requests().answered, 1);
}

/// So many requests of some arrivals, without a time to end at.
fn counted(arrivals: Arrivals, requests: Option<u64>) -> Segment {
    Segment {
        model: Model::Open(arrivals),
        length: Length {
            duration: None,
            requests,
        },
        first: 0,
    }
}

fn rates(workload: &Workload, recorded: &Recorded) -> Rates {
    let summary = Summary::of(WarmUp::None, "load", "http://target/", workload, recorded);
    summary.unwrap().rate
}

/// The time of a load by its number is that in which its rate adds up to it. Its last burst is
/// due long before.
#[test]
fn a_number_of_requests_has_the_rate_that_it_was_asked_for_with() {
    let behaviour = Behaviour {
        delay: Duration::from_millis(20),
        ..Behaviour::default()
    };
    let target = Target::start(0, behaviour).unwrap();
    let mut workload = plain(target.address, 100);
    let burst = Arrivals::Rate {
        process: Process::Burst(50),
        shape: Shape::Constant(100.0),
    };
    let moments = [0, 500_000_000].map(|at| [at; 50]).concat();
    let trace = Arrivals::Trace(moments.into());
    for threads in [1, 2] {
        (workload.threads, workload.share.threads) = (threads, threads);
        for (arrivals, requests) in [(burst.clone(), Some(100)), (trace.clone(), None)] {
            let recorded = run(workload.clone(), &counted(arrivals, requests));
            let rate = rates(&workload, &recorded);
            assert_eq!(
                (rate.asked, rate.sent, rate.good),
                (Some(100.0), 100.0, 100.0)
            );
            assert_eq!(recorded.sending().length, Duration::from_secs(1));
            let judged = |objective: &str| {
                let objective: Slo = objective.parse().unwrap();
                objective.judge(&recorded).holds
            };
            assert_eq!(judged("rate >= 100/s"), Some(true));
            assert_eq!(judged("rate > 100/s"), Some(false));
            assert_eq!(recorded.total.planned, 100);
        }
    }
}

/// A target that can do twenty a second, and is asked for a hundred. What it owes when the time is
/// over is sent all the same, and no rate counts it.
#[test]
fn what_a_slow_target_makes_late_belongs_to_no_rate() {
    let behaviour = Behaviour {
        delay: Duration::from_millis(50),
        ..Behaviour::default()
    };
    let target = Target::start(0, behaviour).unwrap();
    let workload = plain(target.address, 1);
    let arrivals = Arrivals::Rate {
        process: Process::Constant,
        shape: Shape::Constant(100.0),
    };
    let recorded = run(workload.clone(), &counted(arrivals, Some(50)));
    let rate = rates(&workload, &recorded);
    let seen = recorded.total.requests();
    assert_eq!((recorded.total.planned, seen.answered), (50, 50));
    assert_eq!(rate.asked, Some(100.0));
    assert!(rate.sent <= 24.0 && rate.good <= 22.0, "{rate:?}");
    assert!(recorded.after_end().requests().sent >= 38);
}
