use proptest::prelude::*;

use super::*;

impl NodeKey for u8 {
    fn is_same(&self, other: &Self) -> bool {
        self == other
    }
}

fn newcomer(id: &str, hostname: &str, key: u8) -> NodeCandidate<u8> {
    NodeCandidate {
        id: id.into(),
        hostname: hostname.into(),
        key,
    }
}

#[test]
fn a_node_is_pending_then_accepted_then_updated_then_deleted() {
    let mut nodes = Nodes::new(10);
    assert_eq!(
        nodes.receive(newcomer("a", "web", 1)),
        Ok(Arrival::NewPending)
    );
    assert_eq!(nodes.get("a").unwrap().standing, NodeStatus::Pending);
    assert_eq!(
        nodes.receive(newcomer("a", "web1", 1)),
        Ok(Arrival::StillPending)
    );
    assert_eq!(nodes.accept("a", false).unwrap().hostname, "web1");
    assert_eq!(nodes.get("a").unwrap().standing, NodeStatus::Accepted);
    assert_eq!(
        nodes.receive(newcomer("a", "web2", 1)),
        Ok(Arrival::Updated)
    );
    assert!(matches!(
        nodes.accept("a", false),
        Err(DecisionError::NotPending { .. })
    ));
    assert!(matches!(
        nodes.refuse("a"),
        Err(DecisionError::NotPending { .. })
    ));
    assert_eq!(nodes.delete("a").unwrap().hostname, "web2");
    assert!(matches!(
        nodes.delete("a"),
        Err(DecisionError::NotAccepted { .. })
    ));
    assert!(nodes.get("a").is_none());
    assert_eq!(
        nodes.receive(newcomer("a", "web2", 2)),
        Ok(Arrival::NewPending)
    );
}

#[test]
fn another_key_is_rejected_until_it_is_reset() {
    let mut nodes = Nodes::new(10);
    nodes.receive(newcomer("a", "web", 1)).unwrap();
    let rejected = Err(Rejected::OtherKey { id: "a".into() });
    assert_eq!(nodes.receive(newcomer("a", "web", 2)), rejected);
    assert!(nodes.reset_key("a").is_err());
    nodes.accept("a", false).unwrap();
    assert_eq!(nodes.receive(newcomer("a", "web", 2)), rejected);
    nodes.reset_key("a").unwrap();
    assert_eq!(nodes.key("a"), None);
    assert_eq!(nodes.receive(newcomer("a", "web", 2)), Ok(Arrival::Updated));
    assert_eq!(nodes.key("a"), Some(&2));
    assert_eq!(nodes.receive(newcomer("a", "web", 1)), rejected);
}

#[test]
fn duplicate_hostnames_the_root_server_and_floods_are_refused() {
    let mut nodes = Nodes::new(2);
    assert_eq!(
        nodes.receive(newcomer("root", "server", 9)),
        Err(Rejected::Root)
    );
    let root = Known {
        standing: NodeStatus::Accepted,
        hostname: "server".into(),
        key: 1,
        key_status: KeyStatus::Certified,
    };
    nodes.restore("root".into(), root);
    assert_eq!(nodes.delete("root"), Err(DecisionError::Root));
    assert_eq!(
        nodes.receive(newcomer("root", "server", 1)),
        Ok(Arrival::Updated)
    );
    nodes.receive(newcomer("a", "Server", 2)).unwrap();
    nodes.receive(newcomer("b", "b", 3)).unwrap();
    let full = Err(Rejected::Full { limit: 2 });
    assert_eq!(nodes.receive(newcomer("c", "c", 4)), full);
    assert!(matches!(
        nodes.accept("a", false),
        Err(DecisionError::DuplicateHostname { .. })
    ));
    assert!(nodes.accept("a", true).is_ok());
    nodes.refuse("b").unwrap();
    assert_eq!(
        nodes.receive(newcomer("c", "c", 4)),
        Ok(Arrival::NewPending)
    );
    assert_eq!(nodes.get("c").unwrap().standing, NodeStatus::Pending);
    assert!(nodes.get("b").is_none());
}

