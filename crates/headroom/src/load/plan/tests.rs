use clap::Parser;

use super::*;
use crate::cli::{Cli, Command};

fn plan(words: &[&str]) -> Result<Plan> {
    let all = ["headroom", "load"].iter().chain(words);
    let cli = Cli::try_parse_from(all).map_err(|error| anyhow!("{error}"))?;
    let Command::Load(args) = cli.command else {
        bail!("not a load");
    };
    let url = args.url.clone().unwrap_or_default();
    Plan::of(&args, &url)
}

fn good(words: &[&str]) -> Plan {
    plan(words).unwrap_or_else(|error| panic!("{words:?}: {error:#}"))
}

fn segment(plan: &Plan) -> &Segment {
    match &plan.task {
        Task::Load(segment) => segment,
        Task::Search(_) => panic!("a search"),
    }
}

const URL: &str = "http://127.0.0.1:8080/";

#[test]
fn a_url_alone_is_a_gentle_open_loop_that_says_so() {
    let plan = good(&[URL]);
    let segment = segment(&plan);
    assert_eq!(segment.model, Model::Open(Arrivals::poisson(100.0)));
    assert_eq!(segment.length.duration, Some(Duration::from_secs(10)));
    assert!(
        plan.notes[0].starts_with("no rate was asked for"),
        "{:?}",
        plan.notes
    );
    assert_eq!(plan.workload.pace, Pace::Exact);
    assert_eq!(plan.workload.mix.journeys[0].steps[0].method, "GET");
}

#[test]
fn the_examples_of_the_goal() {
    let open = good(&[URL, "--rate", "5000/s", "--duration", "30s"]);
    assert_eq!(segment(&open).model, Model::Open(Arrivals::poisson(5000.0)));
    assert!(open.notes.is_empty());
    let closed = good(&[URL, "--connections", "64", "--closed"]);
    assert!(matches!(segment(&closed).model, Model::Closed { .. }));
    assert_eq!(
        (
            closed.workload.connections.held,
            closed.workload.connections.most
        ),
        (64, 64)
    );
    assert_eq!(closed.workload.pace, Pace::Coalesce);
    let knee = good(&[
        URL,
        "--knee",
        "p99 < 20ms, errors < 0.1%",
        "--from",
        "50",
        "--each",
        "3s",
    ]);
    let Task::Search(search) = &knee.task else {
        panic!("no search");
    };
    assert_eq!((search.from, search.each), (50.0, Duration::from_secs(3)));
    let ramp = good(&[URL, "--ramp", "100/s..5000/s", "--step", "20s"]);
    assert_eq!(
        segment(&ramp).length.duration,
        Some(Duration::from_secs(200))
    );
    let ramp = good(&[URL, "--ramp", "100/s..5000/s", "-z", "40s"]);
    assert_eq!(
        segment(&ramp).length.duration,
        Some(Duration::from_secs(40))
    );
}

#[test]
fn a_rate_needs_no_unit() {
    let plan = good(&[URL, "--arrivals", "constant 500", "--expect", "rate > 400"]);
    let Model::Open(arrivals) = &segment(&plan).model else {
        panic!("a closed loop");
    };
    assert_eq!(arrivals.describe(), "constant 500/s");
    assert_eq!(plan.expect, Slo::parse("rate > 400/s").ok());
    let ramp = good(&[URL, "--ramp", "1..500", "-z", "5s"]);
    let Model::Open(arrivals) = &segment(&ramp).model else {
        panic!("a closed loop");
    };
    assert_eq!(arrivals.describe(), "poisson 1/s..500/s over 5s");
}

