//! Good files and their plans.

#![allow(clippy::unwrap_used)]

use crate::support;
use std::time::Duration;

use crate::support::{DEMO, checked, plan_of};
use lab_experiment::LoadFiles;
use lab_experiment::plan::{
    Back, CopySelector, DriverKind, FaultKind, LogFormat, Plan, ProbeKind, Program, Rate, Ready,
    Reference, System, Watch,
};

fn system<'p>(plan: &'p Plan, name: &str) -> &'p System {
    plan.systems
        .iter()
        .find(|system| system.name == name)
        .unwrap()
}

fn args(system: &System) -> String {
    system
        .args
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("|")
}

#[test]
fn the_demo_is_a_plan() {
    let plan = plan_of(DEMO);
    assert_eq!(plan.name, "road-to-100-cells");
    assert_eq!(plan.about, "4000 tasks on 100 cells");
    assert_eq!(plan.seed, 20_151_001);
    let names: Vec<&str> = plan
        .systems
        .iter()
        .map(|system| system.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["bbs", "auctioneer", "cell", "shop"],
        "in order of the file"
    );
}

#[test]
fn a_builtin_is_our_own_binary_with_arguments() {
    let plan = plan_of(DEMO);
    let bbs = system(&plan, "bbs");
    assert_eq!(bbs.program, Program::OwnBinary);
    assert_eq!(
        args(bbs),
        "cells|bbs|--listen|{addr}|--data|{work}/bbs|--auctioneer|http://{auctioneer.addr}"
    );
    assert_eq!(bbs.ready, Some(Ready::Tcp));
    assert_eq!(bbs.ready_within, Duration::from_secs(30));
    assert_eq!(bbs.log, LogFormat::Lager);
    assert_eq!((bbs.count, bbs.agents), (1, None));
}

#[test]
fn a_fleet_is_a_system_with_a_flag_for_each_setting() {
    let plan = plan_of(DEMO);
    let cell = system(&plan, "cell");
    assert_eq!(
        args(cell),
        "cells|rep|--listen|{addr}|--count|100|--seed|20151001|--bbs|http://{bbs.addr}\
         |--capacity-containers|250|--capacity-memory|64GiB|--capacity-disk|64GiB\
         |--delays-create|0|--delays-stop|lognormal 900ms p99=4s|--fail-create|0.001|--optional"
    );
    assert_eq!((cell.count, cell.agents), (1, Some(100)));
    assert_eq!(
        cell.after,
        ["auctioneer", "bbs"],
        "it also waits for whom it talks to"
    );
    assert_eq!(cell.ready, Some(Ready::Tcp), "the kind says so");
    assert_eq!(
        cell.watch,
        [Watch::Cpu, Watch::Rss, Watch::Fds, Watch::Threads]
    );
}

#[test]
fn a_program_has_all_that_a_system_can_have() {
    let plan = plan_of(DEMO);
    let shop = system(&plan, "shop");
    let Program::Path(path) = &shop.program else {
        panic!("{:?}", shop.program)
    };
    assert_eq!(path.to_string(), "bin/my shop");
    assert_eq!(args(shop), "--port|{port}|{{json}}");
    assert_eq!(shop.ready, Some(Ready::Http("/ready".to_owned())));
    assert_eq!(shop.ready_within, Duration::from_secs(90));
    assert_eq!(shop.after, ["bbs"]);
    assert_eq!(shop.count, 2);
    let env: Vec<String> = shop
        .env
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    assert_eq!(env, ["LEVEL=debug-{index}", "THREADS=4"]);
    assert_eq!(shop.cpus, Some(vec![0, 1, 3]));
    assert_eq!(shop.memory_bytes, Some(2 << 30));
    assert_eq!(shop.watch, [Watch::Rss]);
}

#[test]
fn drivers_know_what_they_make() {
    let plan = plan_of(DEMO);
    assert_eq!(
        plan.drivers[0].kind,
        DriverKind::Builtin {
            kind: "cells".to_owned(),
            command: vec!["cells".to_owned(), "driver".to_owned()],
        }
    );
    assert_eq!(plan.drivers[0].talk_to.as_deref(), Some("bbs"));
    assert_eq!(plan.drivers[0].entities["lrp"].len(), 5);
    let DriverKind::Program(words) = &plan.drivers[1].kind else {
        panic!()
    };
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["python3", "driver.py", "http://{shop.addr}"]);
    assert_eq!(
        plan.drivers[1].entities["order"],
        ["placed", "paid", "shipped"]
    );
}

