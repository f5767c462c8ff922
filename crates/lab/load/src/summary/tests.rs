use std::time::Duration;

use measure::Histogram;
use proptest::prelude::*;

use super::*;
use crate::arrivals::{Arrivals, Process, Shape};
use crate::example::{recorded, workload};
use crate::recording::{Phase, Recorded, Span, Timeline};
use crate::segment::Model;
use crate::slo::Statistic;

const URL: &str = "http://127.0.0.1:8080/";
const MEAN: Duration = Duration::from_millis(4);

fn summary(recorded: &Recorded) -> Summary {
    Summary::of(WarmUp::Auto, "load", URL, &workload(&["a"]), recorded).unwrap()
}

#[test]
fn the_books_balance() {
    let recorded = recorded(3, 10, 400.0, MEAN);
    let summary = summary(&recorded);
    assert!(summary.validity.valid, "{:?}", summary.validity);
    let counts = &summary.requests;
    assert_eq!(counts.planned, recorded.total.planned);
    assert_eq!(counts.sent, counts.answered + counts.errors);
    assert_eq!(summary.latency.intended.count, counts.answered);
    assert_eq!(summary.statuses.values().sum::<u64>(), counts.answered);
    assert_eq!(
        summary.errors.iter().map(|error| error.count).sum::<u64>(),
        counts.errors
    );
    let slots = &summary.timeline;
    assert_eq!(slots.len(), 10);
    assert_eq!(slots.iter().map(|slot| slot.sent).sum::<u64>(), counts.sent);
    let failed: u64 = slots.iter().map(|slot| slot.failed).sum();
    assert_eq!(failed, counts.refused + counts.errors);
    let heat: u64 = slots
        .iter()
        .flat_map(|slot| &slot.heat)
        .map(|(_, count)| count)
        .sum();
    assert_eq!(heat, counts.answered);
    assert!((summary.rate.sent - counts.sent as f64 / 10.0).abs() < 1e-9);
    assert_eq!(summary.arrivals, "poisson 400/s");
    assert_eq!(
        (summary.generator.threads, summary.generator.workers),
        (2, 1)
    );
}

#[test]
fn intended_and_actual_stand_apart() {
    let summary = summary(&recorded(3, 10, 400.0, MEAN));
    let p50 = summary.latency.actual.p50.unwrap();
    assert!(
        (p50 / (MEAN.as_secs_f64() * std::f64::consts::LN_2) - 1.0).abs() < 0.1,
        "{p50}"
    );
    assert!(summary.latency.intended.mean > summary.latency.actual.mean);
}

#[test]
fn a_percentile_needs_ten_samples_beyond_it() {
    let mut histogram = Histogram::new();
    let with = |histogram: &Histogram| Distribution::from(histogram);
    assert_eq!(with(&histogram), Distribution::default());
    histogram.record_n(Duration::from_millis(1), 99);
    assert_eq!(with(&histogram).p90, None);
    histogram.record_n(Duration::from_millis(2), 1);
    let distribution = with(&histogram);
    assert_eq!(distribution.p90, Some(0.001));
    assert_eq!(distribution.p99, None);
    assert_eq!(distribution.max, Some(0.002));
    histogram.record_n(Duration::from_millis(1), 99_900);
    assert_eq!(with(&histogram).p9999, Some(0.001));
}

/// The number of the result is that of the objective, whoever had no answer.
#[test]
fn a_percentile_is_the_same_whoever_tells_it() {
    let mut recorded = recorded(3, 10, 400.0, MEAN);
    let answered = recorded.total.requests().answered;
    for lost in [0, 1, answered / 30, answered * 2] {
        recorded.total.kinds[0].errors.clear();
        (0..lost).for_each(|_| recorded.total.kinds[0].fail(Phase::Timeout, "timeout"));
        let told = summary(&recorded).latency;
        let terms: Vec<String> = Statistic::ALL
            .iter()
            .flat_map(|(name, _)| [format!("{name} < 1h"), format!("actual {name} < 1h")])
            .collect();
        let mut judged = Vec::new();
        for terms in terms.chunks(crate::Slo::MOST_TERMS) {
            let slo = crate::Slo::parse(&terms.join(", ")).unwrap();
            judged.extend(slo.judge(&recorded).measured);
        }
        let mut judged = judged.iter();
        for (name, statistic) in Statistic::ALL {
            for mut told in [told.intended.clone(), told.actual.clone()] {
                let seen = judged.next().unwrap();
                let value = match told.lost(name) {
                    true => Some(f64::INFINITY),
                    false => *told.number(statistic),
                };
                let expected = seen.holds.and(seen.value);
                assert_eq!(value, expected, "{name}, {lost} lost");
            }
        }
    }
}

