//! The connections of a thread: how far each has come, what it is used for, and which of
//! them can be taken.
//!
//! A place in the pool carries one exchange at a time. Places of a connection that carries
//! several follow each other; the first of them, the carrier, stands for all. What is open,
//! under way or bound is counted where a place changes, and nowhere else.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::ops::{Index, IndexMut, Range};

use lab_load::Workload;
use rustix::io::Errno;
use wire::poller::{Event, Interest, Poller, Registration};
use wire::socket;
use wire::stream::Stream;

use super::conversation::Conversation;
use super::exchange::Exchange;
use super::pipeline::Pipeline;
use super::streams::Session;

/// Entries of closed connections that the list of free ones may have, beside one for each.
const SLACK: usize = 64;

/// How far a connection has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Link {
    /// There is none.
    #[default]
    Closed,
    /// TCP has begun.
    Connecting,
    /// TLS has begun.
    Handshaking,
    /// What the protocol itself begins with was sent: an upgrade, settings, a login.
    Upgrading,
    /// It can carry requests.
    Open,
}

/// What a connection is used for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Use {
    /// Nothing: it waits for an arrival.
    #[default]
    Free,
    /// A request that will be sent as soon as the connection is open.
    Waiting,
    /// A request was sent, or a part of it.
    Asked,
    /// Its user pauses.
    Thinking,
}

/// A free connection in the line of these; the least is used first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    rank: u64,
    /// Which of all connections it was to open: not that of its place any more, if that was closed.
    order: u64,
    place: u32,
}

/// One connection. See the module.
#[derive(Default)]
pub(super) struct Connection {
    link: Link,
    used: Use,
    /// Tells events of this stream from those of an earlier one in the same place.
    generation: u32,
    /// Which of all connections it was to open, from 1.
    order: u64,
    /// Whether it stands in the list of free connections since it opened, or in that of spare ones.
    /// It may stand there when it is so no more.
    listed: bool,
    saved: bool,
    pub(super) stream: Option<Stream>,
    /// Whether the TLS of the stream took up an earlier session; `None`: it has no TLS.
    pub(super) resumed: Option<bool>,
    pub(super) conversation: Conversation,
    /// Instead of stream and conversation, where a connection carries several
    /// exchanges; it stands at the first of their places.
    pub(super) session: Option<Box<Session>>,
    /// The same, where answers come in the order of requests.
    pub(super) pipeline: Option<Box<Pipeline>>,
    /// Requests that the stream has carried.
    pub(super) carried: u64,
    /// Bytes of the request that the kernel has not taken yet.
    pub(super) unsent: Vec<u8>,
    /// What the poller tells of the stream.
    pub(super) registration: Registration,
    /// Bytes received that do not yet make sense by themselves.
    pub(super) unread: Vec<u8>,
    pub(super) exchange: Exchange,
}

impl Connection {
    pub(super) fn link(&self) -> Link {
        self.link
    }

    pub(super) fn used(&self) -> Use {
        self.used
    }
}

/// See the module.
pub(super) struct Pool {
    poller: Poller,
    connections: Vec<Connection>,
    /// Open connections without a request, by the order in which they opened: a target with a thread
    /// or a process for each connection accepts them in that order, and as many as it has. Asked over
    /// another one, it would answer when somebody else hangs up.
    free: BinaryHeap<Reverse<Entry>>,
    /// Whether all of them are used alike instead, as where they lead to several addresses.
    in_turn: bool,
    /// How often one was offered, and how many have opened.
    offers: u64,
    opened: u64,
    /// Closed connections that may be opened for an arrival.
    spare: Vec<u32>,
    /// Exchanges at a time on one connection.
    streams: u32,
    /// Places whose connections are to be kept open, and most that may be.
    held: u32,
    most: u32,
    open: u32,
    /// Places with connections under way, and those of them that no request is bound to.
    opening: u32,
    unbound: u32,
    /// Requests that wait for their connection.
    waiting: u32,
    /// Open places whose users pause.
    thinking: u32,
}

