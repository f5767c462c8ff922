//! Plans on machines that lack a program.

#![allow(clippy::unwrap_used)]

use crate::support::plan_of;
use lab_experiment::plan::{LeftOut, Plan};

const PEERS: &str = r#"
lab = 1
name = "peers"
[[system]]
name = "backend"
run = "backend {port}"
[[system]]
name = "ours"
run = "ours {port} {backend.addr}"
[[system]]
name = "caddy"
run = "caddy {port}"
needs = "caddy"
[[system]]
name = "feeder"
run = "feed {caddy.addr}"
[[system]]
name = "late"
run = "late"
after = ["feeder"]
[[system]]
name = "nginx"
run = "nginx {port}"
needs = "nginx"
[[load]]
name = "to-ours"
http = "GET http://{ours.addr}/"
[[load]]
name = "to-caddy"
http = "GET http://{caddy.addr}/"
[[probe]]
name = "alive"
http = "GET http://{caddy.addr}/"
[[probe]]
name = "well"
http = "GET http://{ours.addr}/"
[[step]]
name = "ours"
load = { to-ours = "10/s" }
hold = "1s"
[[step]]
name = "caddy"
load = { to-caddy = "10/s" }
hold = "1s"
[[step]]
name = "late is told"
signal = { system = "late", signal = "HUP" }
run = "echo 7"
keep = { seven = "text" }
[[step]]
name = "seven"
run = "test '{seven}' = 7"
[[step]]
name = "until alive"
wait = { until = "alive.ok == 100%", at_most = "1s" }
[[step]]
name = "both again"
load = { to-ours = "10/s" }
hold = "1s"
[[expect]]
that = "'ours': to-ours rate > 90% of 'caddy': to-caddy rate"
[[expect]]
that = "kept.seven == 7 or alive.ok > 50%"
[[expect]]
that = "'ours': to-ours errors == 0% and well.ok == 100%"
"#;

fn names(plan: &Plan) -> [Vec<&str>; 4] {
    [
        plan.systems.iter().map(|one| one.name.as_str()).collect(),
        plan.loads.iter().map(|one| one.name.as_str()).collect(),
        plan.probes.iter().map(|one| one.name.as_str()).collect(),
        plan.steps.iter().map(|one| one.name.as_str()).collect(),
    ]
}

#[test]
fn a_plan_that_has_all_it_needs_stays_as_it_is() {
    let mut plan = plan_of(PEERS);
    let left_out = plan.leave_out(|_| true);
    assert_eq!(left_out, LeftOut::default());
    assert_eq!(plan, plan_of(PEERS));
    assert_eq!(left_out.leaves_nothing(&plan), None);
}

#[test]
fn what_a_missing_program_takes_with_it_is_left_out_and_said_in_a_line() {
    let mut plan = plan_of(PEERS);
    let left_out = plan.leave_out(|program| program != "caddy");
    assert_eq!(
        left_out.lines,
        [
            "caddy is not installed: without caddy, feeder, late; left out: caddy, late is told, \
             seven, until alive; 2 expectations about that are not judged"
        ]
    );
    let [systems, loads, probes, steps] = names(&plan);
    assert_eq!(systems, ["backend", "ours", "nginx"]);
    assert_eq!((loads, probes), (vec!["to-ours"], vec!["well"]));
    assert_eq!(steps, ["ours", "both again"]);
    assert_eq!(plan.expects.len(), 1);
    let caddy = || "caddy".to_owned();
    let judged = [
        "'ours': to-ours rate > 90% of 'caddy': to-caddy rate",
        "kept.seven == 7 or alive.ok > 50%",
    ];
    assert_eq!(
        left_out.expects,
        judged.map(|that| (that.to_owned(), caddy()))
    );
    assert_eq!(
        left_out.leaves_nothing(&plan),
        None,
        "one expectation is left"
    );

    let mut plan = plan_of(PEERS);
    let LeftOut { lines, .. } = plan.leave_out(|_| false);
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1], "nginx is not installed: without nginx");
    assert_eq!(names(&plan)[0], ["backend", "ours"]);
}

#[test]
fn a_plan_of_which_nothing_is_left_to_judge_says_so() {
    const ONLY: &str = r#"
lab = 1
name = "only"
[[system]]
name = "web"
run = "nginx {port}"
needs = "nginx"
[[probe]]
name = "alive"
http = "GET http://{web.addr}/"
[[step]]
name = "watch"
wait = { until = "alive.ok == 100%", at_most = "1s" }
"#;
    const EXPECTS: &str = "[[expect]]\nthat = \"alive.ok == 100%\"\n";
    let why = |text: &str| {
        let mut plan = plan_of(text);
        let left_out = plan.leave_out(|_| false);
        left_out.leaves_nothing(&plan)
    };
    let expects = format!("{ONLY}{EXPECTS}");
    assert_eq!(
        why(&expects).as_deref(),
        Some("every expectation is left out: nginx is not installed")
    );
    assert_eq!(
        why(ONLY).as_deref(),
        Some("every step is left out: nginx is not installed")
    );
    let step = "[[step]]\nname = \"by itself\"\nhold = \"1s\"\n";
    assert_eq!(why(&format!("{ONLY}{step}")), None, "a step is made");
    let expect = "[[expect]]\nthat = \"duration('by itself') < 2s\"\n";
    assert_eq!(
        why(&format!("{expects}{step}{expect}")),
        None,
        "one is judged"
    );
}

#[test]
fn faults_end_before_what_is_left_out_and_what_it_would_have_told_goes_with_it() {
    let mut plan = plan_of(
        r#"
lab = 1
name = "through"
[[system]]
name = "a"
run = "a"
[[system]]
name = "b"
run = "b"
[[system]]
name = "web"
run = "nginx {port}"
needs = "nginx"
[[load]]
name = "users"
http = "GET http://{web.addr}/"
[[probe]]
name = "leads"
http = "http://{web.addr}/leader"
value = "json /name"
[[driver]]
name = "shop"
run = "shop --at {web.addr}"
makes = { order = ["paid"] }
[[step]]
name = "break"
hold = "1s"
fault = [{ pause = "a", through = "first" }, { pause = "b", through = "second" }]
[[step]]
name = "first"
load = { users = "10/s" }
hold = "1s"
[[step]]
name = "stays"
hold = "1s"
[[step]]
name = "second"
load = { users = "10/s" }
hold = "1s"
[[step]]
name = "is told who leads"
signal = { system = "a", signal = "HUP", pick = { probe = "leads" } }
[[step]]
name = "kills who leads"
fault = { kill = "b", pick = { probe = "leads" }, for = "1s" }
[[step]]
name = "orders"
make = { what = "order", count = 1 }
[[step]]
name = "last"
hold = "1s"
"#,
    );
    plan.leave_out(|_| false);
    assert_eq!(names(&plan)[3], ["break", "stays", "last"]);
    assert!(plan.drivers.is_empty(), "{:?}", plan.drivers);
    let faults = plan.steps[0].faults.iter();
    let through: Vec<Option<&str>> = faults.map(|fault| fault.through.as_deref()).collect();
    assert_eq!(through, [None, Some("stays")]);
}
