//! Policies with their texts. Those of a large fleet are gigabytes, so only some stay with the
//! outcome of a generation; all others are expanded again where they are needed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::build::{Shared, Tally};
use super::{Engine, NodeUpdate};
use crate::cores;
use crate::model::ids::NodeIx;
use crate::model::node_set::NodeSet;
use crate::policy::node_policy::{Issued, NodePolicy};

/// Bytes of texts that the outcome of a generation holds.
pub(super) const WHOLE_BYTES: usize = 64 << 20;

/// A policy as it was built; its config id is yet to be given.
pub(super) struct Made {
    pub(super) issued: Issued,
    /// All of it, if it is another than before and there was room.
    pub(super) whole: Option<Box<NodePolicy>>,
}

/// What is left of the bytes that policies with texts may take.
pub(super) struct Room(AtomicUsize);

impl Room {
    pub(super) fn new(bytes: usize) -> Self {
        Self(AtomicUsize::new(bytes))
    }

    fn take(&self, bytes: usize) -> bool {
        let less = |left: usize| left.checked_sub(bytes);
        let relaxed = Ordering::Relaxed;
        self.0.fetch_update(relaxed, relaxed, less).is_ok()
    }
}

impl Shared<'_> {
    pub(super) fn made(&self, ix: NodeIx, policy: NodePolicy, room: &Room) -> Made {
        let issued = Issued::of(&policy);
        let needed = !self.engine.is_kept(ix, Some(&issued)) && room.take(policy.bytes());
        Made {
            issued,
            whole: needed.then(|| Box::new(policy)),
        }
    }

    /// The policy of an update with all its texts. None if the node has none, and none if the
    /// engine has gone on since the update and would make another.
    fn whole(&self, update: &NodeUpdate, tally: &mut Tally) -> Option<Arc<NodePolicy>> {
        let issued = update.policy.as_ref()?;
        if let Some(whole) = &update.whole {
            return Some(Arc::clone(whole));
        }
        let ix = self.engine.nodes.names.get(&update.node)?;
        let made = self.policy(ix, &|| Duration::ZERO, tally).ok()??;
        (made.digest == issued.digest).then(|| {
            Arc::new(NodePolicy {
                config_id: Arc::clone(&issued.config_id),
                ..made
            })
        })
    }
}

impl Engine {
    /// Makes something of updates of the last generation, in their order, by so many threads: of
    /// each, and of its policy with all texts. That is none of a node that gets none any more. An
    /// update that later changes have overtaken makes nothing.
    pub fn of_whole<T: Send>(
        &mut self,
        updates: &[NodeUpdate],
        threads: usize,
        make: impl Fn(&NodeUpdate, Option<&NodePolicy>) -> T + Sync,
    ) -> Vec<Option<T>> {
        let lack = updates.iter().filter(|update| update.whole.is_none());
        let lack = lack.filter_map(|update| self.nodes.names.get(&update.node));
        let lack: NodeSet = lack.collect();
        let shared = self.shared(&lack);
        let one = |update: &NodeUpdate, tally: &mut Tally| {
            let whole = shared.whole(update, tally);
            if update.policy.is_some() && whole.is_none() {
                return None;
            }
            Some(make(update, whole.as_deref()))
        };
        let (made, _) = cores::shared_with(threads, updates, Tally::default, one);
        let merged = shared.merged.into_inner();
        self.merged = merged.unwrap_or_else(PoisonError::into_inner);
        made
    }
}
