//! Bytes that wait to be sent.

use wire::stream::{Stream, StreamError};

/// The text of all bodies that are so many bytes of nothing in particular, repeated.
pub(super) static FILLER: &[u8; 16 * 1024] = &filler();
/// A body up to this length is copied behind its head, so that one call sends both.
const COPIED: u64 = FILLER.len() as u64;
/// A buffer that has grown beyond this is given back to the system.
const KEEP: usize = 64 * 1024;

const fn filler() -> [u8; 16 * 1024] {
    let line = b"Bytes of no meaning, as many as the profile of the service asks.\n";
    let mut text = [0; 16 * 1024];
    let mut at = 0;
    while at < text.len() {
        text[at] = line[at % line.len()];
        at += 1;
    }
    text
}

/// Bytes that wait to be sent, and behind them so many of a body without meaning, which
/// are held nowhere.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    write_buffer: Vec<u8>,
    sent: usize,
    filler: u64,
}

impl Outbox {
    /// Where to write what is to be sent. Not behind a filler that was not sent yet.
    pub(super) fn write_buffer(&mut self) -> &mut Vec<u8> {
        &mut self.write_buffer
    }

    /// Appends a body of so many bytes; nothing comes behind it until it is sent.
    pub(super) fn fill(&mut self, bytes: u64) {
        match FILLER.get(..bytes as usize) {
            Some(body) if bytes <= COPIED => self.write_buffer.extend_from_slice(body),
            _ => self.filler = bytes,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.write_buffer.len() == self.sent && self.filler == 0
    }

    /// Sends what can be taken now.
    pub(super) fn send(&mut self, stream: &mut Stream) -> Result<(), StreamError> {
        while let Some(rest) = self.write_buffer.get(self.sent..)
            && !rest.is_empty()
        {
            let sent = stream.send(rest)?;
            if sent == 0 {
                return Ok(());
            }
            self.sent += sent;
        }
        while self.filler > 0 {
            let most = usize::try_from(self.filler).unwrap_or(FILLER.len());
            let part = FILLER.get(..most).unwrap_or(FILLER);
            let sent = stream.send(part)?;
            if sent == 0 {
                return Ok(());
            }
            self.filler -= sent as u64;
        }
        self.clear();
        Ok(())
    }

    /// Forgets what is left.
    pub(super) fn clear(&mut self) {
        self.write_buffer.clear();
        self.write_buffer.shrink_to(KEEP);
        (self.sent, self.filler) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use wire::stream::Received;

    use super::*;

    #[test]
    fn a_long_body_is_sent_as_it_is_taken() {
        let (near, far) = wire::socket::pair().unwrap();
        let (mut near, mut far) = (Stream::Plain(near), Stream::Plain(far));
        let mut outbox = Outbox::default();
        outbox.write_buffer().extend_from_slice(b"head");
        let body = 10 * 1024 * 1024 + 7;
        outbox.fill(body);
        let mut room = vec![0; 64 * 1024];
        let mut taken = 0;
        while !outbox.is_empty() {
            outbox.send(&mut near).unwrap();
            while let Received::Bytes(bytes) = far.receive(&mut room).unwrap() {
                taken += bytes as u64;
            }
        }
        assert_eq!(taken, body + 4);
        // A short one goes with its head.
        outbox.write_buffer().extend_from_slice(b"head:");
        outbox.fill(5);
        assert_eq!(outbox.write_buffer(), b"head:Bytes");
    }
}
