//! Changes of the profile while requests run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::stage::{Client, Stage, graph};
use crate::service::SwapError;

/// Every service answers the path that its profile says, so that a mix is seen.
fn profile(mark: &str) -> String {
    format!(
        r#"
[defaults]
response = "echo"
[services.root]
entry = true
[services.root.endpoints."*"]
steps = [{{ call = "branch", path = "/{mark}" }}]
[services.branch]
[services.branch.endpoints."/{mark}"]
steps = [{{ sleep = "1ms" }}, {{ call = "leaf", path = "/{mark}{mark}" }}]
[services.leaf]
[services.leaf.endpoints."/{mark}{mark}"]
"#
    )
}

#[test]
fn no_request_sees_two_profiles() {
    let stage = Stage::on(&profile("a"), 2);
    let address = stage.address("root");
    let (old, new) = (graph(&profile("a")), graph(&profile("b")));
    let over = AtomicBool::new(false);
    let body = |mark| format!("hello:root:/:hello:branch:/{mark}:hello:leaf:/{mark}{mark}");
    let (before, after) = (body("a"), body("b"));
    std::thread::scope(|scope| {
        let askers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = Client::new(address);
                    let mut seen = [0, 0];
                    while !over.load(Ordering::Relaxed) {
                        let answer = client.get("/");
                        let which = [&before, &after]
                            .iter()
                            .position(|one| **one == answer.body);
                        let which = which.unwrap_or_else(|| panic!("{answer:?}"));
                        seen[which] += 1;
                    }
                    seen
                })
            })
            .collect();
        for round in 0..40 {
            let next = if round % 2 == 0 { &new } else { &old };
            assert_eq!(stage.host.swap(Arc::clone(next)).unwrap(), round + 2);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        over.store(true, Ordering::Relaxed);
        for asker in askers {
            let seen = asker.join().unwrap();
            assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
        }
    });
    // The same profile again is no other one.
    assert_eq!(stage.host.swap(Arc::clone(&old)).unwrap(), 41);
    stage.drain();
}

#[test]
fn the_next_request_runs_under_the_new_profile() {
    let stage = Stage::on(&profile("a"), 2);
    let mut client = stage.client("root");
    let first = client.get("/");
    stage.host.swap(graph(&profile("b"))).unwrap();
    let second = client.get("/");
    assert!(second.body.ends_with("/bb"), "{second:?}");
    let revision =
        |answer: &super::stage::Answer| answer.field("x-headroom-revision").unwrap().to_owned();
    assert_ne!(revision(&first), revision(&second));
    // Who asks for the old one still gets it.
    let asked = format!("x-headroom-revision: {}\r\n", revision(&first));
    assert!(client.ask("GET", "/", &asked).body.ends_with("/aa"));
    assert!(
        client
            .ask("GET", "/", "x-headroom-revision: ?\r\n")
            .body
            .ends_with("/bb")
    );
    stage.drain();
}

#[test]
fn a_profile_that_does_not_fit_changes_nothing() {
    let stage = Stage::new(&profile("a"));
    let gone = graph("[services.root]\nentry = true\n");
    assert!(matches!(stage.host.swap(gone), Err(SwapError::Gone(name)) if name == "branch"));
    let more = profile("b")
        .replace("[services.leaf]", "[services.more]\n[services.leaf]")
        .replace("{ sleep = \"1ms\" }", "{ call = \"more\", path = \"/\" }");
    let refused = stage.host.swap(graph(&more));
    assert!(matches!(refused, Err(SwapError::NoAddress { callee, .. }) if callee == "more"));
    assert!(stage.client("root").get("/").body.ends_with("/aa"));
    assert_eq!(stage.host.topology().1, 1);
    stage.drain();
}
