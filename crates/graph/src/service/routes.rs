//! Whom the instances of a thread call: which connections there are, and who waits for one.

use std::collections::VecDeque;
use std::net::SocketAddr;

use wire::http1::KnownHead;
use wire::slab::Key;

use super::plan::{Callee, Plan};
use super::request_state::{Attempt, PoolId};
use crate::script::OperationId;
use crate::topology::{Connections, Protocol};

/// Calls that may wait for a connection to one callee; further ones fail at once.
const MOST_WAITING: usize = 4096;

/// By instance, and by the slots of its callees.
#[derive(Default)]
pub(super) struct Routes(Vec<Vec<Route>>);

/// The connections of one instance to all instances of one callee.
#[derive(Default)]
pub(super) struct Route {
    pools: Vec<Pool>,
    /// How many of them the newest revision calls.
    used: usize,
    /// Whose turn it is.
    turn: usize,
    /// Most connections to each of them.
    most: usize,
    pub(super) warm: bool,
    /// Whether calls share one connection, as streams of HTTP/2.
    pub(super) streams: bool,
}

impl Route {
    /// Takes over how a revision connects, which may name other addresses.
    fn adopt(&mut self, callee: &Callee) {
        self.streams = callee.protocol != Protocol::Http1;
        (self.warm, self.most) = match callee.connections {
            Connections::Warm(most) => (true, most as usize),
            Connections::Cold(most) => (false, most as usize),
        };
        self.most = self.most.max(1);
        self.used = callee.addresses.len();
        for (place, address) in callee.addresses.iter().enumerate() {
            match self.pools.get_mut(place) {
                Some(pool) => pool.address = *address,
                None => self.pools.push(Pool::new(*address)),
            }
        }
    }

    /// The place of the callee's instance that is called next, of the first `count`.
    fn next(&mut self, count: usize) -> usize {
        let place = self.turn % count.max(1);
        self.turn = place + 1;
        place
    }
}

/// The connections of one instance to one instance of a callee.
pub(super) struct Pool {
    pub(super) address: SocketAddr,
    /// Those without a call; the one used last is used next.
    pub(super) idle: Vec<Key>,
    /// All, idle or not.
    pub(super) open: usize,
    /// The one that carries all calls, if it is HTTP/2.
    pub(super) channel: Option<Key>,
    /// Calls over HTTP/2 that have not ended.
    pub(super) load: usize,
    waiting: VecDeque<Attempt>,
    /// What the callee's answers begin with.
    pub(super) known: KnownHead,
}

impl Pool {
    /// Whether another call can be made now, beside at most `most`.
    fn has_room(&self, streams: bool, most: usize) -> bool {
        if streams {
            self.load < most
        } else {
            !self.idle.is_empty() || self.open < most
        }
    }

    fn new(address: SocketAddr) -> Self {
        Self {
            address,
            idle: Vec::new(),
            open: 0,
            channel: None,
            load: 0,
            waiting: VecDeque::new(),
            known: KnownHead::default(),
        }
    }
}

impl Routes {
    /// Takes over whom an instance calls now. Gives the connections that it needs no more.
    pub(super) fn adopt(&mut self, instance: usize, plan: &Plan) -> Vec<Key> {
        let mut stale = Vec::new();
        if instance >= self.0.len() {
            self.0.resize_with(instance + 1, Vec::new);
        }
        let routes = &mut self.0[instance];
        let slots = plan.callees.len().max(routes.len());
        routes.resize_with(slots, Route::default);
        for (slot, route) in routes.iter_mut().enumerate() {
            let callee = plan.callees.get(slot).and_then(Option::as_ref);
            let before: Vec<_> = route.pools.iter().map(|pool| pool.address).collect();
            match callee {
                Some(callee) => route.adopt(callee),
                None => route.used = 0,
            }
            for (place, pool) in route.pools.iter_mut().enumerate() {
                if place >= route.used || before.get(place) != Some(&pool.address) || !route.warm {
                    stale.append(&mut pool.idle);
                }
            }
        }
        stale
    }

    pub(super) fn route(&mut self, id: PoolId) -> Option<&mut Route> {
        self.0.get_mut(id.instance)?.get_mut(id.slot)
    }

    pub(super) fn pool(&mut self, id: PoolId) -> Option<&mut Pool> {
        self.route(id)?.pools.get_mut(id.place)
    }

    /// The pool whose turn it is of the callee at a slot, which has so many instances, and
    /// whether there is room for another call.
    pub(super) fn next(
        &mut self,
        instance: usize,
        slot: usize,
        count: usize,
    ) -> Option<(PoolId, bool)> {
        let route = self.0.get_mut(instance)?.get_mut(slot)?;
        let place = route.next(count);
        let pool = route.pools.get(place)?;
        let room = pool.waiting.is_empty() && pool.has_room(route.streams, route.most);
        let id = PoolId {
            instance,
            slot,
            place,
        };
        Some((id, room))
    }

    /// Lets an attempt wait for room in its pool; `false`: too many do already.
    pub(super) fn enqueue(&mut self, attempt: Attempt) -> bool {
        let pool = self.pool(attempt.pool);
        let pool = pool.filter(|pool| pool.waiting.len() < MOST_WAITING);
        pool.map(|pool| pool.waiting.push_back(attempt)).is_some()
    }

    /// The attempt that has waited longest, if there is room for it now.
    pub(super) fn dequeue(&mut self, id: PoolId) -> Option<Attempt> {
        let route = self.route(id)?;
        let pool = route.pools.get_mut(id.place)?;
        let room = pool.has_room(route.streams, route.most);
        room.then(|| pool.waiting.pop_front()).flatten()
    }

    /// Takes out an attempt that waits no more.
    pub(super) fn leave_queue(
        &mut self,
        id: PoolId,
        request: Key,
        operation_id: OperationId,
    ) -> Option<Attempt> {
        let pool = self.pool(id)?;
        let at = pool
            .waiting
            .iter()
            .position(|one| one.is(request, operation_id))?;
        pool.waiting.remove(at)
    }

    /// The pool to which a connection is given back that has carried a call to its end;
    /// `None`: the connection is not kept.
    pub(super) fn keeps(&mut self, id: PoolId, address: SocketAddr) -> Option<&mut Pool> {
        let route = self
            .route(id)
            .filter(|route| route.warm && id.place < route.used)?;
        let pool = route.pools.get_mut(id.place)?;
        (pool.address == address && pool.open <= route.most).then_some(pool)
    }

    /// The pool's one connection is of no use for further calls.
    pub(super) fn forget_channel(&mut self, id: PoolId, channel: Key) {
        if let Some(pool) = self.pool(id) {
            pool.channel.take_if(|key| *key == channel);
        }
    }

    /// Whether somebody waits for room in a pool.
    pub(super) fn is_wanted(&mut self, id: PoolId) -> bool {
        self.pool(id).is_some_and(|pool| !pool.waiting.is_empty())
    }
}