impl Pool {
    /// An empty one for the generator's thread `index`. `in_turn`: whether requests take free
    /// connections in turn.
    pub(super) fn new(poller: Poller, workload: &Workload, index: u32, in_turn: bool) -> Self {
        let part = |all: u32| all / workload.threads + u32::from(index < all % workload.threads);
        let connections = &workload.connections;
        let (held, streams) = (part(connections.held), connections.streams.max(1));
        Self {
            poller,
            connections: Vec::new(),
            free: BinaryHeap::new(),
            in_turn,
            offers: 0,
            opened: 0,
            spare: Vec::new(),
            streams,
            held: held * streams,
            most: part(connections.most).max(held) * streams,
            open: 0,
            opening: 0,
            unbound: 0,
            waiting: 0,
            thinking: 0,
        }
    }

    /// Connections that are open.
    pub(super) fn open(&self) -> u32 {
        self.open / self.streams
    }

    /// Connections under way.
    pub(super) fn opening(&self) -> u32 {
        self.opening / self.streams
    }

    /// Connections that are to be kept open.
    pub(super) fn held(&self) -> u32 {
        self.held / self.streams
    }

    /// Whether fewer are open or under way than are to be held.
    pub(super) fn lacks(&self) -> bool {
        self.open + self.opening < self.held
    }

    /// Whether one more may be opened.
    pub(super) fn has_room(&self) -> bool {
        self.open + self.opening < self.most
    }

    /// Places under way that no request is bound to.
    pub(super) fn unbound(&self) -> u32 {
        self.unbound
    }

