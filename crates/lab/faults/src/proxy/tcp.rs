//! Connections through the proxy: sockets, waits, and what becomes of both ends.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use rustix::net::{Shutdown, shutdown};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};

use super::gate::Gate;
use super::stream::{Step, StreamEnd, StreamPath};
use super::toxic::{Direction, ResetWhen, ToxicKind};
use super::{HeldPart, Shared, Toxics};

/// How long connecting to the server may take.
const CONNECTED_WITHIN: Duration = Duration::from_secs(10);
/// How long an accept that failed, for want of descriptors say, is waited after.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// How long both ends may take to close a connection that was closed for them.
const CLOSED_WITHIN: Duration = Duration::from_millis(500);
/// What is read at once.
const READ_BYTES: usize = 64 << 10;

thread_local! {
    /// What is read goes straight out of here if it can, so connections have no buffers of
    /// their own.
    static READ: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

/// Accepts connections until it is aborted, which ends them all.
pub(super) async fn serve(listener: TcpListener, address: SocketAddr, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    let mut toxics = shared.toxics.subscribe();
    let mut gate = Gate::new(listener, address);
    loop {
        let cut_off = toxics
            .borrow_and_update()
            .iter()
            .any(|on| on.cuts_everybody_off());
        let moved = match cut_off {
            true => gate.shut().await,
            false => gate.open().map(|()| Vec::new()),
        };
        // Should it fail, connections are made and then stand still, which is said.
        for (client, from) in moved.unwrap_or_default() {
            connect(&mut connections, client, from, &shared);
        }
        tokio::select! {
            changed = toxics.changed() => if changed.is_err() { return },
            accepted = gate.accept(), if !gate.is_shut() => match accepted {
                Ok((client, from)) => connect(&mut connections, client, from, &shared),
                Err(_) => sleep(ACCEPT_AGAIN).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

fn connect(
    connections: &mut JoinSet<()>,
    client: TcpStream,
    from: SocketAddr,
    shared: &Arc<Shared>,
) {
    if connections.len() >= shared.settings.most_connections {
        shared.traffic.refused.fetch_add(1, Relaxed);
        reset(&client);
        return;
    }
    let shared = Arc::clone(shared);
    connections.spawn(async move {
        let (ordinal, _open) = shared.traffic.opened();
        let toxics = shared.toxics.subscribe();
        Connection {
            shared: &shared,
            client,
            from,
            ordinal,
        }
        .run(toxics)
        .await;
    });
}

/// A connection of a client.
struct Connection<'s> {
    shared: &'s Shared,
    client: TcpStream,
    from: SocketAddr,
    ordinal: u64,
}

/// How a direction ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// Its end was passed on, or its receiver is gone.
    Half,
    /// Both directions end in order.
    Close,
    /// Both sides see a reset.
    Reset,
}

impl Connection<'_> {
    async fn run(self, mut toxics: watch::Receiver<Toxics>) {
        if !self.may_connect(&mut toxics).await {
            reset(&self.client);
            return;
        }
        let server = timeout(
            CONNECTED_WITHIN,
            TcpStream::connect(self.shared.settings.upstream),
        );
        let Ok(Ok(server)) = server.await else {
            // The nearest to a server that refuses is a connection that is refused at once.
            self.shared.traffic.unreachable.fetch_add(1, Relaxed);
            reset(&self.client);
            return;
        };
        // What is held is held by toxics, not by Nagle's algorithm.
        let _ = self.client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        let gone = [AtomicBool::new(false), AtomicBool::new(false)];
        let [client_gone, server_gone] = &gone;
        let mut request = pin!(self.pump(
            Direction::ToServer,
            &self.client,
            &server,
            [client_gone, server_gone],
            toxics.clone()
        ));
        let mut response = pin!(self.pump(
            Direction::ToClient,
            &server,
            &self.client,
            [server_gone, client_gone],
            toxics
        ));
        let mut open = [true, true];
        while open != [false, false] {
            let ended = tokio::select! {
                ended = &mut request, if open[0] => { open[0] = false; ended }
                ended = &mut response, if open[1] => { open[1] = false; ended }
            };
            match ended {
                Ended::Half => {}
                Ended::Close => return close(&self.client, &server).await,
                Ended::Reset => {
                    reset(&self.client);
                    reset(&server);
                    return;
                }
            }
        }
    }

    /// Waits until no partition stands between the client and the server. `false`: the
    /// connection is to be reset instead.
    async fn may_connect(&self, toxics: &mut watch::Receiver<Toxics>) -> bool {
        loop {
            let (resets, partitioned) = {
                let toxics = toxics.borrow_and_update();
                let mine = Direction::ALL.map(|way| {
                    (
                        way,
                        Shared::touching(&toxics, way, self.from.ip(), self.ordinal),
                    )
                });
                let mut mine = mine
                    .iter()
                    .flat_map(|(way, mine)| mine.iter().map(|on| (*way, on)));
                let resets = mine
                    .clone()
                    .find(|(_, on)| on.toxic.kind == ToxicKind::Reset(ResetWhen::Now));
                if let Some((way, on)) = resets {
                    let counters = &on.counters[way.index()];
                    counters.connections.fetch_add(1, Relaxed);
                    counters.reset_connections.fetch_add(1, Relaxed);
                }
                (
                    resets.is_some(),
                    mine.any(|(_, on)| on.toxic.kind == ToxicKind::Partition),
                )
            };
            if resets || !partitioned {
                return !resets;
            }
            if toxics.changed().await.is_err() {
                return false;
            }
        }
    }

    /// Carries one direction until it ends. `gone` says of its sender and its receiver whether
    /// a write has found them gone, which a read may then not see any more.
    async fn pump(
        &self,
        direction: Direction,
        from: &TcpStream,
        to: &TcpStream,
        [from_gone, to_gone]: [&AtomicBool; 2],
        mut toxics: watch::Receiver<Toxics>,
    ) -> Ended {
        let mut path = StreamPath::new(direction, self.ordinal);
        let mut held = HeldPart::of(self.shared);
        toxics.mark_changed();
        let mut reading = true;
        loop {
            if toxics.has_changed().unwrap_or(false) {
                let touching = Shared::touching(
                    &toxics.borrow_and_update(),
                    direction,
                    self.from.ip(),
                    self.ordinal,
                );
                path.set(self.shared.now(), touching);
            }
            let now = self.shared.now();
            let (mut blocked, mut wake) = (false, None);
            match path.step(now) {
                Step::Wait(until) => wake = until,
                Step::Write(count) => match to.try_write(&path.front()[..count]) {
                    Ok(count) => {
                        path.written(now, count);
                        self.shared.traffic.passed(direction, count);
                        held.is_now(path.cost());
                        continue;
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => blocked = true,
                    Err(_) => {
                        to_gone.store(true, Relaxed);
                        return Ended::Half;
                    }
                },
                Step::Finish => {
                    let _ = shutdown(to, Shutdown::Write);
                    return Ended::Half;
                }
                Step::Close => return Ended::Close,
                Step::Reset => return Ended::Reset,
            }
            let room = path.room(self.shared.spare());
            let until = self.shared.origin + wake.unwrap_or_default();
            tokio::select! {
                ready = from.readable(), if reading && room > 0 => {
                    reading = ready.is_ok() && self.take_in(&mut path, from, to, from_gone, room);
                    held.is_now(path.cost());
                }
                _ = to.writable(), if blocked => {}
                () = sleep_until(until.into()), if wake.is_some() => {}
                changed = toxics.changed() => match changed {
                    Ok(()) => toxics.mark_changed(),
                    Err(_) => return Ended::Close,
                },
            }
        }
    }

    /// Reads once, and writes straight on what nothing holds. Whether more may come.
    fn take_in(
        &self,
        path: &mut StreamPath,
        from: &TcpStream,
        to: &TcpStream,
        from_gone: &AtomicBool,
        room: usize,
    ) -> bool {
        READ.with_borrow_mut(|buffer| {
            let room = room.min(buffer.len());
            let read = match from.try_read(&mut buffer[..room]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Ok(0) if from_gone.load(Relaxed) => Err(StreamEnd::Reset),
                Ok(0) => Err(StreamEnd::Finished),
                Ok(count) => Ok(count),
                Err(_) => Err(StreamEnd::Reset),
            };
            let read = match read {
                Ok(count) => &buffer[..count],
                Err(end) => {
                    path.end(self.shared.now(), end);
                    return false;
                }
            };
            // An error of a write shows again at the next one, whose outcome is looked at.
            let gone = if path.is_plain() {
                to.try_write(read).unwrap_or(0)
            } else {
                0
            };
            if gone > 0 {
                let direction = path.direction();
                self.shared.traffic.passed(direction, gone);
            }
            if gone < read.len() {
                path.push(self.shared.now(), Bytes::copy_from_slice(&read[gone..]));
            }
            true
        })
    }
}

/// Has the connection end with a reset as soon as the socket is closed.
fn reset(socket: &TcpStream) {
    // An error means that it is gone already.
    let _ = socket.set_zero_linger();
}

/// Ends both connections in order: what was written arrives, and nothing that comes late makes
/// the kernel reset them.
async fn close(client: &TcpStream, server: &TcpStream) {
    for socket in [client, server] {
        let _ = shutdown(socket, Shutdown::Write);
    }
    let _ = timeout(CLOSED_WITHIN, async {
        tokio::join!(discard(client), discard(server));
    })
    .await;
}

/// Reads until nothing more comes.
async fn discard(socket: &TcpStream) {
    while socket.readable().await.is_ok() {
        let read = READ.with_borrow_mut(|buffer| socket.try_read(buffer));
        match read {
            Ok(0) => return,
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return,
            _ => {}
        }
    }
}
