//! What a port's next connections see. Immutable; swapped as a whole.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::backend::Backend;
use crate::table::Nanos;

/// The routes of one external port.
#[derive(Debug, Default)]
pub struct PortRoutes {
    /// By the name of a ClientHello, in lower case.
    named: HashMap<Box<str>, Arc<Pool>>,
    /// For everything else.
    default: Option<Arc<Pool>>,
}

impl PortRoutes {
    pub(super) fn insert(&mut self, name: &str, pool: Arc<Pool>) {
        if name.is_empty() {
            self.default = Some(pool);
        } else {
            self.named.insert(name.into(), pool);
        }
    }

    /// Whether there is no route.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.default.is_none()
    }

    /// Whether a route depends on the name in the ClientHello.
    pub fn depend_on_name(&self) -> bool {
        !self.named.is_empty()
    }

    /// The pool for a connection that names `name` (in any case); without a name, or when
    /// nobody has it, that of the port.
    pub fn find(&self, name: Option<&str>) -> Option<&Arc<Pool>> {
        let named =
            name.and_then(
                |name| match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
                    true => self.named.get(name.to_ascii_lowercase().as_str()),
                    false => self.named.get(name),
                },
            );
        named.or(self.default.as_ref())
    }
}

/// How the client's TLS ends at this router.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Termination {
    /// Protocols to agree on (ALPN), the best first; empty: none is spoken of.
    pub protocols: Box<[Box<str>]>,
}

/// The backends of one route.
#[derive(Debug)]
pub struct Pool {
    backends: Vec<Arc<Backend>>,
    termination: Option<Termination>,
    cursor: Arc<AtomicU32>,
}

impl Pool {
    pub(super) fn new(
        backends: Vec<Arc<Backend>>,
        termination: Option<Termination>,
        cursor: Arc<AtomicU32>,
    ) -> Self {
        Self {
            backends,
            termination,
            cursor,
        }
    }

    /// The backends, in an order that does not depend on when they came.
    pub fn backends(&self) -> &[Arc<Backend>] {
        &self.backends
    }

    /// How the client's TLS ends here; `None`: it passes through.
    pub fn termination(&self) -> Option<&Termination> {
        self.termination.as_ref()
    }

    /// Where one connection's attempts begin: the next backend each time.
    pub fn turn(&self) -> Turn {
        Turn {
            start: self.cursor.fetch_add(1, Ordering::Relaxed),
            passed: 0,
        }
    }

    /// The backend of a connection's next attempt: the next in turn that has not failed
    /// lately, or just the next when all have. When each had its attempt, those whose name has
    /// further addresses have others. `None` when the turn is over.
    pub fn next(&self, turn: &mut Turn, now: Nanos) -> Option<&Arc<Backend>> {
        let count = u32::try_from(self.backends.len()).unwrap_or(u32::MAX);
        let at = |passed: u32| {
            // Both are below 2^32: the sum does not overflow.
            let place = (u64::from(turn.start) + u64::from(passed)) % u64::from(count);
            self.backends
                .get(usize::try_from(place).unwrap_or_default())
        };
        let ready = |passed: &u32| at(*passed).is_some_and(|backend| !backend.has_failed(now));
        let chosen = if turn.passed < count {
            (turn.passed..count).find(ready).unwrap_or(turn.passed)
        } else {
            let has_more = |passed: &u32| {
                let attempts = (*passed / count) as usize;
                at(*passed).is_some_and(|backend| backend.addresses() > attempts)
            };
            (turn.passed..turn.passed.saturating_add(count)).find(has_more)?
        };
        turn.passed = chosen.saturating_add(1);
        at(chosen)
    }
}

/// One connection's way through the backends of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    start: u32,
    passed: u32,
}
