//! Commands that end by themselves.

use super::*;

/// What a command says, and its status.
fn graph(lab: &Lab, args: &[&str]) -> (String, String, Option<i32>) {
    let output = lab.command().arg("graph").args(args).output();
    let output = output.expect("the binary");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        text(&output.stdout),
        text(&output.stderr),
        output.status.code(),
    )
}

#[test]
fn wrong_files_are_refused_with_their_place() {
    let lab = Lab::new();
    for (text, said) in [
        (
            "[services.a]\nentry = true\nsteps = [{ call = \"b\" }]",
            "graph.toml:3:",
        ),
        (
            "[services.a]\nentry = true\nstep = []",
            "did you mean \"steps\"?",
        ),
        (
            "[services.a]\nentry = true\nsteps = [{ sleep = 5 }]",
            "graph.toml:3:",
        ),
        (
            "[services.a]\nentry = true\n[services.b]\nentry = true",
            "graph.toml:",
        ),
        (
            "[services.a]\nentry = true\nsteps = [{ call = \"b\" }]\n[services.b]\nsteps = [{ call = \"a\" }]",
            "cycle",
        ),
        ("[services.a\n", "graph.toml:1:"),
    ] {
        let file = lab.write("graph.toml", text).display().to_string();
        for args in [
            vec!["check", &file],
            vec!["up", &file, "--admin", "127.0.0.1:0"],
        ] {
            let (_, errors, status) = graph(&lab, &args);
            assert_eq!(status, Some(4), "{text}");
            assert!(errors.contains(said), "{text}: {errors}");
        }
    }
    let (_, errors, status) = graph(&lab, &["check", "not-there.toml"]);
    assert_eq!(status, Some(4));
    assert!(errors.contains("not-there.toml"), "{errors}");
}

#[test]
fn a_check_says_what_to_expect() {
    let lab = Lab::new();
    let slow = CHAIN.replace(
        "[services.bleaf]",
        "[services.bleaf]\nsteps = [{ sleep = \"5ms\" }]",
    );
    let file = lab.write("graph.toml", &slow).display().to_string();
    let (text, _, status) = graph(&lab, &["check", &file]);
    assert_eq!(status, Some(0));
    assert!(
        text.contains("3 services, 2 edges") && text.contains("/: p50 5"),
        "{text}"
    );
    let (text, _, _) = graph(&lab, &["check", &file, "--json", "--hop", "1ms"]);
    let found: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(found["budgets"][0]["client"]["p50"], 8_000_000);
}

#[test]
fn a_check_says_what_cannot_keep_up_with_a_rate() {
    let lab = Lab::new();
    let busy = CHAIN.replace(
        "[services.bleaf]",
        "[services.bleaf]\nsteps = [{ cpu = \"20ms\" }]",
    );
    let file = lab.write("graph.toml", &busy).display().to_string();
    let (_, errors, status) = graph(&lab, &["check", &file, "--rate", "1/s"]);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    // A hundred thousand processors' worth.
    let (_, errors, status) = graph(&lab, &["check", &file, "--rate", "5000000/s"]);
    assert_eq!(status, Some(0), "{errors}");
    for said in ["the work of all services", "the work of \"bleaf\""] {
        assert!(errors.contains(said), "{errors}");
    }
}

#[test]
fn values_are_put_into_a_file() {
    let lab = Lab::new();
    let file = lab.write("graph.toml", CHAIN).display().to_string();
    let check = |set: &[&str]| {
        let mut args = vec!["check", &file];
        args.extend(set.iter().flat_map(|one| ["--set", one]));
        graph(&lab, &args)
    };
    let slow = "services.bleaf.latency=5ms";
    let (text, errors, status) = check(&[slow, "services.bbranch.steps.0.count=2"]);
    assert_eq!(status, Some(0), "{errors}");
    assert!(text.contains("/: p50 5"), "{text}");
    for (set, said) in [
        ("services.bleaf.latency=5", "needs a unit"),
        (
            "services.broot.steps.7.count=2",
            "expected a place in the list, 0 to 0",
        ),
        ("services.blaef.replicas=2", "did you mean \"bleaf\"?"),
        ("seed", "expected PATH=VALUE"),
    ] {
        let (_, errors, status) = check(&[set]);
        assert_eq!(status, Some(4), "{errors}");
        assert!(errors.contains(said), "{errors}");
    }
}

#[test]
fn a_machine_that_is_too_noisy_is_refused() {
    let lab = Lab::new();
    let (text, errors, status) = graph(&lab, &["noise", "--for", "200ms", "--most-late", "1ns"]);
    assert_eq!(status, Some(3), "{text} {errors}");
    assert!(errors.contains("--most-late allows 1 ns"), "{errors}");
    let (_, errors, status) = graph(&lab, &["noise", "--for", "200ms", "--most-lost", "100%"]);
    assert_eq!(status, Some(0), "{errors}");
}

