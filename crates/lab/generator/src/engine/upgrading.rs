//! What a new connection has to agree on before it carries requests: the upgrade to
//! WebSocket, the settings of HTTP/2.

use wire::poller::Interest;
use wire::stream::Received;

use super::connection::Link;
use super::opening::{GONE, unwatched};
use super::talk::Talk;
use super::{BUFFER, Engine};

impl Engine {
    /// Asks for the upgrade, if one is needed. Says whether the connection can carry
    /// requests.
    pub(super) fn upgrade(&mut self, place: u32) -> Result<bool, &'static str> {
        if self.multiplexed() {
            self.begin_session(place)?;
            return self.read_settings(place);
        }
        let composer = &self.setup.composer;
        let connection = &mut self.connections[place as usize];
        let token = connection.token(place);
        let (Talk::WebSocket(talk), Some(stream)) = (&connection.talk, &mut connection.stream)
        else {
            return Ok(true);
        };
        connection.link = Link::Upgrading;
        let visit = connection.exchange.visit.clone();
        let visit = visit.unwrap_or_else(|| composer.begin(self.first));
        let request = talk.handshake(composer, &visit).ok_or("no request")?;
        let sent = stream.send(&request).map_err(|error| error.cause())?;
        if sent < request.len() {
            // A new connection takes far more than any head.
            return Err("send buffer full");
        }
        let changed = self.poller.change(&*stream, token, Interest::Read);
        changed.map(|()| false).map_err(unwatched)
    }

    /// Reads the answer to the upgrade, as far as it is there.
    pub(super) fn read_upgrade(&mut self, place: u32) -> Result<bool, &'static str> {
        if self.multiplexed() {
            return self.read_settings(place);
        }
        let connection = &mut self.connections[place as usize];
        let (Talk::WebSocket(talk), Some(stream)) = (&mut connection.talk, &mut connection.stream)
        else {
            return Err(GONE);
        };
        loop {
            let received = stream.receive(&mut self.buffer);
            match received.map_err(|error| error.cause())? {
                Received::Nothing => return Ok(false),
                Received::End => return Err("closed early"),
                Received::Bytes(received) => {
                    let received = &self.buffer[..received];
                    connection.unread.extend_from_slice(received);
                }
            }
            let upgraded = talk.upgrade(&connection.unread);
            if let Some(length) = upgraded.map_err(|(_, cause)| cause)? {
                connection.unread.drain(..length);
                return Ok(true);
            }
            if connection.unread.len() >= BUFFER {
                return Err("too long");
            }
        }
    }
}
