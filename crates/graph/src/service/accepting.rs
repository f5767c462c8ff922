//! Callers come, and are sent away.

use rustix::io::Errno;
use wire::deadlines::NEVER;
use wire::poller::Interest;
use wire::socket;
use wire::stream::Stream;

use super::event_loop::EventLoop;
use super::session::{IDLE, Session};
use super::token::Token;
use crate::Nanos;
use crate::topology::Protocol;

/// Connections accepted at one wake-up: a flood of new ones must not hold up the others.
const AT_ONCE: usize = 32;
/// How long accepting pauses when the system has no descriptors left.
const PAUSE: Nanos = 100_000_000;

impl EventLoop {
    /// Begins to watch the listeners.
    pub(super) fn listen(&mut self) -> std::io::Result<()> {
        for (index, instance) in self.instances.iter().enumerate() {
            if let Some(listener) = &instance.listener {
                self.poller.add(listener, token(index), Interest::Read)?;
            }
        }
        Ok(())
    }

    /// Accepts the connections that wait.
    pub(super) fn accept(&mut self, index: usize) {
        for _ in 0..AT_ONCE {
            let listener = self.instances.get(index).map(|one| &one.listener);
            let Some(Some(listener)) = listener else {
                return;
            };
            if self.sessions.taken() + self.fronts.taken() >= self.most_sessions {
                self.pause_accepting(index);
                return;
            }
            match socket::accept(listener) {
                Ok(Some((socket, _))) => self.welcome(index, Stream::Plain(socket)),
                Ok(None) => return,
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    self.pause_accepting(index);
                    return;
                }
                // One went away meanwhile.
                Err(_) => {}
            }
        }
    }

    /// There are no descriptors left, or as many callers as may be: level-triggered
    /// readiness would keep this thread busy.
    fn pause_accepting(&mut self, index: usize) {
        let Some(instance) = self.instances.get_mut(index) else {
            return;
        };
        if let Some(listener) = &instance.listener {
            let change = self
                .poller
                .change(listener, token(index), Interest::Nothing);
            instance.paused = change.is_ok();
        }
        self.timers.accept = self.now.saturating_add(PAUSE);
    }

    pub(super) fn resume_accepting(&mut self) {
        self.timers.accept = NEVER;
        for (index, instance) in self.instances.iter_mut().enumerate() {
            if instance.paused
                && let Some(listener) = &instance.listener
            {
                let change = self.poller.change(listener, token(index), Interest::Read);
                instance.paused = change.is_err();
            }
        }
    }

    fn welcome(&mut self, index: usize, stream: Stream) {
        let protocol = self.current_plan(index).map(|plan| plan.protocol);
        if let Some(protocol @ (Protocol::Http2 | Protocol::Grpc)) = protocol {
            self.begin_front(index, protocol, stream);
            return;
        }
        let key = self.sessions.reserve();
        let token = Token::Session(key).number();
        if self.poller.add(&stream, token, Interest::Read).is_err() {
            self.sessions.release(key);
            return;
        }
        if let Some(plan) = self.current_plan(index) {
            plan.counters.accepted();
        }
        let mut session = Session::new(key, index, stream);
        session.deadline = self.now.saturating_add(IDLE);
        self.put_session(Box::new(session));
    }
}

fn token(listener: usize) -> u64 {
    Token::Listener(listener as u32).number()
}
