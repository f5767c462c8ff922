//! Host ports of containers.
//!
//! A simulated container listens nowhere, so each cell has all ports to itself. A real one
//! listens on its port of the machine: then no other cell may hand it out, of this process or
//! of another one on the machine, and nobody else may listen there.

use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Mutex;

use crate::mutex::lock;

/// Ports that a process takes at once of those of the machine.
const BLOCK: u16 = 64;

/// Where the machine's reps find out who has which ports.
pub(super) const MACHINE: &str = "headroom-host-ports";

/// Hands out host ports.
#[derive(Debug)]
pub(super) enum HostPorts {
    /// To one cell whose containers listen nowhere.
    Own(Mutex<Own>),
    /// To all cells of the process.
    Machine(Mutex<Machine>),
}

impl HostPorts {
    /// The ports of a cell alone.
    pub(super) fn own(ports: RangeInclusive<u16>) -> Self {
        Self::Own(Mutex::new(Own {
            fresh: ports,
            returned: BTreeSet::new(),
        }))
    }

    /// Those of the machine, which it shares with everybody that uses the same name.
    pub(super) fn machine(ports: RangeInclusive<u16>, name: &str) -> Self {
        Self::Machine(Mutex::new(Machine {
            next: Some(*ports.start()),
            ports,
            name: name.to_owned(),
            leases: Vec::new(),
            free: VecDeque::new(),
        }))
    }

    /// Hands out `count` ports, or none when there are not so many left.
    pub(super) fn take(&self, count: usize) -> Option<Vec<u16>> {
        match self {
            Self::Own(own) => lock(own).take(count),
            Self::Machine(machine) => lock(machine).take(count),
        }
    }

    /// Takes ports back.
    pub(super) fn give_back(&self, ports: impl IntoIterator<Item = u16>) {
        match self {
            Self::Own(own) => lock(own).returned.extend(ports),
            Self::Machine(machine) => lock(machine).free.extend(ports),
        }
    }
}

/// The ports of a cell.
#[derive(Debug)]
pub(super) struct Own {
    /// Never handed out.
    fresh: RangeInclusive<u16>,
    /// Handed back.
    returned: BTreeSet<u16>,
}

impl Own {
    fn take(&mut self, count: usize) -> Option<Vec<u16>> {
        if self.returned.len() + self.fresh.len() < count {
            return None;
        }
        // Fresh ones first: a port that was just in use may still have visitors.
        let next = |_| self.fresh.next().or_else(|| self.returned.pop_first());
        Some((0..count).filter_map(next).collect())
    }
}

/// The machine's ports that this process has leased, block by block. A lease is a socket with
/// the block's name: the kernel gives a name to one process at a time, of all in the same
/// network, and takes it back when that process ends, however it ends.
#[derive(Debug)]
pub(super) struct Machine {
    ports: RangeInclusive<u16>,
    name: String,
    leases: Vec<UnixDatagram>,
    /// Leased and not handed out, longest unused first.
    free: VecDeque<u16>,
    /// Where to look for a block next; `None`: all were tried.
    next: Option<u16>,
}

impl Machine {
    fn take(&mut self, count: usize) -> Option<Vec<u16>> {
        let mut taken = Vec::with_capacity(count);
        let mut in_use = Vec::new();
        while taken.len() < count {
            match self.free.pop_front() {
                Some(port) if is_free(port) => taken.push(port),
                Some(port) => in_use.push(port),
                None if self.lease() => {}
                None => break,
            }
        }
        // Somebody else's now, and perhaps not for ever.
        self.free.extend(in_use);
        if taken.len() < count {
            self.free.extend(taken);
            // Others may have ended: then their blocks can be had.
            self.next = Some(*self.ports.start());
            return None;
        }
        Some(taken)
    }

