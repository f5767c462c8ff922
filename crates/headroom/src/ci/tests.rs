use lab_report::sweep::SweepRun;
use lab_store::Expectation;
use saphyr::{LoadableYamlNode, Yaml};

use super::workflow::filled;
use super::*;

fn result() -> CiResult {
    let expectation = |that: &str, outcome, note: &str| Expectation {
        that: that.into(),
        measured: "20 ms".into(),
        values: std::collections::BTreeMap::new(),
        units: std::collections::BTreeMap::new(),
        outcome,
        note: note.into(),
    };
    let verdict = Verdict {
        outcome: Outcome::Fail,
        reason: None,
        duration_s: 1.5,
        expectations: vec![
            expectation("a < 1 | b", Outcome::Pass, ""),
            expectation("c \"<&>\"", Outcome::Fail, "\u{1b}[31m]]> & more"),
            expectation("d", Outcome::Inconclusive, "too few"),
            expectation("e", Outcome::Invalid, "late"),
        ],
        probes: Vec::new(),
        left_out: Vec::new(),
        notes: Vec::new(),
    };
    CiResult::of_run("web", &verdict)
}

/// Names of elements with their attributes, in order.
fn elements(xml: &str) -> Vec<(String, Vec<(String, String)>)> {
    use quick_xml::events::Event;
    let mut reader = quick_xml::Reader::from_str(xml);
    let mut found = Vec::new();
    loop {
        match reader.read_event().unwrap() {
            Event::Eof => return found,
            Event::Start(start) | Event::Empty(start) => {
                let name = start.name().as_ref().to_owned();
                let attributes = start.attributes().map(|attribute| {
                    let attribute = attribute.unwrap();
                    let key = attribute.key.as_ref().to_owned();
                    let value = quick_xml::escape::unescape(&attribute.value).unwrap();
                    let value = value.into_owned();
                    (key, value)
                });
                found.push((name, attributes.collect()));
            }
            _ => {}
        }
    }
}

#[test]
fn junit_is_read_back() {
    let xml = junit::xml(&result()).unwrap();
    let found = elements(&xml);
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "testsuites",
            "testsuite",
            "testcase",
            "testcase",
            "failure",
            "testcase",
            "skipped",
            "testcase",
            "error"
        ]
    );
    let suite: std::collections::BTreeMap<String, String> = found[1].1.iter().cloned().collect();
    for (name, value) in [
        ("tests", "4"),
        ("failures", "1"),
        ("errors", "1"),
        ("skipped", "1"),
    ] {
        assert_eq!(suite[name], value);
    }
    assert!(
        found[3].1.contains(&("name".into(), "c \"<&>\"".into())),
        "{xml}"
    );
    let message = ("message".into(), "\\u{1b}[31m]]> & more".into());
    assert!(found[4].1.contains(&message), "{xml}");
}

#[test]
fn what_was_left_out_is_skipped_and_no_part_of_what_held() {
    let left_out = lab_store::OmittedExpectation {
        that: "'theirs': load p99 < 1s".into(),
        why: "nginx is not installed".into(),
    };
    let verdict = Verdict {
        outcome: Outcome::Inconclusive,
        reason: None,
        duration_s: 1.5,
        expectations: Vec::new(),
        left_out: vec![left_out.clone(), left_out],
        probes: Vec::new(),
        notes: Vec::new(),
    };
    let result = CiResult::of_run("web", &verdict);
    let found = elements(&junit::xml(&result).unwrap());
    let suite: std::collections::BTreeMap<String, String> = found[1].1.iter().cloned().collect();
    for (name, value) in [
        ("tests", "2"),
        ("failures", "0"),
        ("errors", "0"),
        ("skipped", "2"),
    ] {
        assert_eq!(suite[name], value, "{name}");
    }
    let message = ("message".into(), "nginx is not installed".into());
    assert_eq!(found[3], ("skipped".to_owned(), vec![message]));
    let text = markdown::table(&result);
    let head = "### ? web: inconclusive\n\n0 of 0 expectations held, 2 left out\n";
    assert!(text.starts_with(head), "{text}");
    assert!(
        text.contains("| 'theirs': load p99 \\< 1s |  | – left out |\n"),
        "{text}"
    );
    assert!(text.contains("- nginx is not installed\n"), "{text}");
}

