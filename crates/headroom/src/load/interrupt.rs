//! Ctrl-C: the first ends the load and keeps what was seen, the second ends everything.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lab_generator::Stopper;
use lab_load::Flow;
use lab_store::Outcome;
use nix::sys::signal::{SigSet, Signal};

/// What a person's interruption reaches.
#[derive(Clone)]
pub(super) struct Interrupt {
    pressed: Arc<AtomicBool>,
    reaction: Arc<Mutex<Reaction>>,
}

/// A second signal within this time is the first one again: `timeout`, `make` and the
/// like pass on what the terminal has sent to everybody already.
const AGAIN_AFTER: Duration = Duration::from_millis(300);

/// What the first interruption does, besides being noted.
enum Reaction {
    /// Ends everything: there is no load yet.
    Leave,
    /// Ends the load at once.
    Stop(Stopper),
    /// Nothing: whoever works looks at the note.
    Note,
}

impl Interrupt {
    /// From now on SIGINT, SIGTERM and SIGHUP are waited for by a thread. To be called before
    /// there are other threads: they inherit that the signals are blocked.
    pub(super) fn catch() -> Result<Self> {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGINT);
        signals.add(Signal::SIGTERM);
        // The terminal is gone; files and pipes may still take the result. Under nohup it
        // is ignored, and never arrives.
        signals.add(Signal::SIGHUP);
        signals
            .thread_block()
            .context("block the signals that end a load")?;
        let interrupt = Self {
            pressed: Arc::new(AtomicBool::new(false)),
            reaction: Arc::new(Mutex::new(Reaction::Leave)),
        };
        let told = interrupt.clone();
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                let mut last = None;
                while signals.wait().is_ok() {
                    let now = Instant::now();
                    if last.is_none_or(|last| now > last + AGAIN_AFTER) {
                        told.press();
                    }
                    last = Some(now);
                }
            })
            .context("start the thread that waits for signals")?;
        Ok(interrupt)
    }

    fn press(&self) {
        let reaction = self.reaction.lock().unwrap_or_else(PoisonError::into_inner);
        let again = self.pressed.swap(true, Ordering::Relaxed);
        match &*reaction {
            Reaction::Stop(stopper) if !again => stopper.stop(),
            Reaction::Note if !again => {}
            _ => std::process::exit(Outcome::Error as i32),
        }
    }

    /// From now on the first interruption stops a load.
    pub(super) fn stops(&self, stopper: Stopper) {
        self.react(Reaction::Stop(stopper));
    }

    /// From now on the first interruption is only noted.
    pub(super) fn noted(&self) {
        self.react(Reaction::Note);
    }

    fn react(&self, next: Reaction) {
        *self.reaction.lock().unwrap_or_else(PoisonError::into_inner) = next;
    }

    /// Was the load interrupted?
    pub(super) fn pressed(&self) -> bool {
        self.pressed.load(Ordering::Relaxed)
    }

    /// Whether what is under way goes on.
    pub(super) fn flow(&self) -> Flow {
        match self.pressed() {
            true => Flow::Stop,
            false => Flow::Continue,
        }
    }

    /// The flag itself, for those that look at it.
    pub(super) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.pressed)
    }
}
