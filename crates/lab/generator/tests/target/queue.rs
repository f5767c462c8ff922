//! A queue whose capacity is exact: when each request is done follows from when the
//! others came, whatever the machine does meanwhile.

use std::time::Duration;

use stats::SplitMix;

/// How long the work of one request takes, for a mean of 1.
#[derive(Debug, Clone, Copy)]
pub enum Work {
    Exponential,
    Constant,
}

/// Servers with a common queue, first come first served.
#[derive(Debug, Clone)]
pub struct Queue {
    /// Mean time of service.
    pub mean: Duration,
    pub work: Work,
    /// Requests in service and waiting; one that comes beyond is refused.
    pub room: usize,
    /// When each server is free.
    pub free: Vec<u64>,
    /// When those in the room leave it.
    inside: Vec<u64>,
    pub random: SplitMix,
}

impl Queue {
    /// So many servers that together do so many requests a second.
    pub fn new(capacity: f64, servers: usize, work: Work, seed: u64) -> Self {
        Self {
            mean: Duration::from_secs_f64(servers as f64 / capacity),
            work,
            room: usize::MAX,
            free: vec![0; servers],
            inside: Vec::new(),
            random: SplitMix::new(seed),
        }
    }

    /// When a request that comes now is done; `None`: there is no room for it.
    pub fn take(&mut self, now: u64) -> Option<u64> {
        if self.room < usize::MAX {
            self.inside.retain(|done| *done > now);
            if self.inside.len() >= self.room {
                return None;
            }
        }
        let work = match self.work {
            Work::Exponential => self.random.exponential(),
            Work::Constant => 1.0,
        };
        let free = self.free.iter_mut().min()?;
        let done = (*free).max(now) + self.mean.mul_f64(work).as_nanos() as u64;
        *free = done;
        if self.room < usize::MAX {
            self.inside.push(done);
        }
        Some(done)
    }
}
