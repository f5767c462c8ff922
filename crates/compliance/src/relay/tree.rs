//! The tree of policy servers: the root server, relays that are accepted as such, and the nodes
//! behind them.

use std::iter;

use crate::model::node::ROOT;

/// Relays that may stand between a node and the root server.
pub(crate) const DEPTH: usize = 16;

/// Where a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    /// The server that it has its policies from.
    pub(crate) server: &'a str,
    /// Is it accepted as a relay?
    pub(crate) relay: bool,
}

/// The relays between a node and the root server, the nearest first. Behind what is no relay, is
/// not known, or too deep, nobody hands anything on.
pub(crate) fn relays_above<'a>(
    node: &str,
    place: impl Fn(&str) -> Option<Place<'a>>,
) -> impl Iterator<Item = &'a str> {
    let first = place(node).map(|found| found.server);
    let relay = move |id: Option<&'a str>| {
        let id = id.filter(|id| *id != ROOT)?;
        let found = place(id).filter(|found| found.relay)?;
        Some((id, found.server))
    };
    let mut next = first;
    iter::from_fn(move || {
        let (id, server) = relay(next)?;
        next = Some(server);
        Some(id)
    })
    .take(DEPTH)
}

/// Is a node behind this relay, directly or over other relays?
pub(crate) fn is_behind<'a>(
    node: &str,
    relay: &str,
    place: impl Fn(&str) -> Option<Place<'a>>,
) -> bool {
    relays_above(node, place).any(|above| above == relay)
}

/// Why a node cannot be behind a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Misplaced {
    /// The server is no relay.
    #[error(
        "node {0} is no accepted relay; make it one with headroom compliance relays add {0}, or \
         name root"
    )]
    NoRelay(String),
    /// The server is the node itself, or behind it.
    #[error("node {node} cannot be behind {server}, which is that node or is behind it")]
    Circle { node: String, server: String },
    /// There are too many relays in a row.
    #[error("there would be more than {DEPTH} relays between node {0} and the root server")]
    TooDeep(String),
}

/// Can a node, which may be a relay with `below` relays in a row behind it, be put behind this
/// server?
pub(crate) fn check_place<'a>(
    node: &str,
    server: &str,
    below: usize,
    place: impl Fn(&str) -> Option<Place<'a>>,
) -> Result<(), Misplaced> {
    if server == ROOT {
        return Ok(());
    }
    if !place(server).is_some_and(|found| found.relay) {
        return Err(Misplaced::NoRelay(server.to_owned()));
    }
    if server == node || is_behind(server, node, &place) {
        let (node, server) = (node.to_owned(), server.to_owned());
        return Err(Misplaced::Circle { node, server });
    }
    if 1 + relays_above(server, &place).count() + below >= DEPTH {
        return Err(Misplaced::TooDeep(node.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Tree = BTreeMap<String, (String, bool)>;

    fn tree(nodes: &[(&str, &str, bool)]) -> Tree {
        let own = |(node, server, relay): &(&str, &str, bool)| {
            ((*node).to_owned(), ((*server).to_owned(), *relay))
        };
        nodes.iter().map(own).collect()
    }

    fn places<'t>(tree: &'t Tree) -> impl Fn(&str) -> Option<Place<'t>> {
        |id| {
            let (server, relay) = tree.get(id)?;
            let relay = *relay;
            Some(Place { server, relay })
        }
    }

    #[test]
    fn a_node_is_behind_each_relay_on_its_way_to_the_root() {
        let tree = tree(&[
            ("r1", "root", true),
            ("r2", "r1", true),
            ("n1", "r1", false),
            ("n2", "r2", false),
            ("n3", "root", false),
            // It names one that is no relay, and one that nobody knows.
            ("n4", "n3", false),
            ("n5", "nobody", false),
        ]);
        let above = |node| relays_above(node, places(&tree)).collect::<Vec<_>>();
        assert_eq!(above("n2"), ["r2", "r1"]);
        assert_eq!(above("n1"), ["r1"]);
        assert_eq!(above("r2"), ["r1"]);
        for node in ["r1", "n3", "n4", "n5", "nobody", "root"] {
            assert!(above(node).is_empty(), "{node}");
        }
        assert!(is_behind("n2", "r1", places(&tree)));
        assert!(!is_behind("n1", "r2", places(&tree)));
        assert!(!is_behind("r1", "r1", places(&tree)));
    }

    #[test]
    fn what_is_behind_a_relay_that_is_one_no_more_is_behind_nobody() {
        let tree = tree(&[
            ("r1", "root", true),
            ("r2", "r1", false),
            ("n", "r2", false),
        ]);
        assert_eq!(relays_above("n", places(&tree)).count(), 0);
    }

    #[test]
    fn a_node_is_put_behind_relays_only_and_never_behind_itself() {
        let tree = tree(&[
            ("r1", "root", true),
            ("r2", "r1", true),
            ("n", "root", false),
        ]);
        let check = |node: &str, server: &str| check_place(node, server, 0, places(&tree));
        assert_eq!(check("n", "r2"), Ok(()));
        assert_eq!(check("r2", "root"), Ok(()));
        let no_relay = |id: &str| Err(Misplaced::NoRelay(id.to_owned()));
        assert_eq!(check("r1", "n"), no_relay("n"));
        assert_eq!(check("n", "nobody"), no_relay("nobody"));
        for server in ["r1", "r2"] {
            let refused = check("r1", server);
            assert!(
                matches!(refused, Err(Misplaced::Circle { .. })),
                "{refused:?}"
            );
        }
    }

    proptest! {
        /// However nodes name each other, the way up ends; and what was checked never makes a
        /// circle: each way ends at the root within the depth.
        #[test]
        fn checked_places_are_a_tree(moves in proptest::collection::vec((0..12u8, 0..12u8), 0..60)) {
            let name = |number: u8| match number {
                0 => "root".to_owned(),
                number => format!("r{number}"),
            };
            let mut tree: Tree = (1..12)
                .map(|number| (name(number), ("root".to_owned(), number % 4 != 3)))
                .collect();
            for (node, server) in moves {
                let (node, server) = (name(node.max(1)), name(server));
                if check_place(&node, &server, 11, places(&tree)).is_ok() {
                    tree.get_mut(&node).unwrap().0 = server;
                }
                for node in tree.keys() {
                    let above: Vec<_> = relays_above(node, places(&tree)).collect();
                    prop_assert!(above.len() < DEPTH);
                    let last = above.last().map_or(&**node, |last| *last);
                    let (server, _) = &tree[last];
                    prop_assert_eq!(server, "root");
                }
            }
        }

        #[test]
        fn any_naming_ends(names in proptest::collection::vec((0..8u8, any::<bool>()), 8)) {
            let tree: Tree = names.iter().zip(0..8u8)
                .map(|((server, relay), node)| {
                    (format!("n{node}"), (format!("n{server}"), *relay))
                })
                .collect();
            for node in tree.keys() {
                prop_assert!(relays_above(node, places(&tree)).count() <= DEPTH);
            }
        }
    }
}
