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
use super::session::{Session, SessionContext, SessionResult, SessionSide, Stage, watched_or};
use super::token;
use crate::tcp::counters::End;
use crate::tcp::table::{Backend, Pool};

impl Session {
    /// Begins with a connection that was just accepted.
    pub(super) fn begin(&mut self, context: &mut SessionContext<'_>) -> SessionResult {
        let routes = self.port.routes();
        if routes.depend_on_name() {
            self.stage = Stage::Hello(Vec::new());
            // It has often been sent already; if not, nothing is lost but a call.
            return self.read_hello(context);
        }
        let pool = routes.find(None).ok_or(End::NoRoute)?;
        self.route(Arc::clone(pool), Vec::new(), context)
    }

    /// Goes on after something happened to a socket.
    pub(super) fn open_further(
        &mut self,
        which: SessionSide,
        event: Event,
        context: &mut SessionContext<'_>,
    ) -> SessionResult {
        match (&self.stage, which) {
            (Stage::Hello(_), SessionSide::Client) => self.read_hello(context),
            (Stage::ClientTls(_), SessionSide::Client) => self.shake_client(context),
            // Only a socket that broke is asked why.
            (Stage::Dialing(_), SessionSide::Backend) if !event.broken => self.reached(context),
            (Stage::Dialing(_), SessionSide::Backend) => {
                let outcome = self.backend.as_ref().map(|side| side.stream.outcome());
                match outcome {
                    // Connected, and closed by the backend already.
                    Some(Ok(())) => self.reached(context),
                    Some(Err(errno)) => self.dial_failed(socket::cause(errno), context),
                    None => Ok(()),
                }
            }
            (Stage::BackendTls(_), SessionSide::Backend) => self.shake_backend(context),
            // The other side is not watched meanwhile.
            _ => Ok(()),
        }
    }

    /// What it waited for took too long.
    pub(super) fn too_late(&mut self, context: &mut SessionContext<'_>) -> SessionResult {
        match &self.stage {
            Stage::Hello(_) => self.route_by(Hello::NeedMore, context),
            Stage::ClientTls(_) => Err(End::ClientTls),
            Stage::Dialing(_) | Stage::BackendTls(_) => {
                self.dial_failed(socket::cause(Errno::TIMEDOUT), context)
            }
            Stage::Relaying => Err(End::Idle),
        }
    }

    fn read_hello(&mut self, context: &mut SessionContext<'_>) -> SessionResult {
        let (Stage::Hello(bytes), Some(client)) = (&mut self.stage, &mut self.client) else {
            return Ok(());
        };
        let room = MOST_HELLO.saturating_sub(bytes.len());
        let into = &mut context.carriers.scratch()[..room];
        match client.stream.receive(into).map_err(|_| End::ClientBroke)? {
            Received::Bytes(count) => bytes.extend_from_slice(&into[..count]),
            Received::Nothing => {}
            Received::End if bytes.is_empty() => return Err(End::Finished),
            // It is for the backend to say what it thinks of half a hello.
            Received::End => return self.route_by(Hello::NotTls, context),
        }
        match client_hello_name(bytes) {
            Hello::NeedMore => {
                let watched = client.watch(context.poller, true, false);
                watched_or(watched, End::ClientBroke)
            }
            hello => self.route_by(hello, context),
        }
    }

    fn route_by(&mut self, hello: Hello, context: &mut SessionContext<'_>) -> SessionResult {
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
        self.route(Arc::clone(pool), bytes, context)
    }

    /// Goes to a pool. `received`: what the client has sent so far.
    fn route(
        &mut self,
        pool: Arc<Pool>,
        received: Vec<u8>,
        context: &mut SessionContext<'_>,
    ) -> SessionResult {
        let Some(termination) = pool.termination() else {
            self.up.begin_with(received);
            return self.dial(pool, context);
        };
        let side = self.client.take().ok_or(End::ClientTls)?;
        let tls = &context.shared.tls;
        let side = side.within(|socket| tls.accept(termination, socket, &received));
        self.client = Some(side.ok_or(End::ClientTls)?);
        self.stage = Stage::ClientTls(pool);
        self.since = context.now;
        self.shake_client(context)
    }

    fn shake_client(&mut self, context: &mut SessionContext<'_>) -> SessionResult {
        let (Stage::ClientTls(pool), Some(client)) = (&self.stage, &mut self.client) else {
            return Ok(());
        };
        if client.stream.handshake().map_err(|_| End::ClientTls)? {
            let pool = Arc::clone(pool);
            return self.dial(pool, context);
        }
        let write = client.stream.wants_write();
        let watched = client.watch(context.poller, true, write);
        watched_or(watched, End::ClientTls)
    }

    /// The client is not watched from here on until its bytes can be carried.
    fn dial(&mut self, pool: Arc<Pool>, context: &mut SessionContext<'_>) -> SessionResult {
        if let Some(client) = &mut self.client {
            let watched = client.watch(context.poller, false, false);
            watched_or(watched, End::ClientBroke)?;
        }
        self.stage = Stage::Dialing(Dial::new(pool, context.now));
        self.dial_next(context)
    }

