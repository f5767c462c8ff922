//! Profiles that change while a graph runs.

use super::*;

fn revision(address: &str) -> String {
    let answer = ask(address, "/");
    assert_eq!(answer.status, 200);
    let field = answer
        .head
        .lines()
        .find(|line| line.starts_with("x-headroom-revision:"));
    field.expect("a revision").to_owned()
}

fn changed(leaf: &str) -> String {
    CHAIN.replace("[services.bleaf]", &format!("[services.bleaf]\n{leaf}"))
}

fn profiles_change(more: &[&str]) {
    let lab = Lab::new();
    let file = lab.write("graph.toml", CHAIN);
    let graph = Graph::up(&lab, &file, more);
    let (address, admin) = graph.ready();
    let first = revision(&address);

    // By the file, put in place as editors do.
    let next = lab.write("next.toml", &changed("response = \"2B\""));
    fs::rename(next, &file).expect("a file renamed");
    until("the new profile", || ask(&address, "/").body != ECHO);
    assert_ne!(revision(&address), first);

    // A wrong one changes nothing, and is told of.
    let wrong = changed("respons = \"2B\"");
    fs::write(&file, &wrong).expect("a file written");
    let refused = graph.said("graph.profile-refused");
    let error = refused["error"].as_str().expect("an error");
    assert!(
        error.contains("graph.toml:") && error.contains("respons"),
        "{error}"
    );
    let told = &json(&admin, "/topology")["deployment"]["profile"]["refused"]["error"];
    assert_eq!(told, error);
    let metrics = ask(&admin, "/metrics").body;
    assert!(
        metrics.contains("headroom_graph_profile_refused 1\n"),
        "{metrics}"
    );
    assert_ne!(ask(&address, "/").body, ECHO);

    // By PUT, which also says what is wrong.
    let answer = put(&admin, "/profile", &wrong);
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("respons"), "{}", answer.body);
    let answer = put(
        &admin,
        "/profile",
        &CHAIN.replace("[services.bleaf]", "[services.leaf]"),
    );
    assert_eq!(answer.status, 400, "{}", answer.body);
    let answer = put(&admin, "/profile", CHAIN);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(
        revision(&address),
        first,
        "the same profile has the same mark"
    );
    assert_eq!(ask(&address, "/").body, ECHO);
    assert_eq!(ask(&admin, "/profile").body, CHAIN);
    assert_eq!(graph.stop(), Some(0));
}

#[test]
fn what_is_set_beside_the_file_stays_set() {
    let lab = Lab::new();
    let file = lab.write("graph.toml", CHAIN);
    let set = ["--set", "services.bleaf.response=3B"];
    let graph = Graph::up(&lab, &file, &set);
    let (address, admin) = graph.ready();
    let echo = |leaf: &str| format!("hello:broot:/:hello:bbranch:/:{leaf}");
    let body = ask(&address, "/").body;
    assert!(body.starts_with(&echo("")) && body != ECHO, "{body}");
    let next = lab.write("next.toml", &CHAIN.replace("20s", "10s"));
    fs::rename(next, &file).expect("a file renamed");
    until("the new profile", || {
        ask(&admin, "/profile").body.contains("10s")
    });
    assert!(ask(&admin, "/profile").body.contains("3B"));
    assert_ne!(ask(&address, "/").body, ECHO);
    assert_eq!(graph.stop(), Some(0));
}

#[test]
fn profiles_change_in_one_process() {
    profiles_change(&[]);
}

#[test]
fn pinned_processes_take_profiles_too() {
    let lab = Lab::new();
    let allowed = rustix::thread::sched_getaffinity(None).expect("processors");
    let numbers = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let cpus: Vec<usize> = numbers.collect();
    let pinned = |text: &str| {
        let pin = |name: &str, cpu: usize| (name.to_owned(), format!("{name}\ncpus = \"{cpu}\""));
        let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
        let pins = [
            pin("[services.broot]", first),
            pin("[services.bbranch]", first),
            pin("[services.bleaf]", last),
        ];
        pins.iter()
            .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    };
    let graph = Graph::up(
        &lab,
        &lab.write("graph.toml", &pinned(CHAIN)),
        &["--processes"],
    );
    let (address, admin) = graph.ready();
    assert_eq!(ask(&address, "/").body, ECHO);
    assert_eq!(json(&admin, "/topology")["deployment"]["rung"], "pinned");
    let answer = put(&admin, "/profile", &pinned(&changed("response = \"2B\"")));
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_ne!(ask(&address, "/").body, ECHO);
    assert_eq!(graph.stop(), Some(0));
}

