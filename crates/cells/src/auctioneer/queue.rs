//! Work that waits for the next round.

use std::collections::HashSet;
use std::sync::Mutex;

use diego::auction::{Lrp, LrpStartRequest, Task};
use tokio::sync::Notify;

use crate::mutex::lock;

/// Two bounded lists and a bell that rings when there is something in them.
pub(super) struct Queue {
    waiting: Mutex<Batch>,
    bell: Notify,
    most: usize,
}

/// Work of one round, without duplicates.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) lrps: Vec<Lrp>,
    pub(super) tasks: Vec<Task>,
}

/// The queue has no place for so much more.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{waiting} pieces of work wait already, {most} may: try again later")]
pub(super) struct Full {
    waiting: usize,
    most: usize,
}

impl Queue {
    pub(super) fn new(most: usize) -> Self {
        Self {
            waiting: Mutex::default(),
            bell: Notify::new(),
            most,
        }
    }

    /// Adds every index of every request, or nothing.
    pub(super) fn add_lrps(&self, requests: Vec<LrpStartRequest>) -> Result<(), Full> {
        let count = requests.iter().map(|request| request.indices.len()).sum();
        self.add(count, |batch| {
            batch.lrps.extend(requests.iter().flat_map(instances))
        })
    }

    /// Adds all tasks, or nothing.
    pub(super) fn add_tasks(&self, tasks: Vec<Task>) -> Result<(), Full> {
        self.add(tasks.len(), |batch| batch.tasks.extend(tasks))
    }

    fn add(&self, count: usize, add: impl FnOnce(&mut Batch)) -> Result<(), Full> {
        let mut batch = lock(&self.waiting);
        let waiting = batch.lrps.len() + batch.tasks.len();
        // A request that alone is more than may wait would never be taken otherwise; its body
        // has a bound.
        if waiting > 0 && waiting + count > self.most {
            return Err(Full {
                waiting,
                most: self.most,
            });
        }
        add(&mut batch);
        drop(batch);
        if count > 0 {
            self.bell.notify_one();
        }
        Ok(())
    }

    /// Instances and tasks that wait, and how much may.
    pub(super) fn lengths(&self) -> (usize, usize, usize) {
        let batch = lock(&self.waiting);
        (batch.lrps.len(), batch.tasks.len(), self.most)
    }

    /// Returns once something waits. A call may return with nothing waiting when
    /// the work behind its ring went into an earlier round.
    pub(super) async fn work(&self) {
        self.bell.notified().await;
    }

    /// Takes all that waits. Of equal pieces the first stays.
    pub(super) fn drain(&self) -> Batch {
        let mut batch = std::mem::take(&mut *lock(&self.waiting));
        let mut seen = HashSet::with_capacity(batch.lrps.len());
        batch
            .lrps
            .retain(|lrp| seen.insert((lrp.process_guid.clone(), lrp.index)));
        let mut seen = HashSet::with_capacity(batch.tasks.len());
        batch
            .tasks
            .retain(|task| seen.insert(task.task_guid.clone()));
        batch
    }
}

fn instances(request: &LrpStartRequest) -> impl Iterator<Item = Lrp> + '_ {
    request.indices.iter().map(|&index| Lrp {
        process_guid: request.process_guid.clone(),
        index,
        domain: request.domain.clone(),
        placement: request.placement.clone(),
        resource: request.resource,
        ..Lrp::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(process: &str, indices: &[i32]) -> LrpStartRequest {
        LrpStartRequest {
            process_guid: process.into(),
            indices: indices.into(),
            ..LrpStartRequest::default()
        }
    }

    fn task(guid: &str) -> Task {
        Task {
            task_guid: guid.into(),
            ..Task::default()
        }
    }

    #[test]
    fn equal_work_is_taken_once() {
        let queue = Queue::new(100);
        queue
            .add_lrps(vec![request("a", &[0, 1]), request("a", &[1, 2])])
            .unwrap();
        queue.add_lrps(vec![request("b", &[0])]).unwrap();
        queue
            .add_tasks(vec![task("t"), task("u"), task("t")])
            .unwrap();
        let batch = queue.drain();
        let ids: Vec<(&str, i32)> = batch
            .lrps
            .iter()
            .map(|lrp| (lrp.process_guid.as_str(), lrp.index))
            .collect();
        assert_eq!(ids, [("a", 0), ("a", 1), ("a", 2), ("b", 0)]);
        assert_eq!(batch.tasks, [task("t"), task("u")]);
        assert!(queue.drain().tasks.is_empty());
    }

    #[test]
    fn a_full_queue_takes_all_of_a_request_or_nothing() {
        let queue = Queue::new(3);
        queue.add_lrps(vec![request("a", &[0, 1])]).unwrap();
        let full = queue.add_tasks(vec![task("t"), task("u")]).unwrap_err();
        assert_eq!(
            full,
            Full {
                waiting: 2,
                most: 3
            }
        );
        assert_eq!(queue.drain().lrps.len(), 2);
        queue.add_tasks(vec![task("t"), task("u")]).unwrap();
    }

    /// Or nobody would ever place it.
    #[test]
    fn an_empty_queue_takes_a_request_of_any_size() {
        let queue = Queue::new(3);
        queue.add_lrps(vec![request("a", &[0, 1, 2, 3])]).unwrap();
        let full = queue.add_tasks(vec![task("t")]).unwrap_err();
        assert_eq!((full.waiting, full.most), (4, 3));
        assert_eq!(queue.drain().lrps.len(), 4);
    }
}
