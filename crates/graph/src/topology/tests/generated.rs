//! Graphs of any size.

use super::super::generate::*;
use super::super::*;
use super::reading::source;

fn reads_back(graph: &Topology) {
    let text = graph.to_toml();
    assert!(text.len() < document::MOST_BYTES, "{}", text.len());
    assert_eq!(&read(&source(&text)).unwrap(), graph);
}

fn depths(graph: &Topology) -> Vec<u32> {
    // By the shortest way.
    let mut depths = vec![u32::MAX; graph.services.len()];
    depths[graph.entry.0 as usize] = 0;
    for from in graph.callers_first() {
        let depth = depths[from.0 as usize];
        for edge in graph.edges.iter().filter(|edge| edge.from == from) {
            let to = &mut depths[edge.to.0 as usize];
            *to = (*to).min(depth.saturating_add(1));
        }
    }
    depths
}

#[test]
fn a_chain_is_a_line() {
    let graph = chain(3).unwrap();
    let pairs: Vec<_> = graph
        .edges
        .iter()
        .map(|edge| (edge.from.0, edge.to.0))
        .collect();
    assert_eq!(pairs, [(0, 1), (1, 2)]);
    assert_eq!(graph.name, "chain-3");
    reads_back(&graph);
    reads_back(&chain(1).unwrap());
    reads_back(&chain(MOST_SERVICES).unwrap());
    assert_eq!(chain(0), Err(GenerateError::Size { found: 0 }));
    let error = chain(MOST_SERVICES + 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a graph has 1 to 10000 services; this one would have 10001"
    );
}

#[test]
fn a_tree_calls_its_branches_at_once() {
    let graph = tree(3, 3).unwrap();
    assert_eq!((graph.services.len(), graph.edges.len()), (13, 12));
    assert_eq!(
        depths(&graph).iter().filter(|depth| **depth == 2).count(),
        9
    );
    let Action::Parallel { branches, .. } = &graph.services[0].endpoints[0].steps[0].action else {
        panic!("{:?}", graph.services[0]);
    };
    assert_eq!(branches.len(), 3);
    reads_back(&graph);
    assert_eq!(tree(1, 9).unwrap().services.len(), 1);
    assert_eq!(tree(4, 0).unwrap().services.len(), 1);
    assert_eq!(tree(5, 1).unwrap().services.len(), 5);
    assert_eq!(tree(0, 2), Err(GenerateError::Size { found: 0 }));
    assert!(tree(u32::MAX, u32::MAX).is_err());
    assert!(tree(u32::MAX, 1).is_err());
}

#[test]
fn a_random_graph_has_the_shape_that_was_asked_for() {
    let shape = RandomShape::default();
    let graph = random(&shape, 7).unwrap();
    assert_eq!(graph, random(&shape, 7).unwrap());
    assert_ne!(graph, random(&shape, 8).unwrap());
    reads_back(&graph);
    assert_eq!(graph.services.len(), 1000);

    let depths = depths(&graph);
    let mean = depths.iter().map(|depth| f64::from(*depth)).sum::<f64>() / 1000.0;
    assert!((3.3..=4.2).contains(&mean), "{mean}");
    let usual = depths
        .iter()
        .filter(|depth| (3..=5).contains(*depth))
        .count();
    assert!(usual > 500, "{usual}");

    let count = |of: fn(&Edge) -> ServiceId| {
        let mut counts = vec![0_u32; 1000];
        for edge in &graph.edges {
            counts[of(edge).0 as usize] += 1;
        }
        counts.sort_unstable();
        counts
    };
    let (callers, callees) = (count(|edge| edge.to), count(|edge| edge.from));
    // Most are called by one other, and the hot ones by many.
    assert_eq!(callers[500], 1);
    assert!(callers[999] >= 10, "{:?}", &callers[980..]);
    // Many call nobody; a few call many.
    let leaves = callees.iter().filter(|callees| **callees == 0).count();
    assert!((200..=550).contains(&leaves), "{leaves}");
    assert!(callees[999] >= 30, "{:?}", &callees[980..]);
    let calls: f64 = demand::visits(&graph, 0).iter().flatten().sum();
    assert!((3.0..=200.0).contains(&calls), "{calls}");
}

#[test]
fn random_graphs_of_every_size_can_be_read() {
    for services in 1..40 {
        let shape = RandomShape {
            services,
            depth: 1.0 + f64::from(services % 7),
            hot: f64::from(services % 3) / 2.0,
            sharing: f64::from(services % 5) / 4.0,
            ..RandomShape::default()
        };
        for seed in 0..5 {
            reads_back(&random(&shape, seed).unwrap());
        }
    }
}

#[test]
fn a_shape_without_meaning_is_refused() {
    let wrong = |change: fn(&mut RandomShape)| {
        let mut shape = RandomShape::default();
        change(&mut shape);
        random(&shape, 1).unwrap_err().to_string()
    };
    for (said, expected) in [
        (
            wrong(|shape| shape.services = 0),
            "a graph has 1 to 10000 services; this one would have 0",
        ),
        (
            wrong(|shape| shape.depth = 0.5),
            "the shape's depth is 0.5; expected 1 to 20",
        ),
        (
            wrong(|shape| shape.tail = f64::NAN),
            "the shape's tail is NaN; expected a number above 1",
        ),
        (
            wrong(|shape| shape.hot = 1.5),
            "the shape's hot is 1.5; expected 0 to 1",
        ),
        (
            wrong(|shape| shape.sharing = -1.0),
            "the shape's sharing is -1; expected 0 to 1",
        ),
        (
            wrong(|shape| shape.calls = 0.0),
            "the shape's calls is 0; expected a number above 0",
        ),
        (
            wrong(|shape| shape.at_once = 2.0),
            "the shape's at_once is 2; expected 0 to 1",
        ),
    ] {
        assert_eq!(said, expected);
    }
}