#[test]
fn flags_of_hey_and_oha() {
    let plan = good(&[
        URL,
        "-c64",
        "-n2000",
        "-q500",
        "-m",
        "put",
        "-H",
        "X-A: b",
        "-d",
        "hello",
        "-T",
        "text/plain",
        "-t",
        "3s",
        "--disable-keepalive",
    ]);
    assert_eq!(segment(&plan).length.requests, Some(2000));
    assert_eq!(segment(&plan).length.duration, None);
    let workload = &plan.workload;
    assert_eq!(workload.connections.held, 64);
    assert_eq!(workload.connections.requests_each, Some(1));
    assert_eq!(workload.timeout, Duration::from_secs(3));
    let step = &workload.mix.journeys[0].steps[0];
    assert_eq!(step.method, "PUT");
    assert_eq!(step.body, Body::Template("hello".into()));
    assert_eq!(step.headers.len(), 2);
    let plan = good(&[URL, "-H", "content-type: a/b", "-T", "text/plain"]);
    let step = &plan.workload.mix.journeys[0].steps[0];
    let expected = ("content-type".to_owned(), "a/b".to_owned());
    assert_eq!(step.headers, [expected], "-H goes before -T");
    assert_eq!(
        good(&[URL, "-d", "x"]).workload.mix.journeys[0].steps[0].method,
        "POST"
    );
}

#[test]
fn a_load_can_connect_elsewhere() {
    for (place, host, port) in [
        ("10.0.0.7", "10.0.0.7", 8443),
        ("10.0.0.7:81", "10.0.0.7", 81),
        ("[::1]", "::1", 8443),
        ("[::1]:81", "::1", 81),
        ("canary.example.org", "canary.example.org", 8443),
    ] {
        let plan = good(&["https://example.org:8443/", "--connect-to", place]);
        assert!(plan.notes[0].contains(place), "{:?}", plan.notes);
        let target = plan.workload.target;
        assert_eq!((target.host.as_str(), target.port), (host, port), "{place}");
        assert_eq!(target.authority, "example.org:8443");
    }
}

#[test]
fn habits_from_wrk_are_explained() {
    let error = plan(&[URL, "-d30s"]).err().unwrap().to_string();
    assert!(error.contains("did you mean -z 30s"), "{error}");
    let error = plan(&[URL, "-t4"]).err().unwrap().to_string();
    assert!(error.contains("--threads 4"), "{error}");
    // A body that looks like a time can be sent all the same.
    good(&[URL, "-d", "30s", "-m", "POST"]);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (words, expected) in [
        (vec!["htp://x/"], "did you mean \"http\"?"),
        (vec![URL, "--rate", "0"], "above 0"),
        (vec![URL, "--rate", "5x"], "such as 500/s"),
        (vec![URL, "-n", "0"], "one request or more"),
        (vec![URL, "--cpus", "a"], "write processors as in 0-1"),
        (vec![URL, "--warm-up", "later"], "or auto, or none"),
        (
            vec![URL, "--arrivals", "5/s", "--rate", "5"],
            "has a rate already",
        ),
        (
            vec![URL, "--arrivals", "constant 5", "--rate", "5"],
            "has a rate already",
        ),
        (
            vec![URL, "--arrivals", "constant 20000000"],
            "at most 10,000,000/s",
        ),
        (vec![URL, "--arrivals", "burst 2000000"], "1 to 1,000,000"),
        (vec![URL, "-c", "0"], "from 1 to 1000000"),
        (vec![URL, "-c", "many"], "from 1 to 1000000"),
        (vec![URL, "--threads=-1"], "from 1 to 256"),
        (vec![URL, "--seed", "abc"], "a whole number"),
        (
            vec![URL, "--ramp", "100"],
            "two rates such as 100/s..5000/s",
        ),
        (vec![URL, "--tick", "0"], "from 10us to 1s"),
        (vec![URL, "--tick", "1h"], "from 10us to 1s"),
        (
            vec![URL, "--rate", "0.0001", "-z", "1s"],
            "no request would be due",
        ),
        (
            vec![URL, "--warm-up", "5s", "-z", "3s"],
            "--warm-up 5s leaves nothing of a load of 3s",
        ),
        (
            vec![URL, "-c", "100", "--max-connections", "10"],
            "leave one of them out",
        ),
        (vec![URL, "--cacert", "/dev/null"], "found no PEM in it"),
        (vec!["tcp://127.0.0.1:1"], "give them with -d"),
        (vec![URL, "--knee", "p9 < 1ms"], "did you mean \"p90\"?"),
        (vec![URL, "--knee", "p99 < 1ms", "--grow", "1"], "above 1"),
        (
            vec![URL, "--assert", "statu 200"],
            "did you mean \"status\"?",
        ),
        (vec![URL, "-H", "no colon"], "no colon"),
        (vec!["http://h/{unform 0 9}"], "did you mean \"uniform\"?"),
        (vec!["ws://h/", "--http2"], "for http:// and https:// only"),
        (
            vec![URL, "--connect-to", "http://10.0.0.7/"],
            "expected a host, with a port or without",
        ),
        (vec![URL, "-D", "/no/such/file"], "/no/such/file"),
        (vec![URL, "--trace", "/no/such/file"], "/no/such/file"),
        (vec![URL, "--closed", "--rate", "5"], "cannot be used with"),
    ] {
        let error = match plan(&words) {
            Ok(_) => panic!("{words:?} was taken"),
            Err(error) => format!("{error:#}"),
        };
        assert!(error.contains(expected), "{words:?}: {error}");
    }
}

