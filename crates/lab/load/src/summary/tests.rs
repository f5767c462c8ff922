use std::time::Duration;

use measure::Histogram;
use proptest::prelude::*;

use super::*;
use crate::arrivals::{Arrivals, Process, Shape};
use crate::example::{recorded, workload};
use crate::recording::{Recorded, Span, Timeline};
use crate::segment::Model;

const URL: &str = "http://127.0.0.1:8080/";
const MEAN: Duration = Duration::from_millis(4);

fn summary(recorded: &Recorded) -> Summary {
    Summary::of("load", URL, &workload(&["a"]), recorded).unwrap()
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

#[test]
fn a_warm_up_that_was_asked_for_is_left_out_and_shown() {
    let recorded = recorded(3, 10, 400.0, MEAN);
    let after = |seconds| {
        let warm_up = WarmUp::Fixed(Duration::from_secs(seconds));
        Summary::after(warm_up, "load", URL, &workload(&["a"]), &recorded).unwrap()
    };
    let cut = after(3);
    assert_eq!((cut.steady.from_s, cut.steady.to_s), (3.0, 10.0));
    assert_eq!(cut.timeline.len(), 10);
    let kept: u64 = cut.timeline[3..].iter().map(|slot| slot.sent).sum();
    assert_eq!(cut.requests.sent, kept);
    assert!((cut.rate.sent - kept as f64 / 7.0).abs() < 1e-9);
    // Longer than the load: nothing is left out, and the result says so.
    let all = after(30);
    assert_eq!(all.steady.state, "short");
    assert_eq!(all.requests.sent, recorded.total.requests().sent);
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
    recorded.total.length = Duration::from_secs(14);
    let summary = summary(&recorded);
    assert_eq!(summary.steady.to_s, 10.0);
    assert_eq!(summary.duration_s, 14.0);
}

#[test]
fn several_kinds_are_told_apart() {
    let mut recorded = recorded(3, 10, 400.0, MEAN);
    let other = recorded.total.kinds[0].clone();
    recorded.total.kinds.push(other);
    let summary = Summary::of("load", URL, &workload(&["get", "put"]), &recorded).unwrap();
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
