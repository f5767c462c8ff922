//! Memory for bytes in transit, held only while there are any: an idle connection has
//! none. The buffer used last is used next, so that it is still in the processor's cache.

use rustix::io::Errno;
use wire::stream::{Received, Stream, StreamError};

/// Room of a buffer, and most bytes that are taken in for one direction of a connection
/// before the other side has to take some.
pub(super) const ROOM: usize = 64 * 1024;
/// Buffers that one thread keeps when they are not in use (4 MiB of each kind).
const SPARE: usize = 64;
/// A buffer that has grown beyond this is given back to the system.
const KEEP: usize = 4 * ROOM;
/// What waits for more than this stays in a full room; less moves to a small one.
const PARKED: usize = ROOM / 4;
/// Bytes that rooms of one thread may have beyond [`ROOM`], all together: only large heads
/// need them.
const BEYOND: usize = 64 * 1024 * 1024;

/// The spare buffers of one thread.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    /// Each full of bytes without a meaning, to receive into.
    rooms: Vec<Vec<u8>>,
    /// Each empty, to write into.
    write_buffers: Vec<Vec<u8>>,
    /// Bytes of rooms in use beyond [`ROOM`].
    beyond: usize,
}

impl Buffers {
    fn room(&mut self) -> Vec<u8> {
        self.rooms.pop().unwrap_or_else(|| vec![0; ROOM])
    }

    fn room_back(&mut self, room: Vec<u8>) {
        self.beyond -= room.len().saturating_sub(ROOM).min(self.beyond);
        if self.rooms.len() < SPARE && room.len() == ROOM {
            self.rooms.push(room);
        }
    }

    /// An empty buffer to write into.
    fn write_buffer(&mut self) -> Vec<u8> {
        self.write_buffers.pop().unwrap_or_default()
    }

    fn return_write_buffer(&mut self, mut write_buffer: Vec<u8>) {
        if self.write_buffers.len() < SPARE && write_buffer.capacity() <= KEEP {
            write_buffer.clear();
            self.write_buffers.push(write_buffer);
        }
    }
}

/// Bytes that were received and are not used yet.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    room: Vec<u8>,
    start: usize,
    end: usize,
}

impl Inbox {
    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        self.room.get(self.start..self.end).unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Takes in what there is, once. Grows as far as `most` when it is full; full at
    /// that, it says [`Received::Nothing`].
    ///
    /// # Errors
    /// Of the socket; [`Errno::NOBUFS`] when all rooms together may not grow further.
    pub(super) fn receive(
        &mut self,
        stream: &mut Stream,
        most: usize,
        buffers: &mut Buffers,
    ) -> Result<Received, StreamError> {
        if self.room.len() < ROOM {
            self.move_to(buffers.room(), buffers);
        }
        if self.end == self.room.len() && self.start > 0 {
            self.room.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.room.len() {
            let larger = (2 * self.room.len()).min(most);
            if larger <= self.end {
                return Ok(Received::Nothing);
            }
            let more = larger - self.room.len();
            if buffers.beyond + more > BEYOND {
                return Err(StreamError::Socket(Errno::NOBUFS));
            }
            buffers.beyond += more;
            self.room.resize(larger, 0);
        }
        let received = stream.receive(&mut self.room[self.end..]);
        match received {
            Ok(Received::Bytes(bytes)) => self.end += bytes,
            _ => self.rest(buffers),
        }
        received
    }

    /// More will come, but nobody knows when: a few bytes do not need a whole room, of which
    /// thousands of slow clients would hold one each.
    pub(super) fn park(&mut self, buffers: &mut Buffers) {
        if !self.is_empty() && self.len() <= PARKED && self.room.len() == ROOM {
            let small = vec![0; self.len()];
            self.move_to(small, buffers);
        }
    }

    /// Puts the bytes into another room, which is large enough.
    fn move_to(&mut self, mut room: Vec<u8>, buffers: &mut Buffers) {
        let held = self.len();
        if let (Some(to), Some(from)) = (room.get_mut(..held), self.room.get(self.start..self.end))
        {
            to.copy_from_slice(from);
        }
        buffers.room_back(std::mem::replace(&mut self.room, room));
        (self.start, self.end) = (0, held);
    }

    /// Marks bytes as used.
    pub(super) fn consume(&mut self, bytes: usize, buffers: &mut Buffers) {
        self.start = (self.start + bytes).min(self.end);
        self.rest(buffers);
    }

    /// Forgets all bytes.
    pub(super) fn clear(&mut self, buffers: &mut Buffers) {
        self.start = self.end;
        self.rest(buffers);
    }

    /// Gives the memory back if it holds nothing.
    fn rest(&mut self, buffers: &mut Buffers) {
        if self.is_empty() && !self.room.is_empty() {
            buffers.room_back(std::mem::take(&mut self.room));
            (self.start, self.end) = (0, 0);
        }
    }
}

/// Bytes that wait to be sent.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    write_buffer: Vec<u8>,
    sent: usize,
}

impl Outbox {
    /// Where to write what is to be sent.
    pub(super) fn write_buffer(&mut self, buffers: &mut Buffers) -> &mut Vec<u8> {
        if self.write_buffer.capacity() == 0 {
            self.write_buffer = buffers.write_buffer();
        }
        &mut self.write_buffer
    }

    /// The same, with nothing in it.
    pub(super) fn fresh_write_buffer(&mut self, buffers: &mut Buffers) -> &mut Vec<u8> {
        self.sent = 0;
        let write_buffer = self.write_buffer(buffers);
        write_buffer.clear();
        write_buffer
    }

