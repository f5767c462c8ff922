//! Behind an upgrade: bytes go both ways as they are, until both sides have ended.

use wire::deadlines::NEVER;
use wire::stream::Received;

use super::{ActiveRequest, FINISHED, Flow, ONGOING, ThreadResources};
use crate::http::engine::buffers::ROOM;

impl ActiveRequest {
    /// The backend agreed to the upgrade, and the client is about to hear of it.
    pub(super) fn begin_tunnel(&mut self, resources: &mut ThreadResources<'_>) {
        resources.context.counters.upgrades.increment();
        resources.context.counters.open_tunnels.increment();
        self.tunnels = true;
        self.deadline = NEVER;
        // What came behind the head belongs to the other protocol already.
        self.pass_bytes_on(resources);
    }

    /// Takes in bytes of the backend, once.
    pub(super) fn read_tunnel(&mut self, resources: &mut ThreadResources<'_>) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        if !resources.client.took_all() {
            return;
        }
        match connection.receive(ROOM, &mut resources.context.buffers) {
            Ok(Received::Bytes(_)) => self.pass_bytes_on(resources),
            Ok(Received::Nothing) => {}
            Ok(Received::End) | Err(_) => _ = connection.end(),
        }
    }

    fn pass_bytes_on(&mut self, resources: &mut ThreadResources<'_>) {
        if let Some(connection) = &mut self.connection {
            let buffers = &mut resources.context.buffers;
            connection.take_bytes(resources.client.outbox().write_buffer(buffers), buffers);
        }
    }

    /// Sends on what came from either side, and each side's end.
    pub(super) fn carry_tunnel(&mut self, resources: &mut ThreadResources<'_>) -> Flow {
        let Some(connection) = &mut self.connection else {
            return FINISHED;
        };
        if !resources.client.flush(resources.context) {
            return self.give_up(resources);
        }
        let buffers = &mut resources.context.buffers;
        if resources.client.held() > 0 {
            let write_buffer = self.upstream.write_buffer(buffers);
            resources.client.take_bytes(write_buffer, buffers);
        }
        if connection.send(&mut self.upstream, buffers).is_err() {
            return self.end_tunnel(resources);
        }
        let to_backend = resources.client.has_ended() && self.upstream.is_empty();
        let to_client = connection.has_ended() && resources.client.took_all();
        if (to_backend || to_client) && self.deadline == NEVER {
            // One side has ended; the other one is not waited for without a bound.
            let http2 = resources.client.client().http2();
            let timeout = resources.context.shared.settings.backends.timeout_of(http2);
            self.deadline = resources.context.clock.after(timeout);
        }
        if to_client {
            resources.client.end_sending();
        }
        if to_backend {
            connection.end_sending();
        }
        // What TLS or a stream of HTTP/2 still holds would be lost with the connection.
        match to_backend && to_client && !resources.client.holds_sent_bytes() {
            true => self.end_tunnel(resources),
            false => ONGOING,
        }
    }

    /// The tunnel is over.
    pub(super) fn end_tunnel(&mut self, resources: &mut ThreadResources<'_>) -> Flow {
        self.exchange.progress.backend_finished = resources.context.clock.now();
        resources.client.close();
        FINISHED
    }
}
