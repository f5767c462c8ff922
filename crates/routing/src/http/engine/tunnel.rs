//! Behind an upgrade: bytes go both ways as they are, until both sides have ended.

use wire::poller::Event;
use wire::stream::{Received, Stream};

use super::buffers::ROOM;
use super::session::{Phase, Session};
use super::worker::Worker;
use wire::deadlines::NEVER;

impl Worker {
    /// The backend agreed to the upgrade, and the client is about to hear of it.
    pub(super) fn begin_tunnel(&mut self, session: &mut Session) {
        self.counters.upgrades.increment();
        session.phase = Phase::Tunnel;
        session.deadline = NEVER;
        let Some(flight) = &mut session.flight else {
            return;
        };
        // What came behind the head belongs to the other protocol already.
        if let Some(link) = &mut flight.link {
            let sheet = session.outbox.sheet(&mut self.buffers);
            sheet.extend_from_slice(link.inbox.bytes());
            link.inbox.clear(&mut self.buffers);
        }
    }

    /// Something happened to the connection to the backend.
    pub(super) fn tunnel_event(&mut self, session: &mut Session, event: Event) {
        if event.broken && self.link_ended(session) {
            // There is nothing more to be read, and nobody to write to.
            self.end_tunnel(session);
        } else if event.readable {
            self.read_tunnel(session);
        }
    }

    /// Takes in bytes of the backend, once.
    pub(super) fn read_tunnel(&mut self, session: &mut Session) {
        if !session.outbox.is_empty() {
            return;
        }
        let Some(link) = session
            .flight
            .as_mut()
            .and_then(|flight| flight.link.as_mut())
        else {
            return;
        };
        match link
            .inbox
            .receive(&mut link.stream, ROOM, &mut self.buffers)
        {
            Ok(Received::Bytes(_)) => {
                let sheet = session.outbox.sheet(&mut self.buffers);
                sheet.extend_from_slice(link.inbox.bytes());
                link.inbox.clear(&mut self.buffers);
                if link.stream.holds_bytes() {
                    self.look_again(session.key);
                }
            }
            Ok(Received::Nothing) => {}
            Ok(Received::End) | Err(_) => link.ended = true,
        }
    }

    /// Sends on what came from either side, and each side's end.
    pub(super) fn carry_tunnel(&mut self, session: &mut Session) {
        let (client_over, backend_over) = (session.ended, self.link_ended(session));
        if !self.flush(session) {
            return;
        }
        let Some(flight) = &mut session.flight else {
            session.phase = Phase::Closed;
            return;
        };
        let Some(link) = &mut flight.link else {
            session.phase = Phase::Closed;
            return;
        };
        if !session.inbox.is_empty() {
            let sheet = flight.upstream.sheet(&mut self.buffers);
            sheet.extend_from_slice(session.inbox.bytes());
            session.inbox.clear(&mut self.buffers);
        }
        if flight
            .upstream
            .send(&mut link.stream, &mut self.buffers)
            .is_err()
        {
            self.end_tunnel(session);
            return;
        }
        let to_backend = client_over && flight.upstream.is_empty();
        let to_client = backend_over && session.outbox.is_empty();
        if (to_backend || to_client) && session.deadline == NEVER {
            // One side has ended; the other one is not waited for without a bound.
            session.deadline = self.after(self.shared.settings.backends.timeout);
        }
        if to_backend && to_client {
            self.end_tunnel(session);
        } else if to_backend {
            end_sending(&mut link.stream);
        } else if to_client {
            end_sending(&mut session.stream);
        }
    }

    fn link_ended(&self, session: &Session) -> bool {
        session
            .flight
            .as_ref()
            .and_then(|flight| flight.link.as_ref())
            .is_none_or(|link| link.ended)
    }

    /// The tunnel is over: counts and logs it.
    pub(super) fn end_tunnel(&mut self, session: &mut Session) {
        if let Some(flight) = &mut session.flight {
            flight.exchange.progress.backend_finished = self.now;
        }
        self.drop_link(session);
        self.end_flight(session);
        session.phase = Phase::Closed;
    }
}

/// Says that nothing more will be sent. Called again, it changes nothing.
fn end_sending(stream: &mut Stream) {
    // Fails only when the connection is gone, which its own events tell.
    let _ = stream.close_write();
}
