//! One client from its greeting to its end.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::deliver::{Brought, Message, Route};
use super::outbound::{Payload, SHARED_BYTES};
use super::peer::Peer;
use super::sublist::{Sub, Subscriber};
use super::{Shared, count};
use crate::Password;
use crate::codec::{Frame, ProtocolError, Scanner, encode};
use crate::stream::Stream;
use crate::subject;

/// Room that a read finds at least.
const READ_BYTES: usize = 64 * 1024;

/// How long a client that publishes waits for one that can hardly keep up.
const STALL: Duration = Duration::from_millis(100);

/// How long the last bytes to a client may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// The headers of the message that says that nobody takes a request.
const NO_RESPONDERS: &[u8] = b"NATS/1.0 503\r\n\r\n";

/// Why a connection ends, as the client is told where that helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client went, or the network took it.
    Gone,
    /// It is told why.
    Told(&'static str),
}

/// What the server says about itself.
#[derive(Serialize)]
struct Info<'a> {
    server_id: &'a str,
    server_name: &'a str,
    version: &'a str,
    proto: u8,
    host: String,
    port: u16,
    headers: bool,
    max_payload: usize,
    client_id: u64,
    auth_required: bool,
    tls_required: bool,
}

/// What a client says about itself, as far as it matters here.
#[derive(Deserialize)]
#[serde(default)]
struct Connect {
    verbose: bool,
    pedantic: bool,
    echo: bool,
    headers: bool,
    no_responders: bool,
    user: Option<String>,
    pass: Option<String>,
}

impl Default for Connect {
    fn default() -> Self {
        Self {
            verbose: true,
            pedantic: true,
            echo: true,
            headers: false,
            no_responders: false,
            user: None,
            pass: None,
        }
    }
}

/// Serves a client until it goes or must go.
pub(super) async fn serve(shared: Arc<Shared>, stream: TcpStream, id: u64) {
    // Without it frames wait for others; they are gathered already.
    let _ = stream.set_nodelay(true);
    let greeted = tokio::time::timeout(shared.config.auth_timeout, greet(&shared, stream, id));
    let Ok(Ok(stream)) = greeted.await else {
        return;
    };
    let peer = Arc::new(Peer::new(shared.config.pending_bytes));
    let membership = Membership(&shared, &peer);
    let (read, mut write) = tokio::io::split(stream);
    let mut session = Session {
        route: Route::starting_at(id as usize),
        brought: Brought::default(),
        authorized: shared.config.user.is_none(),
        verbose: false,
        pedantic: true,
        no_responders: false,
        late: None,
        peer: Arc::clone(&peer),
        shared: Arc::clone(&shared),
    };
    let (authorized, is_authorized) = tokio::sync::watch::channel(session.authorized);
    let end = tokio::select! {
        end = session.receive(read, &authorized) => end,
        () = send(&peer, &mut write) => End::Gone,
        // It would not read a reason either.
        () = peer.outbound.cut_off() => End::Gone,
        end = keep_alive(&shared, &peer) => end,
        end = expire(&shared, is_authorized) => end,
    };
    drop(membership);
    if let End::Told(why) = end {
        peer.outbound.push(|out| encode::error(out, why), None);
    }
    peer.outbound.end();
    let farewell = async {
        send(&peer, &mut write).await;
        let _ = write.shutdown().await;
    };
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
}

async fn greet(
    shared: &Shared,
    mut stream: TcpStream,
    id: u64,
) -> std::io::Result<Box<dyn Stream>> {
    let config = &shared.config;
    let info = Info {
        server_id: &config.name,
        server_name: &config.name,
        version: env!("CARGO_PKG_VERSION"),
        proto: 1,
        host: shared.address.ip().to_string(),
        port: shared.address.port(),
        headers: true,
        max_payload: config.limits.payload_bytes,
        client_id: id,
        auth_required: config.user.is_some(),
        tls_required: config.tls.is_some(),
    };
    let mut out = BytesMut::new();
    encode::object(&mut out, "INFO", &serde_json::to_vec(&info)?);
    stream.write_all(&out).await?;
    let Some(tls) = &config.tls else {
        return Ok(Box::new(stream));
    };
    let accepted = TlsAcceptor::from(Arc::clone(tls)).accept(stream).await;
    let stream = accepted.inspect_err(|_| count(&shared.counters.protocol_errors))?;
    Ok(Box::new(stream))
}

