//! Behind an upgrade: bytes go both ways as they are, until both sides have ended.

use wire::deadlines::NEVER;
use wire::stream::Received;

use super::{ActiveRequest, Course, Lent, ON, OVER};
use crate::http::engine::buffers::ROOM;

impl ActiveRequest {
    /// The backend agreed to the upgrade, and the client is about to hear of it.
    pub(super) fn begin_tunnel(&mut self, lent: &mut Lent<'_>) {
        lent.context.counters.upgrades.increment();
        lent.context.counters.open_tunnels.increment();
        self.tunnels = true;
        self.deadline = NEVER;
        // What came behind the head belongs to the other protocol already.
        self.pass_bytes_on(lent);
    }

    /// Takes in bytes of the backend, once.
    pub(super) fn read_tunnel(&mut self, lent: &mut Lent<'_>) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        if !lent.client.took_all() {
            return;
        }
        match connection.receive(ROOM, &mut lent.context.buffers) {
            Ok(Received::Bytes(_)) => self.pass_bytes_on(lent),
            Ok(Received::Nothing) => {}
            Ok(Received::End) | Err(_) => _ = connection.end(),
        }
    }

    fn pass_bytes_on(&mut self, lent: &mut Lent<'_>) {
        if let Some(connection) = &mut self.connection {
            let buffers = &mut lent.context.buffers;
            connection.take_bytes(lent.client.outbox().sheet(buffers), buffers);
        }
    }

    /// Sends on what came from either side, and each side's end.
    pub(super) fn carry_tunnel(&mut self, lent: &mut Lent<'_>) -> Course {
        let Some(connection) = &mut self.connection else {
            return OVER;
        };
        if !lent.client.flush(lent.context) {
            return self.give_up(lent);
        }
        let buffers = &mut lent.context.buffers;
        if lent.client.held() > 0 {
            let sheet = self.upstream.sheet(buffers);
            lent.client.take_bytes(sheet, buffers);
        }
        if connection.send(&mut self.upstream, buffers).is_err() {
            return self.end_tunnel(lent);
        }
        let to_backend = lent.client.has_ended() && self.upstream.is_empty();
        let to_client = connection.has_ended() && lent.client.took_all();
        if (to_backend || to_client) && self.deadline == NEVER {
            // One side has ended; the other one is not waited for without a bound.
            let http2 = lent.client.client().http2();
            let timeout = lent.context.shared.settings.backends.timeout_of(http2);
            self.deadline = lent.context.clock.after(timeout);
        }
        if to_client {
            lent.client.end_sending();
        }
        if to_backend {
            connection.end_sending();
        }
        // What TLS or a stream of HTTP/2 still holds would be lost with the connection.
        match to_backend && to_client && !lent.client.holds_sent_bytes() {
            true => self.end_tunnel(lent),
            false => ON,
        }
    }

    /// The tunnel is over.
    pub(super) fn end_tunnel(&mut self, lent: &mut Lent<'_>) -> Course {
        self.exchange.progress.backend_finished = lent.context.clock.now();
        lent.client.close();
        OVER
    }
}
