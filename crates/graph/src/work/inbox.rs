//! Where an event loop finds the work that has ended.

use std::sync::{Arc, Mutex};

use wire::poller::Waker;

use super::Done;
use super::error::WorkError;
use crate::Nanos;
use crate::lock;

/// A job that has ended.
#[derive(Debug)]
pub struct Ended {
    /// As given with the job.
    pub key: u64,
    /// When it was handed over, on the monotonic clock.
    pub submitted: Nanos,
    /// When a thread took it up; it waited until then. For a job that was not begun: when
    /// it was given up.
    pub begun: Nanos,
    /// How it went.
    pub result: Result<Done, WorkError>,
}

/// The ended jobs of all [`super::Workers`] of an event loop. It holds no more than they
/// accepted.
pub struct Inbox {
    ended: Mutex<Vec<Ended>>,
    waker: Waker,
}

impl Inbox {
    /// One that wakes the event loop when something is in it.
    pub fn new(waker: Waker) -> Arc<Self> {
        Arc::new(Self {
            ended: Mutex::default(),
            waker,
        })
    }

    /// Appends all that ended, and empties it. To be called when it woke: what ends after
    /// that wakes again.
    pub fn drain(&self, into: &mut Vec<Ended>) {
        let mut ended = lock(&self.ended);
        into.append(&mut ended);
    }

    pub(crate) fn put(&self, one: Ended) {
        let first = {
            let mut ended = lock(&self.ended);
            ended.push(one);
            ended.len() == 1
        };
        // Others are found on the way that the first called for.
        if first {
            self.waker.wake();
        }
    }
}
