use std::time::Duration;

use super::bench::{Reading, weigh};
use super::simulated::{Queue, Work};
use super::*;
use crate::arrivals::{Arrivals, Shape};
use crate::generate::{Flow, Generate, GenerateError};
use crate::recording::Recorded;
use crate::segment::{Model, Segment};
use crate::slo::Slo;

mod coverage;

fn settings(slo: &str) -> Search {
    Search::new(Slo::parse(slo).unwrap())
}

fn find(queue: &mut Queue, settings: &Search) -> Capacity {
    search(queue, settings, &|_| Vec::new(), &mut |_| Flow::Continue).unwrap()
}

fn rate_of(recorded: &Recorded) -> f64 {
    match recorded.segment.model {
        Model::Open(Arrivals::Rate {
            shape: Shape::Constant(rate),
            ..
        }) => rate,
        _ => panic!("a hold has a constant rate"),
    }
}

#[test]
fn the_hold_that_is_shown_is_the_longest_at_the_highest_good_rate() {
    let settings = settings("p99 < 20ms");
    let mut queue = Queue::new(1000.0, 1, Work::Exponential, 3);
    let mut holds = Holds::of(&mut queue);
    let found = search(&mut holds, &settings, &|_| Vec::new(), &mut |_| {
        Flow::Continue
    });
    let found = found.unwrap();
    let good = found.points.iter().filter(|point| point.good);
    let rate = good.map(|point| point.rate).fold(0.0, f64::max);
    let shown = holds.best(&found).unwrap();
    assert_eq!(rate_of(&shown), rate);
    let length = shown.total.length.as_secs_f64();
    let at = |(ran, _): &&(f64, f64)| *ran == rate;
    assert!(
        queue
            .ran
            .iter()
            .filter(at)
            .all(|(_, other)| *other <= length + 1e-6)
    );
}

#[test]
fn without_a_good_hold_the_last_is_shown() {
    let settings = settings("p99 < 1us");
    let mut queue = Queue::new(1000.0, 1, Work::Exponential, 3);
    let mut holds = Holds::of(&mut queue);
    let found = search(&mut holds, &settings, &|_| Vec::new(), &mut |_| {
        Flow::Continue
    });
    let found = found.unwrap();
    let shown = holds.best(&found).unwrap();
    assert!(found.points.iter().all(|point| !point.good));
    assert_eq!(rate_of(&shown), found.points.last().unwrap().rate);
}

#[test]
fn saturation_is_told_apart_from_the_objective() {
    let mut queue = Queue::new(1000.0, 1, Work::Exponential, 3);
    let found = find(&mut queue, &settings("p99 < 50ms"));
    let (knee, physical) = (found.knee.unwrap(), found.physical.unwrap());
    assert!(knee.high < 960.0, "{}", found.note);
    assert!((physical.rate / 1000.0 - 1.0).abs() < 0.03, "{physical:?}");
    assert!(found.points.iter().any(|point| point.purpose == "confirm"));
    // A rate that was held, and not the estimate between those that were.
    let confirmed = found.confirmed().unwrap();
    let mut held = found.points.iter().filter(|point| point.good);
    assert!(held.any(|point| point.rate == confirmed), "{confirmed}");
    assert!(confirmed <= knee.rate && confirmed > 0.9 * knee.rate);
    assert_eq!(found.share(0.7), Some(confirmed * 0.7));
    assert_eq!(found.share(f64::NAN), None);
    // An M/M/1 queue follows the law with a contention of a half, and has no peak.
    match found.usl {
        Usl::Fit { peak, .. } => assert_eq!(peak, None),
        Usl::Refused(why) => panic!("{why}"),
    }
}

/// In five seconds at 20 % too much, the queue becomes one second long: the objective
/// is met, and yet the target cannot keep up.
/// A pool of twenty that answers 1,000 a second, in short searches.
#[test]
fn no_rate_is_claimed_above_what_the_same_search_saw_answered() {
    let mut both = 0;
    for seed in 0..40 {
        let mut queue = Queue::new(1000.0, 20, Work::Constant, seed);
        queue.drift = 0.02;
        let mut settings = Search::brief(Slo::parse("p95 < 50ms, errors < 0.1%").unwrap());
        settings.seed = seed;
        let found = find(&mut queue, &settings);
        if let (Some(knee), Some(physical)) = (found.knee, found.physical) {
            both += 1;
            let most = physical.high / 0.999;
            assert!(
                knee.rate <= most && knee.high <= most,
                "{seed}: {}",
                found.note
            );
        }
    }
    assert!(both > 10, "{both}");
}

