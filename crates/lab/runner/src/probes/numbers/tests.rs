use super::*;

fn one(t_s: f64, value: Option<f64>, error: &str) -> ProbeSample {
    ProbeSample {
        t_s,
        probe: "p".into(),
        latency_s: 0.01 * (t_s + 1.0),
        value,
        error: error.into(),
        ..ProbeSample::default()
    }
}

fn text(t_s: f64, text: &str) -> ProbeSample {
    ProbeSample {
        text: text.into(),
        ..one(t_s, None, "")
    }
}

fn event(t_s: f64, kind: EventKind, name: &str) -> Event {
    Event {
        t_s,
        kind,
        name: name.into(),
        text: String::new(),
    }
}

fn tried(samples: Vec<ProbeSample>) -> Tried {
    let events = [
        event(0.0, EventKind::StepStarted, "a"),
        event(2.0, EventKind::StepEnded, "a"),
        event(2.0, EventKind::StepStarted, "b"),
    ];
    Tried::new(samples, &events)
}

#[test]
fn numbers_are_those_of_the_tries_that_a_step_began() {
    let tried = tried(vec![
        one(3.0, Some(5.0), ""),
        one(0.0, Some(1.0), ""),
        one(1.0, None, "refused"),
        one(2.0, Some(3.0), ""),
    ]);
    let of = |step: Option<&str>, number: ProbeNumber| tried.value(step, "p", &number);
    assert_eq!(of(None, ProbeNumber::Ok), Some(0.75));
    assert_eq!(of(Some("a"), ProbeNumber::Ok), Some(0.5));
    assert_eq!(of(Some("b"), ProbeNumber::Ok), Some(1.0));
    assert_eq!(of(None, ProbeNumber::Value(Stat::Last)), Some(5.0));
    assert_eq!(of(None, ProbeNumber::Value(Stat::Mean)), Some(3.0));
    assert_eq!(of(Some("a"), ProbeNumber::Value(Stat::Max)), Some(1.0));
    assert_eq!(of(None, ProbeNumber::Latency(Stat::Max)), Some(0.04));
    assert_eq!(of(None, ProbeNumber::Skipped), Some(0.0));
    assert_eq!(of(Some("none"), ProbeNumber::Ok), None);
    assert_eq!(tried.value(None, "q", &ProbeNumber::Ok), None);
}

#[test]
fn a_text_is_compared_with_every_answer_and_a_number_by_its_value() {
    let tried = tried(vec![
        text(0.0, "v2"),
        text(1.0, "v3"),
        one(2.0, Some(3.0), ""),
        one(3.0, None, "x"),
    ]);
    let share =
        |step: Option<&str>, text: &str| tried.value(step, "p", &ProbeNumber::Is(text.into()));
    assert_eq!(share(Some("a"), "v3"), Some(0.5));
    assert_eq!(share(Some("b"), "3.0"), Some(1.0));
    assert_eq!(share(None, "v4"), Some(0.0));
}

#[test]
fn true_is_what_an_answer_says_by_it() {
    let tried = tried(vec![one(0.0, Some(1.0), ""), one(1.0, Some(0.0), "")]);
    let share = |text: &str| tried.value(None, "p", &ProbeNumber::Is(text.into()));
    assert_eq!(share("true"), Some(0.5));
    assert_eq!(share("false"), Some(0.5));
    assert_eq!(share("yes"), Some(0.0));
}

#[test]
fn a_probe_that_was_never_answered_says_so_and_another_does_not() {
    let text = r#"
lab = 1
name = "t"
[[probe]]
name = "p"
tcp = "tcp://127.0.0.1:1"
[[probe]]
name = "late"
tcp = "tcp://127.0.0.1:1"
[[step]]
name = "a"
hold = "1s"
"#;
    let source = lab_experiment::Source {
        name: "t".into(),
        text: text.into(),
    };
    let plan = lab_experiment::check(&source, &[], &Default::default()).unwrap();
    let never = tried(vec![one(0.5, None, "refused"), one(1.5, None, "gone")]);
    let silent = never.silent(&plan);
    assert!(
        silent[0].starts_with("probe p: never answered, 2 tries in 1.0"),
        "{silent:?}"
    );
    assert!(silent[0].ends_with("the last failed: gone"), "{silent:?}");
    assert!(silent[1].contains("late: no try had ended"), "{silent:?}");
    assert_eq!(never.value(None, "p", &ProbeNumber::Value(Stat::Max)), None);
    assert!(never.why(None, "p").contains("gone"));
    let once = tried(vec![one(0.5, None, "refused"), one(1.5, None, "")]);
    assert_eq!(once.silent(&plan).len(), 1, "only the one that had no try");
    let summaries = once.summaries(&plan);
    assert_eq!((summaries[0].tries, summaries[0].failed), (2, 1));
    assert_eq!(summaries[0].error, "refused");
    assert_eq!(summaries[1].tries, 0);
}
