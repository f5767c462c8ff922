//! The pools of a BBS.

use super::config::Limits;
use crate::pool::Pool;

/// Workers for each kind of work that is done beside the calls.
#[derive(Debug, Clone)]
pub(crate) struct Pools {
    /// Results of tasks to their owners.
    pub(crate) callbacks: Pool,
    /// Instances to the auctioneer.
    pub(crate) lrp_creates: Pool,
    /// Tasks to the auctioneer.
    pub(crate) task_creates: Pool,
    /// Stops and cancellations to cells.
    pub(crate) deletes: Pool,
    /// New routes and tags to cells.
    pub(crate) updates: Pool,
    /// What a pass of convergence changes.
    pub(crate) convergence: Pool,
}

impl Pools {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            callbacks: Pool::new("callbacks", limits.callback_workers),
            lrp_creates: Pool::new("lrp-creates", limits.create_workers),
            task_creates: Pool::new("task-creates", limits.create_workers),
            deletes: Pool::new("deletes", limits.delete_workers),
            updates: Pool::new("updates", limits.update_workers),
            convergence: Pool::new("convergence", limits.convergence_workers),
        }
    }
}
