//! Faults of processes: copies of systems that are killed, restarted or paused.

use std::os::fd::OwnedFd;
use std::time::Duration;

use lab_experiment::plan::{CopySelector, EndSignal, OnExit, ProcessFault, ScarceResource};
use lab_faults::choose::{self, choose, part_of};
use lab_faults::undo::Resource;
use lab_store::EventKind;
use processes::Signal;
use tokio::time::Instant;
use units::show_seconds;

use super::ballast::Filled;
use super::exhaust::Exhausted;
use super::{Faults, Slowed};
use crate::processes::{Copy, pause, runs, signal};
use crate::steps::StepError;

/// Time that a process has to end after a signal that it may catch.
const END_WITHIN: Duration = Duration::from_secs(10);
/// Between two looks whether what was killed has ended.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// What puts copies right that a fault has hit.
pub(super) enum Remedy {
    /// Their supervisor starts them again.
    Supervisor,
    /// They are started.
    Start,
    /// They go on.
    Continue,
    /// They are slowed no longer.
    FullSpeed(Slowed),
    /// Their limits are put back.
    Limits(Exhausted),
    /// Their file systems are emptied.
    Space(Filled),
}

/// Tells copies to end; gives all of their processes that were killed, and none of those that may end
/// as they like.
fn end(copies: &[&Copy], by: EndSignal) -> Vec<OwnedFd> {
    let by = signal_of(by);
    let told = signal(copies, by);
    match by {
        Signal::SIGKILL => told,
        _ => Vec::new(),
    }
}

/// Waits until processes have let go of what they had, [`END_WITHIN`] at most: that of the first of
/// a tree may be long over when its children still hold memory, files and ports that the next start
/// needs (PostgreSQL refuses to start beside them).
async fn wait_for_exit(processes: Vec<OwnedFd>) {
    let until = Instant::now() + END_WITHIN;
    while processes.iter().any(runs) && Instant::now() < until {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Copies that a fault has hit, each with the number of the process that was.
pub(super) struct Hit<'a>(Vec<(&'a Copy, u32)>);

impl<'a> Hit<'a> {
    /// From now on no other fault hits these copies.
    pub(super) fn take(copies: Vec<&'a Copy>) -> Self {
        let taken = copies.into_iter().map(|copy| {
            copy.is_under_fault.set(true);
            (copy, copy.start())
        });
        Self(taken.collect())
    }

    /// Others may hit them again.
    pub(super) fn release(&self) {
        for (copy, _) in &self.0 {
            copy.is_under_fault.set(false);
        }
    }

    pub(super) fn copies(&self) -> Vec<&'a Copy> {
        self.0.iter().map(|(copy, _)| *copy).collect()
    }

    /// The copies, of which from now on the fault tells how they ended, and which nobody else
    /// starts again if it holds them.
    fn take_down(&self, holds: bool) -> Vec<&'a Copy> {
        let all = self.copies();
        for copy in &all {
            copy.mark_end_reported();
            if holds {
                copy.hold();
            }
        }
        all
    }

    /// Names of the copies.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.iter().map(|(copy, _)| copy.name.clone()).collect()
    }

    /// Their processes now.
    pub(super) fn processes(&self) -> Vec<u32> {
        let roots = self.0.iter().map(|(copy, _)| copy.running());
        measure::Trees::now(roots.map(|running| (running.child.pid, running.marks)))
    }

    /// Waits until every copy has a new process that is ready.
    async fn ready_again(&self) {
        for (copy, start) in &self.0 {
            copy.ready_after(*start).await;
        }
    }

    /// How it ended where a supervisor puts it right.
    fn supervised(&self) -> String {
        let mut down = self.0.iter().filter(|(copy, _)| !copy.is_up());
        match down.next() {
            None => "its supervisor has started it again".to_owned(),
            Some((copy, _)) => format!("the step ended while {} was still down", copy.name),
        }
    }
}