/// Writes until the client is cut off or nothing more will come.
async fn send(peer: &Peer, stream: &mut (impl AsyncWrite + Unpin)) {
    while let Some(block) = peer.outbound.take().await {
        if stream.write_all(&block).await.is_err() || stream.flush().await.is_err() {
            // The reading side learns of it too, and says how the connection ended.
            return std::future::pending().await;
        }
        peer.outbound.written(block.len());
    }
}

async fn keep_alive(shared: &Shared, peer: &Peer) -> End {
    loop {
        tokio::time::sleep(shared.config.ping_interval).await;
        if peer.unanswered.fetch_add(1, Ordering::Relaxed) >= 2 {
            return End::Told("Stale Connection");
        }
        peer.outbound
            .push(|out| out.extend_from_slice(encode::PING), None);
    }
}

async fn expire(shared: &Shared, mut authorized: tokio::sync::watch::Receiver<bool>) -> End {
    let proven = async { authorized.wait_for(|authorized| *authorized).await.is_ok() };
    match tokio::time::timeout(shared.config.auth_timeout, proven).await {
        Ok(_) => std::future::pending().await,
        Err(_) => {
            count(&shared.counters.auth_errors);
            End::Told("Authentication Timeout")
        }
    }
}

/// Ends a client's subscriptions, even when its task is ended from outside.
struct Membership<'a>(&'a Shared, &'a Peer);

impl Drop for Membership<'_> {
    fn drop(&mut self) {
        let subs = std::mem::take(&mut *self.1.subs());
        subs.values().for_each(|sub| self.0.subs.remove(sub));
    }
}

/// The reading side of a client.
struct Session {
    shared: Arc<Shared>,
    peer: Arc<Peer>,
    route: Route,
    brought: Brought,
    authorized: bool,
    verbose: bool,
    /// It wants to be told of subjects that are none: the usual libraries take it for the end
    /// of the connection.
    pedantic: bool,
    /// It wants to know when nobody takes what it asks.
    no_responders: bool,
    /// Who can hardly keep up with what this client publishes.
    late: Option<Arc<Peer>>,
}

impl Session {
    async fn receive(
        &mut self,
        mut stream: impl AsyncRead + Unpin,
        authorized: &tokio::sync::watch::Sender<bool>,
    ) -> End {
        let mut scanner = Scanner::new(self.shared.config.limits);
        let mut unread = BytesMut::new();
        loop {
            unread.reserve(
                scanner
                    .needed()
                    .saturating_sub(unread.len())
                    .max(READ_BYTES),
            );
            match stream.read_buf(&mut unread).await {
                Ok(0) | Err(_) => return End::Gone,
                Ok(_) => {}
            }
            self.brought.drafts.room = unread.len();
            let taken = self.take_frames(&mut scanner, &mut unread);
            self.brought.count(&self.shared.counters);
            let (any, full) = self.brought.drafts.hand_over();
            if let Err(end) = taken {
                return end;
            }
            authorized
                .send_if_modified(|known| std::mem::replace(known, self.authorized) != *known);
            if let Some(late) = self.late.take() {
                // Above the bound it is cut off; that is not this client's business.
                let _ = tokio::time::timeout(STALL, late.outbound.half_empty()).await;
            }
            if let Some(full) = full {
                let _ = tokio::time::timeout(STALL, full.half_empty()).await;
            } else if any {
                // Who takes it comes first: what waits stays short, and in the cache.
                tokio::task::yield_now().await;
            }
        }
    }