    /// Whether requests wait for their connections.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting > 0
    }

    /// Whether most of what is open is kept by users who pause.
    pub(super) fn is_kept(&self) -> bool {
        self.thinking * 2 > self.open
    }

    /// Exchanges at a time on one connection.
    pub(super) fn streams(&self) -> u32 {
        self.streams
    }

    /// The first of the places that share a connection; it stands for all.
    pub(super) fn carrier(&self, place: u32) -> u32 {
        place - place % self.streams
    }

    pub(super) fn members(&self, carrier: u32) -> Range<u32> {
        carrier..carrier + self.streams
    }

    /// Sees to it that there is a place for each connection to be held; these are the first.
    pub(super) fn places(&mut self) -> Range<u32> {
        while (self.connections.len() as u32) < self.held {
            self.add();
        }
        0..self.held
    }

    /// Adds the places of one more connection, and gives the first.
    fn add(&mut self) -> u32 {
        // At most a million, by the workload's check.
        let first = self.connections.len() as u32;
        for place in self.members(first) {
            self.connections.push(Connection::default());
            if place > first {
                self.offer(place);
            }
        }
        first
    }

    /// Takes the free connection that has been open for longest, or that whose turn it is.
    pub(super) fn take_free(&mut self) -> Option<u32> {
        while let Some(Reverse(Entry { order, place, .. })) = self.free.pop() {
            let connection = &mut self[place];
            if connection.order != order {
                // An earlier one in the same place.
                continue;
            }
            connection.listed = false;
            if connection.link == Link::Open && connection.used == Use::Free && self.takes(place) {
                return Some(place);
            }
        }
        None
    }

    /// Whether the target takes a request more on the connection of a place. It may allow fewer
    /// than there are places; the others are kept by the session then.
    #[inline]
    fn takes(&mut self, place: u32) -> bool {
        let carrier = self.carrier(place);
        let session = self[carrier].session.as_mut();
        session.is_none_or(|session| session.takes_or_park(place))
    }

    /// Places whose requests wait on connections that are open, for these take no more.
    pub(super) fn queued(&self) -> Vec<u32> {
        let waits = |place: &u32| {
            let connection = &self[*place];
            connection.link == Link::Open && connection.used == Use::Waiting
        };
        match self.is_awaited() {
            true => (0..self.connections.len() as u32).filter(waits).collect(),
            false => Vec::new(),
        }
    }

    /// Takes a closed connection that any arrival may have opened.
    pub(super) fn take_closed(&mut self) -> u32 {
        while let Some(place) = self.spare.pop() {
            let connection = &mut self[place];
            connection.saved = false;
            if connection.link == Link::Closed && connection.used == Use::Free {
                return place;
            }
        }
        self.add()
    }

    /// Lets arrivals have a connection that nothing is bound to: an open one as it is, a
    /// closed one when it is needed.
    pub(super) fn offer(&mut self, place: u32) {
        let connection = &mut self.connections[place as usize];
        if connection.link != Link::Open {
            if !std::mem::replace(&mut connection.saved, true) {
                self.spare.push(place);
            }
            return;
        }
        if std::mem::replace(&mut connection.listed, true) {
            return;
        }
        let order = connection.order;
        self.offers = self.offers.wrapping_add(1);
        let rank = match (self.in_turn, self.streams) {
            (false, _) => order,
            (true, 1) => self.offers,
            // Places of one connection follow each other, so each goes in anywhere among the next of
            // all. Not anywhere for good: what comes last there would never be used again.
            (true, _) => {
                let any = self.offers.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
                let places = self.connections.len() as u64;
                self.offers.wrapping_add(any % places)
            }
        };
        self.free.push(Reverse(Entry { rank, order, place }));
        // Those that were closed while others were used lie below.
        if self.free.len() > 2 * self.connections.len() + SLACK {
            let connections = &self.connections;
            let is_current =
                |entry: &Reverse<Entry>| connections[entry.0.place as usize].order == entry.0.order;
            self.free.retain(is_current);
        }
    }

    /// Says what a place is used for from now on.
    #[inline]
    pub(super) fn set_used(&mut self, place: u32, used: Use) {
        let connection = &mut self[place];
        // Of what a place is used for only these are counted.
        let counted = |used| matches!(used, Use::Waiting | Use::Thinking);
        match counted(connection.used) || counted(used) {
            true => self.set(place, self[place].link, used),
            false => connection.used = used,
        }
    }

    /// Says how far the connection of a carrier has come.
    pub(super) fn set_link(&mut self, carrier: u32, link: Link) {
        self.opened += u64::from(link == Link::Open);
        for member in self.members(carrier) {
            if link == Link::Open {
                let connection = &mut self.connections[member as usize];
                (connection.order, connection.listed) = (self.opened, false);
            }
            self.set(member, link, self[member].used);
        }
    }

    #[inline]
    fn set(&mut self, place: u32, link: Link, used: Use) {
        self.count(place, u32::wrapping_sub);
        let connection = &mut self[place];
        (connection.link, connection.used) = (link, used);
        self.count(place, u32::wrapping_add);
    }

    #[inline]
    fn count(&mut self, place: u32, change: impl Fn(u32, u32) -> u32) {
        let Connection { link, used, .. } = self[place];
        let (open, waits) = (link == Link::Open, used == Use::Waiting);
        let under_way = !open && link != Link::Closed;
        self.open = change(self.open, open.into());
        self.opening = change(self.opening, under_way.into());
        self.unbound = change(self.unbound, (under_way && !waits).into());
        self.waiting = change(self.waiting, waits.into());
        self.thinking = change(self.thinking, (open && used == Use::Thinking).into());
    }

    /// Closes the connection of a carrier.
    pub(super) fn close(&mut self, carrier: u32) {
        for member in self.members(carrier) {
            self.set(member, Link::Closed, self[member].used);
            let connection = &mut self[member];
            connection.stream = None;
            connection.session = None;
            connection.pipeline = None;
            connection.generation = connection.generation.wrapping_add(1);
            connection.carried = 0;
            // What a large answer made of these is given back.
            connection.unsent = Vec::new();
            connection.unread = Vec::new();
        }
    }

    /// Has the poller tell of a carrier's new socket.
    pub(super) fn adopt(&mut self, carrier: u32, stream: Stream) -> Result<(), Errno> {
        let mut registration = Registration::new(self.token(carrier));
        let added = registration.set(&stream, Some(Interest::Write), &self.poller);
        added.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let connection = &mut self[carrier];
        (connection.stream, connection.registration) = (Some(stream), registration);
        Ok(())
    }

    /// Has the poller tell of something else of a carrier's socket.
    pub(super) fn watch(&mut self, carrier: u32, interest: Interest) -> Result<(), &'static str> {
        let connection = &mut self.connections[carrier as usize];
        let (registration, wanted) = (&mut connection.registration, Some(interest));
        match &connection.stream {
            Some(stream) => registration.set(stream, wanted, &self.poller),
            None => Ok(()),
        }
        .map_err(unwatched)
    }

    /// A place's connection, what the poller tells of it by, and the poller.
    pub(super) fn watched(&mut self, place: u32) -> (&mut Connection, u64, &Poller) {
        let token = self.token(place);
        (&mut self.connections[place as usize], token, &self.poller)
    }

    fn token(&self, place: u32) -> u64 {
        u64::from(self[place].generation) << 32 | u64::from(place)
    }

    /// The place that an event is of; one of a stream that was closed since is nobody's.
    pub(super) fn place(&self, event: &Event) -> Option<u32> {
        let place = event.token as u32;
        let known = (place as usize) < self.connections.len();
        (known && self.token(place) == event.token).then_some(place)
    }

    /// What waits for events.
    pub(super) fn poller(&mut self) -> &mut Poller {
        &mut self.poller
    }
}

