//! BBS, auctioneer and cells together, over their sockets.

use cells::{auctioneer, bbs, rep};
use diego::models::*;
use diego::{Bbs, path};
use net::{Client, ClientOptions};
use tokio::sync::watch;

use crate::desired::{action, tags};
use crate::own_address::own_address;
use crate::patience::until;
use crate::quiet::logger;

struct System {
    bbs: Bbs,
    _server: bbs::Running,
    _ask: watch::Sender<bool>,
    _folder: tempfile::TempDir,
}

impl System {
    async fn start(cells: u32) -> Self {
        let any = "127.0.0.1:0".parse().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (ask, shutdown) = net::shutdown();
        // The two know each other's addresses, so one has to be chosen before.
        let free = own_address();
        let mut config = bbs::Config::new(any, folder.path());
        config.auctioneer_url = Some(format!("http://{free}"));
        let server = bbs::start(config, logger("bbs")).await.unwrap();
        let url = format!("http://{}", server.address());
        let config = auctioneer::Config::new(free, &*url);
        auctioneer::start(config, logger("auctioneer"), shutdown.clone())
            .await
            .unwrap();
        let config = rep::Config::new(cells, any, &*url);
        let rep = rep::start(config, logger("rep"), shutdown).await.unwrap();
        rep.registered().await;
        tokio::spawn(rep.stopped());
        let bbs = Bbs::new(Client::new(ClientOptions::default()), url);
        Self {
            bbs,
            _server: server,
            _ask: ask,
            _folder: folder,
        }
    }

    /// Desires so many tasks, 32 at a time.
    async fn desire_tasks(&self, count: usize) {
        let mut asking = tokio::task::JoinSet::new();
        for lane in 0..32 {
            let bbs = self.bbs.clone();
            asking.spawn(async move {
                for n in (lane..count).step_by(32) {
                    let request = DesireTaskRequest {
                        task_guid: format!("task-{n}"),
                        domain: "test".into(),
                        task_definition: Some(TaskDefinition {
                            root_fs: "preloaded:cflinuxfs4".into(),
                            action: action(),
                            memory_mb: 8,
                            disk_mb: 8,
                            ..TaskDefinition::default()
                        }),
                    };
                    bbs.call::<TaskLifecycleResponse>(path::DESIRE_TASK, &request)
                        .await
                        .unwrap();
                }
            });
        }
        asking.join_all().await;
    }

    async fn tasks(&self) -> Vec<Task> {
        let all = TasksRequest::default();
        self.bbs
            .call::<TasksResponse>(path::TASKS, &all)
            .await
            .unwrap()
            .tasks
    }

    async fn desire_lrp(&self, instances: i32) {
        let request = DesireLrpRequest {
            desired_lrp: Some(DesiredLrp {
                process_guid: "p".into(),
                domain: "test".into(),
                root_fs: "preloaded:cflinuxfs4".into(),
                instances,
                action: action(),
                memory_mb: 8,
                disk_mb: 8,
                ports: vec![8080],
                metric_tags: tags("p"),
                ..DesiredLrp::default()
            }),
        };
        let answer = self
            .bbs
            .call::<DesiredLrpLifecycleResponse>(path::DESIRE_LRP, &request);
        answer.await.unwrap();
    }

    async fn lrps(&self) -> Vec<ActualLrp> {
        let all = ActualLrPsRequest::default();
        self.bbs
            .call::<ActualLrPsResponse>(path::ACTUAL_LRPS, &all)
            .await
            .unwrap()
            .actual_lrps
    }

    async fn completed(&self, count: usize) {
        let completed = |task: &Task| task.state() == task::State::Completed;
        until("all tasks complete", async || {
            let tasks = self.tasks().await;
            tasks.iter().filter(|task| completed(task)).count() >= count
        })
        .await;
    }

    async fn running(&self, count: usize) {
        until("all instances run", async || {
            let lrps = self.lrps().await;
            lrps.len() == count && lrps.iter().all(|lrp| lrp.state == "RUNNING")
        })
        .await;
    }
}

#[tokio::test]
async fn tasks_complete_and_instances_run_until_they_are_scaled_down() {
    let system = System::start(4).await;
    system.desire_tasks(50).await;
    system.completed(50).await;
    assert!(system.tasks().await.iter().all(|task| !task.failed));

    system.desire_lrp(8).await;
    system.running(8).await;
    let lrps = system.lrps().await;
    for number in 0..4 {
        let id = format!("cell-{number}");
        let here = |lrp: &&ActualLrp| lrp.actual_lrp_instance_key.as_ref().unwrap().cell_id == id;
        assert_eq!(lrps.iter().filter(here).count(), 2, "{id}");
    }
    let update = UpdateDesiredLrpRequest {
        process_guid: "p".into(),
        update: Some(DesiredLrpUpdate {
            instances: Some(3),
            ..DesiredLrpUpdate::default()
        }),
    };
    type Answer = DesiredLrpLifecycleResponse;
    system
        .bbs
        .call::<Answer>(path::UPDATE_DESIRED_LRP, &update)
        .await
        .unwrap();
    system.running(3).await;
}