/// Without a bound on failures the objective may hold at rates that are refused in good time.
#[test]
fn what_refuses_fast_holds_a_latency_at_any_rate() {
    let most = Estimate::new(1000.0, (990.0, 1010.0), 0.9);
    let at_most = |slo: &str| super::fit::asked_at_most(&most, &Slo::parse(slo).unwrap());
    assert_eq!(at_most("p95 < 50ms"), f64::INFINITY);
    assert_eq!(at_most("p95 < 50ms, errors < 50%"), 2020.0);
}

#[test]
fn a_queue_that_grows_is_no_success_even_within_the_objective() {
    let mut queue = Queue::new(1000.0, 1, Work::Exponential, 4);
    let found = find(&mut queue, &settings("p99 < 1s"));
    let knee = found.knee.unwrap();
    assert!(knee.rate > 900.0 && knee.rate < 1060.0, "{}", found.note);
}

#[test]
fn a_backlog_left_behind_does_not_spoil_the_next_hold() {
    let mut queue = Queue::new(1000.0, 1, Work::Exponential, 5);
    queue.remembers = true;
    queue.timeout = 1.0;
    let mut rests = 0;
    let settings = settings("p99 < 20ms");
    let found = search(&mut queue, &settings, &|_| Vec::new(), &mut |event| {
        rests += u32::from(matches!(event, Event::Rest { .. }));
        Flow::Continue
    });
    let found = found.unwrap();
    assert!(rests > 0);
    let truth = 1000.0 - 100f64.ln() / 0.02;
    assert!(
        (found.knee.unwrap().rate / truth - 1.0).abs() < 0.05,
        "{}",
        found.note
    );
}

#[test]
fn the_limit_of_the_generator_is_not_that_of_the_target() {
    let mut queue = Queue::new(20_000.0, 1, Work::Exponential, 6);
    let slow = |recorded: &Recorded| match rate_of(recorded) {
        rate if rate > 1000.0 => vec!["late-sends".to_owned()],
        _ => Vec::new(),
    };
    let settings = settings("p99 < 20ms");
    let found = search(&mut queue, &settings, &slow, &mut |_| Flow::Continue).unwrap();
    assert_eq!(found.limit, "generator");
    let knee = found.knee.unwrap();
    assert_eq!((knee.low, knee.rate), (knee.high, knee.low));
    assert!(knee.rate > 1000.0 / 1.5 && knee.rate <= 1000.0);
    assert!(
        found.note.contains("at least") && found.note.contains("late-sends"),
        "{}",
        found.note
    );
    let spoiled = found
        .points
        .iter()
        .filter(|point| !point.invalid.is_empty());
    assert!(spoiled.clone().count() >= 3 && spoiled.clone().all(|point| !point.good));
}

/// The twin: what a hypervisor takes makes a hold count for nothing, but the generator could make more.
#[test]
fn what_a_hypervisor_takes_is_no_limit_of_the_generator() {
    let mut queue = Queue::new(20_000.0, 1, Work::Exponential, 6);
    for (check, generator) in [("steal", false), ("generator-late", true)] {
        let slow = |recorded: &Recorded| match rate_of(recorded) {
            rate if rate > 1000.0 => vec![check.to_owned()],
            _ => Vec::new(),
        };
        let settings = settings("p99 < 20ms");
        let found = search(&mut queue, &settings, &slow, &mut |_| Flow::Continue).unwrap();
        assert_eq!(found.limit, "generator");
        let blamed = found.note.contains("can make no more");
        assert_eq!(blamed, generator, "{}", found.note);
        assert!(found.note.contains(check), "{}", found.note);
    }
}

/// The guard refuses every hold: nobody knows whether the rate is too much or the machine busy.
#[test]
fn a_search_without_a_hold_that_counts_is_invalid() {
    let mut queue = Queue::new(1000.0, 1, Work::Exponential, 6);
    let all = |_: &Recorded| vec!["generator-late".to_owned()];
    let settings = settings("p99 < 20ms");
    let found = search(&mut queue, &settings, &all, &mut |_| Flow::Continue).unwrap();
    assert!(found.knee.is_none() && found.limit != "none", "{found:?}");
    assert!(!found.note.contains("can make no more"), "{}", found.note);
    let validity = found.validity(validity());
    assert!(!validity.valid);
    assert_eq!(
        validity.reasons[0].found,
        "no hold of the search counts: generator-late"
    );
}

