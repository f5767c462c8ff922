use lab_load::knee::{Capacity, Estimate, Usl};
use lab_load::slo::Slo;

use super::*;

/// A result of which only what decides the outcome matters.
fn summary(valid: bool, answered: u64) -> Summary {
    let json = include_str!("summary.json");
    let mut summary: Summary = serde_json::from_str(json).unwrap();
    summary.validity.valid = valid;
    summary.partial = None;
    summary.capacity = None;
    summary.requests.answered = answered;
    summary.requests.refused = 0;
    summary
}

fn judged(holds: Option<bool>) -> Judgement {
    Judgement {
        holds,
        measured: Vec::new(),
    }
}

#[test]
fn what_was_expected_decides() {
    let good = summary(true, 100);
    for (holds, expected) in [
        (Some(true), Outcome::Pass),
        (Some(false), Outcome::Fail),
        (None, Outcome::Inconclusive),
    ] {
        assert_eq!(outcome(&good, Some(&judged(holds))), expected);
    }
    assert_eq!(outcome(&good, None), Outcome::Pass);
}

#[test]
fn an_invalid_load_is_neither_passed_nor_failed() {
    let invalid = summary(false, 100);
    for holds in [None, Some(true), Some(false)] {
        assert_eq!(outcome(&invalid, Some(&judged(holds))), Outcome::Invalid);
    }
}

#[test]
fn a_load_without_a_single_success_fails() {
    assert_eq!(outcome(&summary(true, 0), None), Outcome::Fail);
    let mut refused = summary(true, 10);
    refused.requests.refused = 10;
    assert_eq!(outcome(&refused, None), Outcome::Fail);
}

#[test]
fn an_interrupted_load_has_not_passed() {
    let mut partial = summary(true, 100);
    partial.partial = Some("interrupted".into());
    assert_eq!(
        outcome(&partial, Some(&judged(Some(true)))),
        Outcome::Inconclusive
    );
    assert_eq!(outcome(&partial, Some(&judged(Some(false)))), Outcome::Fail);
    assert_eq!(outcome(&partial, None), Outcome::Inconclusive);
}

#[test]
fn a_search_passes_with_a_knee() {
    let with = |limit: &str, knee: bool| {
        // That of the hold that is shown does not matter.
        let mut summary = summary(false, 100);
        let capacity = Capacity {
            slo: "p99 < 20ms".into(),
            points: Vec::new(),
            knee: knee.then_some(Estimate {
                rate: 1.0,
                low: 1.0,
                high: 1.0,
                confidence: 0.9,
            }),
            physical: None,
            limit: limit.into(),
            note: String::new(),
            usl: Usl::Refused(String::new()),
        };
        summary.validity = capacity.validity(summary.validity.clone());
        summary.capacity = Some(capacity);
        outcome(&summary, None)
    };
    assert_eq!(with("target", true), Outcome::Pass);
    assert_eq!(with("range", true), Outcome::Pass);
    assert_eq!(with("target", false), Outcome::Inconclusive);
    assert_eq!(with("none", false), Outcome::Fail);
    assert_eq!(with("generator", true), Outcome::Invalid);
}

#[test]
fn a_line_for_each_term() {
    let slo = Slo::parse("p99 < 20ms, errors < 0.1%").unwrap();
    let lines: Vec<String> = slo
        .terms
        .iter()
        .zip([(Some(0.034), Some(false)), (None, None)])
        .map(|(term, (value, holds))| {
            line(&Measured {
                term: *term,
                value,
                at_best: None,
                holds,
            })
        })
        .collect();
    assert_eq!(lines[0], "✗ p99 < 20ms   34 ms\n");
    assert_eq!(
        lines[1],
        "? errors < 0.1%   nothing was measured, too few requests to tell\n"
    );
}

#[test]
fn what_the_generator_may_have_turned_round_is_told_with_both_ends() {
    let slo: Slo = "p99 < 10ms".parse().unwrap();
    let measured = Measured {
        term: slo.terms[0],
        value: Some(0.015),
        at_best: Some(0.005),
        holds: None,
    };
    assert_eq!(
        line(&measured),
        "? p99 < 10ms   15 ms, or 5 ms if the generator made the difference\n"
    );
}

#[test]
fn json_has_what_was_expected_besides_the_result() {
    let slo: Slo = "p99 < 20ms".parse().unwrap();
    let measured = |value: f64| Measured {
        term: slo.terms[0],
        value: Some(value),
        at_best: None,
        holds: Some(false),
    };
    let good = summary(true, 100);
    let text = json(&good, &[measured(0.034), measured(f64::INFINITY)]).unwrap();
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told["requests"]["answered"], 100);
    assert_eq!(
        told["expectations"],
        serde_json::json!([
            {"that": "p99 < 20ms", "measured": 0.034, "holds": false},
            {"that": "p99 < 20ms", "measured": null, "holds": false},
        ])
    );
    assert!(!json(&good, &[]).unwrap().contains("\"expectations\""));
}
