//! Names of hosts become addresses on a thread of their own, since to ask may take
//! seconds. Most endpoints are registered by address and never come here.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use wire::clock;
use wire::poller::Waker;

use crate::table::Nanos;

/// How long an answer is believed.
const FRESH: Nanos = 5_000_000_000;
/// How long a name stays unknown.
const UNKNOWN: Nanos = 1_000_000_000;
/// Questions that may wait; beyond them a name counts as unknown.
const WAITING: usize = 1024;
/// Names that are remembered; beyond them, all are forgotten.
const NAMES: usize = 4096;

/// What is known of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resolved {
    /// Its address.
    Address(SocketAddr),
    /// It is being asked for; the waker is called when it is known.
    Pending,
    /// It has none, or too many are asked for.
    Unknown,
}

/// Resolves names. See the module.
pub(super) struct Resolver {
    questions: SyncSender<(Box<str>, Waker)>,
    known: Arc<Mutex<Known>>,
}

type Known = HashMap<Box<str>, (Option<SocketAddr>, Nanos)>;

impl Resolver {
    /// Starts the thread; it ends with the resolver.
    ///
    /// # Errors
    /// When there are no threads left.
    pub(super) fn start() -> io::Result<Self> {
        let (questions, asked) = sync_channel(WAITING);
        let known = Arc::<Mutex<Known>>::default();
        let answers = Arc::clone(&known);
        std::thread::Builder::new()
            .name("resolver".to_owned())
            .spawn(move || answer(&asked, &answers))?;
        Ok(Self { questions, known })
    }

    /// The address of `name`, which is `host:port`.
    pub(super) fn resolve(&self, name: &str, now: Nanos, waker: &Waker) -> Resolved {
        {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            match known.get(name) {
                Some((Some(address), until)) if *until > now => return Resolved::Address(*address),
                Some((None, until)) if *until > now => return Resolved::Unknown,
                _ => {}
            }
        }
        match self.questions.try_send((name.into(), waker.clone())) {
            Ok(()) => Resolved::Pending,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Resolved::Unknown,
        }
    }
}

fn answer(asked: &Receiver<(Box<str>, Waker)>, known: &Mutex<Known>) {
    while let Ok((name, waker)) = asked.recv() {
        let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        // Many ask for the same name at once.
        let fresh = lock().get(&name).is_some_and(|(_, until)| *until > now);
        if !fresh {
            let found = name.to_socket_addrs().ok().and_then(|mut all| all.next());
            let age = if found.is_some() { FRESH } else { UNKNOWN };
            let mut known = lock();
            if known.len() >= NAMES {
                known.clear();
            }
            known.insert(name, (found, clock::now().saturating_add(age)));
        }
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wire::poller::Poller;

    use super::*;

    #[test]
    fn names_are_asked_for_once_and_remembered() {
        let resolver = Resolver::start().unwrap();
        let mut poller = Poller::new().unwrap();
        let waker = poller.waker().clone();
        for (name, found) in [("localhost:80", true), ("no such name:80", false)] {
            let now = clock::now();
            assert_eq!(resolver.resolve(name, now, &waker), Resolved::Pending);
            poller.wait(Some(Duration::from_secs(20))).unwrap();
            match resolver.resolve(name, now, &waker) {
                Resolved::Address(address) => assert!(found && address.port() == 80),
                other => assert!(!found && other == Resolved::Unknown),
            }
            // An old answer is asked for anew.
            let later = now + 2 * FRESH;
            assert_eq!(resolver.resolve(name, later, &waker), Resolved::Pending);
            poller.wait(Some(Duration::from_secs(20))).unwrap();
        }
    }
}