/// That of a hold that a search shows.
fn validity() -> Validity {
    Validity {
        valid: false,
        reasons: vec![Reason {
            check: "steal".to_owned(),
            found: String::new(),
            help: String::new(),
        }],
        loosened: vec!["steal 5 %".to_owned()],
    }
}

#[test]
fn a_search_is_valid_whatever_single_holds_were() {
    let holds = [
        (100.0, true, false),
        (200.0, true, true),
        (300.0, false, true),
    ];
    let told = searched(Some(200.0), &holds).validity(validity());
    assert!(told.valid && told.reasons.is_empty());
    assert_eq!(told.loosened, ["steal 5 %"]);
    let by_generator = Capacity {
        limit: "generator".to_owned(),
        ..searched(Some(200.0), &holds)
    };
    assert!(!by_generator.validity(validity()).valid);
}

#[test]
fn an_unsure_search_says_what_held_and_what_failed() {
    let mut queue = Queue::new(1000.0, 4, Work::Exponential, 3);
    let settings = Search {
        within: Duration::from_secs(20),
        ..settings("p99 < 30ms")
    };
    let found = find(&mut queue, &settings);
    if found.limit == "unsure" {
        let counted = || found.points.iter().filter(|point| point.invalid.is_empty());
        let held = counted().filter(|point| point.good).map(|point| point.rate);
        let held = held.fold(0.0, f64::max);
        let said = format!("{} was the highest that held", units::show_rate(held));
        assert!(held == 0.0 || found.note.contains(&said), "{}", found.note);
    }
    assert!(!found.note.contains("it lies between"), "{}", found.note);
}

/// The machine is busy for a while, whatever the rate: three holds in a row and more are
/// spoiled, and the knee is found all the same.
#[test]
fn noise_is_waited_out() {
    for from in [0, 3, 7] {
        let mut queue = Queue::new(1000.0, 1, Work::Exponential, 21 + from);
        let calls = std::cell::Cell::new(0);
        let busy = |_: &Recorded| {
            calls.set(calls.get() + 1);
            match (from..from + 5).contains(&(calls.get() - 1)) {
                true => vec!["late-sends".to_owned()],
                false => Vec::new(),
            }
        };
        let settings = settings("p99 < 20ms");
        let found = search(&mut queue, &settings, &busy, &mut |_| Flow::Continue).unwrap();
        assert_eq!(found.limit, "target", "{from}: {}", found.note);
        let truth = 1000.0 - 100f64.ln() / 0.02;
        let knee = found.knee.unwrap();
        assert!((knee.rate / truth - 1.0).abs() < 0.05, "{}", found.note);
    }
}

/// A pool of 20 with 25 ms of work each and a timeout, as it was found in use: 800/s failed,
/// and then the machine was busy for good. What is told is not above 800/s.
#[test]
fn nothing_is_claimed_above_a_rate_that_failed() {
    for spoiled_from in 2..12 {
        let mut queue = Queue::new(800.0, 20, Work::Constant, spoiled_from);
        queue.timeout = 0.2;
        let calls = std::cell::Cell::new(0);
        let busy = |_: &Recorded| {
            calls.set(calls.get() + 1);
            match calls.get() > spoiled_from {
                true => vec!["late-sends".to_owned()],
                false => Vec::new(),
            }
        };
        let settings = Search::brief(Slo::parse("p99 < 50ms, errors < 0.1%").unwrap());
        let found = search(&mut queue, &settings, &busy, &mut |_| Flow::Continue).unwrap();
        let failed = found
            .points
            .iter()
            .filter(|p| !p.good && p.invalid.is_empty());
        let failed = failed.map(|point| point.rate).fold(f64::INFINITY, f64::min);
        if let Some(knee) = found.knee {
            assert!(
                knee.high <= failed && knee.rate <= knee.high,
                "{}",
                found.note
            );
            assert!(knee.high <= 2.0 * knee.low, "{}", found.note);
            assert!(!found.note.contains("at least") || failed.is_infinite());
        } else {
            assert_eq!((found.limit.as_str(), found.share(0.7)), ("unsure", None));
        }
    }
}

