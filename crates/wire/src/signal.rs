//! Readiness of what has no descriptor: a stream of HTTP/2 becomes ready when its
//! connection was read, on the same thread and without a word from the kernel.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Wake, Waker};

use crate::poller::{Watch, Watched};

/// Tells a [`Poller`](crate::poller::Poller) that something is to be looked at, which it
/// tells as an event: once for any number of calls before it, and maybe for nothing. Clones
/// are the same signal.
#[derive(Debug, Clone, Default)]
pub struct Signal(Arc<State>);

/// Everything happens on one thread; the atomics are what [`Wake`] asks for.
#[derive(Debug, Default)]
struct State {
    pending_signals: OnceLock<Arc<PendingSignals>>,
    token: AtomicU64,
    rung: AtomicBool,
}

impl Signal {
    /// Asks for an event. Nothing happens as long as nobody watches.
    pub fn ring(&self) {
        self.0.wake_by_ref();
    }

    /// Takes back what was asked for.
    pub fn hush(&self) {
        self.0.rung.store(false, Ordering::Relaxed);
    }

    /// What rings it.
    pub fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.0))
    }

    /// Events go to this poller from now on, with this token. A signal stays with its first
    /// poller.
    pub(crate) fn watch(&self, pending_signals: &Arc<PendingSignals>, token: u64) {
        self.0.token.store(token, Ordering::Relaxed);
        self.0
            .pending_signals
            .get_or_init(|| Arc::clone(pending_signals));
    }
}

impl Watched for &Signal {
    fn watch(&self) -> Watch<'_> {
        Watch::Signal(self)
    }
}

impl Wake for State {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(pending_signals) = self.pending_signals.get()
            && !self.rung.swap(true, Ordering::Relaxed)
        {
            pending_signals.signals().push(Arc::clone(self));
        }
    }
}

/// What was rung on one thread and not told yet: each signal at most once, unless it was
/// hushed in between.
#[derive(Debug, Default)]
pub(crate) struct PendingSignals(Mutex<Vec<Arc<State>>>);

impl PendingSignals {
    fn signals(&self) -> MutexGuard<'_, Vec<Arc<State>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tokens of what was rung since the last call.
    pub(crate) fn take(&self, mut tell: impl FnMut(u64)) {
        let signals = mem::take(&mut *self.signals());
        for signal in &signals {
            if signal.rung.swap(false, Ordering::Relaxed) {
                tell(signal.token.load(Ordering::Relaxed));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::poller::{Interest, Poller, WAKER};
    use crate::slab::Key;

    fn tokens(poller: &mut Poller) -> Vec<u64> {
        poller.wait(Some(Duration::ZERO)).unwrap();
        std::iter::from_fn(|| poller.next_event())
            .map(|event| event.token)
            .collect()
    }

    #[test]
    fn each_signal_is_told_once() {
        let mut poller = Poller::new().unwrap();
        let signals = [Signal::default(), Signal::default()];
        signals[0].ring();
        assert!(tokens(&mut poller).is_empty());
        for (token, signal) in (7..).zip(&signals) {
            poller.add(signal, token, Interest::Read).unwrap();
        }
        // Nobody knows what happened before.
        assert_eq!(tokens(&mut poller), [7, 8]);
        assert!(tokens(&mut poller).is_empty());
        signals[1].ring();
        signals[1].clone().ring();
        signals[1].waker().wake();
        assert_eq!(tokens(&mut poller), [8]);
        signals[0].ring();
        signals[0].hush();
        assert!(tokens(&mut poller).is_empty());
        signals[0].ring();
        signals[0].hush();
        signals[0].ring();
        poller.change(&signals[1], 8, Interest::Both).unwrap();
        assert_eq!(tokens(&mut poller), [7, 8]);
    }

    #[test]
    fn sockets_are_not_kept_waiting() {
        let mut poller = Poller::new().unwrap();
        let signal = Signal::default();
        poller.add(&signal, 2, Interest::Read).unwrap();
        poller.waker().wake();
        let mut seen = Vec::new();
        for _ in 0..2 {
            seen.extend(tokens(&mut poller));
            signal.ring();
        }
        seen.sort_unstable();
        assert_eq!(seen, [2, 2, Key::of(0).token(WAKER)]);
    }
}