/// Its length is that of its times, whatever is asked of it.
#[test]
fn a_trace_ends_with_its_times_and_a_warm_up_leaves_something() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    std::fs::write(&trace, "0\n0\n1\n1\n").unwrap();
    let trace = trace.display().to_string();
    let of = |words: &[&str]| {
        let plan = good(&[&[URL, "--trace", &trace], words].concat());
        segment(&plan).lasts()
    };
    assert_eq!(of(&[]), Some(Duration::from_secs(2)));
    assert_eq!(of(&["-n", "2"]), Some(Duration::from_secs(1)));
    assert_eq!(of(&["-z", "30s"]), Some(Duration::from_secs(30)));
    good(&[URL, "--warm-up", "2s", "-z", "3s"]);
    good(&[URL, "--tick", "1s", "--rate", "1", "-z", "1s"]);
}

#[test]
fn a_file_asks_what_the_target_understands() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.toml");
    let read = |url: &str, line: &str| {
        let text = format!("[[request]]\nname = \"one\"\n{line}\n");
        std::fs::write(&file, text).unwrap();
        let file = file.display().to_string();
        plan(&[url, "--requests-file", &file]).map_err(|error| format!("{error:#}"))
    };
    let redis = "redis = \"GET x\"";
    let sql = "sql = \"SELECT 1\"";
    for (url, line) in [
        (URL, redis),
        (URL, sql),
        ("redis://127.0.0.1", sql),
        ("postgres://app@127.0.0.1/shop", redis),
    ] {
        let error = read(url, line).err().unwrap();
        assert!(error.contains("is not for this target"), "{error}");
    }
    read("redis://127.0.0.1", redis).unwrap();
    read("postgres://app@127.0.0.1/shop", sql).unwrap();
    let plan = read(URL, "http = \"GET /\"").unwrap();
    assert_eq!(plan.notes.len(), 1, "{:?}", plan.notes);
    // A path of the URL is no part of those in the file.
    let plan = read("http://127.0.0.1/api", "http = \"GET /items\"").unwrap();
    assert_eq!(plan.workload.mix.journeys[0].steps[0].path, "/items");
    assert!(plan.notes[0].starts_with("/api of the URL was not asked for"));
}

#[test]
fn limits_are_loosened_one_by_one() {
    let plan = good(&[URL, "--late-after", "5ms", "--allow-unsent", "2%"]);
    let guard = &plan.workload.guard;
    assert_eq!(guard.late_after, Duration::from_millis(5));
    assert_eq!(guard.sent_share, 0.98);
    assert_eq!(guard.steal_share, GuardLimits::default().steal_share);
}