    pub(super) fn len(&self) -> usize {
        self.write_buffer.len() - self.sent
    }

    pub(super) fn is_empty(&self) -> bool {
        self.write_buffer.len() == self.sent
    }

    /// Sends what can be taken now, with one call; gives the number of bytes.
    pub(super) fn send(
        &mut self,
        stream: &mut Stream,
        buffers: &mut Buffers,
    ) -> Result<usize, StreamError> {
        let mut bytes = 0;
        if !self.is_empty() {
            bytes = stream.send(&self.write_buffer[self.sent..])?;
            self.sent += bytes;
        } else if stream.wants_write() {
            stream.flush()?;
        }
        if self.is_empty() {
            self.clear(buffers);
        }
        Ok(bytes)
    }

    /// Forgets what is left.
    pub(super) fn clear(&mut self, buffers: &mut Buffers) {
        if self.write_buffer.capacity() > 0 {
            buffers.return_write_buffer(std::mem::take(&mut self.write_buffer));
        }
        self.sent = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn pair() -> (TcpStream, Stream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        far.set_nonblocking(true).unwrap();
        (near, Stream::Plain(far.into()))
    }

    #[test]
    fn memory_is_held_only_while_there_are_bytes() {
        let (mut near, mut far) = pair();
        let mut buffers = Buffers::default();
        let mut inbox = Inbox::default();
        let nothing = inbox.receive(&mut far, ROOM, &mut buffers).unwrap();
        assert_eq!(nothing, Received::Nothing);
        assert!(inbox.room.is_empty() && buffers.rooms.len() == 1);
        near.write_all(b"hello").unwrap();
        let five = inbox.receive(&mut far, ROOM, &mut buffers).unwrap();
        assert_eq!(five, Received::Bytes(5));
        inbox.consume(2, &mut buffers);
        assert_eq!((inbox.bytes(), buffers.rooms.len()), (&b"llo"[..], 0));
        inbox.consume(9, &mut buffers);
        assert_eq!((inbox.len(), buffers.rooms.len()), (0, 1));
    }

    #[test]
    fn a_full_inbox_grows_to_its_bound() {
        let (mut near, mut far) = pair();
        let mut buffers = Buffers::default();
        let mut inbox = Inbox::default();
        let most = 2 * ROOM;
        let all: Vec<u8> = (0..3 * ROOM).map(|at| at as u8).collect();
        let sent = all.clone();
        let writer = std::thread::spawn(move || near.write_all(&sent).unwrap());
        while inbox.len() < most {
            inbox.receive(&mut far, most, &mut buffers).unwrap();
        }
        let full = inbox.receive(&mut far, most, &mut buffers).unwrap();
        assert_eq!(full, Received::Nothing);
        inbox.consume(1, &mut buffers);
        while inbox.len() < most {
            inbox.receive(&mut far, most, &mut buffers).unwrap();
        }
        assert_eq!(inbox.bytes(), &all[1..=most]);
        inbox.clear(&mut buffers);
        // One that has grown is not kept.
        assert!(buffers.rooms.is_empty());
        drop(far);
        let _ = writer.join();
    }

    #[test]
    fn few_bytes_hold_few_bytes() {
        let (mut near, mut far) = pair();
        let mut buffers = Buffers::default();
        let mut inbox = Inbox::default();
        for round in 1..=3 {
            near.write_all(b"GET / HTTP").unwrap();
            inbox.receive(&mut far, ROOM, &mut buffers).unwrap();
            inbox.park(&mut buffers);
            assert_eq!(inbox.bytes(), b"GET / HTTP".repeat(round));
            assert_eq!((inbox.room.len(), buffers.rooms.len()), (10 * round, 1));
        }
        inbox.consume(25, &mut buffers);
        near.write_all(b"!").unwrap();
        inbox.receive(&mut far, ROOM, &mut buffers).unwrap();
        assert_eq!((inbox.bytes(), inbox.room.len()), (&b" HTTP!"[..], ROOM));
    }

    #[test]
    fn large_rooms_have_a_bound_together() {
        let (mut near, mut far) = pair();
        let mut buffers = Buffers {
            beyond: BEYOND - ROOM,
            ..Buffers::default()
        };
        let mut inbox = Inbox::default();
        let writer = std::thread::spawn(move || near.write_all(&vec![0; 4 * ROOM]));
        let refused = loop {
            match inbox.receive(&mut far, 4 * ROOM, &mut buffers) {
                Ok(_) => assert!(inbox.len() <= 2 * ROOM),
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, StreamError::Socket(Errno::NOBUFS)));
        assert_eq!((inbox.len(), buffers.beyond), (2 * ROOM, BEYOND));
        inbox.clear(&mut buffers);
        assert_eq!(buffers.beyond, BEYOND - ROOM);
        drop(far);
        let _ = writer.join();
    }

    #[test]
    fn what_is_not_taken_waits() {
        let (mut near, mut far) = pair();
        let mut buffers = Buffers::default();
        let mut outbox = Outbox::default();
        let all = vec![7; 16 << 20];
        outbox.write_buffer(&mut buffers).extend_from_slice(&all);
        outbox.send(&mut far, &mut buffers).unwrap();
        assert!(!outbox.is_empty());
        let reader = std::thread::spawn(move || {
            let mut got = vec![0; 16 << 20];
            near.read_exact(&mut got).unwrap();
            got
        });
        while !outbox.is_empty() {
            outbox.send(&mut far, &mut buffers).unwrap();
        }
        assert!(reader.join().unwrap() == all);
    }
}