impl Index<u32> for Pool {
    type Output = Connection;

    #[inline]
    fn index(&self, place: u32) -> &Connection {
        &self.connections[place as usize]
    }
}

impl IndexMut<u32> for Pool {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut Connection {
        &mut self.connections[place as usize]
    }
}

/// Why the poller does not tell of a socket.
pub(super) fn unwatched(error: io::Error) -> &'static str {
    socket::cause(Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated;

    /// Two connections that are open and free.
    fn opened(streams: u32, in_turn: bool) -> Pool {
        let mut workload = simulated::workload(1, 0);
        (workload.connections.held, workload.connections.most) = (2, 2);
        workload.connections.streams = streams;
        let mut pool = Pool::new(Poller::new().unwrap(), &workload, 0, in_turn);
        for place in pool.places() {
            if pool.carrier(place) == place {
                pool.set_link(place, Link::Open);
            }
            pool.offer(place);
        }
        pool
    }

    /// The carriers of requests that are made one after the other.
    fn carriers(pool: &mut Pool, requests: usize) -> Vec<u32> {
        let one = |_| {
            let place = pool.take_free().unwrap();
            pool.offer(place);
            pool.carrier(place)
        };
        (0..requests).map(one).collect()
    }

    #[test]
    fn the_oldest_is_used_first_and_one_that_was_opened_again_is_the_youngest() {
        let mut pool = opened(1, false);
        assert_eq!(carriers(&mut pool, 3), [0, 0, 0]);
        for _ in 0..1_000 {
            pool.close(0);
            pool.set_link(0, Link::Open);
            pool.offer(0);
        }
        assert!(pool.free.len() <= 2 * 2 + SLACK + 1, "{}", pool.free.len());
        assert_eq!(carriers(&mut pool, 3), [1, 1, 1]);
        let both = [pool.take_free(), pool.take_free(), pool.take_free()];
        assert_eq!(both, [Some(1), Some(0), None]);
    }

    #[test]
    fn free_connections_are_used_alike_where_that_is_asked() {
        assert_eq!(carriers(&mut opened(1, true), 4), [0, 1, 0, 1]);
        assert_eq!(carriers(&mut opened(10, false), 3), [0, 0, 0]);
        // For as long as it goes on.
        for part in carriers(&mut opened(10, true), 20_000).chunks(2_000) {
            let first = part.iter().filter(|carrier| **carrier == 0).count();
            assert!((800..=1_200).contains(&first), "{first}");
        }
    }
}
