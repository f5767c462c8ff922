//! A process for each instance.

use std::time::Instant;

use super::*;

/// The process of a service.
fn process(admin: &str, service: &str) -> u64 {
    let topology = json(admin, "/topology");
    let instances = topology["instances"].as_array().expect("instances");
    let of = |one: &&Value| one["service"] == service;
    let pid = instances.iter().find(of).map(|one| one["pid"].as_u64());
    pid.flatten().expect("a process id")
}

fn signal(pid: u64, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a process id"));
    kill(pid, signal).expect("a signal sent");
}

/// Stops a process, and waits until each of its threads stands still: the signal is taken by one of them
/// when it runs next, and until then the others go on.
fn stop(pid: u64) {
    signal(pid, Signal::SIGSTOP);
    until("the standstill", || {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("threads");
        threads.flatten().all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            state(&stat) == Some('T')
        })
    });
}

#[test]
fn one_control_server_speaks_for_all() {
    let lab = Lab::new();
    let file = lab.write("graph.toml", CHAIN);
    let graph = Graph::up(&lab, &file, &["--processes", "--log-level", "error"]);
    let (address, admin) = graph.ready();
    for _ in 0..3 {
        assert_eq!(ask(&address, "/").body, ECHO);
    }
    let line = "headroom_graph_server_request_seconds_count{service=\"bleaf\",path=\"/\",status=\"2xx\"} 3";
    until("the leaf's counters", || {
        let page = ask(&admin, "/metrics").body;
        page.lines().any(|found| found == line)
    });
    until("whole traces", || {
        let traces = json(&admin, "/traces?recent=10");
        let traces = traces["traces"].as_array().expect("traces");
        traces.len() == 3 && traces.iter().all(|trace| trace["spans"] == 5)
    });
    let services = ["broot", "bbranch", "bleaf"];
    let pids = services.map(|service| process(&admin, service));
    assert!(pids.iter().all(|pid| runs(*pid)));
    assert_eq!(graph.stop(), Some(0));
    assert!(!pids.iter().any(|pid| runs(*pid)));
}

#[test]
fn failures_are_told_with_their_edge() {
    let lab = Lab::new();
    let impatient = CHAIN.replace(r#""bleaf", timeout = "20s""#, r#""bleaf", timeout = "1s""#);
    let graph = Graph::up(&lab, &lab.write("graph.toml", &impatient), &["--processes"]);
    let (address, admin) = graph.ready();
    until("an answer in time", || ask(&address, "/").status == 200);
    let leaf = process(&admin, "bleaf");

    stop(leaf);
    let begun = Instant::now();
    let late = ask(&address, "/");
    assert_eq!(late.status, 504);
    assert!(
        late.head
            .contains("x-headroom-failed: bbranch>bleaf timeout"),
        "{}",
        late.head
    );
    assert!(begun.elapsed() >= std::time::Duration::from_secs(1));
    signal(leaf, Signal::SIGCONT);
    until("the leaf", || ask(&address, "/").status == 200);

    signal(leaf, Signal::SIGKILL);
    let ended = graph.said("graph.service-ended");
    assert_eq!(
        (&ended["service"], &ended["error"]),
        (&"bleaf".into(), &"signal 9".into())
    );
    let gone = ask(&address, "/");
    assert_eq!(gone.status, 502);
    assert!(
        gone.head.contains("x-headroom-failed: bbranch>bleaf "),
        "{}",
        gone.head
    );
    let processes = &json(&admin, "/topology")["deployment"]["processes"];
    let processes = processes.as_array().expect("processes");
    let leaf = processes.iter().find(|one| one["name"] == "bleaf");
    assert_eq!(leaf.expect("the leaf")["ended"], "signal 9");
    assert!(
        ask(&admin, "/metrics")
            .body
            .contains("headroom_graph_processes_running 2\n")
    );
    assert_eq!(graph.stop(), Some(0));
}

#[test]
fn a_service_that_stands_still_now_and_then_is_named() {
    let lab = Lab::new();
    let graph = Graph::up(&lab, &lab.write("graph.toml", CHAIN), &["--processes"]);
    let (address, admin) = graph.ready();
    let branch = process(&admin, "bbranch");
    for at in 0..120 {
        let stands = at % 4 == 0;
        if stands {
            stop(branch);
        }
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| ask(&address, "/").status);
            if stands {
                std::thread::sleep(Duration::from_millis(200));
                signal(branch, Signal::SIGCONT);
            }
            assert_eq!(asked.join().expect("an answer"), 200);
        });
    }
    let mut analysis = Value::Null;
    until("all traces", || {
        analysis = json(&admin, "/analysis");
        analysis["counts"]["analysed"] == 120
    });
    let services = analysis["services"].as_array().expect("services");
    let found = services.iter().find(|one| one["name"] == "bbranch");
    let found = found.expect("the service that stood still");
    let share = |figures: &Value| figures["tail_share"].as_f64().expect("a tail");
    let held = share(found) + share(&found["arrivals"]);
    assert!(held > 0.8, "{held}: {}", analysis["sentences"]);
    assert_eq!(graph.stop(), Some(0));
}

#[test]
fn nothing_outlives_a_killed_parent() {
    let lab = Lab::new();
    let mut graph = Graph::up(&lab, &lab.write("graph.toml", CHAIN), &["--processes"]);
    let (_, admin) = graph.ready();
    let pids = ["broot", "bbranch", "bleaf"].map(|service| process(&admin, service));
    // One that stands still ends as well.
    stop(pids[1]);
    graph.child.kill().expect("a kill");
    graph.child.wait().expect("its end");
    until("the end of all", || !pids.iter().any(|pid| runs(*pid)));
}

#[test]
fn one_that_cannot_start_ends_all() {
    let lab = Lab::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().map(|address| (taken, address));
    let (_taken, address) = taken.expect("an address");
    let file = lab.write("graph.toml", CHAIN).display().to_string();
    let listen = address.to_string();
    let output = lab
        .command()
        .args(["graph", "up", &file, "--processes", "--listen", &listen])
        .args(["--admin", "127.0.0.1:0"])
        .output()
        .expect("the binary");
    assert_eq!(output.status.code(), Some(4));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("broot") && said.contains(&listen), "{said}");
}