#[test]
fn lifecycles_and_loops_are_kept_as_written() {
    let plan = plan_of(DEMO);
    let task = &plan.lifecycles[0];
    assert_eq!(task.key, ["task-guid", "container-guid"]);
    assert_eq!(task.alias, [vec!["process-guid", "index"], vec!["handle"]]);
    assert_eq!(task.group, ["cell-id"]);
    assert_eq!(
        task.points[1].1, "/start-task[.]finished{1}/",
        "braces of a pattern stay"
    );
    assert_eq!(plan.loops[0].end, "converge-lrps.finished-convergence");
}

#[test]
fn steps_have_their_names_filled_in() {
    let plan = plan_of(DEMO);
    let make = plan.steps[0].make.as_ref().unwrap();
    assert_eq!(
        (make.what.as_str(), make.count, make.in_flight),
        ("task", 4000, 500)
    );
    assert_eq!(make.rate, Rate::Max);
    assert_eq!(make.options["path"], "/bin/true");
    let wait = plan.steps[0].wait.as_ref().unwrap();
    assert_eq!(wait.until.text, "task.resolved == 4000");
    assert_eq!(
        (wait.steady, wait.at_most),
        (Duration::ZERO, Duration::from_secs(120))
    );

    let step = &plan.steps[1];
    assert_eq!(step.name, "lrps on 100 cells");
    let make = step.make.as_ref().unwrap();
    assert_eq!((make.count, make.in_flight), (4000, 100));
    assert_eq!(make.rate, Rate::PerSecond(5.0));
    assert_eq!(make.shape.as_deref(), Some("one desired"));

    assert_eq!(plan.steps[2].hold, Some(Duration::from_millis(1500)));
    let run = plan.steps[2].run.as_ref().unwrap().to_string();
    assert_eq!(run, "curl http://{bbs.addr}/ > {work}/answer");
    assert_eq!(
        plan.steps[3].make.as_ref().unwrap().options["colour"],
        "red"
    );
}

