//! What a new connection goes through before it carries requests: TCP, TLS, the upgrade to
//! WebSocket, the settings of HTTP/2, the login of databases.

use std::sync::Arc;

use lab_load::Protocol;
use lab_load::recording::Phase;
use rustix::io::Errno;
use wire::deadlines::Deadlines;
use wire::poller::Interest;
use wire::socket;
use wire::stream::{Received, Stream};

use super::conversation::{Broken, Conversation, Step};
use super::pipeline::{self, Pipeline};
use super::pool::{Link, Pool, Use, unwatched};
use super::streams::Session;
use super::{BUFFER, EngineError, Multiplexing, Setup, nanos};

/// Cause of a failure that cannot be: a connection under way without a socket.
const GONE: &str = "no socket";
/// Bytes that are read of the answer to an upgrade at a time.
const PIECE: usize = 4096;

/// The connections under way.
pub(super) struct Opening {
    setup: Arc<Setup>,
    /// Number of this thread over all generators.
    thread: u32,
    /// How long they may take, and until when each does.
    within: u64,
    pub(super) by: Deadlines,
    /// Connections begun so far.
    begun: u64,
    /// Number of the segment's first request: an upgrade that no request is bound to is
    /// asked for as this one.
    first: u64,
    /// The first connection that could not be opened.
    pub(super) trouble: Option<EngineError>,
}

impl Opening {
    /// None, of the thread with this number.
    pub(super) fn new(setup: Arc<Setup>, thread: u32) -> Self {
        Self {
            thread,
            within: nanos(setup.workload.connections.connect_within),
            by: Deadlines::default(),
            begun: 0,
            first: 0,
            trouble: None,
            setup,
        }
    }

    /// A segment begins whose first request has this number.
    pub(super) fn begin(&mut self, first: u64) {
        self.first = first;
    }

    /// Begins to open the connection of a carrier.
    pub(super) fn start(&mut self, pool: &mut Pool, carrier: u32, now: u64) -> Result<(), Errno> {
        pool.set_link(carrier, Link::Connecting);
        self.by.set(carrier, now.saturating_add(self.within));
        let turn = self.begun.wrapping_add(u64::from(self.thread));
        let address = self.setup.addresses.of(turn);
        let workload = &self.setup.workload;
        let number = workload.seed ^ self.begun << 16 ^ u64::from(self.thread);
        // One that fails at once has had its turn as well.
        self.begun += 1;
        let socket = match workload.target.protocol {
            Protocol::Udp => socket::connect_udp(address)?,
            _ => socket::connect_tcp(address)?,
        };
        pool.adopt(carrier, Stream::Plain(socket))?;
        pool[carrier].conversation = Conversation::new(workload.target.protocol, number);
        Ok(())
    }

    /// Goes on with a connection whose socket has something to tell. Says whether it can
    /// carry requests now.
    pub(super) fn advance(&self, pool: &mut Pool, carrier: u32) -> Step {
        match pool[carrier].link() {
            Link::Handshaking => self.shake_hands(pool, carrier),
            Link::Upgrading => read_upgrade(pool, carrier),
            _ => self.connected(pool, carrier),
        }
    }

    /// A connection can carry requests from now on.
    pub(super) fn finish(&mut self, pool: &mut Pool, carrier: u32) -> Result<(), Broken> {
        let watched = pool.watch(carrier, Interest::Read);
        watched.map_err(|cause| (Phase::Connect, cause))?;
        self.by.clear(carrier);
        pool.set_link(carrier, Link::Open);
        Ok(())
    }

    /// Gives a connection up.
    pub(super) fn give_up(&mut self, pool: &mut Pool, carrier: u32, (phase, cause): Broken) {
        self.by.clear(carrier);
        let trouble = EngineError::Connection(phase, cause, pool.open());
        self.trouble.get_or_insert(trouble);
        pool.close(carrier);
    }

    /// TCP has made a connection, or failed to.
    fn connected(&self, pool: &mut Pool, carrier: u32) -> Step {
        let stream = pool[carrier].stream.take().ok_or(GONE)?;
        stream.outcome().map_err(socket::cause)?;
        match (&self.setup.tls, stream) {
            (Some(client), Stream::Plain(socket)) => {
                pool.set_link(carrier, Link::Handshaking);
                let stream = client.begin(socket).map_err(|error| error.cause())?;
                pool[carrier].stream = Some(Stream::Tls(Box::new(stream)));
                self.shake_hands(pool, carrier)
            }
            (_, stream) => {
                pool[carrier].stream = Some(stream);
                self.upgrade(pool, carrier)
            }
        }
    }

    fn shake_hands(&self, pool: &mut Pool, carrier: u32) -> Step {
        let stream = pool[carrier].stream.as_mut().ok_or(GONE)?;
        if stream.handshake().map_err(|error| error.cause())? {
            pool[carrier].resumed = stream.is_resumed();
            return self.upgrade(pool, carrier);
        }
        let interest = Interest::of(true, stream.wants_write());
        pool.watch(carrier, interest).map(|()| false)
    }