#[test]
fn a_search_is_brief_unless_asked_otherwise() {
    let settings = |words: &[&str]| match good(words).task {
        Task::Search(search) => *search,
        Task::Load(_) => panic!("no search"),
    };
    let brief = settings(&[URL, "--knee", "p99 < 20ms"]);
    assert!(brief.within <= Duration::from_secs(240) && brief.precision == 0.1);
    let thorough = settings(&[URL, "--knee", "p99 < 20ms", "--thorough"]);
    assert!(thorough.within >= Duration::from_secs(1200) && thorough.precision == 0.03);
    let own = settings(&[
        URL,
        "--knee",
        "p99 < 20ms",
        "--within",
        "1m",
        "--precision",
        "20%",
    ]);
    assert_eq!((own.within, own.precision), (Duration::from_secs(60), 0.2));
}

#[test]
fn connections_are_never_more_than_asked_for() {
    let plan = good(&[URL, "--max-connections", "4"]);
    assert_eq!(
        (
            plan.workload.connections.held,
            plan.workload.connections.most
        ),
        (4, 4)
    );
    let plan = good(&[URL, "-c", "2000"]);
    assert_eq!(plan.workload.connections.most, 2000);
}

#[test]
fn an_insecure_load_says_so() {
    let plan = good(&["https://127.0.0.1:8443/", "-k", "--rate", "5"]);
    assert_eq!(plan.notes, ["certificates were not checked (--insecure)"]);
}

#[test]
fn kinds_and_journeys_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests.toml");
    std::fs::write(folder.path().join("users.csv"), "email\na@b.c\nd@e.f\n").unwrap();
    let text = r#"
[tables]
users = "users.csv"

[[request]]
name = "read"
weight = 9
http = "/items/{zipf 1.1 1000}"
assert = ["status 200..299"]

[[journey]]
name = "buy"

[[journey.step]]
name = "login"
http = "POST /login"
header = ["Content-Type: application/json"]
body = '{{"email": "{line users.email}"}}'
take = ["token = json /token"]
think = "200ms"

[[journey.step]]
name = "order"
http = "POST /orders"
header = ["Authorization: Bearer {token}"]
"#;
    std::fs::write(&path, text).unwrap();
    let plan = good(&[URL, "--requests-file", path.to_str().unwrap()]);
    let mix = &plan.workload.mix;
    assert_eq!(mix.journeys.len(), 2);
    assert_eq!(mix.journeys[0].steps[0].method, "GET");
    assert_eq!(mix.journeys[1].steps[0].think, Duration::from_millis(200));
    assert_eq!(mix.tables["users"].rows.len(), 2);
    for (from, to, expected) in [
        ("assert =", "asert =", "unknown field `asert`"),
        ("status 200..299", "stat 200", "an assertion begins with"),
        ("{token}", "{tokn}", "tokn"),
        ("users.csv", "nobody.csv", "nobody.csv"),
        ("\"/items", "\"http://x/items", "write the path only"),
        ("think = \"200ms\"", "think = \"200\"", "needs a unit"),
    ] {
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let error = match plan_of(&path) {
            Ok(_) => panic!("{to} was taken"),
            Err(error) => format!("{error:#}"),
        };
        assert!(error.contains(expected), "{to}: {error}");
    }
}

fn plan_of(path: &Path) -> Result<Plan> {
    plan(&[URL, "--requests-file", path.to_str().unwrap_or_default()])
}

#[test]
fn the_requests_file_of_the_guide_is_understood() {
    let guide = include_str!("../../../../../docs/load.md");
    let (_, rest) = guide.split_once("```toml\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests.toml");
    std::fs::write(&path, text).unwrap();
    std::fs::write(folder.path().join("users.csv"), "email\na@b.c\n").unwrap();
    std::fs::write(folder.path().join("order.json"), "{}").unwrap();
    let plan = plan_of(&path).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(plan.workload.mix.journeys.len(), 2);
}
