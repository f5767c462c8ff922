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
