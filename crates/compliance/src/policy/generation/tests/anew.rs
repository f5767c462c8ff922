//! Engines that begin with what others made, and what is given out once more.

use super::*;

#[test]
fn an_engine_made_anew_updates_only_what_differs() {
    let mut before = engine();
    generate(&mut before);
    let stored = |engine: &Engine, node: &str| {
        let issued = engine.issued(node).unwrap();
        Remembered {
            config_id: format!("old-{node}").into(),
            digest: issued.digest,
            overridden: Some(issued.overridden),
        }
    };
    let mut again = engine();
    for node in ["root", "web1", "web2", "db1"] {
        again.remember(node, stored(&before, node));
    }
    // What did not hold was another, what is expected of this one could not be read, and that one
    // is not to have any.
    let other = overridden_digest([["r", "d", "r", "e"]].into_iter());
    for (node, overridden) in [("root", None), ("db1", Some(other))] {
        let stored = stored(&before, node);
        let stored = Remembered {
            overridden,
            ..stored
        };
        again.remember(node, stored);
    }
    let mut ignored = node("web3");
    ignored.state = NodeState::Ignored;
    again.apply(vec![set(ignored)]).unwrap();
    again.remember("web3", stored(&before, "web1"));
    // The directive of web servers is another, which only one of them had not yet.
    let site = || Change::SetDirective(directive("site", "instances", &["/srv/other"]));
    before.apply(vec![site()]).unwrap();
    generate(&mut before);
    again.remember("web2", stored(&before, "web2"));
    again.apply(vec![site()]).unwrap();
    let outcome = again.generate(NOW + 60, 2, &no_clock);
    assert_eq!(outcome.generated, 5);
    assert_eq!(updated(&outcome), ["root", "web1", "db1", "web3"]);
    for (node, known) in [
        ("root", true),
        ("db1", true),
        ("web1", false),
        ("web2", true),
    ] {
        let config_id = &again.issued(node).unwrap().config_id;
        assert_eq!(config_id.starts_with("old-"), known, "{node}: {config_id}");
    }
    assert!(again.issued("web3").is_none());
    assert_eq!(updated(&again.generate(NOW + 61, 2, &no_clock)), [""; 0]);
}

#[test]
fn what_could_not_be_kept_is_given_out_again() {
    let mut engine = engine();
    generate(&mut engine);
    let before = Arc::clone(engine.issued("web1").unwrap());
    let mut ignored = node("web2");
    ignored.state = NodeState::Ignored;
    engine.apply(vec![set(ignored)]).unwrap();
    assert_eq!(updated(&generate(&mut engine)), ["web2"]);
    engine.owe(["web1", "web2", "nobody"]);
    let outcome = generate(&mut engine);
    assert_eq!(updated(&outcome), ["web1", "web2"]);
    assert_eq!(outcome.updates[0].policy.as_ref(), Some(&before));
    assert!(!outcome.updates[0].new_config && outcome.updates[1].policy.is_none());
    assert_eq!(updated(&generate(&mut engine)), [""; 0]);
    // One that cannot be made now is given out once it can be made, though it is the same.
    let mut broken = directive("motd", "unique", &["/etc/motd"]);
    broken.technique_name = "none".into();
    engine.owe(["web1"]);
    engine.apply(vec![Change::SetDirective(broken)]).unwrap();
    assert_eq!(updated(&generate(&mut engine)), [""; 0]);
    assert_eq!(engine.issued("web1"), Some(&before));
    let whole = directive("motd", "unique", &["/etc/motd"]);
    engine.apply(vec![Change::SetDirective(whole)]).unwrap();
    assert_eq!(updated(&generate(&mut engine)), ["web1"]);
}

#[test]
fn texts_that_were_not_held_are_made_again() {
    let texts = |bytes: usize| {
        let mut engine = engine();
        engine.whole_bytes = bytes;
        let outcome = generate(&mut engine);
        let held: Vec<usize> = outcome
            .updates
            .iter()
            .filter_map(|one| Some(one.whole.as_ref()?.bytes()))
            .collect();
        let made = engine.of_whole(&outcome.updates, 2, |update, policy| {
            let policy = policy.unwrap();
            assert_eq!(policy.header.node_id, update.node);
            let both = (ExpectedReports(policy), PolicyDocument(policy));
            serde_json::to_string(&both).unwrap()
        });
        (held, made)
    };
    let (held, all) = texts(WHOLE_BYTES);
    assert_eq!(held.len(), 4);
    assert!(all.iter().all(Option::is_some));
    assert_eq!(texts(0), (Vec::new(), all.clone()));
    let (some, again) = texts(held.iter().sum::<usize>() - 1);
    assert!((1..4).contains(&some.len()), "{some:?} of {held:?}");
    assert_eq!(again, all);
}

#[test]
fn an_update_that_was_overtaken_makes_nothing() {
    let mut engine = engine();
    engine.whole_bytes = 0;
    let outcome = generate(&mut engine);
    let other = directive("site", "instances", &["/srv/other"]);
    engine.apply(vec![Change::SetDirective(other)]).unwrap();
    generate(&mut engine);
    let made = engine.of_whole(&outcome.updates, 1, |update, _| update.node.to_string());
    let root_and_db1 = [Some("root".to_owned()), None, None, Some("db1".to_owned())];
    assert_eq!(made, root_and_db1);
}
