//! The end of a host in good order.
//!
//! Instances that nobody of this host calls leave first: they accept nothing more and close
//! what carries no request. The others go on for those that still work, until no thread
//! has a request in hand.

use wire::clock;

use super::event_loop::EventLoop;
use super::host::{DRAINING, STOPPED};
use super::session::Phase;
use crate::Nanos;

/// For how long no thread must have a request in hand: what one thread says of itself may
/// be old when another one looks at it.
pub(super) const QUIET: Nanos = 5_000_000;

impl EventLoop {
    /// Does what the host's state asks for; `false`: end.
    pub(super) fn follow(&mut self) -> bool {
        let state = self.orders.state();
        if state != self.state {
            self.state = state;
            if state == DRAINING {
                self.leave();
            }
        }
        match state {
            STOPPED => false,
            DRAINING => !self.is_quiet(),
            _ => true,
        }
    }

    /// Says how much this thread has in hand, and whether no thread had any for a while.
    fn is_quiet(&mut self) -> bool {
        let leaving = |instance: usize| self.is_leaving(instance);
        let sessions = self.sessions.values();
        let sessions = sessions.filter(|session| leaving(session.instance)).count();
        let fronts = self.fronts.values();
        let fronts = fronts.filter(|front| leaving(front.instance)).count();
        let busy = self.flights.taken() + sessions + fronts;
        let now = clock::now();
        if !self.orders.say_busy(self.thread, busy) {
            self.busy_at = now;
        }
        now.saturating_sub(self.busy_at) >= QUIET
    }

    /// Whether an instance accepts nothing more.
    pub(super) fn is_leaving(&self, instance: usize) -> bool {
        let instance = self.instances.get(instance);
        instance.is_none_or(|instance| instance.leaving)
    }

    /// Those whom nobody calls from here accept nothing more, and close the connections
    /// that carry no request.
    fn leave(&mut self) {
        for index in 0..self.instances.len() {
            if self.current_plan(index).is_some_and(|plan| plan.inner) {
                continue;
            }
            // Those that were made already are not turned away.
            self.accept(index);
            if let Some(instance) = self.instances.get_mut(index) {
                instance.listener = None;
                instance.leaving = true;
            }
        }
        let keys: Vec<_> = self.sessions.keys().collect();
        for key in keys {
            let Some(mut session) = self.sessions.take(key) else {
                continue;
            };
            let leaving = self.is_leaving(session.instance);
            if leaving && session.phase == Phase::Head && session.rest.is_empty() {
                // A request may be there already.
                self.read(&mut session);
                if session.phase == Phase::Head && session.rest.is_empty() {
                    session.phase = Phase::Closed;
                }
            }
            self.put_session(session);
        }
        self.shut_fronts_down();
        self.settle();
    }
}
