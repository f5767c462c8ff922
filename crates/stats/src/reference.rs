//! The tests of this crate beside those of scipy: `data/reference.py` made the values.

use serde_json::Value;

use crate::*;

fn reference() -> Value {
    serde_json::from_str(include_str!("../data/reference.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    let values = value.as_array().unwrap();
    values.iter().map(|value| value.as_f64().unwrap()).collect()
}

fn cases<'a>(all: &'a Value, name: &str) -> &'a [Value] {
    let cases = all[name].as_array().unwrap();
    assert!(cases.len() > 7, "{name} has too few cases");
    cases
}

/// To 1e-9 of the value, or of 1 where it is larger than the value.
fn near(found: f64, expected: &Value, what: &str, case: &Value) {
    let expected = expected.as_f64().unwrap();
    let close = (found - expected).abs() <= 1e-9 * expected.abs().max(1e-3);
    assert!(close, "{what}: {found}, not {expected}, of {case}");
}

fn interval(found: &HodgesLehmann, case: &Value) {
    near(found.estimate(), &case["estimate"], "estimate", case);
    for (end, found) in [("low", found.low(0.025)), ("high", found.high(0.025))] {
        match case.get(end) {
            Some(Value::Null) => assert_eq!(found, None, "{end} of {case}"),
            Some(expected) => near(found.unwrap(), expected, end, case),
            None => {}
        }
    }
}

#[test]
fn signed_ranks_signs_and_intervals_are_those_of_scipy() {
    let all = reference();
    let mut intervals = 0;
    for case in cases(&all, "signed_rank") {
        let values = numbers(&case["values"]);
        let found = signed_rank(&values).unwrap();
        near(found.statistic, &case["statistic"], "statistic", case);
        near(found.p_value, &case["p_value"], "p_value", case);
        near(found.p_above, &case["p_above"], "p_above", case);
        if let Some(expected) = case.get("sign_flip") {
            near(sign_flip(&values, 0).unwrap(), expected, "sign_flip", case);
        }
        interval(&HodgesLehmann::of_one(&values).unwrap(), case);
        intervals += u32::from(case.get("low").is_some_and(|low| !low.is_null()));
    }
    assert!(intervals > 5);
}

#[test]
fn two_samples_are_told_apart_as_by_scipy() {
    let all = reference();
    for case in cases(&all, "mann_whitney") {
        let (a, b) = (numbers(&case["a"]), numbers(&case["b"]));
        let found = mann_whitney(&a, &b).unwrap();
        near(found.statistic, &case["statistic"], "statistic", case);
        near(found.p_value, &case["p_value"], "p_value", case);
        near(
            t_test(&a, &b, 1.0).unwrap(),
            &case["t_test"],
            "t_test",
            case,
        );
        interval(&HodgesLehmann::of_two(&a, &b).unwrap(), case);
    }
}

#[test]
fn distributions_are_those_of_scipy() {
    let all = reference();
    for case in cases(&all, "normal_quantile") {
        near(
            normal_quantile(case[0].as_f64().unwrap()),
            &case[1],
            "quantile",
            case,
        );
    }
    for case in cases(&all, "normal_probability") {
        let found = normal_probability(case[0].as_f64().unwrap());
        let expected = case[1].as_f64().unwrap();
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} of {case}");
    }
    for case in cases(&all, "student_tail") {
        let found = student_tail(case[0].as_f64().unwrap(), case[1].as_f64().unwrap());
        let expected = case[2].as_f64().unwrap();
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} of {case}");
    }
    for case in cases(&all, "student_quantile") {
        let found = student_quantile(case[0].as_f64().unwrap(), case[1].as_f64().unwrap());
        near(found, &case[2], "quantile", case);
    }
}
