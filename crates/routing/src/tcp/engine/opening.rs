//! How a session opens: whom the client asks for, TLS with it, a backend, TLS with that.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rustix::io::Errno;
use telemetry::Fields;
use wire::poller::Event;
use wire::socket::{self, Dialed};
use wire::stream::{Received, Stream};
use wire::tls::{Hello, MOST_HELLO, client_hello_name};

use super::dial::Dial;
use super::relay::Side;
use super::session::{Fate, Lent, Session, Stage, Which, watched_or};
use super::token;
use crate::tcp::counters::End;
use crate::tcp::table::{Backend, Pool};

impl Session {
    /// Begins with a connection that was just accepted.
    pub(super) fn begin(&mut self, lent: &mut Lent<'_>) -> Fate {
        let routes = self.port.routes();
        if routes.depend_on_name() {
            self.stage = Stage::Hello(Vec::new());
            // It has often been sent already; if not, nothing is lost but a call.
            return self.read_hello(lent);
        }
        let pool = routes.find(None).ok_or(End::NoRoute)?;
        self.route(Arc::clone(pool), Vec::new(), lent)
    }

    /// Goes on after something happened to a socket.
    pub(super) fn open_further(&mut self, which: Which, event: Event, lent: &mut Lent<'_>) -> Fate {
        match (&self.stage, which) {
            (Stage::Hello(_), Which::Client) => self.read_hello(lent),
            (Stage::ClientTls(_), Which::Client) => self.shake_client(lent),
            // Only a socket that broke is asked why.
            (Stage::Dialing(_), Which::Backend) if !event.broken => self.reached(lent),
            (Stage::Dialing(_), Which::Backend) => {
                let outcome = self.backend.as_ref().map(|side| side.stream.outcome());
                match outcome {
                    // Connected, and closed by the backend already.
                    Some(Ok(())) => self.reached(lent),
                    Some(Err(errno)) => self.dial_failed(socket::cause(errno), lent),
                    None => Ok(()),
                }
            }
            (Stage::BackendTls(_), Which::Backend) => self.shake_backend(lent),
            // The other side is not watched meanwhile.
            _ => Ok(()),
        }
    }

    /// What it waited for took too long.
    pub(super) fn too_late(&mut self, lent: &mut Lent<'_>) -> Fate {
        match &self.stage {
            Stage::Hello(_) => self.route_by(Hello::NeedMore, lent),
            Stage::ClientTls(_) => Err(End::ClientTls),
            Stage::Dialing(_) | Stage::BackendTls(_) => {
                self.dial_failed(socket::cause(Errno::TIMEDOUT), lent)
            }
            Stage::Relaying => Err(End::Idle),
        }
    }

    fn read_hello(&mut self, lent: &mut Lent<'_>) -> Fate {
        let (Stage::Hello(bytes), Some(client)) = (&mut self.stage, &mut self.client) else {
            return Ok(());
        };
        let room = MOST_HELLO.saturating_sub(bytes.len());
        let into = &mut lent.carriers.scratch()[..room];
        match client.stream.receive(into).map_err(|_| End::ClientBroke)? {
            Received::Bytes(count) => bytes.extend_from_slice(&into[..count]),
            Received::Nothing => {}
            Received::End if bytes.is_empty() => return Err(End::Finished),
            // It is for the backend to say what it thinks of half a hello.
            Received::End => return self.route_by(Hello::NotTls, lent),
        }
        match client_hello_name(bytes) {
            Hello::NeedMore => {
                let watched = client.watch(lent.poller, true, false);
                watched_or(watched, End::ClientBroke)
            }
            hello => self.route_by(hello, lent),
        }
    }

    fn route_by(&mut self, hello: Hello, lent: &mut Lent<'_>) -> Fate {
        let Stage::Hello(bytes) = &mut self.stage else {
            return Ok(());
        };
        let bytes = std::mem::take(bytes);
        let name = match &hello {
            Hello::Name(name) => Some(name.as_str()),
            Hello::NeedMore | Hello::NoName | Hello::NotTls => None,
        };
        let routes = self.port.routes();
        let pool = routes.find(name).ok_or(End::NoRoute)?;
        self.route(Arc::clone(pool), bytes, lent)
    }

    /// Goes to a pool. `received`: what the client has sent so far.
    fn route(&mut self, pool: Arc<Pool>, received: Vec<u8>, lent: &mut Lent<'_>) -> Fate {
        let Some(termination) = pool.termination() else {
            self.up.begin_with(received);
            return self.dial(pool, lent);
        };
        let side = self.client.take().ok_or(End::ClientTls)?;
        let tls = &lent.shared.tls;
        let side = side.within(|socket| tls.accept(termination, socket, &received));
        self.client = Some(side.ok_or(End::ClientTls)?);
        self.stage = Stage::ClientTls(pool);
        self.since = lent.now;
        self.shake_client(lent)
    }

    fn shake_client(&mut self, lent: &mut Lent<'_>) -> Fate {
        let (Stage::ClientTls(pool), Some(client)) = (&self.stage, &mut self.client) else {
            return Ok(());
        };
        if client.stream.handshake().map_err(|_| End::ClientTls)? {
            let pool = Arc::clone(pool);
            return self.dial(pool, lent);
        }
        let write = client.stream.wants_write();
        let watched = client.watch(lent.poller, true, write);
        watched_or(watched, End::ClientTls)
    }

