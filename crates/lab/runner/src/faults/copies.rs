//! Faults of processes: copies of systems that are killed, restarted or paused.

use std::time::Duration;

use lab_experiment::plan::{EndSignal, Fault, FaultKind, OnExit, Who};
use lab_faults::choose::{self, choose};
use lab_store::EventKind;
use processes::Signal;
use tokio::time::Instant;
use units::show_seconds;

use super::Faults;
use crate::processes::{Copy, pause, signal};
use crate::steps::Trouble;

/// Time that a process has to end after a signal that it may catch.
const END_WITHIN: Duration = Duration::from_secs(10);

/// Copies that a fault has hit, each with the number of the process that was.
pub(super) struct Hit<'a>(Vec<(&'a Copy, u32)>);

impl Hit<'_> {
    /// Names of the copies.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.iter().map(|(copy, _)| copy.name.clone()).collect()
    }

    /// Waits until every copy has a new process that is ready.
    pub(super) async fn ready_again(&self) {
        for (copy, start) in &self.0 {
            copy.ready_after(*start).await;
        }
    }

    /// How it ended where a supervisor puts it right.
    pub(super) fn supervised(&self) -> String {
        let mut down = self.0.iter().filter(|(copy, _)| !copy.is_up());
        match down.next() {
            None => "its supervisor has started it again".to_owned(),
            Some((copy, _)) => format!("the step ended while {} was still down", copy.name),
        }
    }
}

impl<'a> Faults<'a> {
    /// Whether the fault itself keeps the copies down and starts them again; else their
    /// supervisor does.
    pub(super) fn holds(self, fault: &Fault, system: &str) -> bool {
        let mut systems = self.starting.systems.iter();
        let system = systems.find(|known| known.name == system);
        let is_supervised =
            system.is_some_and(|system| matches!(system.on_exit, OnExit::Restart(_)));
        !is_supervised || fault.length.is_some() || !matches!(fault.kind, FaultKind::Kill(_))
    }

    /// The copies that a fault is to hit: of those that run, which no other fault has.
    pub(super) fn choose(
        self,
        system: &str,
        who: Who,
        (drawn, turn): (&str, u64),
    ) -> Result<Hit<'a>, String> {
        let all = self.systems.copies_of(self.starting.systems, system);
        let wanted = who.number(u32::try_from(all.len()).unwrap_or(u32::MAX)) as usize;
        let mut able: Vec<&Copy> = all
            .iter()
            .filter(|copy| copy.is_up() && !copy.is_paused())
            .collect();
        if let Who::Copy(index) = who {
            able.retain(|copy| copy.index == index);
        }
        if able.len() < wanted {
            let (all, left) = (all.len(), able.len());
            return Err(format!(
                "{wanted} of {all} copies are to be hit, and {left} of those that can be are up; \
                 another fault has the others"
            ));
        }
        let names: Vec<String> = able.iter().map(|copy| copy.name.clone()).collect();
        let places = choose(&choose::Who::Count(wanted), &names, self.seed, drawn, turn);
        let places = places.map_err(|error| error.to_string())?;
        let hit = places.into_iter().map(|place| able[place]);
        Ok(Hit(hit.map(|copy| (copy, copy.start())).collect()))
    }

    /// Does to copies what the fault does.
    pub(super) async fn hit(
        self,
        kind: FaultKind,
        holds: bool,
        Hit(hit): &Hit<'a>,
    ) -> Result<(), Trouble> {
        match kind {
            FaultKind::Kill(end) => {
                let all: Vec<&Copy> = taken_down(hit, holds);
                signal(&all, signal_of(end));
                for copy in all {
                    self.ended(copy, signal_of(end)).await?;
                }
            }
            FaultKind::Restart(end) => {
                let all: Vec<&Copy> = taken_down(hit, true);
                signal(&all, signal_of(end));
                let ends = all.into_iter().map(|copy| async {
                    let exit = copy.running().child;
                    if tokio::time::timeout(END_WITHIN, exit.exit()).await.is_err() {
                        signal(&[copy], Signal::SIGKILL);
                    }
                    self.ended(copy, Signal::SIGKILL).await
                });
                futures_util::future::try_join_all(ends).await?;
            }
            FaultKind::Pause | FaultKind::Network(_) => {
                let all: Vec<&Copy> = hit.iter().map(|(copy, _)| *copy).collect();
                pause(&all, true);
            }
        }
        Ok(())
    }

    /// Puts the copies right again; says how.
    pub(super) async fn put_right(
        self,
        kind: FaultKind,
        Hit(hit): &Hit<'_>,
    ) -> Result<String, String> {
        if kind == FaultKind::Pause {
            let all: Vec<&Copy> = hit.iter().map(|(copy, _)| *copy).collect();
            pause(&all, false);
            return Ok("they go on".to_owned());
        }
        let undone = Instant::now();
        let starts = hit.iter();
        let starts = starts.map(|(copy, _)| self.systems.bring_up(copy, self.starting));
        let started = futures_util::future::try_join_all(starts).await;
        started.map_err(|error| error.to_string())?;
        let ready = show_seconds(undone.elapsed().as_secs_f64());
        Ok(format!("ready {ready} after the new start"))
    }

    async fn ended(self, copy: &Copy, signal: Signal) -> Result<(), Trouble> {
        let child = copy.running().child;
        let ended = tokio::time::timeout(END_WITHIN, child.exit()).await;
        let ended = ended.map_err(|_| {
            let within = show_seconds(END_WITHIN.as_secs_f64());
            Trouble::Broken(format!(
                "{} did not end within {within} of {signal}; a kill with signal = \"KILL\" cannot be \
                 refused",
                copy.name
            ))
        })?;
        let recorder = self.starting.recorder;
        recorder.event(EventKind::SystemExited, &copy.name, &ended.to_string());
        Ok(())
    }
}

fn signal_of(signal: EndSignal) -> Signal {
    match signal {
        EndSignal::Kill => Signal::SIGKILL,
        EndSignal::Term => Signal::SIGTERM,
        EndSignal::Int => Signal::SIGINT,
        EndSignal::Hup => Signal::SIGHUP,
        EndSignal::Quit => Signal::SIGQUIT,
        EndSignal::Abrt => Signal::SIGABRT,
        EndSignal::Usr1 => Signal::SIGUSR1,
        EndSignal::Usr2 => Signal::SIGUSR2,
    }
}

/// The copies, of which from now on the fault tells how they ended, and which nobody else
/// starts again if it holds them.
fn taken_down<'a>(hit: &[(&'a Copy, u32)], holds: bool) -> Vec<&'a Copy> {
    let all = hit.iter().map(|(copy, _)| *copy);
    let all = all.inspect(|copy| {
        copy.told();
        if holds {
            copy.hold();
        }
    });
    all.collect()
}