    fn take_frames(&mut self, scanner: &mut Scanner, unread: &mut BytesMut) -> Result<(), End> {
        let mut taken = 0;
        while let Some(scanned) = scanner.scan(&unread[taken..]).map_err(|error| {
            count(&self.shared.counters.protocol_errors);
            End::Told(complaint(&error))
        })? {
            let end = taken + scanned.consumed;
            match scanned.frame {
                Frame::Pub(message) if message.payload.len() >= SHARED_BYTES => {
                    let [subject, reply, headers, payload] = [
                        message.subject,
                        message.reply,
                        message.headers,
                        message.payload,
                    ]
                    .map(|part| range(unread, part));
                    let frame = unread.split_to(end).freeze();
                    taken = 0;
                    self.publish(&Message {
                        subject: &frame[subject],
                        reply: &frame[reply],
                        headers: &frame[headers],
                        payload: Payload::Shared(frame.slice(payload)),
                    })?;
                }
                frame => {
                    self.take(frame)?;
                    taken = end;
                }
            }
        }
        let _ = unread.split_to(taken);
        Ok(())
    }

    fn take(&mut self, frame: Frame<'_>) -> Result<(), End> {
        match frame {
            Frame::Pub(message) => {
                return self.publish(&Message {
                    subject: message.subject,
                    reply: message.reply,
                    headers: message.headers,
                    payload: Payload::Copied(message.payload),
                });
            }
            Frame::Ping => self.answer(encode::PONG),
            Frame::Pong => {
                self.peer.unanswered.store(0, Ordering::Relaxed);
                return Ok(());
            }
            Frame::Connect(json) => self.connect(json)?,
            Frame::Sub {
                subject,
                queue,
                sid,
            } => {
                self.check_authorized()?;
                self.subscribe(subject, queue, sid);
            }
            Frame::Unsub { sid, after } => {
                self.check_authorized()?;
                self.unsubscribe(sid, after);
            }
            Frame::Info(_) | Frame::Ok | Frame::Err(_) | Frame::Msg { .. } => {
                count(&self.shared.counters.protocol_errors);
                return Err(End::Told("Unknown Protocol Operation"));
            }
        }
        if self.verbose && !matches!(frame, Frame::Ping) {
            self.answer(encode::OK);
        }
        Ok(())
    }

    fn connect(&mut self, json: &[u8]) -> Result<(), End> {
        let Ok(connect) = serde_json::from_slice::<Connect>(json) else {
            count(&self.shared.counters.protocol_errors);
            return Err(End::Told("Invalid CONNECT"));
        };
        if connect.no_responders && !connect.headers {
            count(&self.shared.counters.protocol_errors);
            return Err(End::Told("no responders requires headers support"));
        }
        if let Some((user, password)) = &self.shared.config.user {
            // Both are compared, so that the time says nothing about the user.
            let known = Password::new(user.as_str()).is(&connect.user.unwrap_or_default());
            if !(password.is(&connect.pass.unwrap_or_default()) & known) {
                count(&self.shared.counters.auth_errors);
                return Err(End::Told("Authorization Violation"));
            }
        }
        self.authorized = true;
        self.verbose = connect.verbose;
        self.pedantic = connect.pedantic;
        self.no_responders = connect.no_responders;
        self.peer.echo.store(connect.echo, Ordering::Relaxed);
        self.peer.headers.store(connect.headers, Ordering::Relaxed);
        Ok(())
    }