    /// Asks for the upgrade, if one is needed.
    fn upgrade(&self, pool: &mut Pool, carrier: u32) -> Step {
        match self.setup.multiplexing() {
            Multiplexing::Streams => return begin_session(pool, carrier),
            Multiplexing::Pipeline => {
                return begin_pipeline(pool, carrier, &self.setup);
            }
            Multiplexing::Plain => {}
        }
        if !matches!(pool[carrier].conversation, Conversation::WebSocket(_)) {
            return Ok(true);
        }
        pool.set_link(carrier, Link::Upgrading);
        let composer = &self.setup.composer;
        let connection = &mut pool[carrier];
        let (Conversation::WebSocket(conversation), Some(stream)) =
            (&connection.conversation, &mut connection.stream)
        else {
            return Err(GONE);
        };
        let visit = connection.exchange.visit.clone();
        let visit = visit.unwrap_or_else(|| composer.begin(self.first));
        let request = conversation
            .handshake(composer, &visit)
            .ok_or("no request")?;
        let sent = stream.send(&request).map_err(|error| error.cause())?;
        if sent < request.len() {
            // A new connection takes far more than any head.
            return Err("send buffer full");
        }
        pool.watch(carrier, Interest::Read).map(|()| false)
    }
}

/// Begins to speak HTTP/2. The connection is open once the target's settings are there:
/// a target that speaks something else is found out before it has requests.
fn begin_session(pool: &mut Pool, carrier: u32) -> Step {
    let streams = pool.streams() as usize;
    let stream = pool[carrier].stream.take().ok_or(GONE)?;
    if matches!(stream, Stream::Tls(_)) && stream.protocol() != Some(b"h2") {
        return Err("no common protocol");
    }
    pool.set_link(carrier, Link::Upgrading);
    let (connection, token, poller) = pool.watched(carrier);
    poller.remove(&stream).map_err(unwatched)?;
    let session = Session::start(stream, streams, poller, token).map_err(unwatched)?;
    connection.session.insert(Box::new(session)).read_settings()
}

/// Begins to speak to a database. The connection is open once the target has taken the login, if
/// there is one.
fn begin_pipeline(pool: &mut Pool, carrier: u32, setup: &Setup) -> Step {
    let stream = pool[carrier].stream.take().ok_or(GONE)?;
    pool.set_link(carrier, Link::Upgrading);
    let kinds = setup.composer.kinds().len();
    let pipeline = Pipeline::start(stream, &setup.workload.target, kinds);
    pool[carrier].pipeline = Some(Box::new(pipeline));
    log_in(pool, carrier)
}

/// Goes on with the login of a pipeline.
fn log_in(pool: &mut Pool, carrier: u32) -> Step {
    let mut pipeline = pool[carrier].pipeline.take().ok_or(GONE)?;
    let done = pipeline.log_in();
    let watched = pipeline::watch(pool, carrier, &pipeline);
    pool[carrier].pipeline = Some(pipeline);
    watched.map_err(unwatched)?;
    done
}

/// Reads the answer to the upgrade, as far as it is there.
fn read_upgrade(pool: &mut Pool, carrier: u32) -> Step {
    let connection = &mut pool[carrier];
    if connection.pipeline.is_some() {
        return log_in(pool, carrier);
    }
    if let Some(session) = &mut connection.session {
        return session.read_settings();
    }
    let waits = connection.used() == Use::Waiting;
    let (Conversation::WebSocket(conversation), Some(stream)) =
        (&mut connection.conversation, &mut connection.stream)
    else {
        return Err(GONE);
    };
    let mut piece = [0; PIECE];
    loop {
        let received = stream.receive(&mut piece);
        match received.map_err(|error| error.cause())? {
            Received::Nothing => return Ok(false),
            Received::End => return Err("closed early"),
            Received::Bytes(received) => {
                connection.unread.extend_from_slice(&piece[..received]);
            }
        }
        let upgraded = conversation.upgrade(&connection.unread);
        if let Some(length) = upgraded.map_err(|(_, cause)| cause)? {
            connection.unread.drain(..length);
            // A greeting is no answer where nothing is to be asked yet.
            let mut greeted = !waits;
            while greeted {
                let taken = conversation.take(&connection.unread, &mut connection.exchange.kept);
                let taken = taken.map_err(|(_, cause)| cause)?;
                connection.unread.drain(..taken.consumed);
                greeted = taken.whole.is_some();
            }
            return Ok(true);
        }
        if connection.unread.len() >= BUFFER {
            return Err("too long");
        }
    }
}

/// What a connection under way is at.
pub(super) fn phase(link: Link) -> Phase {
    match link {
        Link::Handshaking => Phase::Tls,
        Link::Upgrading => Phase::Open,
        Link::Closed | Link::Connecting | Link::Open => Phase::Connect,
    }
}