    /// Tries one backend after the other until one is reached or on its way.
    fn dial_next(&mut self, context: &mut SessionContext<'_>) -> SessionResult {
        loop {
            self.backend = None;
            self.since = context.now;
            let (Stage::Dialing(dial) | Stage::BackendTls(dial)) = &mut self.stage else {
                return Ok(());
            };
            let most = context.shared.settings.attempts;
            dial.next(most, context.now).ok_or(End::NoBackend)?;
            let address = dial.address;
            if matches!(self.stage, Stage::BackendTls(_)) {
                self.turn_to(Stage::Dialing);
            }
            match address {
                Some(address) => match self.dial_at(address, context) {
                    Ok(fate) => return fate,
                    Err(errno) => self.count_failure(socket::cause(errno), context),
                },
                None => self.count_failure("address unknown", context),
            }
        }
    }

    /// `Err`: the attempt has failed already.
    fn dial_at(
        &mut self,
        address: SocketAddr,
        context: &mut SessionContext<'_>,
    ) -> Result<SessionResult, Errno> {
        let token = context.key.token(token::BACKEND);
        match socket::dial_tcp(address)? {
            Dialed::Connected(socket) => {
                self.backend = Some(Side::new(Stream::Plain(socket), token));
                Ok(self.reached(context))
            }
            Dialed::Underway(socket) => {
                let mut side = Side::new(Stream::Plain(socket), token);
                let watched = side.watch(context.poller, false, true);
                self.backend = Some(side);
                Ok(watched_or(watched, End::NoBackend))
            }
        }
    }

    fn dial_failed(
        &mut self,
        cause: &'static str,
        context: &mut SessionContext<'_>,
    ) -> SessionResult {
        self.count_failure(cause, context);
        self.dial_next(context)
    }

    fn count_failure(&mut self, cause: &'static str, context: &SessionContext<'_>) {
        let shared = context.shared;
        shared.counters.dial_failed(cause);
        self.port.counters.dial_errors.fetch_add(1, Relaxed);
        let Some((backend, address)) = self.dialed() else {
            return;
        };
        // One line for each time that it begins to fail, however many clients ask for it.
        if !backend.has_failed(context.now) {
            let shown = address.map(|address| address.to_string());
            let fields = Fields::new()
                .and("port", self.port.number())
                .and("backend", shown.as_deref().or(backend.host()));
            shared.logger.error("dial-backend", &cause, fields);
        }
        backend.fail_until(context.now.saturating_add(shared.failed_for));
        if let Some(address) = address {
            backend.failed_at(address);
        }
    }

    /// The backend of the attempt that is under way, and its address.
    fn dialed(&self) -> Option<(&Arc<Backend>, Option<SocketAddr>)> {
        match &self.stage {
            Stage::Dialing(dial) | Stage::BackendTls(dial) => {
                dial.backend.as_ref().map(|backend| (backend, dial.address))
            }
            _ => None,
        }
    }

    /// The backend's socket is connected.
    fn reached(&mut self, context: &mut SessionContext<'_>) -> SessionResult {
        let Some(backend) = self.dialed().map(|(backend, _)| Arc::clone(backend)) else {
            return Ok(());
        };
        let Some(wanted) = backend.tls() else {
            return self.connected(context);
        };
        let Some(side) = self.backend.take() else {
            return Ok(());
        };
        self.since = context.now;
        let tls = &context.shared.tls;
        match side.within(|socket: OwnedFd| tls.connect(wanted, socket)) {
            Some(side) => self.backend = Some(side),
            None => return self.dial_failed("other", context),
        }
        self.turn_to(Stage::BackendTls);
        self.shake_backend(context)
    }

    fn shake_backend(&mut self, context: &mut SessionContext<'_>) -> SessionResult {
        let Some(side) = &mut self.backend else {
            return Ok(());
        };
        match side.stream.handshake() {
            Ok(true) => self.connected(context),
            Ok(false) => {
                let write = side.stream.wants_write();
                let watched = side.watch(context.poller, true, write);
                watched_or(watched, End::NoBackend)
            }
            Err(error) => self.dial_failed(error.cause(), context),
        }
    }

    fn connected(&mut self, context: &mut SessionContext<'_>) -> SessionResult {
        if let Stage::Dialing(dial) | Stage::BackendTls(dial) = &self.stage {
            let took = Duration::from_nanos(wire::clock::now().saturating_sub(dial.began));
            context.shared.counters.connected_after(took);
        }
        self.begin_to_carry(context)
    }

    /// Goes on with the same dial in another stage.
    fn turn_to(&mut self, stage: fn(Dial) -> Stage) {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Relaying) {
            Stage::Dialing(dial) | Stage::BackendTls(dial) => stage(dial),
            other => other,
        };
    }
}
