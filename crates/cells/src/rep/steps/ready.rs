//! Telling that a step is ready.

use std::sync::{Arc, Mutex};

use crate::mutex::lock;

/// Tells, once, that a step is ready. Dropped without that, it never is.
pub(in crate::rep) struct Ready<'a>(Option<Box<dyn FnOnce() + Send + 'a>>);

impl<'a> Ready<'a> {
    /// Calls `tell`.
    pub(in crate::rep) fn new(tell: impl FnOnce() + Send + 'a) -> Self {
        Self(Some(Box::new(tell)))
    }

    /// Nobody waits for it.
    pub(in crate::rep) fn ignored() -> Self {
        Self(None)
    }

    /// It is ready.
    pub(in crate::rep) fn signal(self) {
        if let Some(tell) = self.0 {
            tell();
        }
    }

    /// So many, all of which must be signalled; without any it is signalled now.
    pub(super) fn split(self, count: usize) -> Vec<Self> {
        if count == 0 {
            self.signal();
            return Vec::new();
        }
        let waiting = Arc::new(Mutex::new((count, Some(self))));
        let each = || {
            let waiting = Arc::clone(&waiting);
            Self::new(move || {
                let last = {
                    let mut waiting = lock(&waiting);
                    waiting.0 -= 1;
                    (waiting.0 == 0).then(|| waiting.1.take()).flatten()
                };
                if let Some(all) = last {
                    all.signal();
                }
            })
        };
        (0..count).map(|_| each()).collect()
    }
}
