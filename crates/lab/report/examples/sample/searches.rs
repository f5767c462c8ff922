//! Made-up searches for a limit.

use lab_load::knee::{Capacity, Estimate, Point, Usl};

use crate::model::Dice;

fn estimate(rate: f64, spread: f64) -> Estimate {
    Estimate {
        rate,
        low: rate * (1.0 - spread),
        high: rate * (1.0 + spread),
        confidence: 0.9,
    }
}

/// A search that found the knee of a target which saturates at `limit`.
pub(crate) fn found(dice: &mut Dice, limit: f64) -> Capacity {
    let mut point = |rate: f64, purpose: &str, invalid: bool| {
        let load = rate / limit;
        let good_rate = rate.min(limit * 1.06 - 0.15 * (rate - limit).max(0.0));
        let p50 = 0.0018 / (1.02 - load.min(1.0)).powf(0.4) * dice.around(1.0, 1.05);
        let p99 = 0.004 / (1.015 - load.min(1.0)) * dice.around(0.35, 1.15);
        Point {
            rate,
            sent: rate,
            good_rate,
            p50: Some(p50),
            p99: Some(if load > 1.0 { 0.4 * load * load } else { p99 }),
            errors: if load > 1.05 { load - 1.05 } else { 0.0 },
            in_flight: good_rate * p50,
            length_s: if purpose == "confirm" { 30.0 } else { 10.0 },
            good: load < 1.0,
            invalid: if invalid {
                vec!["steal".into()]
            } else {
                Vec::new()
            },
            purpose: purpose.into(),
        }
    };
    let mut points: Vec<Point> = [1000.0, 1500.0, 2250.0, 3375.0, 5062.0, 7593.0, 11390.0]
        .into_iter()
        .map(|rate| point(rate, "bracket", false))
        .collect();
    for (n, share) in [1.1, 0.96, 1.03, 0.985, 1.01, 0.995, 0.99, 1.005]
        .into_iter()
        .enumerate()
    {
        points.push(point(limit * share, "bisect", n == 2));
    }
    points.push(point(limit * 0.97, "confirm", false));
    points.push(point(limit * 1.03, "confirm", false));
    Capacity {
        slo: "p99 < 100ms, errors < 0.1%".into(),
        points,
        knee: Some(estimate(limit, 0.018)),
        physical: Some(estimate(limit * 1.06, 0.02)),
        limit: "target".into(),
        note: "Confirmed by a hold of 30 s on either side.".into(),
        usl: Usl::Fit {
            lambda: 560.0,
            alpha: 0.012,
            beta: 0.0009,
            peak: Some(estimate(33.0, 0.2)),
            note: "The peak lies within what was measured.".into(),
        },
    }
}

/// A search in which no rate held.
pub(crate) fn nothing_held() -> Capacity {
    let point = |rate: f64| Point {
        rate,
        sent: rate,
        good_rate: rate,
        p50: Some(0.012),
        p99: Some(0.180),
        errors: 0.0,
        in_flight: rate * 0.012,
        length_s: 10.0,
        good: false,
        invalid: Vec::new(),
        purpose: "bracket".into(),
    };
    Capacity {
        slo: "p99 < 1ms".into(),
        points: vec![point(400.0), point(200.0), point(100.0)],
        knee: None,
        physical: None,
        limit: "none".into(),
        note: "No rate held: even at 100/s the p99 was 180 ms; loosen the objective or look at the target first.".into(),
        usl: Usl::Refused("three points are too few; five at different concurrency are needed.".into()),
    }
}