#[test]
fn a_sweep_has_a_case_for_each_setting_and_expectation() {
    let verdict = |outcome, reason: Option<&str>| Verdict {
        outcome,
        reason: reason.map(str::to_owned),
        duration_s: 1.0,
        expectations: ["a < 1", "b < 2"]
            .map(|that| Expectation {
                that: that.into(),
                measured: "3".into(),
                values: std::collections::BTreeMap::new(),
                units: std::collections::BTreeMap::new(),
                outcome,
                note: String::new(),
            })
            .into(),
        left_out: Vec::new(),
        probes: Vec::new(),
        notes: Vec::new(),
    };
    let run = |setting, outcome, reason| SweepRun {
        setting,
        folder: "web-1".into(),
        verdict: verdict(outcome, reason),
    };
    let mut sweep = SweepRecord {
        name: "web".into(),
        seed: 1,
        over: vec!["rate".into()],
        settings: vec![vec!["10/s".into()], vec!["20/s".into()]],
        times: 1,
        runs: vec![run(1, Outcome::Fail, None), run(0, Outcome::Pass, None)],
        answer: None,
    };
    let result = CiResult::of_sweep(&sweep, 2.0);
    let names: Vec<&str> = result.cases.iter().map(|case| case.name.as_str()).collect();
    let each = [
        "rate=10/s: a < 1",
        "rate=10/s: b < 2",
        "rate=20/s: a < 1",
        "rate=20/s: b < 2",
    ];
    assert_eq!(names, each);
    let failed = |result: &CiResult| {
        let found = elements(&junit::xml(result).unwrap());
        found.iter().filter(|(name, _)| name == "failure").count()
    };
    assert_eq!((failed(&result), result.outcome), (2, Outcome::Fail));
    assert_eq!(result.sentence, "1 of 2 runs passed, 2 planned");
    // Runs of the same setting are told apart, and one that could not be made has a case.
    sweep.times = 2;
    let mut broken = run(0, Outcome::Error, Some("no such program"));
    broken.verdict.expectations.clear();
    sweep.runs.push(broken);
    let result = CiResult::of_sweep(&sweep, 2.0);
    let broken = &result.cases[2];
    assert_eq!(broken.name, "rate=10/s, run 2: the run comes to its end");
    assert_eq!(broken.text, "no such program");
    // A search is not failed by the runs that it needs.
    sweep.answer = Some(SweepAnswer {
        text: "rate holds at 10/s, fails at 20/s".into(),
        outcome: Outcome::Pass,
    });
    let result = CiResult::of_sweep(&sweep, 2.0);
    assert_eq!((failed(&result), result.outcome), (0, Outcome::Pass));
    assert_eq!(result.cases.len(), 1);
    // Of no runs nothing is claimed.
    (sweep.answer, sweep.runs) = (None, Vec::new());
    let result = CiResult::of_sweep(&sweep, 2.0);
    assert_eq!((result.cases.len(), result.outcome), (0, Outcome::Error));
}

#[test]
fn markdown_has_a_row_for_each_and_stays_one_table() {
    let text = markdown::table(&result());
    assert!(
        text.starts_with("### ✗ web: fail\n\n1 of 4 expectations held\n"),
        "{text}"
    );
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 6, "{text}");
    assert_eq!(rows[2], r"| a \< 1 \| b | 20 ms | ✓ pass |");
    assert!(text.contains("- too few\n"), "{text}");
}

#[test]
fn the_workflow_is_yaml_whatever_the_commands() {
    let args = GithubArgs {
        source: "https://example.com/headroom.git".into(),
        build: "make all && echo 'x: y'".into(),
        run: "./bench --name 'a b' # {}".into(),
        limit: "3%".into(),
    };
    let text = filled(&args).unwrap();
    let yaml = Yaml::load_from_str(&text).unwrap();
    let steps = &yaml[0]["jobs"]["gate"]["steps"];
    let build = steps[2]["run"].as_str().unwrap();
    assert!(build.contains("make all && echo 'x: y'\n"), "{build}");
    let gate = steps[3]["run"].as_str().unwrap();
    assert!(
        gate.contains(r"--new './bench --name '\''a b'\'' # {}' --limit 3%"),
        "{gate}"
    );
    let install = steps[1]["run"].as_str().unwrap();
    assert!(
        install
            .ends_with("cargo install --locked --git 'https://example.com/headroom.git' headroom"),
        "{install}"
    );
    // Nothing is left for whoever puts it into a repository: every variable is one of the server.
    let variables = text.split('$').skip(1);
    for variable in variables.filter(|text| !text.starts_with(['(', '?'])) {
        let name: String = variable.trim_start_matches('{').chars().take(7).collect();
        assert!(name == "GITHUB_" || name.starts_with("code"), "{name}");
    }
    let wrong = [
        ("https://example.com/headroom.git", "a\nb"),
        ("", "make"),
        ("two words", "make"),
    ];
    for (source, build) in wrong {
        let args = GithubArgs {
            source: source.into(),
            build: build.into(),
            run: args.run.clone(),
            limit: args.limit.clone(),
        };
        assert!(filled(&args).is_err(), "{source} {build}");
    }
}

#[test]
fn a_picture_is_shown_by_its_address_whatever_is_in_it() {
    let picture = Some("https://ci.example.com/a b>\n<c\\.png".to_owned());
    let text = markdown::table(&CiResult {
        picture,
        ..result()
    });
    let link = "![the changes](<https://ci.example.com/a b%3E%3Cc%5C.png>)\n\n| ";
    assert!(text.contains(link), "{text}");
    assert!(!markdown::table(&result()).contains("!["));
}