#[derive(Debug, Clone)]
enum Step {
    Receive(u8, u8, u8),
    Accept(u8, bool),
    Refuse(u8),
    Delete(u8),
    Reset(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0..4_u8, 0..3_u8, 0..3_u8).prop_map(|(id, name, key)| Step::Receive(id, name, key)),
        3 => (0..4_u8, any::<bool>()).prop_map(|(id, any)| Step::Accept(id, any)),
        1 => (0..4_u8).prop_map(Step::Refuse),
        1 => (0..4_u8).prop_map(Step::Delete),
        1 => (0..4_u8).prop_map(Step::Reset),
    ]
}

/// The rules once more, as plainly as can be: accepted, name, key, key settled.
type Plain = std::collections::BTreeMap<u8, (bool, u8, u8, bool)>;

fn plainly(plain: &mut Plain, step: &Step, limit: usize) -> bool {
    let before = plain.clone();
    match *step {
        Step::Receive(id, name, key) => match before.get(&id) {
            None => {
                let pending = before.values().filter(|node| !node.0).count();
                let room = pending < limit;
                if room {
                    plain.insert(id, (false, name, key, true));
                }
                room
            }
            Some((accepted, _, known, settled)) => {
                let same = !settled || *known == key;
                if same {
                    plain.insert(id, (*accepted, name, key, true));
                }
                same
            }
        },
        Step::Accept(id, any) => {
            let Some((false, name, key, settled)) = before.get(&id).copied() else {
                return false;
            };
            let taken = before.values().any(|node| node.0 && node.1 == name);
            if taken && !any {
                return false;
            }
            plain.insert(id, (true, name, key, settled));
            true
        }
        Step::Refuse(id) => {
            before.get(&id).is_some_and(|node| !node.0) && plain.remove(&id).is_some()
        }
        Step::Delete(id) => {
            before.get(&id).is_some_and(|node| node.0) && plain.remove(&id).is_some()
        }
        Step::Reset(id) => match plain.get_mut(&id) {
            Some(node) if node.0 => {
                node.3 = false;
                true
            }
            _ => false,
        },
    }
}

proptest! {
    #[test]
    fn any_sequence_follows_the_rules(steps in proptest::collection::vec(step(), 0..60)) {
        let (mut nodes, mut plain) = (Nodes::new(3), Plain::new());
        for step in &steps {
            let done = match step {
                Step::Receive(id, name, key) => {
                    // Letters differ only in their size now and then.
                    let name = if key % 2 == 0 { format!("N{name}") } else { format!("n{name}") };
                    nodes.receive(newcomer(&id.to_string(), &name, *key)).is_ok()
                }
                Step::Accept(id, any) => nodes.accept(&id.to_string(), *any).is_ok(),
                Step::Refuse(id) => nodes.refuse(&id.to_string()).is_ok(),
                Step::Delete(id) => nodes.delete(&id.to_string()).is_ok(),
                Step::Reset(id) => nodes.reset_key(&id.to_string()).is_ok(),
            };
            prop_assert_eq!(done, plainly(&mut plain, step, 3), "{:?}", step);
            let found: Plain = nodes
                .known
                .iter()
                .map(|(id, node)| {
                    let name = node.hostname[1..].parse().unwrap();
                    let settled = node.key_status == KeyStatus::Certified;
                    let accepted = node.standing == NodeStatus::Accepted;
                    (id.parse().unwrap(), (accepted, name, node.key, settled))
                })
                .collect();
            prop_assert_eq!(&found, &plain);
            prop_assert_eq!(nodes.pending, plain.values().filter(|node| !node.0).count());
            prop_assert_eq!(
                nodes.hostnames.values().sum::<usize>(),
                plain.values().filter(|node| node.0).count()
            );
        }
    }
}
