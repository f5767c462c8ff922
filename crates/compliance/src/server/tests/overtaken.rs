//! What is told in another order than it was kept in.

use std::collections::HashMap;

use tokio::sync::mpsc;

use super::*;
use crate::model::inventory::Inventory;
use crate::model::node::NodeState;
use crate::policy::generation::{Change, Engine, Settings};
use crate::server::administered::Administered;
use crate::server::fleet::Compliance;
use crate::server::generator::{Generator, Task};
use crate::server::metrics::Metrics;

#[tokio::test(flavor = "multi_thread")]
async fn an_inventory_that_is_told_late_undoes_nothing_that_was_set() {
    let place = Place::sqlite();
    let (compliance, _) = {
        let store = place.store().unwrap();
        let loaded = Compliance::load(&store, &State::default(), 0, 1).await;
        loaded.unwrap()
    };
    let (commands, view) = place.writer().await;
    for node in ["set", "gone", "usual"] {
        let (_, certificate) = identity(node);
        commands.run(newcome(node, &certificate)).await.unwrap();
        commands.run(decide(node, true)).await.unwrap();
    }
    let told = |id: &str| {
        let node = Arc::clone(&view.read().nodes[id].node);
        let (node_id, inventory) = (id.to_owned(), Inventory::default());
        Task::Nodes(vec![
            Change::SetNode(node),
            Change::SetInventory {
                node: node_id,
                inventory,
            },
        ])
    };
    let late = ["set", "gone", "usual"].map(told);
    let ignored = Request::Administer {
        node: "set".into(),
        change: Administered {
            state: Some(NodeState::Ignored),
            ..Administered::default()
        },
    };
    commands.run(ignored).await.unwrap();
    commands.run(Request::Delete("gone".into())).await.unwrap();

    let generator = Generator {
        engine: Engine::new(Settings::default()),
        commands: commands.clone(),
        view: view.clone(),
        compliance: Arc::new(compliance),
        metrics: Arc::new(Metrics::default()),
        runtime: tokio::runtime::Handle::current(),
        threads: 1,
        logger: logger(),
        owing: false,
        known_groups: HashMap::new(),
    };
    let (tasks, waiting) = mpsc::channel(8);
    let set = Task::Administered("set".into());
    let gone = Task::Nodes(vec![Change::RemoveNode("gone".into())]);
    for task in [set, gone].into_iter().chain(late).chain([Task::Stop]) {
        tasks.send(task).await.unwrap();
    }
    let run = tokio::task::spawn_blocking(move || generator.run(waiting));
    run.await.unwrap();
    let state = view.read();
    let given: Vec<&str> = state.policies.keys().map(|node| &**node).collect();
    assert_eq!(given, ["usual"]);
}
