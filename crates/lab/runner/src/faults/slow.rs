//! Processes that run for a share of the time only.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lab_faults::duty::DutyCycle;
use processes::Signal;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal as KernelSignal, pidfd_open, pidfd_send_signal};
use units::{show_seconds, show_share};

use crate::processes::Running;

/// Time between two looks for processes that left their group or joined the tree: one that did
/// since the last look runs freely until the next.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Processes that are stopped and let go on by turns, on a thread of its own. Dropped, they go
/// on.
#[derive(Debug)]
pub(crate) struct Slowed {
    /// Dropped to end it.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Outcome>>,
}

/// For how long they ran, and of how much time; or what could not be done.
type Outcome = Result<(Duration, Duration), String>;

impl Slowed {
    /// From now on all processes of these copies run for `share` of the time, those too that
    /// they start.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub(super) fn begin(share: f64, copies: Vec<Running>) -> Result<Self, String> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("slow".to_owned());
        let thread = thread.spawn(move || {
            let mut trees = Trees {
                copies,
                members: BTreeMap::new(),
            };
            let outcome = slow(share, &mut trees, &stopped);
            trees.signal(Signal::SIGCONT);
            outcome
        });
        let thread = thread.map_err(|error| format!("start a thread: {error}"))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Lets them go on; says for how long they ran.
    ///
    /// # Errors
    /// When some of them could not be slowed.
    pub(super) fn end(mut self) -> Result<String, String> {
        let outcome = self
            .join()
            .unwrap_or_else(|| Err("its thread is gone".into()));
        let (ran, of) = outcome?;
        let share = ran.as_secs_f64() / of.as_secs_f64();
        let of = show_seconds(of.as_secs_f64());
        Ok(format!("they ran for {} of {of}", show_share(share)))
    }

    fn join(&mut self) -> Option<Outcome> {
        drop(self.stop.take());
        self.thread.take()?.join().ok()
    }
}

impl Drop for Slowed {
    fn drop(&mut self) {
        self.join();
    }
}

/// Switches until it is told to end.
fn slow(share: f64, trees: &mut Trees, stopped: &Receiver<()>) -> Outcome {
    let mut cycle = DutyCycle::new(share);
    let began = Instant::now();
    let mut looked: Option<Instant> = None;
    loop {
        let switch = cycle.switch(began.elapsed());
        let signal = match switch.run {
            true => Signal::SIGCONT,
            false => Signal::SIGSTOP,
        };
        trees.signal(signal);
        // Those that are known stand still meanwhile, and start nobody.
        if !switch.run && looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            trees.look()?;
            trees.signal(signal);
            looked = Some(Instant::now());
        }
        let left = switch.until.saturating_sub(began.elapsed());
        if stopped.recv_timeout(left) != Err(RecvTimeoutError::Timeout) {
            cycle.switch(began.elapsed());
            return Ok(cycle.ran());
        }
    }
}

/// The processes of copies.
struct Trees {
    copies: Vec<Running>,
    /// Each by a descriptor, which never comes to mean another one as a number may. They stay
    /// until they end: one whose parent has ended is found no more, and has to go on.
    members: BTreeMap<u32, OwnedFd>,
}

impl Trees {
    fn look(&mut self) -> Result<(), String> {
        let roots = self.copies.iter();
        let roots = roots.map(|copy| (copy.child.pid, copy.marks.clone()));
        for number in measure::Trees::now(roots) {
            let Some(pid) = Pid::from_raw(number.cast_signed()) else {
                continue;
            };
            if self.members.contains_key(&number) {
                continue;
            }
            match pidfd_open(pid, PidfdFlags::empty()) {
                Ok(handle) => drop(self.members.insert(number, handle)),
                Err(Errno::SRCH) => {}
                Err(error) => return Err(format!("hold on to process {number}: {error}")),
            }
        }
        Ok(())
    }

    /// Signals all of them; those that have ended are forgotten.
    fn signal(&mut self, signal: Signal) {
        // The groups first: what is forked just now is in them.
        for copy in &self.copies {
            copy.child.signal(signal);
        }
        let signal = match signal {
            Signal::SIGSTOP => KernelSignal::STOP,
            _ => KernelSignal::CONT,
        };
        self.members
            .retain(|_, member| pidfd_send_signal(member, signal) != Err(Errno::SRCH));
    }
}
