//! The faults of a step: begun, watched, and put right again.

use std::cell::RefCell;
use std::time::Duration;

use lab_experiment::plan::{EndSignal, Fault, FaultKind, OnExit, Step, Who};
use lab_faults::choose::{self, choose};
use lab_store::{EventKind, FaultRecord};
use measure::Clock;
use processes::Signal;
use tokio::sync::watch;
use tokio::time::Instant;
use units::show_seconds;

use crate::processes::{Copy, Starting, Systems};
use crate::steps::Trouble;

/// Time that a process has to end after a signal that it may catch.
const END_WITHIN: Duration = Duration::from_secs(10);

/// How far a step has come, as its faults need to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It makes entities, or holds.
    Holds,
    /// Its hold is over.
    Held,
    /// Everything else that it does is done.
    Done,
}

/// Waits until a step has come so far.
async fn reached(phase: &mut watch::Receiver<Phase>, wanted: Phase) {
    // Whoever tells lives as long as the step.
    let _ = phase.wait_for(|now| *now >= wanted).await;
}

/// What faults are made with.
#[derive(Clone, Copy)]
pub(crate) struct Faults<'a> {
    pub(crate) systems: &'a Systems,
    pub(crate) starting: &'a Starting<'a>,
    pub(crate) seed: u64,
    pub(crate) clock: Clock,
    /// Those that were made so far.
    pub(crate) made: &'a RefCell<Vec<FaultRecord>>,
}

/// A fault that has begun.
struct Begun<'a> {
    /// Each copy that is hit, with the number of the process that was.
    hit: Vec<(&'a Copy, u32)>,
    at: Instant,
    /// What was done to them, in words.
    text: String,
    /// Its place among those that were made.
    place: usize,
}

impl<'a> Faults<'a> {
    /// Makes the faults of a step beside its work, which tells how far it has come. Returns
    /// when all of them are undone, or shall be kept.
    ///
    /// # Errors
    /// When one cannot be made or undone. What the others broke is then left to the end of
    /// the run, which stops everything.
    pub(crate) async fn make(
        self,
        number: usize,
        step: &Step,
        phase: &watch::Receiver<Phase>,
    ) -> Result<(), Trouble> {
        let began = Instant::now();
        let faults = step.faults.iter().enumerate().map(|(place, fault)| {
            let drawn = format!("step {number} fault {place}");
            self.one(fault, &step.name, drawn, began, phase.clone())
        });
        futures_util::future::try_join_all(faults).await.map(drop)
    }

    async fn one(
        self,
        fault: &Fault,
        step: &str,
        drawn: String,
        step_began: Instant,
        mut phase: watch::Receiver<Phase>,
    ) -> Result<(), Trouble> {
        match fault.at {
            Some(at) => tokio::time::sleep_until(step_began + at).await,
            None => reached(&mut phase, Phase::Held).await,
        }
        let begun = self.begin(fault, step, &drawn).await?;
        if fault.keep {
            if let Some(made) = self.made.borrow_mut().get_mut(begun.place) {
                "kept, as the file says".clone_into(&mut made.text);
            }
            return Ok(());
        }
        let over = async {
            match fault.length {
                Some(length) => tokio::time::sleep_until(begun.at + length).await,
                // A restart lasts as long as it takes.
                None if matches!(fault.kind, FaultKind::Restart(_)) => {}
                None => reached(&mut phase, Phase::Done).await,
            }
        };
        if self.holds(fault) {
            over.await;
            return self.end(fault, step, &begun).await;
        }
        // Its own supervisor puts it right.
        tokio::select! {
            () = begun.ready_again() => {}
            () = over => {}
        }
        let mut down = begun.hit.iter().filter(|(copy, _)| !copy.is_up());
        let text = match down.next() {
            None => "its supervisor has started it again".to_owned(),
            Some((copy, _)) => format!("the step ended while {} was still down", copy.name),
        };
        self.tell_end(step, &begun, &text);
        Ok(())
    }

    /// Whether the fault itself keeps the copies down and starts them again; else their
    /// supervisor does.
    fn holds(self, fault: &Fault) -> bool {
        let mut systems = self.starting.systems.iter();
        let system = systems.find(|system| system.name == fault.system);
        let is_supervised =
            system.is_some_and(|system| matches!(system.on_exit, OnExit::Restart(_)));
        !is_supervised || fault.length.is_some() || !matches!(fault.kind, FaultKind::Kill(_))
    }