#[test]
fn the_file_of_the_documentation_is_right() {
    let lab = Lab::new();
    let text = include_str!("../../../docs/graph.md");
    let example = text
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let file = lab.write("graph.toml", example.expect("an example"));
    let (text, errors, status) = graph(&lab, &["check", &file.display().to_string()]);
    assert_eq!(status, Some(0), "{errors}");
    assert!(
        errors.is_empty() && text.contains("4 services"),
        "{text} {errors}"
    );
}

#[test]
fn shapes_are_made_that_can_run() {
    let lab = Lab::new();
    for (shape, services) in [
        (&["chain", "3"][..], 3),
        (&["tree", "3", "2"], 7),
        (&["random", "50", "--seed", "7"], 50),
    ] {
        let mut args = vec!["generate"];
        args.extend(shape);
        let (text, errors, status) = graph(&lab, &args);
        assert_eq!(status, Some(0), "{errors}");
        let file = lab.write("made.toml", &text).display().to_string();
        let (checked, errors, status) = graph(&lab, &["check", &file]);
        assert_eq!(status, Some(0), "{errors}");
        assert!(
            checked.contains(&format!("{services} services")),
            "{checked}"
        );
    }
}

#[test]
fn the_spans_of_a_graph_are_analysed_compared_and_imported() {
    let lab = Lab::new();
    let running = Graph::up(&lab, &lab.write("graph.toml", CHAIN), &[]);
    let (address, admin) = running.ready();
    for _ in 0..120 {
        assert_eq!(ask(&address, "/").status, 200);
    }
    let url = format!("http://{admin}");
    let spans = lab.path("spans.json").display().to_string();
    until("all traces", || {
        let args = ["analyse", &url, "--path", "/", "--save", &spans, "--json"];
        let (text, errors, status) = graph(&lab, &args);
        assert_eq!(status, Some(0), "{errors}");
        let found: Value = serde_json::from_str(&text).expect("JSON");
        assert!(found["graph"]["deployment"]["machine"]["kernel"].is_string());
        let fields = ["seed", "fingerprint", "revision", "instances"];
        assert!(fields.iter().all(|field| !found["graph"][field].is_null()));
        let withheld = found["latency"]["p99_ns"].is_null();
        assert!(withheld, "120 requests give no p99");
        found["counts"]["analysed"] == 120
    });
    let (text, _, _) = graph(&lab, &["analyse", &url, "--last", "10"]);
    assert!(text.contains("10 requests"), "{text}");
    assert!(text.contains("Of `chain`: profile "), "{text}");
    let (text, errors, status) = graph(&lab, &["analyse", &spans]);
    assert_eq!(status, Some(0), "{errors}");
    assert!(text.contains("p50"), "{text}");
    let (text, _, status) = graph(&lab, &["compare", "--a", &spans, "--b", &spans]);
    assert_eq!(status, Some(0));
    assert!(text.contains("no difference resolvable"), "{text}");
    let (text, errors, status) = graph(&lab, &["import", "spans", &spans]);
    assert_eq!(status, Some(0), "{errors}");
    let imported = lab.write("imported.toml", &text).display().to_string();
    let (text, errors, _) = graph(&lab, &["check", &imported]);
    assert!(text.contains("3 services, 2 edges"), "{text} {errors}");
    let (_, errors, status) = graph(&lab, &["analyse", "http://127.0.0.1:1"]);
    assert_eq!(status, Some(4));
    assert!(errors.contains("does it run?"), "{errors}");
}

#[test]
fn manifests_are_printed() {
    let lab = Lab::new();
    let file = lab.write("graph.toml", CHAIN).display().to_string();
    let (text, errors, status) = graph(
        &lab,
        &["kubernetes", &file, "--image", "example/headroom:1"],
    );
    assert_eq!(status, Some(0), "{errors}");
    let count = |what: &str| text.lines().filter(|line| *line == what).count();
    assert_eq!(
        (
            count("kind: Deployment"),
            count("kind: Service"),
            count("kind: ConfigMap")
        ),
        (3, 3, 1)
    );
}

#[test]
fn the_noise_of_the_machine_is_measured() {
    let lab = Lab::new();
    let (text, errors, status) = graph(&lab, &["noise", "--for", "200ms", "--json"]);
    assert_eq!(status, Some(0), "{errors}");
    let found: Value = serde_json::from_str(&text).expect("JSON");
    assert!(
        found["gaps"][0]["seen_ns"]
            .as_u64()
            .is_some_and(|seen| seen > 0),
        "{text}"
    );
}