#[test]
fn a_hold_that_the_machine_spoiled_is_made_again() {
    let mut queue = Queue::new(1000.0, 1, Work::Exponential, 7);
    let calls = std::cell::Cell::new(0);
    let once = |_: &Recorded| {
        calls.set(calls.get() + 1);
        if calls.get() == 4 {
            vec!["steal".to_owned()]
        } else {
            Vec::new()
        }
    };
    let settings = settings("p99 < 20ms");
    let found = search(&mut queue, &settings, &once, &mut |_| Flow::Continue).unwrap();
    assert_eq!(found.limit, "target");
    assert_eq!(found.points[3].invalid, ["steal"]);
    assert_eq!(found.points[3].rate, found.points[4].rate);
    assert!(found.points[4].invalid.is_empty());
}

#[test]
fn the_highest_rate_allowed_may_hold() {
    let mut queue = Queue::new(20_000.0, 1, Work::Exponential, 8);
    let mut settings = settings("p99 < 20ms");
    settings.most = Some(400.0);
    let found = find(&mut queue, &settings);
    assert_eq!(
        (found.limit.as_str(), found.knee.unwrap().rate),
        ("range", 400.0)
    );
    assert!(queue.ran.iter().all(|(rate, _)| *rate <= 400.0));
    assert_eq!(found.physical, None);
}

/// A search of these holds: rate, whether it was good, and whether it counts.
fn searched(knee: Option<f64>, holds: &[(f64, bool, bool)]) -> Capacity {
    let points = holds.iter().map(|(rate, good, counts)| Point {
        rate: *rate,
        sent: *rate,
        good_rate: *rate,
        p50: None,
        p99: None,
        errors: 0.0,
        in_flight: 1.0,
        length_s: 5.0,
        good: *good && *counts,
        invalid: if *counts {
            vec![]
        } else {
            vec!["late".to_owned()]
        },
        purpose: "bisect".to_owned(),
    });
    Capacity {
        slo: "p99 < 20ms".to_owned(),
        points: points.collect(),
        knee: knee.map(|rate| Estimate::new(rate, (rate, rate), 0.9)),
        physical: None,
        limit: "target".to_owned(),
        note: String::new(),
        usl: Usl::Refused(String::new()),
    }
}

#[test]
fn confirmed_is_the_highest_rate_that_held_and_that_nothing_speaks_against() {
    let confirmed = |knee, holds: &[_]| searched(Some(knee), holds).confirmed();
    let (held, failed, spoiled) = ((true, true), (false, true), (true, false));
    let at = |rate: f64, (good, counts): (bool, bool)| (rate, good, counts);
    let plain = [at(100.0, held), at(150.0, held), at(225.0, failed)];
    assert_eq!(confirmed(190.0, &plain), Some(150.0));
    // Above the knee that is told it was luck.
    assert_eq!(confirmed(140.0, &plain), Some(100.0));
    assert_eq!(confirmed(90.0, &plain), None);
    // A hold that does not count confirms nothing.
    let with_spoiled = [at(100.0, held), at(150.0, spoiled), at(225.0, failed)];
    assert_eq!(confirmed(190.0, &with_spoiled), Some(100.0));
    // What failed below stands until two holds take it back.
    let once = [at(100.0, held), at(130.0, failed), at(150.0, held)];
    assert_eq!(confirmed(190.0, &once), Some(100.0));
    let twice = [&once[..], &[at(140.0, held)]].concat();
    assert_eq!(confirmed(190.0, &twice), Some(150.0));
    assert_eq!(searched(None, &plain).confirmed(), None);
}

#[test]
fn no_rate_may_hold() {
    let mut queue = Queue::new(100.0, 1, Work::Constant, 9);
    let found = find(&mut queue, &settings("p99 < 1ms"));
    assert_eq!((found.limit.as_str(), found.knee), ("none", None));
    assert!(found.note.contains("No rate was found"), "{}", found.note);
    assert!(found.note.contains("too few requests"), "{}", found.note);
    assert_eq!(found.share(0.7), None);
}

#[test]
fn a_slow_start_is_searched_downwards() {
    let mut queue = Queue::new(1000.0, 1, Work::Exponential, 10);
    let mut settings = settings("p99 < 20ms");
    settings.from = 5000.0;
    let found = find(&mut queue, &settings);
    let truth = 1000.0 - 100f64.ln() / 0.02;
    assert!(
        (found.knee.unwrap().rate / truth - 1.0).abs() < 0.06,
        "{}",
        found.note
    );
}

#[test]
fn whoever_watches_can_end_it() {
    for limit in [1, 5, 60] {
        let mut queue = Queue::new(1000.0, 1, Work::Exponential, 11);
        let mut seen = 0;
        let settings = settings("p99 < 20ms");
        let found = search(&mut queue, &settings, &|_| Vec::new(), &mut |_| {
            seen += 1;
            if seen >= limit {
                Flow::Stop
            } else {
                Flow::Continue
            }
        });
        let found = found.unwrap();
        assert!(
            found.note.contains("because it was stopped"),
            "{}",
            found.note
        );
        assert!(seen <= limit + 3, "{seen}");
    }
}