    async fn begin(self, fault: &Fault, step: &str, drawn: &str) -> Result<Begun<'a>, Trouble> {
        let hit = self.choose(fault, drawn)?;
        let names: Vec<&str> = hit.iter().map(|copy| &*copy.name).collect();
        let text = format!("{} {}", fault.kind.word(), names.join(", "));
        let starting = self.starting;
        starting.status.doing(text.clone());
        starting.recorder.event(EventKind::FaultBegan, step, &text);
        let at = Instant::now();
        let place = self.made.borrow().len();
        self.made.borrow_mut().push(FaultRecord {
            step: step.to_owned(),
            kind: fault.kind.word().to_owned(),
            targets: names.into_iter().map(str::to_owned).collect(),
            begin_s: self.clock.now_s(),
            end_s: None,
            text: "not over when the run ended".to_owned(),
            effects: Vec::new(),
        });
        let hit: Vec<(&Copy, u32)> = hit.into_iter().map(|copy| (copy, copy.start())).collect();
        match fault.kind {
            FaultKind::Pause => hit.iter().for_each(|(copy, _)| copy.pause(true)),
            FaultKind::Kill(signal) => {
                let signal = signal_of(signal);
                // All get the signal before the end of the first is waited for.
                for (copy, _) in &hit {
                    copy.told();
                    if self.holds(fault) {
                        copy.hold();
                    }
                    copy.signal(signal);
                }
                for (copy, _) in &hit {
                    self.ended(copy, signal).await?;
                }
            }
            FaultKind::Restart(signal) => {
                let ends = hit.iter().map(|(copy, _)| async {
                    copy.told();
                    copy.hold();
                    copy.signal(signal_of(signal));
                    let child = copy.running().child;
                    if tokio::time::timeout(END_WITHIN, child.exit())
                        .await
                        .is_err()
                    {
                        copy.signal(Signal::SIGKILL);
                    }
                    self.ended(copy, Signal::SIGKILL).await
                });
                futures_util::future::try_join_all(ends).await?;
            }
        }
        Ok(Begun {
            hit,
            at,
            text,
            place,
        })
    }

    /// The copies that are hit: of those that run, which no other fault has stopped.
    fn choose(self, fault: &Fault, drawn: &str) -> Result<Vec<&'a Copy>, Trouble> {
        let all = self.systems.copies_of(self.starting.systems, &fault.system);
        let free: Vec<&Copy> = all
            .iter()
            .filter(|copy| copy.is_up() && !copy.is_paused())
            .collect();
        draw(fault, all.len(), free, self.seed, drawn).map_err(|why| {
            let word = fault.kind.word();
            Trouble::Broken(format!("{word} {}: {why}", fault.system))
        })
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

    async fn end(self, fault: &Fault, step: &str, begun: &Begun<'_>) -> Result<(), Trouble> {
        if fault.kind == FaultKind::Pause {
            begun.hit.iter().for_each(|(copy, _)| copy.pause(false));
            self.tell_end(step, begun, "they go on");
            return Ok(());
        }
        let undone = Instant::now();
        let starts = begun.hit.iter();
        let starts = starts.map(|(copy, _)| self.systems.bring_up(copy, self.starting));
        futures_util::future::try_join_all(starts)
            .await
            .map_err(|error| Trouble::Broken(format!("end of \"{}\": {error}", begun.text)))?;
        let ready = show_seconds(undone.elapsed().as_secs_f64());
        self.tell_end(step, begun, &format!("ready {ready} after the new start"));
        Ok(())
    }

    fn tell_end(self, step: &str, begun: &Begun<'_>, text: &str) {
        if let Some(made) = self.made.borrow_mut().get_mut(begun.place) {
            made.end_s = Some(self.clock.now_s());
            text.clone_into(&mut made.text);
        }
        let lasted = show_seconds(begun.at.elapsed().as_secs_f64());
        let text = format!("{} for {lasted}: {text}", begun.text);
        let recorder = self.starting.recorder;
        recorder.event(EventKind::FaultEnded, step, &text);
    }
}

impl Begun<'_> {
    /// Waits until every copy that was hit has a new process that is ready.
    async fn ready_again(&self) {
        for (copy, start) in &self.hit {
            copy.ready_after(*start).await;
        }
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

/// Draws the copies that a fault hits; the same seed and place hit the same ones of the same
/// copies.
fn draw<'a>(
    fault: &Fault,
    all: usize,
    free: Vec<&'a Copy>,
    seed: u64,
    drawn: &str,
) -> Result<Vec<&'a Copy>, String> {
    let all = u32::try_from(all).unwrap_or(u32::MAX);
    let wanted = fault.who.number(all) as usize;
    let mut able = free;
    if let Who::Copy(index) = fault.who {
        able.retain(|copy| copy.index == index);
    }
    if able.len() < wanted {
        let left = able.len();
        return Err(format!(
            "{wanted} of {all} copies are to be hit, and {left} of those that can be are up; another fault has the others"
        ));
    }
    let names: Vec<String> = able.iter().map(|copy| copy.name.clone()).collect();
    let places = choose(&choose::Who::Count(wanted), &names, seed, drawn, 0);
    let places = places.map_err(|error| error.to_string())?;
    Ok(places.into_iter().map(|place| able[place]).collect())
}