    /// The client is not watched from here on until its bytes can be carried.
    fn dial(&mut self, pool: Arc<Pool>, lent: &mut Lent<'_>) -> Fate {
        if let Some(client) = &mut self.client {
            let watched = client.watch(lent.poller, false, false);
            watched_or(watched, End::ClientBroke)?;
        }
        self.stage = Stage::Dialing(Dial::new(pool, lent.now));
        self.dial_next(lent)
    }

    /// Tries one backend after the other until one is reached or on its way.
    fn dial_next(&mut self, lent: &mut Lent<'_>) -> Fate {
        loop {
            self.backend = None;
            self.since = lent.now;
            let (Stage::Dialing(dial) | Stage::BackendTls(dial)) = &mut self.stage else {
                return Ok(());
            };
            let most = lent.shared.settings.attempts;
            let backend = dial.next(most, lent.now).ok_or(End::NoBackend)?;
            if matches!(self.stage, Stage::BackendTls(_)) {
                self.turn_to(Stage::Dialing);
            }
            match backend.address() {
                Some(address) => match self.dial_at(address, lent) {
                    Ok(fate) => return fate,
                    Err(errno) => self.count_failure(socket::cause(errno), lent),
                },
                None => self.count_failure("address unknown", lent),
            }
        }
    }

    /// `Err`: the attempt has failed already.
    fn dial_at(&mut self, address: SocketAddr, lent: &mut Lent<'_>) -> Result<Fate, Errno> {
        let token = lent.key.token(token::BACKEND);
        match socket::dial_tcp(address)? {
            Dialed::Connected(socket) => {
                self.backend = Some(Side::new(Stream::Plain(socket), token));
                Ok(self.reached(lent))
            }
            Dialed::Underway(socket) => {
                let mut side = Side::new(Stream::Plain(socket), token);
                let watched = side.watch(lent.poller, false, true);
                self.backend = Some(side);
                Ok(watched_or(watched, End::NoBackend))
            }
        }
    }

    fn dial_failed(&mut self, cause: &'static str, lent: &mut Lent<'_>) -> Fate {
        self.count_failure(cause, lent);
        self.dial_next(lent)
    }

    fn count_failure(&mut self, cause: &'static str, lent: &Lent<'_>) {
        let shared = lent.shared;
        shared.counters.dial_failed(cause);
        self.port.counters.dial_errors.fetch_add(1, Relaxed);
        let Some(backend) = self.dialed() else { return };
        // One line for each time that it begins to fail, however many clients ask for it.
        if !backend.has_failed(lent.now) {
            let address = backend.address().map(|address| address.to_string());
            let fields = Fields::new()
                .and("port", self.port.number())
                .and("backend", address.as_deref().or(backend.host()));
            shared.logger.error("dial-backend", &cause, fields);
        }
        backend.fail_until(lent.now.saturating_add(shared.failed_for));
    }

    /// The backend of the attempt that is under way.
    fn dialed(&self) -> Option<&Arc<Backend>> {
        match &self.stage {
            Stage::Dialing(dial) | Stage::BackendTls(dial) => dial.backend.as_ref(),
            _ => None,
        }
    }

    /// The backend's socket is connected.
    fn reached(&mut self, lent: &mut Lent<'_>) -> Fate {
        let Some(backend) = self.dialed().cloned() else {
            return Ok(());
        };
        let Some(wanted) = backend.tls() else {
            return self.connected(lent);
        };
        let Some(side) = self.backend.take() else {
            return Ok(());
        };
        self.since = lent.now;
        let tls = &lent.shared.tls;
        match side.within(|socket: OwnedFd| tls.connect(wanted, socket)) {
            Some(side) => self.backend = Some(side),
            None => return self.dial_failed("other", lent),
        }
        self.turn_to(Stage::BackendTls);
        self.shake_backend(lent)
    }

    fn shake_backend(&mut self, lent: &mut Lent<'_>) -> Fate {
        let Some(side) = &mut self.backend else {
            return Ok(());
        };
        match side.stream.handshake() {
            Ok(true) => self.connected(lent),
            Ok(false) => {
                let write = side.stream.wants_write();
                let watched = side.watch(lent.poller, true, write);
                watched_or(watched, End::NoBackend)
            }
            Err(error) => self.dial_failed(error.cause(), lent),
        }
    }

    fn connected(&mut self, lent: &mut Lent<'_>) -> Fate {
        if let Stage::Dialing(dial) | Stage::BackendTls(dial) = &self.stage {
            let took = Duration::from_nanos(wire::clock::now().saturating_sub(dial.began));
            lent.shared.counters.connected_after(took);
        }
        self.begin_to_carry(lent)
    }

    /// Goes on with the same dial in another stage.
    fn turn_to(&mut self, stage: fn(Dial) -> Stage) {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Relaying) {
            Stage::Dialing(dial) | Stage::BackendTls(dial) => stage(dial),
            other => other,
        };
    }
}