#[test]
fn budgets_are_kept() {
    let mut queue = Queue::new(1000.0, 1, Work::Exponential, 12);
    queue.drift = 0.03;
    let mut settings = settings("p99 < 20ms");
    settings.holds = 16;
    let found = find(&mut queue, &settings);
    let overload = found
        .points
        .iter()
        .filter(|point| point.purpose == "overload");
    assert!(found.points.len() - overload.count() <= 16);
    let wide = found.note.contains("wider than the 3 %");
    assert!(wide || found.limit == "unsure", "{}", found.note);

    let mut queue = Queue::new(1000.0, 1, Work::Exponential, 12);
    settings.within = Duration::from_secs(60);
    settings.holds = 45;
    let found = find(&mut queue, &settings);
    assert!(
        found.note.contains("its time of 1m was used up"),
        "{}",
        found.note
    );
    let ran: f64 = queue.ran.iter().map(|ran| ran.1).sum();
    assert!(ran <= 60.0 + settings.drain.as_secs_f64(), "{ran}");
}

/// A generator that cannot run, or is cut short.
struct Broken(Option<Queue>);

impl Generate for Broken {
    fn run(
        &mut self,
        segment: &Segment,
        watch: &mut dyn FnMut(&crate::Span) -> Flow,
    ) -> Result<Recorded, GenerateError> {
        match &mut self.0 {
            Some(queue) => queue.run(segment, watch).map(|recorded| Recorded {
                cut: Some("the target went away".to_owned()),
                ..recorded
            }),
            None => Err(GenerateError::new("connect", "refused")),
        }
    }
}

#[test]
fn failures_of_the_generator_are_passed_on() {
    let settings = settings("p99 < 20ms");
    let go = |generator: &mut Broken, settings: &Search| {
        search(generator, settings, &|_| Vec::new(), &mut |_| {
            Flow::Continue
        })
    };
    assert_eq!(
        go(&mut Broken(None), &settings).unwrap_err().found,
        "refused"
    );
    let queue = Queue::new(1000.0, 1, Work::Exponential, 1);
    let found = go(&mut Broken(Some(queue)), &settings).unwrap();
    assert!(
        found.note.contains("the target went away"),
        "{}",
        found.note
    );
    // Nobody knows of lower rates.
    assert_eq!(found.limit, "unsure");

    let wrong = Search {
        grow: 1.0,
        ..settings
    };
    let error = go(&mut Broken(None), &wrong).unwrap_err();
    assert!(error.to_string().contains("the growth is 1"), "{error}");
}

#[test]
fn every_setting_has_bounds() {
    let good = || settings("p99 < 20ms");
    assert_eq!(good().check(), Ok(()));
    let second = Duration::from_secs(1);
    let wrong = [
        Search {
            from: 0.0,
            ..good()
        },
        Search {
            from: f64::NAN,
            ..good()
        },
        Search {
            most: Some(50.0),
            ..good()
        },
        Search {
            grow: 11.0,
            ..good()
        },
        Search {
            precision: 0.0,
            ..good()
        },
        Search {
            confidence: 1.0,
            ..good()
        },
        Search { holds: 3, ..good() },
        Search {
            near: 0.5,
            ..good()
        },
        Search {
            each: second / 2,
            ..good()
        },
        Search {
            longest: second,
            ..good()
        },
        Search {
            slo: Slo { terms: Vec::new() },
            ..good()
        },
    ];
    for search in wrong {
        assert!(search.check().is_err(), "{search:?}");
    }
}

#[test]
fn what_the_guard_finds_is_weighed() {
    let found = |checks: &[&str]| checks.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>();
    let (good, bad) = (Some(true), Some(false));
    assert_eq!(weigh(found(&[]), good), Reading::Counts);
    assert_eq!(weigh(found(&[]), None), Reading::TooFew);
    for own in ["under-sent", "little", "steal", "no-ports"] {
        for holds in [good, bad, None] {
            assert_eq!(weigh(found(&[own]), holds), Reading::Spoiled(found(&[own])));
        }
    }
    let lost = found(&["worker-lost"]);
    assert_eq!(weigh(lost.clone(), bad), Reading::Lost(lost));
}