#[test]
fn the_same_file_gives_the_same_bytes() {
    let json = |plan: &Plan| serde_json::to_string_pretty(plan).unwrap();
    let first = json(&plan_of(DEMO));
    assert_eq!(first, json(&plan_of(DEMO)));
    assert!(first.contains(r#""http://{auctioneer.addr}""#), "{first}");
    assert!(
        first.contains(r#""text": "task.desired..resolved span < 30s""#),
        "{first}"
    );
    let order = |key: &str| first.find(&format!("\n  \"{key}\"")).unwrap();
    assert!(order("name") < order("systems") && order("steps") < order("expects"));
}

#[test]
fn overrides_take_the_place_of_constants() {
    let plan = checked(DEMO, &[("cells", "1_000"), ("tasks", "9"), ("tasks", "8")]);
    // The step's name changes with the constant, so the expectation on it does not fit.
    let rendered = plan.unwrap_err();
    assert!(
        rendered.contains("unknown step \"lrps on 100 cells\""),
        "{rendered}"
    );
    let plan = checked(DEMO, &[("tasks", "9"), ("tasks", "8")]).unwrap();
    assert_eq!(plan.about, "8 tasks on 100 cells");
    assert_eq!(
        plan.steps[1].make.as_ref().unwrap().count,
        8,
        "through another constant"
    );
}

#[test]
fn the_smallest_file() {
    let plan = plan_of("lab = 1\nname = \"x\"\n[[step]]\nname = \"pause\"\nhold = \"1s\"\n");
    assert_eq!(plan.seed, 1);
    assert_eq!(plan.about, "");
    assert!(plan.systems.is_empty() && plan.expects.is_empty());
}

#[test]
fn templates_are_filled_in_by_the_runner() {
    let plan = plan_of(DEMO);
    let shown = system(&plan, "bbs").args[7].render(|reference| format!("<{reference}>"));
    assert_eq!(shown, "http://<auctioneer.addr>");
}

#[test]
fn a_plan_is_explained_in_words() {
    let explained = plan_of(DEMO).explain();
    let expected = include_str!("data/demo.explained.txt");
    assert_eq!(explained, expected, "\n{explained}");
}

#[test]
fn systems_start_after_those_that_they_wait_for() {
    let system = |name: &str, after: &str| {
        format!("[[system]]\nname = \"{name}\"\nrun = \"x\"\nafter = [{after}]\n")
    };
    let plan = plan_of(&format!(
        "lab = 1\nname = \"t\"\n{}{}{}{}[[step]]\nname = \"s\"\nhold = \"1s\"\n",
        system("d", "\"b\", \"c\""),
        system("c", ""),
        system("b", "\"a\""),
        system("a", ""),
    ));
    let order: Vec<&str> = plan
        .start_order()
        .iter()
        .map(|system| system.name.as_str())
        .collect();
    assert_eq!(order, ["c", "a", "b", "d"]);
}

#[test]
fn fezzik_is_a_plan_of_any_size() {
    let text = include_str!("data/fezzik.toml");
    let plan = plan_of(text);
    assert_eq!(
        (plan.systems.len(), plan.steps.len(), plan.expects.len()),
        (4, 3, 3)
    );
    assert_eq!(plan.lifecycles[0].points.len(), 9);
    let plan = checked(text, &[("cells", "1000"), ("tasks", "40_000")]).unwrap();
    assert_eq!(system(&plan, "cell").agents, Some(1000));
    assert_eq!(plan.steps[0].make.as_ref().unwrap().count, 40_000);
}

#[test]
fn a_catalogue_that_contradicts_itself_says_so() {
    let mut catalogue = support::catalogue();
    catalogue.fleets.retain(|fleet| fleet.kind == "cell");
    let settings: Vec<_> = catalogue.fleets[0].settings.drain(..).collect();
    let builtin = catalogue
        .builtins
        .iter_mut()
        .find(|b| b.command == "cells rep")
        .unwrap();
    builtin
        .flags
        .push(lab_experiment::catalogue::Flag::value("--seed"));
    assert_eq!(
        catalogue.problems(),
        ["driver cells: no builtin \"cells driver\""]
    );
    catalogue.drivers[0].builtin = "cells rep".to_owned();
    assert_eq!(catalogue.problems(), Vec::<String>::new());

    catalogue.fleets[0].settings = settings
        .into_iter()
        .filter(|s| s.key == "optional")
        .collect();
    assert_eq!(
        catalogue.problems(),
        ["fleet cell: \"cells rep\" has no --optional without a value"]
    );
    catalogue.fleets[0].builtin = "cells reb".to_owned();
    assert_eq!(
        catalogue.problems(),
        ["fleet cell: no builtin \"cells reb\""]
    );
}

#[test]
fn a_load_connects_elsewhere_and_still_asks_its_target() {
    let plan = plan_of(
        r#"
lab = 1
name = "t"
[[system]]
name = "web"
run = "x {port}"
[[load]]
name = "users"
http = "https://shop.example.org/"
connect_to = "{web.addr}"
[[step]]
name = "s"
load = { users = 5 }
hold = "1s"
"#,
    );
    let load = &plan.loads[0];
    assert!(load.place().refers_to("web"));
    let resolve = |_: &Reference| "10.0.0.7:81".to_owned();
    let workload = load.workload(1, LoadFiles::default(), &resolve).unwrap();
    let target = workload.target;
    assert_eq!((target.host.as_str(), target.port), ("10.0.0.7", 81));
    assert_eq!(target.authority, "shop.example.org");
    assert!(target.tls);
}

#[test]
fn a_probe_is_asked_of_every_copy_and_with_a_rate_it_is_a_load() {
    let plan = plan_of(
        r#"
lab = 1
name = "t"
[let]
path = "status"
[[system]]
name = "db"
run = "x {port}"
count = 3
[[probe]]
name = "leads"
http = "POST http://{addr}/{path}"
body = '{{"id": {index}}}'
of = "db"
value = "json /leader"
[[probe]]
name = "health"
grpc = "grpc://{db.addr}/shop.Cart"
every = "10ms"
within = "5s"
[[probe]]
name = "asked"
http = "http://{db.addr}/"
rate = "5/s"
[[step]]
name = "s"
wait = { until = "leads.value sum == 1 and health.value == 1", at_most = "1s" }
while = { always = ["leads.value sum <= 1", "health.ok == 100%"] }
fault = { kill = "db", pick = { probe = "leads" }, for = "1s" }
[[expect]]
that = "'s': leads.value max <= 1 and asked ok > 99% and recovery(leads) < 5s"
"#,
    );
    let [leads, health] = plan.probes.as_slice() else {
        panic!("{:?}", plan.probes);
    };
    assert_eq!(plan.loads.len(), 1);
    assert_eq!((leads.copies, leads.of.as_deref()), (3, Some("db")));
    let (second, ten_ms) = (Duration::from_secs(1), Duration::from_millis(10));
    assert_eq!((leads.every, leads.within), (second, second));
    assert_eq!((health.every, health.within), (ten_ms, 5 * second));
    let ProbeKind::Http {
        method, url, body, ..
    } = &leads.kind
    else {
        panic!("{:?}", leads.kind);
    };
    assert_eq!(method, "POST");
    assert_eq!(url.to_string(), "http://{addr}/status");
    assert_eq!(body.to_string(), r#"{{"id": {index}}}"#);
    let ProbeKind::Grpc { address, service } = &health.kind else {
        panic!("{:?}", health.kind);
    };
    assert_eq!(address.to_string(), "{db.addr}");
    assert_eq!(service.to_string(), "shop.Cart");
    let FaultKind::Process { who, .. } = &plan.steps[0].faults[0].kind else {
        panic!("{:?}", plan.steps[0].faults);
    };
    let within = Duration::from_secs(10);
    let probe = "leads".to_owned();
    assert_eq!(*who, CopySelector::Probe { probe, within });
    assert_eq!(plan.steps[0].always.len(), 2);
    let text = plan.explain();
    for line in [
        "leads: POST http://{addr}/status of each copy of db, every 1s, within 1s",
        "kill the db that leads picks",
        "all the time leads.value sum <= 1",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn a_path_may_hold_an_address() {
    let plan = plan_of(
        r#"
lab = 1
name = "t"
[[load]]
name = "login"
http = "http://127.0.0.1:8080"
rate = "1/s"
request = [{ name = "go", http = "GET /login?back=https://shop.example/cart" }]
[[step]]
name = "s"
load = { login = "on" }
hold = "1s"
"#,
    );
    let request = &plan.loads[0].journeys[0].requests[0];
    assert_eq!(
        request.path.to_string(),
        "/login?back=https://shop.example/cart"
    );
}

#[test]
fn agents_of_a_fleet_fall_silent() {
    let text = r#"
lab = 1
name = "x"
[[system]]
name = "bbs"
run = "x"
[[fleet]]
name = "cells"
kind = "cell"
count = 1000
talk_to = "bbs"
[[step]]
name = "s"
hold = "1s"
fault = [
  { silence = "cells", pick = "10%", for = "30s" },
  { silence = "cells", pick = "all", for = "30s", flap = "5s", back = "in turn" },
  { silence = "cells.7", for = "30s" },
]
"#;
    let plan = plan_of(text);
    let FaultKind::Silence {
        fleet,
        agents,
        who,
        flap,
        back,
    } = &plan.steps[0].faults[1].kind
    else {
        panic!("{:?}", plan.steps[0].faults);
    };
    assert_eq!((fleet.as_str(), *agents), ("cells", 1_000));
    assert_eq!(*who, CopySelector::All);
    assert_eq!((*flap, *back), (Some(Duration::from_secs(5)), Back::InTurn));
    let text = plan.explain();
    for line in [
        "silence 10 % of cells",
        "silence all 1000 of cells by turns of 5 s, back in turn",
        "silence cells.7",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn the_plan_says_by_what_means_connections_are_broken() {
    let text = |network: &str, second: &str| {
        format!(
            r#"
lab = 1
name = "x"
{network}
[[system]]
name = "db"
run = "db {{addr}}"
[[system]]
name = "api"
run = "api {{addr}} {{db.addr}}"
[[load]]
name = "users"
http = "GET http://{{api.addr}}/"
[[step]]
name = "s"
hold = "1s"
load = {{ users = "1/s" }}
fault = [{{ partition = "api -> db", for = "1s" }}, {second}]
"#
        )
    };
    let lose = r#"{ lose = "api", share = "1%", for = "1s" }"#;
    let explained = |network: &str, second: &str| plan_of(&text(network, second)).explain();
    let plain = explained("", lose);
    assert!(
        plain.contains("partition api -> db when that is over for 1s, by a proxy;"),
        "{plain}"
    );
    assert!(!plain.contains("network of its own"), "{plain}");
    let own = explained("network = \"own\"", lose);
    assert!(own.contains("  in a network of its own\n"), "{own}");
    for kind in ["partition api -> db", "lose users -> api"] {
        let line = format!("{kind} when that is over for 1s, by rules of the kernel");
        assert!(own.contains(&line), "{own}");
    }
    // One that the kernel has no rule for takes the others on its connection with it.
    let delay =
        r#"{ delay = "db", by = "5ms", for = "1s" }, { lose = "api", share = "1%", for = "1s" }"#;
    let mixed = explained("network = \"own\"", delay);
    for line in [
        "partition api -> db when that is over for 1s, by a proxy, as delay is beyond the kernel's rules",
        "lose users -> api when that is over for 1s, by rules of the kernel",
    ] {
        assert!(mixed.contains(line), "{mixed}");
    }
}