    /// Leases the next block that nobody has; false when there is none.
    fn lease(&mut self) -> bool {
        while let Some(port) = self.next {
            let first = port - port % BLOCK;
            let last = first.saturating_add(BLOCK - 1);
            self.next = last.checked_add(1).filter(|next| self.ports.contains(next));
            let address = SocketAddr::from_abstract_name(format!("{}-{first}", self.name));
            if let Ok(lease) = address.and_then(|address| UnixDatagram::bind_addr(&address)) {
                self.leases.push(lease);
                let (from, to) = (first.max(*self.ports.start()), last.min(*self.ports.end()));
                self.free.extend(from..=to);
                return true;
            }
        }
        false
    }
}

/// Does nobody listen there now? Looked up without listening: a process that is just being started
/// would hold the listener in turn, in the way of the container that the port is for.
fn is_free(port: u16) -> bool {
    wire::socket::check_free((Ipv4Addr::UNSPECIFIED, port).into()).is_ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::thread;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    /// A name that no other test uses.
    fn name() -> String {
        super::super::work::uuid(&mut rand::rng())
    }

    /// A range below the ports that the kernel gives to connections, of which a busy machine
    /// has thousands.
    fn range(ports: u16) -> RangeInclusive<u16> {
        let port = rand::random_range(10_000..20_000 - ports);
        port..=port + ports - 1
    }

    #[test]
    fn two_processes_of_a_machine_never_have_the_same_port() {
        let (name, range) = (name(), range(400));
        let first = HostPorts::machine(range.clone(), &name);
        let second = HostPorts::machine(range.clone(), &name);
        let (mut all, mut ended) = (Vec::new(), 0);
        while ended < 2 {
            ended = 0;
            for ports in [&first, &second] {
                match ports.take(3) {
                    Some(taken) => all.extend(taken),
                    None => ended += 1,
                }
            }
        }
        let count = all.len();
        assert!(all.iter().all(|port| range.contains(port)));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "a port was handed out twice");
        assert!(count > 300, "only {count} of 400");
        // What a process had is free when it ends.
        drop(first);
        // A process that another test is starting has them, too, until it is a program.
        let taken = (0..10_000).find_map(|_| {
            thread::sleep(Duration::from_millis(1));
            second.take(3)
        });
        assert!(taken.is_some());
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_not_handed_out() {
        // Another program may take the port as soon as it is free: then another one.
        let (port, ports) = std::iter::repeat_with(|| {
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            let ports = HostPorts::machine(port..=port, &name());
            assert_eq!(ports.take(1), None);
            drop(listener);
            (port, ports)
        })
        .take(20)
        .find(|(port, ports)| ports.take(1) == Some(vec![*port]))
        .expect("a port that nobody else wants");
        assert_eq!(ports.take(1), None);
        ports.give_back([port]);
        assert_eq!(ports.take(1), Some(vec![port]));
    }

    #[test]
    fn who_looks_for_a_free_port_is_in_nobodys_way() {
        let port = *range(1).start();
        let over = AtomicBool::new(false);
        let refused = thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    is_free(port);
                }
            });
            let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, port));
            let refused = (0..2_000).find_map(|_| listen().err());
            over.store(true, Relaxed);
            refused
        });
        assert!(refused.is_none(), "{refused:?}");
    }

    proptest! {
        #[test]
        fn ports_of_a_cell_are_held_once_and_come_back(
            wishes in prop::collection::vec((0..4usize, any::<bool>()), 0..60),
        ) {
            let ports = HostPorts::own(1000..=1005);
            let mut held: Vec<Vec<u16>> = Vec::new();
            for (count, free) in wishes {
                if free && let Some(back) = held.pop() {
                    ports.give_back(back);
                    continue;
                }
                held.extend(ports.take(count));
                let mut all: Vec<u16> = held.concat();
                let count = all.len();
                all.sort_unstable();
                all.dedup();
                prop_assert_eq!(all.len(), count, "a port was handed out twice");
            }
            ports.give_back(held.concat());
            prop_assert_eq!(ports.take(6).map(|ports| ports.len()), Some(6));
        }
    }
}
