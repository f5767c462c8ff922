//! Where connections come in: listeners of one thread that accept, pause when there is no
//! room, and resume.

use std::io;
use std::os::fd::OwnedFd;

use crate::deadlines::NEVER;
use crate::poller::{Interest, Poller, Registration};
use crate::slab::{Key, Slab};

/// Connections that wait to be accepted.
pub const BACKLOG: u32 = 4096;
/// The kind of the events of listeners, by [`Key::of_token`].
pub const LISTENER: u32 = 6;
/// Connections to accept at one wake-up: a flood of new ones must not hold up the others.
pub const AT_ONCE: usize = 32;
/// How long, in nanoseconds, to pause when the system has no descriptors left.
pub const PAUSE: u64 = 100_000_000;

/// See the module. `T` is what a listener is of.
#[derive(Debug)]
pub struct Listeners<T> {
    all: Slab<Listener<T>>,
    /// When to accept again after a pause.
    resume_at: u64,
}

#[derive(Debug)]
struct Listener<T> {
    socket: OwnedFd,
    registration: Registration,
    // Dropped last: what says that a socket is open goes when it is not.
    of: T,
}

impl<T> Default for Listeners<T> {
    /// None yet.
    fn default() -> Self {
        Self {
            all: Slab::default(),
            resume_at: NEVER,
        }
    }
}

impl<T> Listeners<T> {
    /// Begins to watch a socket that listens. The first ones have the keys 0, 1 and so on, as
    /// [`Key::of`] takes them.
    ///
    /// # Errors
    /// When the poller cannot. [`Listeners::resume`] tries again.
    pub fn add(&mut self, socket: OwnedFd, of: T, poller: &Poller) -> io::Result<()> {
        let key = self.all.reserve();
        let mut registration = Registration::new(key.token(LISTENER));
        let added = registration.set(&socket, Some(Interest::Read), poller);
        if added.is_err() {
            self.resume_at = 0;
        }
        let listener = Listener {
            of,
            socket,
            registration,
        };
        self.all.put(key, listener);
        added
    }

    /// A listener, to accept from, and what it is of; `None`: it is closed.
    pub fn get(&self, key: Key) -> Option<(&T, &OwnedFd)> {
        let listener = self.all.get(key)?;
        Some((&listener.of, &listener.socket))
    }

    /// Those that are not closed.
    pub fn keys(&self) -> Vec<Key> {
        self.all.keys().collect()
    }

    /// Closes one. Connections that wait in its queue are reset.
    pub fn close(&mut self, key: Key) {
        self.all.release(key);
    }

    /// When to [`Listeners::resume`] at the latest; [`NEVER`]: none pauses.
    pub fn next_deadline(&self) -> u64 {
        self.resume_at
    }

    /// Leaves the queue of a listener to the kernel, until `until` at the latest:
    /// level-triggered readiness would keep this thread busy. Whether it was not so already.
    pub fn pause(&mut self, key: Key, until: u64, poller: &Poller) -> bool {
        self.resume_at = self.resume_at.min(until);
        let one = self.all.get_mut(key);
        one.is_some_and(|one| {
            let watched = one.registration.is_watched();
            watched && one.registration.set(&one.socket, None, poller).is_ok()
        })
    }

    /// Watches those again that were paused. One that cannot be is to be tried again after
    /// a [`PAUSE`].
    pub fn resume(&mut self, now: u64, poller: &Poller) {
        self.resume_at = NEVER;
        let read = Some(Interest::Read);
        for key in self.keys() {
            if let Some(one) = self.all.get_mut(key)
                && one.registration.set(&one.socket, read, poller).is_err()
            {
                self.resume_at = now.saturating_add(PAUSE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;
    use crate::socket;

    fn told(poller: &mut Poller) -> Vec<(u32, Key)> {
        poller.wait(Some(Duration::ZERO)).unwrap();
        std::iter::from_fn(|| poller.next_event())
            .map(|event| Key::of_token(event.token))
            .collect()
    }

    #[test]
    fn a_paused_one_is_not_told_of_until_it_resumes() {
        let mut poller = Poller::new().unwrap();
        let mut listeners = Listeners::default();
        let any = "127.0.0.1:0".parse().unwrap();
        let mut addresses = Vec::new();
        for of in ['a', 'b'] {
            let socket = socket::listen_tcp(any, 16, false).unwrap();
            addresses.push(socket::local_address(&socket).unwrap());
            listeners.add(socket, of, &poller).unwrap();
        }
        let keys = listeners.keys();
        assert_eq!(keys, [Key::of(0), Key::of(1)]);
        assert!(told(&mut poller).is_empty());
        let _near = TcpStream::connect(addresses[1]).unwrap();
        assert_eq!(told(&mut poller), [(LISTENER, keys[1])]);

        assert!(listeners.pause(keys[1], 70, &poller));
        assert!(!listeners.pause(keys[1], 80, &poller));
        assert_eq!(listeners.next_deadline(), 70);
        assert!(told(&mut poller).is_empty());
        listeners.resume(90, &poller);
        assert_eq!(listeners.next_deadline(), NEVER);
        assert_eq!(told(&mut poller), [(LISTENER, keys[1])]);

        let (of, socket) = listeners.get(keys[1]).unwrap();
        assert_eq!(*of, 'b');
        assert!(socket::accept(socket).unwrap().is_some());
        assert!(told(&mut poller).is_empty());
        listeners.close(keys[1]);
        assert!(listeners.get(keys[1]).is_none());
        assert!(TcpStream::connect(addresses[1]).is_err());
        assert_eq!(listeners.keys(), [keys[0]]);
    }

    #[test]
    fn one_that_cannot_be_watched_is_tried_again() {
        let poller = Poller::new().unwrap();
        let mut listeners = Listeners::default();
        // A file is none of a poller's business.
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(listeners.add(file.into(), (), &poller).is_err());
        assert_eq!(listeners.next_deadline(), 0);
        listeners.resume(90, &poller);
        assert_eq!(listeners.next_deadline(), 90 + PAUSE);
        assert!(!listeners.pause(Key::of(0), 95, &poller));
        assert_eq!(listeners.next_deadline(), 95);
        listeners.close(Key::of(0));
        listeners.resume(99, &poller);
        assert_eq!(listeners.next_deadline(), NEVER);
    }
}