impl<'a> Faults<'a> {
    /// Whether a supervisor starts the copies again that are killed; else the fault itself keeps
    /// them down.
    fn is_supervised(self, system: &str) -> bool {
        let mut systems = self.starting.systems.iter();
        let system = systems.find(|known| known.name == system);
        system.is_some_and(|system| matches!(system.on_exit, OnExit::Restart(_)))
    }

    /// Copies drawn from those that run and are free.
    fn choose(
        self,
        system: &str,
        who: &CopySelector,
        (drawn, turn): (&str, u64),
        is_free: fn(&Copy) -> bool,
    ) -> Result<Vec<&'a Copy>, String> {
        let all = self.systems.copies_of(self.starting.systems, system);
        let wanted = match who {
            // A probe picks at least one, and is asked elsewhere.
            CopySelector::Only | CopySelector::Copy(_) | CopySelector::Probe { .. } => 1,
            CopySelector::All => all.len(),
            CopySelector::Number(number) => all.len().min(*number as usize),
            CopySelector::Share(share) => part_of(*share, all.len()),
        };
        let mut able: Vec<&Copy> = all
            .iter()
            .filter(|copy| copy.is_up() && is_free(copy))
            .collect();
        if let CopySelector::Copy(index) = who {
            able.retain(|copy| copy.index == *index);
        }
        if able.len() < wanted {
            let others = match all.iter().all(Copy::is_up) {
                true => "another fault has the others",
                false => "the others have ended, or another fault has them",
            };
            let (all, left) = (all.len(), able.len());
            return Err(format!(
                "{wanted} of {all} copies are to be hit, and {left} of those that can be are up; \
                 {others}"
            ));
        }
        let names: Vec<String> = able.iter().map(|copy| copy.name.clone()).collect();
        let places = choose(
            &choose::MemberSelector::Count(wanted),
            &names,
            self.seed,
            drawn,
            turn,
        );
        let places = places.map_err(|error| error.to_string())?;
        Ok(places.into_iter().map(|place| able[place]).collect())
    }

    /// The copies that a fault or a signal is to hit, of those that are up and free, once it is
    /// known which.
    pub(super) async fn find(
        self,
        system: &str,
        who: &CopySelector,
        drawn: (&str, u64),
        is_free: fn(&Copy) -> bool,
    ) -> Result<Vec<&'a Copy>, String> {
        match who {
            CopySelector::Probe { probe, within } => {
                self.picked(system, probe, *within, is_free).await
            }
            who => self.choose(system, who, drawn, is_free),
        }
    }

    /// The copies that a probe picks, once it picks any.
    async fn picked(
        self,
        system: &str,
        probe: &str,
        within: Duration,
        is_free: fn(&Copy) -> bool,
    ) -> Result<Vec<&'a Copy>, String> {
        let starting = self.starting;
        let all = self.systems.copies_of(starting.systems, system);
        let limit = show_seconds(within.as_secs_f64());
        let doing = format!("wait at most {limit} for {probe} to pick a copy of {system}");
        let _shown = starting.status.meanwhile(doing);
        self.probes
            .pick(probe, (system, all), starting.addresses, within, is_free)
            .await
    }

    /// Does to copies of a system what a fault does, of which the file says for how long if it
    /// `is_timed`; gives what puts it right.
    pub(super) async fn hit(
        self,
        does: ProcessFault,
        (system, is_timed): (&str, bool),
        hit: &Hit<'a>,
    ) -> Result<Remedy, StepError> {
        Ok(match does {
            ProcessFault::Kill(by) => {
                let is_supervised = !is_timed && self.is_supervised(system);
                let all = hit.take_down(!is_supervised);
                let trees = end(&all, by);
                for copy in all {
                    self.ended(copy, signal_of(by)).await?;
                }
                wait_for_exit(trees).await;
                match is_supervised {
                    true => Remedy::Supervisor,
                    false => Remedy::Start,
                }
            }
            ProcessFault::Restart(by) => {
                let all = hit.take_down(true);
                let trees = end(&all, by);
                let ends = all.into_iter().map(|copy| async {
                    let exit = copy.running().child;
                    let mut tree = Vec::new();
                    if tokio::time::timeout(END_WITHIN, exit.exit()).await.is_err() {
                        tree = signal(&[copy], Signal::SIGKILL);
                    }
                    self.ended(copy, Signal::SIGKILL).await?;
                    wait_for_exit(tree).await;
                    Ok::<(), StepError>(())
                });
                futures_util::future::try_join_all(ends).await?;
                wait_for_exit(trees).await;
                Remedy::Start
            }
            ProcessFault::Pause => {
                pause(&hit.copies(), true);
                Remedy::Continue
            }
            ProcessFault::Slow(share) => {
                let running = hit.copies().into_iter().map(Copy::running).collect();
                let slowed = Slowed::begin(share, running);
                Remedy::FullSpeed(slowed.map_err(StepError::Broken)?)
            }
            ProcessFault::Exhaust(ScarceResource::Disk(left)) => {
                Remedy::Space(self.fill(hit, left)?)
            }
            ProcessFault::Exhaust(ScarceResource::Descriptors(left)) => {
                Remedy::Limits(self.exhaust(hit, (Resource::Descriptors, left))?)
            }
            ProcessFault::Exhaust(ScarceResource::Memory(left)) => {
                Remedy::Limits(self.exhaust(hit, (Resource::AddressSpace, left))?)
            }
        })
    }

    /// Puts the copies right again, once what `over` waits for is over; says how.
    pub(super) async fn put_right(
        self,
        hit: &Hit<'_>,
        remedy: Remedy,
        over: impl Future<Output = ()>,
    ) -> Result<String, String> {
        match remedy {
            Remedy::Supervisor => {
                tokio::select! {
                    () = hit.ready_again() => {}
                    () = over => {}
                }
                Ok(hit.supervised())
            }
            Remedy::Start => {
                over.await;
                self.start(hit).await
            }
            Remedy::Continue => {
                over.await;
                pause(&hit.copies(), false);
                Ok("they go on".to_owned())
            }
            Remedy::FullSpeed(slowed) => {
                over.await;
                slowed.end()
            }
            Remedy::Limits(exhausted) => {
                over.await;
                self.replenish(hit, &exhausted)
            }
            Remedy::Space(filled) => {
                over.await;
                self.empty(&filled)
            }
        }
    }

    async fn start(self, hit: &Hit<'_>) -> Result<String, String> {
        let undone = Instant::now();
        let starts = hit.copies().into_iter();
        let starts = starts.map(|copy| self.systems.bring_up(copy, self.starting));
        let started = futures_util::future::try_join_all(starts).await;
        started.map_err(|error| error.to_string())?;
        let ready = show_seconds(undone.elapsed().as_secs_f64());
        Ok(format!("ready {ready} after the new start"))
    }

    async fn ended(self, copy: &Copy, signal: Signal) -> Result<(), StepError> {
        let child = copy.running().child;
        let ended = tokio::time::timeout(END_WITHIN, child.exit()).await;
        let ended = ended.map_err(|_| {
            let within = show_seconds(END_WITHIN.as_secs_f64());
            StepError::Broken(format!(
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

pub(super) fn signal_of(signal: EndSignal) -> Signal {
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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;

    #[tokio::test]
    async fn processes_are_waited_for_until_each_has_ended() {
        let mut children: Vec<_> = (0..2)
            .map(|_| Command::new("sleep").arg("1000").spawn().unwrap())
            .collect();
        let handles = |children: &[std::process::Child]| {
            let open = |child| pidfd_open(Pid::from_child(child), PidfdFlags::empty()).unwrap();
            children.iter().map(open).collect::<Vec<_>>()
        };
        let waited = handles(&children);
        children[0].kill().unwrap();
        children[0].wait().unwrap();
        let one_runs =
            tokio::time::timeout(Duration::from_millis(100), wait_for_exit(waited)).await;
        assert!(one_runs.is_err());
        let waited = handles(&children[1..]);
        children[1].kill().unwrap();
        // It lets go when it has ended, whoever reads its end later.
        let ended = tokio::time::timeout(END_WITHIN / 2, wait_for_exit(waited)).await;
        children[1].wait().unwrap();
        ended.unwrap();
    }
}