#[test]
fn a_warm_up_that_was_asked_for_is_left_out_and_shown() {
    let recorded = recorded(3, 10, 400.0, MEAN);
    let after = |seconds| {
        let warm_up = WarmUp::Fixed(Duration::from_secs(seconds));
        Summary::of(warm_up, "load", URL, &workload(&["a"]), &recorded).unwrap()
    };
    let cut = after(3);
    assert_eq!((cut.steady.from_s, cut.steady.to_s), (3.0, 10.0));
    assert_eq!((cut.steady.state.as_str(), cut.warm_up_s), ("asked", 3.0));
    assert_eq!(cut.timeline.len(), 10);
    let kept = &recorded.timeline.spans()[3..];
    let kept: u64 = kept.iter().map(|span| span.kinds[0].answered).sum();
    assert_eq!(cut.latency.intended.count, kept);
    // Counts, failures and rates are of all of it.
    let whole = summary(&recorded);
    assert_eq!((&cut.requests, &cut.rate), (&whole.requests, &whole.rate));
    assert_eq!(
        (&cut.errors, &cut.statuses),
        (&whole.errors, &whole.statuses)
    );
    let part = cut.steady.numbers.unwrap();
    let sent: u64 = cut.timeline[3..].iter().map(|slot| slot.sent).sum();
    assert_eq!(part.requests.sent, sent);
    assert!((part.rate.sent - sent as f64 / 7.0).abs() < 1e-9);
    // Longer than the load: nothing is left out, and the result says so.
    let all = after(30);
    assert_eq!((all.steady.state.as_str(), all.warm_up_s), ("short", 0.0));
    assert_eq!(all.latency, whole.latency);
    let none = Summary::of(WarmUp::None, "load", URL, &workload(&["a"]), &recorded).unwrap();
    assert_eq!(
        (none.steady.state.as_str(), none.latency),
        ("whole", whole.latency)
    );
}

#[test]
fn a_ramp_is_told_whole() {
    let mut recorded = recorded(3, 10, 400.0, MEAN);
    recorded.segment.model = Model::Open(Arrivals::Rate {
        process: Process::Constant,
        shape: Shape::Ramp {
            from: 300.0,
            to: 500.0,
            over: Duration::from_secs(10),
        },
    });
    let summary = summary(&recorded);
    assert_eq!(summary.steady.state, "ramp");
    assert_eq!(summary.requests.planned, recorded.total.planned);
}

#[test]
fn a_closed_loop_is_labelled_and_has_no_asked_rate() {
    let mut recorded = recorded(3, 10, 400.0, MEAN);
    recorded.segment.model = Model::Closed {
        think: Duration::from_millis(20),
    };
    let summary = summary(&recorded);
    assert_eq!(summary.model, "closed");
    assert_eq!(summary.arrivals, "16 users, thinking 20ms");
    assert_eq!(summary.rate.asked, None);
}

#[test]
fn waiting_for_the_last_answers_is_not_sending() {
    let mut recorded = recorded(3, 10, 400.0, MEAN);
    let before = summary(&recorded);
    let mut late = Span::empty(1);
    late.after_end = true;
    (late.start, late.length) = (Duration::from_secs(10), Duration::from_secs(4));
    late.kinds[0].answered = 500;
    late.kinds[0].intended.record_n(Duration::from_secs(3), 500);
    late.kinds[0].fail(Phase::Timeout, "timeout");
    recorded.total.append(&late);
    recorded.timeline.push(late);
    let summary = summary(&recorded);
    assert_eq!((summary.steady.to_s, summary.sending_s), (10.0, 10.0));
    assert_eq!(summary.duration_s, 14.0);
    // What came late counts, and is in no rate.
    assert_eq!(summary.rate, before.rate);
    assert_eq!(summary.requests.answered, before.requests.answered + 500);
    assert!(summary.latency.intended.p95 >= Some(2.9));
    assert!(summary.latency.intended.lost("max"));
    let after = AfterEnd {
        length_s: 4.0,
        sent: 0,
        answered: 500,
        good: 500,
        failed: 1,
    };
    assert_eq!(summary.after_end, after);
    let slot = summary.timeline.last().unwrap();
    assert!(slot.after_end && slot.length_s == 4.0);
}

#[test]
fn the_share_of_failures_has_one_definition() {
    let mut recorded = recorded(3, 10, 400.0, MEAN);
    let kind = &mut recorded.total.kinds[0];
    *kind = crate::recording::Recording::default();
    (kind.sent, kind.answered) = (80, 70);
    for _ in 0..10 {
        kind.fail(Phase::Read, "reset");
        kind.fail(Phase::Connect, "refused");
        kind.refuse("status 200");
    }
    for _ in 0..10 {
        recorded.total.kinds[0].fail(Phase::Connect, crate::recording::NONE_FREE);
    }
    let summary = summary(&recorded);
    let counts = &summary.requests;
    assert_eq!((counts.tried, counts.failed), (100, 40));
    assert_eq!(counts.failed_share, Some(0.4));
    let judged = crate::Slo::parse("errors < 1%").unwrap().judge(&recorded);
    assert_eq!(judged.measured[0].value, counts.failed_share);
    // An older result has what was not stored worked out.
    let mut older = summary.clone();
    older.schema = 1;
    (older.requests.tried, older.requests.failed) = (0, 0);
    older.read_from_older();
    assert_eq!((older.requests.tried, older.requests.failed), (100, 40));
    let note = older
        .notes
        .iter()
        .any(|note| note.contains("without an answer"));
    assert!(note, "{:?}", older.notes);
}

