//! The threads of a server, which all do the same, each with a poller of its own: how they
//! start, hear what to do, and end.

use std::io;
use std::thread::{Builder, JoinHandle, available_parallelism};

use crate::poller::Waker;

/// What a thread is to do. There is no way back to an earlier phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// To serve.
    Running,
    /// To take nothing new, and to finish what there is.
    Draining,
    /// To end at once.
    Stopped,
}

/// See the module. Dropping them stops them.
#[derive(Debug, Default)]
pub struct Threads(Vec<(Waker, Option<JoinHandle<()>>)>);

impl Threads {
    /// Starts one more, which is called `name` and its number, counted from 0. It looks at the
    /// [phase](crate::poller::Poller::phase) of its poller, whose waker this is, before each
    /// wait, and ends when that says so.
    ///
    /// # Errors
    /// When there are no threads left.
    pub fn start(
        &mut self,
        name: &str,
        waker: Waker,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let name = format!("{name}-{}", self.0.len());
        let thread = Builder::new().name(name).spawn(run)?;
        self.0.push((waker, Some(thread)));
        Ok(())
    }

    /// Wakes all of them.
    pub fn wake(&self) {
        self.0.iter().for_each(|(waker, _)| waker.wake());
    }

    /// Tells all of them what to do, unless they were told to do more already.
    pub fn set_phase(&self, phase: Phase) {
        self.0.iter().for_each(|(waker, _)| waker.set_phase(phase));
    }

    /// Whether all have ended.
    pub fn have_ended(&self) -> bool {
        let mut running = self.0.iter().filter_map(|(_, thread)| thread.as_ref());
        running.all(JoinHandle::is_finished)
    }

    /// Stops all of them, and waits until they have ended.
    pub fn stop(&mut self) {
        self.set_phase(Phase::Stopped);
        for thread in self.0.iter_mut().filter_map(|(_, thread)| thread.take()) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Processors that this process may use; 1 if that is not known.
pub fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;
    use crate::poller::Poller;

    /// So many threads that tell their names and each phase that they see.
    fn started(count: usize) -> (Threads, Receiver<(String, Phase)>) {
        let (sender, told) = channel();
        let mut threads = Threads::default();
        for _ in 0..count {
            let mut poller = Poller::new().unwrap();
            let waker = poller.waker().clone();
            let sender = sender.clone();
            let run = move || {
                let name = std::thread::current().name().unwrap().to_owned();
                let mut seen = None;
                while seen != Some(Phase::Stopped) {
                    let phase = poller.phase();
                    if seen.replace(phase) != Some(phase) {
                        sender.send((name.clone(), phase)).unwrap();
                    }
                    if phase != Phase::Stopped {
                        poller.wait(None).unwrap();
                    }
                }
            };
            threads.start("server", waker, run).unwrap();
        }
        (threads, told)
    }

    fn both(told: &Receiver<(String, Phase)>, phase: Phase) {
        let mut names = [told.recv().unwrap(), told.recv().unwrap()];
        names.sort_by(|one, other| one.0.cmp(&other.0));
        let expected = ["server-0", "server-1"].map(|name| (name.to_owned(), phase));
        assert_eq!(names, expected);
    }

    #[test]
    fn each_hears_what_is_told_and_there_is_no_way_back() {
        let (mut threads, told) = started(2);
        both(&told, Phase::Running);
        assert!(!threads.have_ended());
        threads.set_phase(Phase::Draining);
        both(&told, Phase::Draining);
        threads.set_phase(Phase::Running);
        threads.stop();
        assert!(threads.have_ended());
        both(&told, Phase::Stopped);
        assert!(told.recv().is_err());
    }

    #[test]
    fn they_end_with_who_started_them() {
        let (threads, told) = started(2);
        both(&told, Phase::Running);
        drop(threads);
        both(&told, Phase::Stopped);
        assert!(told.recv().is_err());
    }
}
