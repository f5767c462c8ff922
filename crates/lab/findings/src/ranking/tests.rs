use crate::{Chart, Finding, Kind, Share, ShareOf, rank};

fn finding(kind: Kind, system: &str, low: f64, span_s: (f64, f64)) -> Finding {
    Finding {
        kind,
        system: system.to_owned(),
        part: String::new(),
        from_s: span_s.0,
        to_s: span_s.1,
        chart: Chart::Load,
        effect: Share {
            value: low + 0.1,
            low,
            high: low + 0.2,
        },
        of: ShareOf::Time,
        evidence: Vec::new(),
        sentence: String::new(),
    }
}

fn order(findings: &[(Kind, &str, f64, (f64, f64))]) -> Vec<(Kind, Option<usize>)> {
    let findings = findings.iter();
    let findings =
        findings.map(|(kind, system, low, span_s)| finding(*kind, system, *low, *span_s));
    let ranked = rank(findings.collect()).into_iter();
    ranked
        .map(|one| (one.finding.kind, one.explained_by))
        .collect()
}

#[test]
fn a_pool_explains_the_queue_before_it_and_the_retries_that_follow() {
    let found = order(&[
        (Kind::Retries, "bbs", 0.5, (20.0, 60.0)),
        (Kind::Queue, "bbs", 0.8, (10.0, 60.0)),
        (Kind::Pool, "bbs", 0.7, (5.0, 60.0)),
        (Kind::Stalls, "router", 0.1, (0.0, 60.0)),
    ]);
    let expected = [
        (Kind::Pool, None),
        (Kind::Queue, Some(0)),
        (Kind::Retries, Some(1)),
        (Kind::Stalls, None),
    ];
    assert_eq!(found, expected);
}

#[test]
fn nothing_is_explained_by_another_system_or_another_time() {
    let found = order(&[
        (Kind::Queue, "router", 0.2, (0.0, 60.0)),
        (Kind::Queue, "bbs", 0.3, (40.0, 60.0)),
        (Kind::Pool, "bbs", 0.7, (0.0, 45.0)),
    ]);
    assert_eq!(
        found,
        [(Kind::Pool, None), (Kind::Queue, None), (Kind::Queue, None)]
    );
}

#[test]
fn the_generator_comes_first_whatever_its_effect() {
    let found = order(&[
        (Kind::Pool, "bbs", 0.7, (0.0, 60.0)),
        (Kind::Generator, "traffic", 0.01, (0.0, 60.0)),
        (Kind::Queue, "bbs", 0.1, (0.0, 60.0)),
    ]);
    let expected = [
        (Kind::Generator, None),
        (Kind::Pool, None),
        (Kind::Queue, Some(1)),
    ];
    assert_eq!(found, expected);
    assert_eq!(order(&[]), []);
}