#[test]
fn a_load_of_redirects_says_so_and_one_of_pages_does_not() {
    let with = |redirects: u64, status: u16| {
        let mut recorded = recorded(3, 10, 400.0, MEAN);
        let kind = &mut recorded.total.kinds[0];
        kind.answered = 1000;
        kind.statuses = [(200, 1000 - redirects), (status, redirects)].into();
        kind.redirect = Some("/login".to_owned());
        summary(&recorded).notes
    };
    assert_eq!(
        with(1000, 302),
        [
            "all answers were redirects (302 to /login): they are not followed, so the load \
          measured the redirect"
        ]
    );
    assert!(with(600, 308)[0].starts_with("60 % of the answers were redirects (308 to /login)"));
    for (redirects, status) in [(0, 302), (400, 302), (1000, 304), (1000, 204)] {
        assert_eq!(with(redirects, status), [""; 0]);
    }
}

#[test]
fn what_the_generator_knows_is_a_note() {
    let mut recorded = recorded(3, 10, 400.0, MEAN);
    recorded.notes = vec!["connections went elsewhere".to_owned()];
    assert_eq!(summary(&recorded).notes, ["connections went elsewhere"]);
}

#[test]
fn statuses_of_grpc_have_their_names() {
    let mut recorded = recorded(3, 10, 400.0, MEAN);
    recorded.total.kinds[0].statuses = [(0, 3), (14, 5), (99, 1)].into();
    let mut workload = workload(&["a"]);
    let names = |workload: &crate::Workload| {
        let summary = Summary::of(WarmUp::Auto, "load", URL, workload, &recorded).unwrap();
        summary.status_names
    };
    assert!(names(&workload).is_empty());
    workload.target.protocol = crate::Protocol::Grpc;
    let expected = [(0, "OK"), (14, "UNAVAILABLE")];
    assert_eq!(
        names(&workload),
        expected.map(|(code, name)| (code, name.to_owned())).into()
    );
}

#[test]
fn a_rate_that_was_found_is_told_without_its_noise() {
    for (rate, told) in [
        (1_000.000_003_7, "1000/s"),
        (123_456.0, "123456/s"),
        (0.25, "0.25/s"),
    ] {
        let mut recorded = recorded(3, 10, 400.0, MEAN);
        recorded.segment.model = Model::Open(Arrivals::Rate {
            process: Process::Constant,
            shape: Shape::Constant(rate),
        });
        assert_eq!(summary(&recorded).arrivals, format!("constant {told}"));
    }
}

#[test]
fn several_kinds_are_told_apart() {
    let mut recorded = recorded(3, 10, 400.0, MEAN);
    let other = recorded.total.kinds[0].clone();
    recorded.total.kinds.push(other);
    let summary = Summary::of(
        WarmUp::Auto,
        "load",
        URL,
        &workload(&["get", "put"]),
        &recorded,
    )
    .unwrap();
    let names: Vec<_> = summary
        .kinds
        .iter()
        .map(|kind| kind.name.as_str())
        .collect();
    assert_eq!(names, ["get", "put"]);
    let sent: u64 = summary.kinds.iter().map(|kind| kind.requests.sent).sum();
    assert_eq!(sent, summary.requests.sent);
}

#[test]
fn nothing_at_all_has_no_numbers_and_no_mistakes() {
    let mut recorded = recorded(3, 1, 400.0, MEAN);
    recorded.total = Span::empty(1);
    recorded.timeline = Timeline::default();
    recorded.cut = Some("interrupted".into());
    let summary = summary(&recorded);
    assert_eq!(summary.latency.intended, Distribution::default());
    assert_eq!(summary.rate.sent, 0.0);
    assert_eq!(summary.partial.as_deref(), Some("interrupted"));
    let json = serde_json::to_string(&summary).unwrap();
    assert_eq!(serde_json::from_str::<Summary>(&json).unwrap(), summary);
}

proptest! {
    /// A bin holds what its documented bounds say, and no answer is lost.
    #[test]
    fn heat_follows_its_bounds(us in 1u64..3_600_000_000) {
        let mut histogram = Histogram::new();
        histogram.record(Duration::from_micros(us));
        let [(bin, 1)] = heat(&histogram)[..] else {
            return Err(TestCaseError::fail("one answer, one bin"));
        };
        let from = 1e-5 * 10f64.powf(f64::from(bin) / 10.0);
        let seconds = us as f64 / 1e6;
        prop_assert!(seconds * 1.001 >= from || bin == 0, "{} {}", us, bin);
        prop_assert!(seconds * 0.999 < from * 10f64.powf(0.1) || bin == 79, "{} {}", us, bin);
    }
}