#[test]
fn profiles_change_in_many_processes() {
    profiles_change(&["--processes"]);
}

/// Every service answers the path that its profile says, so that a mix is seen.
fn marked(mark: &str) -> String {
    format!(
        r#"
[defaults]
response = "echo"
timeout = "60s"
[services.root]
entry = true
[services.root.endpoints."*"]
steps = [{{ call = "branch", path = "/{mark}" }}]
[services.branch]
[services.branch.endpoints."/{mark}"]
steps = [{{ call = "leaf", path = "/{mark}{mark}" }}]
[services.leaf]
[services.leaf.endpoints."/{mark}{mark}"]
"#
    )
}

/// As the kubelet changes a `ConfigMap`: graph.toml -> ..data/graph.toml, and ..data -> a
/// folder of that moment.
fn configure(lab: &Lab, moment: u32, text: &str) {
    let folder = lab.path(&format!("..{moment}"));
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("graph.toml"), text).expect("a file written");
    let next = lab.path("..data_tmp");
    std::os::unix::fs::symlink(&folder, &next).expect("a link");
    fs::rename(next, lab.path("..data")).expect("a link renamed");
}

/// At least so many requests over one connection, until both profiles were seen. Each must be
/// under a whole one.
fn ask_often(address: &str, requests: usize) -> [usize; 2] {
    let bodies = ["a", "b"].map(|mark| {
        let body = format!("hello:root:/:hello:branch:/{mark}:hello:leaf:/{mark}{mark}");
        format!("\r\n\r\n{body}")
    });
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut seen = [0, 0];
    let until = Instant::now() + PATIENCE;
    while seen[0] + seen[1] < requests || seen.contains(&0) {
        assert!(Instant::now() < until, "one profile only: {seen:?}");
        let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        stream.write_all(request).expect("a request");
        let mut answer = String::new();
        let which = loop {
            if let Some(which) = bodies.iter().position(|body| answer.ends_with(body)) {
                break which;
            }
            let mut room = [0; 1024];
            let count = stream.read(&mut room).expect("an answer");
            assert!(count > 0 && answer.len() < 1000, "{answer}");
            answer += &String::from_utf8_lossy(&room[..count]);
        };
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        seen[which] += 1;
    }
    seen
}

#[test]
fn no_request_of_ten_thousand_sees_two_profiles_while_a_link_is_swapped() {
    let lab = Lab::new();
    configure(&lab, 0, &marked("a"));
    let file = lab.path("graph.toml");
    std::os::unix::fs::symlink("..data/graph.toml", &file).expect("a link");
    let graph = Graph::up(&lab, &file, &["--processes"]);
    let (address, admin) = graph.ready();
    let over = std::sync::atomic::AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let swapping = scope.spawn(|| {
            for moment in 1.. {
                if over.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                let mark = ["a", "b"][moment as usize % 2];
                configure(&lab, moment, &marked(mark));
                let now = format!("branch:/{mark}:");
                until("the new profile", || ask(&address, "/").body.contains(&now));
                // One with a mistake between them.
                if moment % 4 == 1 {
                    // The control server follows the file by itself, maybe behind the entry.
                    let before = serde_json::Value::from(moment + 1);
                    until("the new revision", || {
                        json(&admin, "/topology")["revision"] == before
                    });
                    configure(&lab, moment + 1_000_000, &format!("{}\nx = 1", marked("a")));
                    until("a refusal", || {
                        let metrics = ask(&admin, "/metrics").body;
                        metrics.contains("headroom_graph_profile_refused 1\n")
                    });
                    assert_eq!(json(&admin, "/topology")["revision"], before);
                    assert!(ask(&address, "/").body.contains(&now));
                }
            }
        });
        let asking = (0..4).map(|_| scope.spawn(|| ask_often(&address, 2500)));
        let asking: Vec<_> = asking.collect();
        let seen = asking.into_iter().map(|one| one.join().expect("answers"));
        let seen: Vec<_> = seen.collect();
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        swapping.join().expect("profiles");
        seen
    });
    let all: usize = seen.iter().flatten().sum();
    assert!(all >= 10_000, "{seen:?}");
    assert_eq!(graph.stop(), Some(0));
}
