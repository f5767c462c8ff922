//! Datagrams through the proxy. Each client has a socket towards the server of its own, so the
//! server tells clients apart and its answers find back.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

use super::datagram::{DatagramPath, DatagramStep};
use super::toxic::Direction;
use super::{HeldPart, Shared, Toxics};

/// A client that sends and receives nothing for so long is forgotten.
const IDLE: Duration = Duration::from_secs(60);
/// Datagrams of a client that wait for its task; more are dropped.
const WAITING: usize = 256;
/// The largest datagram there is.
const DATAGRAM_BYTES: usize = 65_535;

thread_local! {
    /// What answers are read into, so that clients have no buffers of their own.
    static READ: RefCell<Box<[u8]>> = RefCell::new(vec![0; DATAGRAM_BYTES].into());
}

/// Takes in datagrams of clients until it is aborted, which forgets them all.
pub(super) async fn serve(socket: UdpSocket, shared: Arc<Shared>) {
    let socket = Arc::new(socket);
    let mut clients: HashMap<SocketAddr, Sender<Bytes>> = HashMap::new();
    let mut tasks = JoinSet::new();
    let mut buffer = vec![0; DATAGRAM_BYTES];
    loop {
        let received = tokio::select! {
            received = socket.recv_from(&mut buffer) => received,
            Some(ended) = tasks.join_next() => {
                if let Ok(client) = ended {
                    clients.remove(&client);
                }
                continue;
            }
        };
        // An error is that of an earlier datagram, whose client is gone.
        let Ok((count, from)) = received else {
            continue;
        };
        if !clients.contains_key(&from) {
            if clients.len() >= shared.settings.most_connections {
                shared.traffic.refused.fetch_add(1, Relaxed);
                continue;
            }
            let Ok(upstream) = connect(&shared.settings.upstream).await else {
                shared.traffic.unreachable.fetch_add(1, Relaxed);
                continue;
            };
            let (sender, receiver) = mpsc::channel(WAITING);
            clients.insert(from, sender);
            let (shared, socket) = (Arc::clone(&shared), Arc::clone(&socket));
            tasks.spawn(async move {
                let (ordinal, _open) = shared.traffic.opened();
                let toxics = shared.toxics.subscribe();
                let client = Client {
                    shared: &shared,
                    socket: &socket,
                    upstream,
                    from,
                    ordinal,
                };
                client.run(receiver, toxics).await;
                from
            });
        }
        let datagram = Bytes::copy_from_slice(&buffer[..count]);
        let sent = clients
            .get(&from)
            .is_some_and(|client| client.try_send(datagram).is_ok());
        shared
            .traffic
            .overflowed
            .fetch_add(u64::from(!sent), Relaxed);
    }
}

async fn connect(upstream: &SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match upstream {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(upstream).await?;
    Ok(socket)
}

/// A client, known by its address.
struct Client<'s> {
    shared: &'s Shared,
    /// Towards all clients.
    socket: &'s UdpSocket,
    /// Towards the server, for this client alone.
    upstream: UdpSocket,
    from: SocketAddr,
    ordinal: u64,
}

impl Client<'_> {
    async fn run(&self, mut received: Receiver<Bytes>, mut toxics: watch::Receiver<Toxics>) {
        let mut paths = Direction::ALL.map(|way| DatagramPath::new(way, self.ordinal));
        let mut held = [HeldPart::of(self.shared), HeldPart::of(self.shared)];
        toxics.mark_changed();
        loop {
            if toxics.has_changed().unwrap_or(false) {
                let toxics = toxics.borrow_and_update();
                for (way, path) in Direction::ALL.into_iter().zip(&mut paths) {
                    path.set(Shared::touching(&toxics, way, self.from.ip(), self.ordinal));
                }
            }
            let wake = self.send_due(&mut paths).await;
            for (part, path) in held.iter_mut().zip(&paths) {
                part.is_now(path.cost());
            }
            let until = self.shared.origin + wake.unwrap_or_default();
            tokio::select! {
                datagram = received.recv() => match datagram {
                    Some(datagram) => self.take_in(&mut paths, Direction::ToServer, datagram),
                    None => return,
                },
                ready = self.upstream.readable() => {
                    if ready.is_ok() && let Some(datagram) = self.answer() {
                        self.take_in(&mut paths, Direction::ToClient, datagram);
                    }
                }
                // What is under way comes first.
                () = sleep(IDLE), if wake.is_none() => return,
                () = sleep_until(until.into()), if wake.is_some() => {}
                changed = toxics.changed() => match changed {
                    Ok(()) => toxics.mark_changed(),
                    Err(_) => return,
                },
            }
        }
    }

    /// Reads what the server has sent; `None`: nothing.
    fn answer(&self) -> Option<Bytes> {
        READ.with_borrow_mut(|buffer| match self.upstream.try_recv(buffer) {
            Ok(count) => Some(Bytes::copy_from_slice(&buffer[..count])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            // An earlier datagram found nobody there.
            Err(_) => {
                self.shared.traffic.unreachable.fetch_add(1, Relaxed);
                None
            }
        })
    }

    fn take_in(&self, paths: &mut [DatagramPath; 2], way: Direction, datagram: Bytes) {
        let path = &mut paths[way.index()];
        let before = path.overflowed();
        path.push(self.shared.now(), datagram, self.shared.spare());
        self.shared
            .traffic
            .overflowed
            .fetch_add(path.overflowed() - before, Relaxed);
    }

    /// Sends what is due. When more will be.
    async fn send_due(&self, paths: &mut [DatagramPath; 2]) -> Option<Duration> {
        let mut wake: Option<Duration> = None;
        for (way, path) in Direction::ALL.into_iter().zip(paths) {
            loop {
                let datagram = match path.step(self.shared.now()) {
                    DatagramStep::Send(datagram) => datagram,
                    DatagramStep::Wait(until) => {
                        wake = wake.into_iter().chain(until).min();
                        break;
                    }
                };
                let sent = match way {
                    Direction::ToServer => self.upstream.send(&datagram).await,
                    Direction::ToClient => self.socket.send_to(&datagram, self.from).await,
                };
                match sent {
                    Ok(count) => self.shared.traffic.passed(way, count),
                    Err(_) => {
                        self.shared.traffic.unreachable.fetch_add(1, Relaxed);
                    }
                }
            }
        }
        wake
    }
}
