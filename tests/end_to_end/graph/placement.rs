//! Limits and networks of their own, where this machine permits them; where it does not,
//! that is said.

use super::*;

/// Starts it, or gives what it said.
fn up_or_said(lab: &Lab, file: &Path, more: &[&str]) -> Result<Graph, String> {
    let mut graph = Graph::up(lab, file, more);
    let until = Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(&graph.log).expect("a log");
        if text.contains("\"graph.ready\"") {
            return Ok(graph);
        }
        if let Some(status) = graph.child.try_wait().expect("a status") {
            assert_eq!(status.code(), Some(4), "{text}");
            return Err(fs::read_to_string(&graph.log).expect("a log"));
        }
        assert!(Instant::now() < until, "{text}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Names below a folder that begin so.
fn names(folder: &str, begin: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(begin)).collect()
}

#[test]
fn services_have_networks_of_their_own() {
    let lab = Lab::new();
    let file = lab.write("graph.toml", CHAIN);
    // Which are of processes of their own without its being said.
    let graph = match up_or_said(&lab, &file, &["--namespaces"]) {
        Ok(graph) => graph,
        Err(said) => {
            assert!(said.contains("make network namespaces: "), "{said}");
            return;
        }
    };
    let (address, admin) = graph.ready();
    assert!(address.starts_with("198.1"), "{address}");
    assert_eq!(ask(&address, "/").body, ECHO);
    // From here it is reached where it was to listen.
    let ready = graph.said("graph.ready");
    let published = ready["published"].as_str().expect("an address").to_owned();
    assert!(published.starts_with("127.0.0.1:"), "{published}");
    assert_eq!(ask(&published, "/").body, ECHO);
    until("whole traces", || {
        let traces = json(&admin, "/traces?recent=10");
        traces["traces"]
            .as_array()
            .is_some_and(|traces| traces.iter().any(|trace| trace["spans"] == 5))
    });
    let own = format!("headroom-{}-", graph.child.id());
    let bridge = format!("hr{}", graph.child.id());
    assert_eq!(names("/run/netns", &own).len(), 3);
    assert_eq!(graph.stop(), Some(0));
    assert!(names("/run/netns", &own).is_empty());
    assert!(names("/sys/class/net", &bridge).is_empty());
}

#[test]
fn services_are_limited() {
    let lab = Lab::new();
    let limited = CHAIN.replace(
        "[services.bleaf]",
        "[services.bleaf]\nlimits = { cpu = 0.5, memory = \"64MiB\" }",
    );
    let file = lab.write("graph.toml", &limited);
    let graph = match up_or_said(&lab, &file, &["--processes"]) {
        Ok(graph) => graph,
        Err(said) => {
            assert!(said.contains("limit the service bleaf"), "{said}");
            return;
        }
    };
    let (address, admin) = graph.ready();
    assert_eq!(ask(&address, "/").body, ECHO);
    let topology = json(&admin, "/topology");
    let instances = topology["instances"].as_array().expect("instances");
    let leaf = instances.iter().find(|one| one["service"] == "bleaf");
    let leaf = leaf.expect("the leaf")["pid"]
        .as_u64()
        .expect("a process id");
    let group = format!("headroom-{}-bleaf-0", graph.child.id());
    let groups = fs::read_to_string(format!("/proc/{leaf}/cgroup")).expect("its groups");
    assert!(groups.contains(&group), "{groups}");
    assert_eq!(graph.stop(), Some(0));
    for controller in ["cpu", "memory", "cpu,cpuacct", ""] {
        let folder = format!("/sys/fs/cgroup/{controller}");
        assert!(names(&folder, &group).is_empty(), "{folder}");
    }
}

#[test]
fn nothing_is_left_of_a_killed_one() {
    let lab = Lab::new();
    let limited = CHAIN.replace(
        "[services.bleaf]",
        "[services.bleaf]\nlimits = { cpu = 0.5, memory = \"64MiB\" }",
    );
    let file = lab.write("graph.toml", &limited);
    let all = ["--processes", "--namespaces"];
    // Without the right to have networks, groups may be possible.
    let started = up_or_said(&lab, &file, &all).or_else(|_| up_or_said(&lab, &file, &all[..1]));
    let mut graph = match started {
        Ok(graph) => graph,
        Err(said) => {
            assert!(said.contains("limit the service bleaf"), "{said}");
            return;
        }
    };
    let (address, _) = graph.ready();
    assert_eq!(ask(&address, "/").body, ECHO);
    let own = format!("headroom-{}-", graph.child.id());
    let bridge = format!("hr{}", graph.child.id());
    graph.child.kill().expect("a kill");
    graph.child.wait().expect("its end");
    until("the end of its networks", || {
        names("/run/netns", &own).is_empty() && names("/sys/class/net", &bridge).is_empty()
    });
    for controller in ["cpu", "memory", "cpu,cpuacct", ""] {
        let folder = format!("/sys/fs/cgroup/{controller}");
        until("the end of its groups", || names(&folder, &own).is_empty());
    }
}

#[test]
fn limits_need_processes_and_that_is_told() {
    let lab = Lab::new();
    let limited = CHAIN.replace(
        "[services.bleaf]",
        "[services.bleaf]\nlimits = { cpu = 0.5 }",
    );
    let graph = Graph::up(&lab, &lab.write("graph.toml", &limited), &[]);
    let (_, admin) = graph.ready();
    let warnings = json(&admin, "/topology")["deployment"]["warnings"].to_string();
    assert!(
        warnings.contains("bleaf") && warnings.contains("--processes"),
        "{warnings}"
    );
}
