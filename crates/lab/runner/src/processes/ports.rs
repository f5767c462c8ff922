//! Ports for systems that do not choose their own.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread::sleep;
use std::time::Duration;

use rand::{Rng, RngExt};

/// Lowest port that is handed out.
const LOWEST: u16 = 10_000;
/// Ports that are tried before the kernel is asked for any, and then of the kernel's.
const TRIES: u32 = 200;

/// Where laboratories find out who has which ports.
const NAME: &str = "headroom-port";

/// How often it is looked whether a port has become free, and the time between two looks.
/// Together as long as a start of a process on a machine that is far too busy.
const FREE_CHECKS: u32 = 1000;
const FREE_PAUSE: Duration = Duration::from_millis(5);

/// No port could be had.
#[derive(Debug, thiserror::Error)]
#[error("find a free port on 127.0.0.1: {0}")]
pub struct PortError(io::Error);

/// Ports on the loopback address, each handed out once and kept bound until the
/// moment before its system starts.
///
/// They come from outside the range of the ports that the kernel gives to outgoing
/// connections; inside it, any connection could take a port in the moment between
/// our release and the system's own bind.
///
/// In that moment another laboratory could take it, too, and whoever waits for the system would meet
/// that one: so each port is leased, until this is dropped. A lease is a socket with the port's name:
/// the kernel gives a name to one process at a time, of all in the same network, and takes it back
/// when that process ends, however it ends.
#[derive(Debug)]
pub struct Ports {
    ephemeral: Range<u16>,
    handed_out: BTreeSet<u16>,
    held: BTreeMap<u16, TcpListener>,
    leases: Vec<UnixDatagram>,
}

impl Default for Ports {
    fn default() -> Self {
        Self::new()
    }
}

impl Ports {
    /// None yet.
    pub fn new() -> Self {
        let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
        Self {
            ephemeral: ephemeral(&text.unwrap_or_default()),
            handed_out: BTreeSet::new(),
            held: BTreeMap::new(),
            leases: Vec::new(),
        }
    }

    /// Binds a free port and remembers it.
    ///
    /// # Errors
    /// The system gives none.
    pub fn allot(&mut self) -> Result<u16, PortError> {
        self.allot_among(&mut rand::rng())
    }

    fn allot_among(&mut self, random: &mut impl Rng) -> Result<u16, PortError> {
        for _ in 0..TRIES {
            let port = random.random_range(LOWEST..=u16::MAX);
            if self.ephemeral.contains(&port) || self.handed_out.contains(&port) {
                continue;
            }
            let Ok(lease) = lease(port) else { continue };
            if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                return Ok(self.hold(port, listener, lease));
            }
        }
        // Nothing outside the range: any port is better than none.
        for _ in 0..TRIES {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(PortError)?;
            let port = listener.local_addr().map_err(PortError)?.port();
            match lease(port) {
                Ok(lease) if !self.handed_out.contains(&port) => {
                    return Ok(self.hold(port, listener, lease));
                }
                _ => {}
            }
        }
        Err(PortError(io::ErrorKind::AddrInUse.into()))
    }

    /// Lets go of a port so that its system can bind it.
    pub fn release(&mut self, port: u16) {
        if self.held.remove(&port).is_some() {
            wait_until_free(port);
        }
    }

    /// The listener of a port that the laboratory itself listens at; `None`: it is nobody's, or
    /// its system has it.
    pub(crate) fn take(&mut self, port: u16) -> Option<TcpListener> {
        self.held.remove(&port)
    }

    fn hold(&mut self, port: u16, listener: TcpListener, lease: Option<UnixDatagram>) -> u16 {
        self.handed_out.insert(port);
        self.leases.extend(lease);
        self.held.insert(port, listener);
        port
    }
}

/// Somebody has leased it.
struct Leased;

/// Leases a port. `None`: the system gives no such sockets, and nobody has leases.
fn lease(port: u16) -> Result<Option<UnixDatagram>, Leased> {
    let address = SocketAddr::from_abstract_name(format!("{NAME}-{port}"));
    match address.and_then(|address| UnixDatagram::bind_addr(&address)) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(Leased),
        lease => Ok(lease.ok()),
    }
}

/// Waits until nothing listens on a port that was ours: a process that another thread is just
/// starting holds all of our sockets until it has become its program.
fn wait_until_free(port: u16) {
    for _ in 0..FREE_CHECKS {
        // Asked by a connection, for a socket that is bound to look could be held in turn.
        match TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => sleep(FREE_PAUSE),
            Err(_) => return,
        }
    }
}

/// Reads `ip_local_port_range`; Linux's default when it says nothing.
fn ephemeral(text: &str) -> Range<u16> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u16>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(low)), Some(Ok(high))) if low < high => low..high,
        _ => 32_768..60_999,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::thread;

    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn the_kernels_range_is_read() {
        assert_eq!(ephemeral("32768\t60999\n"), 32_768..60_999);
        assert_eq!(ephemeral("1024 2000"), 1024..2000);
        assert_eq!(ephemeral("x"), 32_768..60_999);
        assert_eq!(ephemeral(""), 32_768..60_999);
    }

    #[test]
    fn ports_are_distinct_held_and_free_once_released() {
        let mut ports = Ports::new();
        let allotted: BTreeSet<u16> = (0..100).map(|_| ports.allot().unwrap()).collect();
        assert_eq!(allotted.len(), 100);
        for port in &allotted {
            assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_err());
            ports.release(*port);
            assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
        }
    }

    /// A system takes a while until it listens: until then its port looks free.
    #[test]
    fn a_port_whose_system_does_not_listen_yet_is_not_handed_out_again() {
        let draws = || StdRng::seed_from_u64(7);
        let mut first = Ports::new();
        let port = first.allot_among(&mut draws()).unwrap();
        first.release(port);
        let mut second = Ports::new();
        assert_ne!(second.allot_among(&mut draws()).unwrap(), port);
        // Nor by the one that has it.
        assert_ne!(first.allot_among(&mut draws()).unwrap(), port);
        drop(first);
        // A process that another test is just starting has the lease, too, until it is a program.
        let again = || {
            thread::sleep(Duration::from_millis(1));
            lease(port).is_ok()
        };
        assert!((0..10_000).any(|_| again()));
    }

    #[test]
    fn a_port_is_free_for_its_system_whatever_is_started_beside_it() {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    // A hook makes it a fork, which holds our sockets until its `exec`.
                    let mut starts = Command::new("true");
                    let slow = || {
                        thread::sleep(Duration::from_millis(5));
                        Ok(())
                    };
                    // SAFETY: it only sleeps.
                    unsafe { starts.pre_exec(slow) };
                    starts.status().unwrap();
                }
            });
            for _ in 0..100 {
                let mut ports = Ports::new();
                let port = ports.allot().unwrap();
                thread::sleep(Duration::from_millis(1));
                ports.release(port);
                let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
                if bound.is_err() {
                    over.store(true, Relaxed);
                }
                bound.unwrap();
            }
            over.store(true, Relaxed);
        });
    }

    #[test]
    fn without_a_port_outside_the_range_the_kernel_chooses() {
        let mut ports = Ports::new();
        ports.ephemeral = 0..u16::MAX;
        assert!(ports.allot().unwrap() > 0);
    }
}