    fn publish(&mut self, message: &Message<'_>) -> Result<(), End> {
        self.check_authorized()?;
        self.brought.in_messages += 1;
        self.brought.in_bytes += (message.headers.len() + message.payload.len()) as u64;
        let reply_is_subject = message.reply.is_empty() || subject::is_publishable(message.reply);
        let is_subject =
            self.route.is_to(message.subject) || subject::is_publishable(message.subject);
        if !is_subject || !reply_is_subject {
            if self.pedantic {
                self.complain("Invalid Publish Subject");
            }
            return Ok(());
        }
        let (shared, brought) = (&self.shared, &mut self.brought);
        let delivered = self.route.publish(shared, &self.peer, message, brought);
        if delivered.late.is_some() {
            self.late = delivered.late;
        }
        if !delivered.any && self.no_responders && !message.reply.is_empty() {
            self.send_no_responders(message.reply);
        }
        if self.verbose {
            self.answer(encode::OK);
        }
        Ok(())
    }

    /// Sends where this client awaits its answer that there will be none.
    fn send_no_responders(&self, reply: &[u8]) {
        let awaits =
            |sub: &&Arc<Sub>| sub.group.is_empty() && subject::matches(&sub.subject, reply);
        let Some(sub) = self.peer.subs().values().find(awaits).cloned() else {
            return;
        };
        let bytes = NO_RESPONDERS.len();
        self.peer.outbound.push(
            |out| {
                encode::message_line(out, reply, &sub.sid, b"", bytes, bytes);
                out.extend_from_slice(NO_RESPONDERS);
            },
            Some(Payload::Copied(b"")),
        );
    }

    fn subscribe(&self, subject: &[u8], queue: &[u8], sid: &[u8]) {
        let queue_is_word = queue.is_empty() || subject::is_publishable(queue);
        if !subject::is_subscribable(subject) || !queue_is_word {
            return self.complain("Invalid Subject");
        }
        let mut subs = self.peer.subs();
        if subs.contains_key(sid) {
            return;
        }
        if subs.len() >= self.shared.config.max_subscriptions {
            // Closed, it would come back with all of them, again and again.
            return self.complain("maximum subscriptions exceeded");
        }
        let sub = Arc::new(Sub {
            subscriber: Subscriber::Peer(Arc::clone(&self.peer)),
            subject: subject.into(),
            group: queue.into(),
            sid: sid.into(),
            delivered: AtomicU64::new(0),
            most: AtomicU64::new(u64::MAX),
        });
        subs.insert(sid.into(), Arc::clone(&sub));
        self.shared.subs.add(&sub);
    }

    fn unsubscribe(&mut self, sid: &[u8], after: u64) {
        let Some(sub) = self.peer.subs().get(sid).cloned() else {
            return;
        };
        if after > sub.delivered.load(Ordering::Relaxed) {
            sub.most.store(after, Ordering::Relaxed);
        } else {
            self.shared.remove(&sub);
        }
    }

    fn check_authorized(&self) -> Result<(), End> {
        if self.authorized {
            return Ok(());
        }
        count(&self.shared.counters.auth_errors);
        Err(End::Told("Authorization Violation"))
    }

    fn complain(&self, text: &str) {
        self.peer
            .outbound
            .push(|out| encode::error(out, text), None);
    }

    fn answer(&self, frame: &[u8]) {
        self.peer
            .outbound
            .push(|out| out.extend_from_slice(frame), None);
    }
}

/// As nats-server puts it.
fn complaint(error: &ProtocolError) -> &'static str {
    match error {
        ProtocolError::LongLine { .. } => "Maximum Control Line Exceeded",
        ProtocolError::LargePayload { .. } => "Maximum Payload Violation",
        ProtocolError::UnknownOperation(_) | ProtocolError::WrongSide(_) => {
            "Unknown Protocol Operation"
        }
        ProtocolError::Arguments { .. } | ProtocolError::PayloadEnd(_) => "Parser Error",
    }
}

/// Where `part` is in `buffer`, which it was borrowed from.
fn range(buffer: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr().addr().saturating_sub(buffer.as_ptr().addr());
    match part.len() {
        0 => 0..0,
        bytes => start..start + bytes,
    }
}
